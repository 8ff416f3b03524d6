"""Charts of the reproduced papers: independence in every chart of answers to questions, and the papers' figures."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.core.histogram import SELECTIVITIES
from deniable.core.privacy import Privacy
from deniable.lab.anatomy import Anatomized
from deniable.lab.experiments import run_experiment
from deniable.lab.made_up import census
from deniable.lab.settings import Perturbed
from deniable.mechanisms import Uniform
from deniable.planning.candidates import INDEPENDENCE, Chart, line
from deniable.planning.pools import CodedTable, sdr_pool
from deniable.planning.prediction import Spread
from reproduction import Item, Reproduction, comparison, fine_grain, olap, olap_zipf, page, splu
from reproduction.zipf import zipf_table


def test_errors_by_selectivity_have_independence_in_every_panel() -> None:
    pool = sdr_pool(CodedTable.of(census(5_000, seed=3), "occupation"), conditions=30)
    privacy = Privacy("1/13", "1/6")
    settings = [Perturbed("uniform", Uniform(), privacy, ("inverse", "shrunk")), Anatomized(6)]
    result = run_experiment(pool, settings, draws=2)
    chart = comparison.by_selectivity("Errors", result)
    assert chart.panels == ("inverse", "shrunk")
    for panel in chart.panels:
        shown = {each.name: each for each in chart.series if each.panel == panel}
        assert list(shown) == ["uniform", "anatomy", INDEPENDENCE]
        expected = result.row("uniform", panel).errors(SELECTIVITIES)
        assert [point.y for point in shown["uniform"].points] == pytest.approx(expected)
        assert all(point.deviation > 0 for point in shown["uniform"].points)


def test_independence_of_olap_is_the_product_of_single_shares() -> None:
    bits = np.array([[True, True], [True, False], [False, False], [False, False]])
    # shares 1/4, 1/4, 0, 1/2; products 1/2 * 1/4, 1/2 * 3/4, 1/2 * 1/4, 1/2 * 3/4
    assert olap_zipf.independence(bits) == pytest.approx(1 / 8 + 1 / 8 + 1 / 8 + 1 / 8)
    grid = {(coin, k): (Spread(0.3, 0.01, 2),) * 3 for coin in olap.COINS for k in (1, 2, 3, 4)}
    items = {0.05: olap.against_columns(grid, dict.fromkeys((1, 2, 3, 4), 0.05))}
    items[0.25] = olap.against_coin("OLAP Figure 4", grid, 2, 0.25)
    for level, item in items.items():
        assert item.chart is not None
        for panel in item.chart.panels:
            (zero,) = [each for each in item.chart.series if (each.name, each.panel) == (INDEPENDENCE, panel)]
            assert {point.y for point in zero.points} == {level}


def test_the_paper_s_figures_are_in_charts_of_tables_that_print_them() -> None:
    chart = zipf_table("THESIS Table 6", [(50, 3)], draws=2).chart
    assert chart is not None
    assert {each.name: [point.y for point in each.paper] for each in chart.series} == {
        "uniform": [pytest.approx(0.448)],
        "small-domain": [pytest.approx(0.12)],
        "small-domain, default cost": [],
        "line-up": [],
    }
    item = fine_grain.table_10(draws=2)
    assert item.chart is not None
    assert sum(len(each.paper) for each in item.chart.series) == 2 * 3 * len(fine_grain.TABLE_10)


def test_figures_that_are_arithmetic_show_what_their_tables_show() -> None:
    item = splu.figure_5()
    assert item.chart is not None
    for place, each in enumerate(item.chart.series, start=1):
        assert [f"{point.y:.3f}" for point in each.points] == [row[place] for row in item.rows]


def test_a_page_shows_charts_where_there_is_a_folder_and_says_so_where_there_is_none() -> None:
    chart = Chart("Title [1]", "x", "y", (line("a", {1: 2.0}),))
    item = Item("Figure 1 (the first)", "About.", ("a",), (("1",),), True, "Because.", chart)
    made = [Reproduction("x", "X", (item,))]
    text = page(made, "page-charts")
    assert "![Title (1). Lines of y against x: a.](page-charts/figure-1-the-first.svg)" in text
    assert "no charts" not in text
    without = page(made)
    assert "![" not in without
    assert "There are no charts on this page" in without
    assert item.to_dict()["chart"]["title"] == "Title [1]"
