"""Charts drawn from data: the same bytes each time, small, told apart without colours, and nothing cut."""

from __future__ import annotations

import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from deniable.planning.candidates import INDEPENDENCE, Chart, cloud, level, line
from deniable.planning.prediction import Spread
from deniable.report import charts as figures

pytest.importorskip("altair", reason="needs the extra report")
pytest.importorskip("vl_convert", reason="needs the extra report")
LARGEST = 60_000
NAMES = ("uniform", "small-domain", "identity", "designed", "anatomy", "generalize", "decoys")


def lines_chart(panels: int = 3) -> Chart:
    series = []
    for panel in [""] if panels == 1 else [f"panel {number}" for number in range(panels)]:
        for i, name in enumerate(NAMES):
            found = {x: Spread((1 + i) / x, 0.1 / x, 3) for x in (1, 2, 5, 10)}
            series.append(line(name, found, panel=panel, paper={2: 0.7}))
        series.append(level(INDEPENDENCE, 0.4, (1, 10), panel=panel))
    return Chart('Errors & <more> "of them"', "coin p", "mean relative error", tuple(series), log_y=True, percent=True)


def cloud_chart() -> Chart:
    draw = random.Random(4)
    series = []
    for name in ("uniform, inverse", "designed, calibrated", INDEPENDENCE):
        true = [10 ** draw.uniform(2, 4) for _ in range(300)]
        series.append(cloud(name, [(each, each * draw.uniform(-0.5, 2)) for each in true], panel=name))
    return Chart("True and estimated", "true count", "estimate", tuple(series), cloud=True)


@pytest.mark.parametrize("chart", [lines_chart(1), lines_chart(3), cloud_chart()], ids=["lines", "panels", "cloud"])
def test_pictures_are_the_same_bytes_small_and_on_white(chart: Chart) -> None:
    text = figures.svg(chart)
    assert text == figures.svg(chart)
    assert len(text.encode()) < LARGEST
    root = ElementTree.fromstring(text)
    name = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{name}title").text == chart.described  # type: ignore[union-attr]
    ground = root.find(f"{name}rect")
    assert ground is not None
    assert ground.attrib["fill"] == "white"
    words = ["".join(each.itertext()) for each in root.iter(f"{name}text")]
    for panel in chart.panels:
        assert panel in words or panel.replace(", ", "") in words or panel == ""
    assert chart.title in words
    assert not any("…" in word for word in words), "a label was cut"


def test_lines_can_be_told_apart_without_colours() -> None:
    text = figures.svg(lines_chart(1))
    drawn = re.findall(r'<path d="M[^"]*L[^"]*" stroke="[^"]*" stroke-width="2"(?: stroke-dasharray="([^"]*)")?', text)
    assert len(drawn) == len(NAMES) + 1
    assert len(set(drawn)) == len(NAMES) + 1


def test_every_point_of_a_cloud_is_drawn_and_those_below_stand_at_the_edge() -> None:
    chart = Chart("t", "x", "y", (cloud("a", [(100, 110), (200, -5), (400, 390)], panel="a"),), cloud=True)
    text = figures.svg(chart)
    (dots,) = re.findall(r'<path d="([^"]*)"[^>]*stroke-linecap="round"', text) or re.findall(
        r'<path [^>]*stroke-linecap="round"[^>]* d="([^"]*)"', text
    )
    places = re.findall(r"M([\d.]+),([\d.]+)", dots)
    assert len(places) == 3
    height = max(float(y) for _, y in places)
    assert [float(y) == height for _, y in places] == [False, True, False]


def test_stale_pictures_of_ours_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "page-charts"
    figures.write_all(folder, {"one": figures.svg(lines_chart(1)), "two": figures.svg(cloud_chart())})
    (folder / "mine.svg").write_text("<svg/>")
    figures.write_all(folder, {"one": figures.svg(lines_chart(1))})
    assert sorted(path.name for path in folder.iterdir()) == ["mine.svg", "one.svg"]


@pytest.mark.parametrize(("panels", "across"), [(1, 1), (2, 2), (3, 2), (4, 2)])
def test_crowded_panels_get_room(panels: int, across: int) -> None:
    assert figures.columns_of(lines_chart(panels), 700) == across
    assert figures.columns_of(lines_chart(panels), 270) == 1


def test_kinds_of_points_in_one_panel_have_shapes_of_their_own() -> None:
    pairs = [(0.01, 0.012), (0.2, 0.19)]
    chart = Chart("Errors", "predicted", "measured", tuple(cloud(name, pairs) for name in NAMES[:4]), cloud=True)
    root = ElementTree.fromstring(figures.svg(chart))
    width = float(root.attrib["width"])
    name = "{http://www.w3.org/2000/svg}"
    shapes = {each.attrib["d"] for each in root.iter(f"{name}path") if each.attrib.get("stroke-width") == "1.5"}
    assert len(shapes) >= 4
    places = [
        [float(number) for number in re.findall(r"[\d.]+", each.attrib["transform"])]
        for each in root.iter(f"{name}path")
        if each.attrib.get("transform", "").startswith("translate(") and each.attrib.get("stroke-width") == "1.5"
    ]
    assert places
    assert all(0 <= x <= width for x, _ in places), "shares below 1 stay inside the picture"
