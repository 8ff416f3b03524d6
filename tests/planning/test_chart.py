"""Charts as data: what is in them."""

from __future__ import annotations

import json

from deniable.planning.candidates import Chart, Point, level, line, lines
from deniable.planning.prediction import Spread


def test_a_line_keeps_spreads_and_the_paper_s_figures_and_leaves_out_what_is_no_number() -> None:
    made = line("ours", {1: Spread(0.5, 0.1, 3), 2: 0.25, 3: float("nan")}, paper={1: 0.4})
    assert made.points == (Point(1, 0.5, 0.1), Point(2, 0.25))
    assert made.paper == (Point(1, 0.4),)
    assert level("same", 0.3, (5, 1, 3)).points == (Point(1, 0.3), Point(5, 0.3))


def test_a_chart_is_json_and_can_be_told_in_a_sentence() -> None:
    series = (line("a", {1: 2.0}, panel="left", paper={1: 3.0}), line("b", {1: 2.0}, panel="right"))
    chart = Chart("Title", "x", "y", series, log_y=True)
    told = json.loads(json.dumps(chart.to_dict()))
    assert told["series"][0] == {"name": "a", "panel": "left", "points": [[1, 2.0]], "paper": [[1, 3.0]]}
    assert chart.described == ("Title. Lines of y against x: a; b. Panels: left; right. Crosses: the paper's figures.")


def test_several_lines_come_from_rows_and_the_first_also_have_the_paper_s_figures() -> None:
    first, second = lines(("a", "b"), {1: (0.5, 0.6), 2: (0.7, Spread(0.8, 0.1, 2))}, papers={1: (0.4,)}, panel="p")
    assert first == line("a", {1: 0.5, 2: 0.7}, paper={1: 0.4}, panel="p")
    assert second == line("b", {1: 0.6, 2: Spread(0.8, 0.1, 2)}, panel="p")
