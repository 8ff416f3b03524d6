"""An evaluation as a page: the line to beat is in it everywhere, and it never stands in a release."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable import report
from deniable.core.errors import OutputError
from deniable.core.privacy import Privacy
from deniable.lab.anatomy import Anatomized
from deniable.lab.experiments import run_experiment
from deniable.lab.laplace import Noisy
from deniable.lab.made_up import census
from deniable.lab.settings import Perturbed
from deniable.mechanisms import Designed, Uniform
from deniable.owner import evaluation as measured
from deniable.owner.evaluation import NO_RELEASE, ranking_of
from deniable.planning.candidates import INDEPENDENCE
from deniable.planning.pools import CodedTable, sdr_pool

PRIVACY = Privacy("1/13", "1/6")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """An experiment with rivals of every kind, as JSON brings it back."""
    pool = sdr_pool(CodedTable.of(census(10_000, seed=5), "occupation"), conditions=60)
    settings = [
        Perturbed("uniform", Uniform(), PRIVACY, ("inverse", "shrunk")),
        Perturbed("designed", Designed(), PRIVACY, ("inverse", "shrunk")),
        Perturbed("impossible", Designed(), Privacy("1/13", "1/6", adversary="any-prior"), ("inverse",)),
        Anatomized(6),
        Noisy(1.0),
    ]
    result = run_experiment(pool, settings, draws=2)
    return json.loads(json.dumps(result.to_dict()))  # type: ignore[no-any-return]


def unfolded(blocks: Iterable[report.page.Block]) -> Iterator[report.page.Block]:
    for block in blocks:
        yield block
        if isinstance(block, report.page.Folded):
            yield from unfolded(block.blocks)


def test_the_page_says_for_whom_it_is_before_anything_else(told: dict[str, Any]) -> None:
    content = report.evaluation_report([told], "patients.csv")
    first = content.sections[0].blocks[0]
    assert isinstance(first, report.page.Note)
    assert "exact counts of the original" in first.text
    assert content.audience == "owner"
    text = report.render(content, "md")
    assert text.index("exact counts of the original") < text.index("## Ranking: pool")
    assert "impossible does not apply" in text


def test_independence_is_in_every_table_and_every_panel(told: dict[str, Any]) -> None:
    blocks = measured.measured_blocks(told)
    tables = [block for block in blocks if isinstance(block, report.page.Table)]
    assert NO_RELEASE in {row[0] for table in tables for row in table.rows}
    inside = [block for block in unfolded(blocks) if block not in blocks]
    tables = [block for block in inside if isinstance(block, report.page.Table)]
    drawn = [block for block in inside if isinstance(block, report.page.Figure)]
    assert len(tables) == len(drawn) == 2
    for table in [*tables, *(figure.data for figure in drawn)]:
        assert INDEPENDENCE in {row[0] for row in table.rows}
    chart = measured.errors_chart(told)
    assert chart.panels == ("inverse", "shrunk")
    for panel in chart.panels:
        assert [each.name for each in chart.series if each.panel == panel] == [
            "uniform",
            "designed",
            "anatomy",
            INDEPENDENCE,
        ]


def test_what_publishes_no_rows_is_not_the_best_release(told: dict[str, Any]) -> None:
    facts = next(block for block in measured.measured_blocks(told) if isinstance(block, report.page.Facts))
    figures = {label: (figure, meaning) for label, figure, meaning in facts.items}
    assert figures["Smallest error of a release"][1].startswith("designed")
    notes = [block.title for block in measured.measured_blocks(told) if isinstance(block, report.page.Note)]
    assert "laplace publishes no rows" in notes
    assert "no better than independence, which needs no release" in notes


def test_the_ranking_comes_first_and_answers_one_by_one_are_not_in_it(told: dict[str, Any]) -> None:
    noisy = [
        {**row, "setting": "laplace:questions=9", "estimator": "budget for each"}
        for row in told["rows"]
        if row["setting"] == "laplace"
    ]
    rows = [row for row in told["rows"] if row["setting"] != "laplace"]
    found = ranking_of({**told, "rows": [*rows, *noisy]})
    assert found is not None
    assert found.releases[0].release == "designed"
    assert {one.release for one in found.releases} == {"uniform", "designed", "anatomy"}
    errors = [one.errors[found.selectivity] for one in found.releases]
    assert errors == sorted(errors)
    best = min(row[f"relative {found.selectivity}"]["mean"] for row in told["rows"] if row["setting"] == "designed")
    assert errors[0] == best, "each release is ranked by its best estimator"
    assert found.times(found.releases[0], found.selectivity) == round(best / found.independence[found.selectivity], 3)
    _, table, *_ = measured.measured_blocks(told)
    assert isinstance(table, report.page.Table)
    place = [row[0] for row in table.rows].index(NO_RELEASE)
    assert table.marked == frozenset(range(place + 1, len(table.rows))), "what independence beats stands out"
    line = found.independence[found.selectivity]
    worse = [one.release for one in found.releases if one.errors[found.selectivity] >= line]
    assert [row[0] for row in table.rows][place + 1 :] == worse


def test_error_is_drawn_against_what_an_informed_attacker_gains(told: dict[str, Any]) -> None:
    pytest.importorskip("altair", reason="needs the extra report")
    gained = {"right": 0.4, "above_rho2": 0.2, "above_half": 0.1, "above_nearly": 0.0}
    one = {"people": 9, "after": gained, "without": {**gained, "right": 0.2}}
    result = {**told, "informed": {"uniform": one, "designed": one}, "rho2": 1 / 6}
    figure = next(block for block in measured.measured_blocks(result) if isinstance(block, report.page.Figure))
    assert {row[0] for row in figure.data.rows} == {"uniform", "designed"}
    assert "not played against them: anatomy" in figure.caption
    assert "20 % without a release" in figure.caption
    assert "rho2" in figure.caption
    drawn = figure.draw(700).to_dict(validate=False)
    marked = [layer["mark"]["type"] for layer in drawn["layer"]]
    assert marked == ["rule", "rule", "point"], "independence and rho2 are lines"


def test_details_are_folded_and_nothing_is_lost_by_it(told: dict[str, Any]) -> None:
    folded = [block for block in measured.measured_blocks(told) if isinstance(block, report.page.Folded)]
    assert [block.title for block in folded] == [
        "Every mechanism and estimator",
        "Errors by the size of the question",
        "True and estimated counts",
        "The histogram, rows kept, seconds",
        "What does not apply (1)",
    ]
    content = report.evaluation_report([told], "x")
    assert "| laplace |" in report.render(content, "md")
    assert json.loads(report.render(content, "json"))["sections"][1]["blocks"][-1]["kind"] == "details"


def test_quotients_are_those_of_the_points() -> None:
    row = {"setting": "a", "estimator": "", "cloud": [[10, 5], [10, 10], [10, 15], [10, 20], [10, 25]]}
    name, shown, first, last, low, high = measured._quotients(row)
    assert (name, shown, first, last) == ("a", 5, 1.0, 2.0)
    assert (low, high) == pytest.approx((0.6, 2.4))


def test_a_pool_of_few_questions_has_no_chart_by_size(told: dict[str, Any]) -> None:
    few = {
        **told,
        "questions": dict.fromkeys(told["questions"], 0),
        "rows": [{**row, "bands": []} for row in told["rows"]],
    }
    text = report.render(report.evaluation_report([few], "x"), "md")
    assert "too few questions" in text
    assert "No question of this pool is about 0.1 % of the rows or more" in text


def test_the_page_is_one_file_with_charts(told: dict[str, Any]) -> None:
    pytest.importorskip("altair", reason="needs the extra report")
    text = report.render(report.evaluation_report([told], "<b>.csv"))
    assert text.count("<svg") == 4, "two charts, each for a screen and for a phone"
    assert "<b>.csv" not in text
    assert not re.search(r'(?:href|src)="(?!#)', text)
    assert text == report.render(report.evaluation_report([told], "<b>.csv"))


def test_an_evaluation_is_never_written_into_a_release(told: dict[str, Any], hostile: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(hostile().folder, tmp_path / "release")
    content = report.evaluation_report([told], "x")
    (folder / "deeper").mkdir()
    for out in (folder / "e.md", folder / "deeper" / "e.md"):
        with pytest.raises(OutputError, match="never be published"):
            report.write(content, out, "md", None)
        assert not out.exists()
    (tmp_path / "manifest.json").write_text('{"name": "a web page"}')
    report.write(content, tmp_path / "e.md", "md", None)


def test_the_owner_s_report_shows_a_given_evaluation_with_its_charts(told: dict[str, Any], hostile: Any) -> None:
    content = report.document(hostile().folder, audience="owner", evaluation={"results": [told]})
    (section,) = [each for each in content.sections if each.title == "Measured errors"]
    titles = [block.title for block in unfolded(section.blocks) if isinstance(block, report.page.Figure)]
    assert titles == ["Errors by the size of the question", "True and estimated counts"]
    assert "keep it to yourself" in content.subtitle
