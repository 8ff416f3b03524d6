"""A plan in one line, as a table and as a copy: without the rows of its cells where it is only looked at."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import deniable as dn
from deniable import mechanisms
from deniable.core.channels import NumberRange
from deniable.mechanisms.base import Scanned

HOSTILE = "<script>alert(1)</script>"
ROWS = {"flu": 4021, "cold": 3517, HOSTILE: 1213, "tb": 911, "hiv": 409, "gout": 1103, "acne": 777, "burn": 613}
PRIVACY = dn.Privacy(rho2="3/5")
PLANNED = {
    "uniform": (mechanisms.Uniform(), PRIVACY),
    "small-domain": (mechanisms.SmallDomain(), PRIVACY),
    "designed": (mechanisms.Designed(), PRIVACY),
    "identity": (mechanisms.Identity(), PRIVACY),
    "fine-grain": (mechanisms.FineGrain(), mechanisms.tolerance(ROWS, 2)),
    "pram": (mechanisms.Pram(), PRIVACY),
    "redraw": (mechanisms.Redraw(), None),
    "decoys": (mechanisms.Decoys(c=3, leftovers="drop"), None),
    "retention": (mechanisms.Retention({"disease": dn.Replace(coin=0.5)}), None),
}


def planned(name: str) -> dn.Plan:
    mechanism, privacy = PLANNED[name]
    return dn.plan(ROWS, privacy, mechanism)


def counts_of(plan: dn.Plan) -> set[int]:
    """Every number of rows that a plan knows and that is no small number by chance."""
    cells = [count for cell in plan.cells for count in (*cell.rows.counts.tolist(), cell.size)]
    return {count for count in (*plan.histogram.counts.tolist(), plan.histogram.rows, *cells) if count > 100}


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_prints_in_one_line_without_numbers_of_rows(name, notebook):
    plan = planned(name)
    line, page = repr(plan), notebook(plan)
    assert line.startswith(f"<Plan by {name}")
    assert "\n" not in line
    assert len(line) < 120
    assert page.paragraphs[:2] == [line[1:-1], str(plan.guarantee)]
    for shown in (line, page.text.replace(str(plan.guarantee), "")):
        assert not [count for count in counts_of(plan) if str(count) in shown or f"{count:,}" in shown]


def test_the_table_has_a_line_for_each_cell_and_escapes_values(notebook):
    plan = planned("small-domain")
    page = notebook(plan)
    assert page.rows[0] == ["cell", "values", "coins", "gamma", "first values"]
    assert len(page.rows) == 1 + len(plan.cells)
    assert any(HOSTILE[:19] in row[-1] for row in page.rows)


def test_many_cells_are_not_all_shown(notebook):
    rows = {f"value {i}": 200 + i for i in range(300)}
    plan = dn.plan(rows, mechanism=mechanisms.Decoys(c=2, leftovers="drop", grouping="balanced"))
    assert len(plan.cells) > 30
    page = notebook(plan)
    assert len(page.rows) == 31
    assert page.paragraphs[-1] == f"{len(plan.cells) - 30:,} more cells are not shown."


def test_a_plan_of_several_columns_names_them(notebook):
    mechanism = mechanisms.Retention({"<b>job</b>": dn.Replace(coin=0.5), "age": dn.Replace(coin=0.4, low=0, high=99)})
    scans = [
        Scanned(("<b>job</b>",), 8, dn.Histogram.of({"cook": 3, "judge": 5})),
        Scanned(("age",), 8, grid=NumberRange("integer", 0, 99, 1, 0)),
    ]
    plan = mechanism.plan_scanned(scans, None)
    assert repr(plan) == "<Plan by retention for <b>job</b>, age: 2 columns, no rho2>"
    page = notebook(plan)
    assert page.rows[1][:3] == ["<b>job</b>", "0", "2"]
    assert page.rows[2] == ["age", "", "100", "40 %", "67.7", "0 to 99 in steps of 1"]


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))])
def test_a_plan_can_be_copied_and_sent_to_another_process(name, copied):
    plan = planned(name)
    _ = plan.record_utility, plan.cells[0].channel.coins  # kept numbers travel too, or are made again
    again = copied(plan)
    assert again is not plan
    assert (again.mechanism, again.guarantee, again.privacy, again.options) == (
        plan.mechanism,
        plan.guarantee,
        plan.privacy,
        plan.options,
    )
    assert again.record_utility == plan.record_utility
    for mine, theirs in zip(plan.cells, again.cells, strict=True):
        assert theirs.rows == mine.rows
        assert theirs.channel.values == mine.channel.values
        assert np.array_equal(theirs.channel.keep, mine.channel.keep)
        assert np.array_equal(theirs.channel.replace, mine.channel.replace)
        for array in (theirs.rows.counts, theirs.channel.keep, theirs.channel.replace):
            assert not array.flags.writeable, "a copy of a plan can be written to"
