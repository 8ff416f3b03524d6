"""Mondrian: groups that are large and diverse enough, whatever the table, and the same for any order of its rows."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.errors import ColumnError, InternalError, TableError
from deniable.engines.local.engine import LocalEngine
from deniable.rivals.generalize.axes import Axis, axes_of_rows
from deniable.rivals.generalize.boxes import box_table, box_texts, cells_of
from deniable.rivals.generalize.mondrian import diverse, mondrian


def axes_of(table: pa.Table) -> dict[str, Axis]:
    """Every column of a table as an axis."""
    return axes_of_rows(LocalEngine().open(table), table.column_names, np.arange(table.num_rows))


def groups_of(table: pa.Table, values: object, k: int, l: int) -> np.ndarray:
    return mondrian(list(axes_of(table).values()), np.asarray(values), k, l)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, np.ndarray]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 80))
    ages = draw(st.integers(1, 12))
    missing = draw(st.sampled_from([0.0, 0.3]))
    table = pa.table(
        {
            "age": pa.array(rng.integers(0, ages, n), mask=rng.random(n) < missing),
            "pay": pa.array(rng.normal(size=n).round(1), mask=rng.random(n) < missing),
            "sex": pa.array(rng.choice(list("FMX"), n), mask=rng.random(n) < missing),
            "day": pa.array([datetime.date(2020, 1, 1 + int(day)) for day in rng.integers(0, 9, n)]),
        }
    )
    return table, rng.integers(0, draw(st.integers(1, 6)), n)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 8), st.integers(1, 4))
def test_groups_are_large_diverse_and_independent_of_the_order_of_rows(
    made: tuple[pa.Table, np.ndarray], k: int, l: int
) -> None:
    table, values = made
    n = len(values)
    largest = max(np.bincount(values))
    if n < k or largest * l > n:
        with pytest.raises(InternalError):
            groups_of(table, values, k, l)
        return
    groups = groups_of(table, values, k, l)
    for group in range(groups.max() + 1):
        own = values[groups == group]
        assert len(own) >= k
        assert np.bincount(own).max() * l <= len(own)
    order = np.random.default_rng(0).permutation(n)
    assert np.array_equal(groups_of(table.take(pa.array(order)), values[order], k, l), groups[order])
    boxes = box_table(axes_of(table), groups)
    assert np.array_equal(cells_of(boxes, table), groups), "every row lies in its own box and in no other"
    assert boxes["rows"].to_pylist() == np.bincount(groups).tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 6))
def test_diversity_is_the_largest_share(values: list[int], l: int) -> None:
    assert diverse(np.array(values), l) == (max(np.bincount(values)) * l <= len(values))


def test_no_group_can_be_cut_further_at_a_median() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.integers(0, 50, 2000), "b": rng.integers(0, 50, 2000)})
    values = rng.integers(0, 8, 2000)
    groups = groups_of(table, values, 5, 3)
    assert groups.max() > 100
    for group in range(groups.max() + 1):
        inside = groups == group
        for name in "ab":
            own = table[name].to_numpy()[inside]
            median = np.sort(own)[(len(own) - 1) // 2]
            for left in (own <= median, own < median):
                sides = [values[inside][left], values[inside][~left]]
                assert any(len(side) < 5 or np.bincount(side).max() * 3 > len(side) for side in sides)


def test_the_widest_column_is_cut_first_measured_against_the_whole_table() -> None:
    # b is ten times wider in numbers; in the upper half by a, b spans a tenth of its range, so a is cut again.
    a = np.repeat(np.arange(8), 4)
    b = np.where(a < 4, 1000 * (a % 4), 100 * (a % 4))
    table = pa.table({"a": a, "b": b})
    groups = groups_of(table, np.zeros(32, np.int64), 8, 1)
    upper = a >= 4
    assert len(set(groups[upper])) == 2
    assert set(a[groups == groups[a == 4][0]]) == {4, 5}


def test_one_column_is_halved_and_equal_rows_stay_together() -> None:
    values = np.arange(100) % 7
    assert np.bincount(groups_of(pa.table({"x": np.arange(100)}), values, 25, 1)).tolist() == [25] * 4
    assert set(groups_of(pa.table({"x": np.zeros(100)}), values, 10, 2)) == {0}
    lopsided = pa.table({"x": [0] * 60 + [1] * 40})
    assert np.bincount(groups_of(lopsided, values, 10, 1)).tolist() == [60, 40]
    heavy_end = pa.table({"x": [0] * 40 + [1] * 60})  # the median is the largest value: the rest is what lies below
    assert np.bincount(groups_of(heavy_end, values, 10, 1)).tolist() == [40, 60]


def test_a_column_that_cannot_be_cut_gives_way_to_the_next() -> None:
    x = np.arange(40)
    values = np.where(x < 20, 0, 1)  # halving x would leave one value in each half
    y = x % 2
    groups = groups_of(pa.table({"x": x, "y": y}), values, 5, 2)
    assert np.array_equal(groups, y)


def test_a_long_chain_of_cuts_needs_no_recursion() -> None:
    x = 2.0 ** np.arange(0, 1000)  # a half of these values is always far from the others
    groups = groups_of(pa.table({"x": x}), np.zeros(1000, np.int64), 1, 1)
    assert sorted(groups.tolist()) == list(range(1000))


def test_boxes_as_text() -> None:
    table = pa.table(
        {
            "age": [17, 25, 30, 40, None, None],
            "sex": ["F", "M", "M", "M", None, "F"],
            "day": pa.array([datetime.date(2020, 1, d) for d in (1, 2, 3, 4, 5, 6)]),
            "one": [7] * 6,
        }
    )
    boxes = box_table(axes_of(table), np.array([0, 0, 1, 2, 2, 3]))
    assert box_texts(boxes, "age").to_pylist() == ["17..25", "30", "40 or missing", None]
    assert box_texts(boxes, "sex").to_pylist() == ["{F, M}", "M", "{M, missing}", "F"]
    days = ["2020-01-01..2020-01-02", "2020-01-03", "2020-01-04..2020-01-05", "2020-01-06"]
    assert box_texts(boxes, "day").to_pylist() == days
    assert box_texts(boxes, "one").to_pylist() == ["7"] * 4
    everything = box_table(axes_of(table), np.zeros(6, np.int64))
    assert [box_texts(everything, name).to_pylist() for name in ("age", "sex", "day", "one")] == [["*"]] * 3 + [["7"]]
    many = pa.table({"name": [f"{i:02}" for i in range(20)]})
    (text,) = box_texts(box_table(axes_of(many), np.r_[np.zeros(19, np.int64), 1]), "name").to_pylist()[:1]
    assert text == "{00, .., 18: 19 values}"


def test_rows_of_no_box_are_found_out_and_nan_is_missing() -> None:
    table = pa.table({"x": [1.0, 2.0, float("nan")], "s": ["a", "b", "a"]})
    boxes = box_table(axes_of(table), np.array([0, 0, 1]))
    assert boxes["x missing"].to_pylist() == [0, 1]
    others = pa.table({"x": [1.5, 3.0, None, 1.0], "s": ["a", "a", "a", "z"]})
    assert cells_of(boxes, others).tolist() == [0, -1, 1, -1]


def test_columns_without_places_are_refused() -> None:
    with pytest.raises(TableError, match="'x' holds infinite"):
        axes_of(pa.table({"x": [1.0, float("inf")]}))
    with pytest.raises(ColumnError, match="'x' of type list"):
        axes_of(pa.table({"x": [[1], [2]]}))
    with pytest.raises(InternalError):
        groups_of(pa.table({"x": [1, 2]}), np.array([0, 1]), 3, 1)


def test_equal_numbers_are_one_place_and_large_ones_are_told_apart() -> None:
    axis = axes_of(pa.table({"x": [0.0, -0.0, 1.0]}))["x"]
    assert axis.codes.tolist() == [0, 0, 1]
    for large in ([2**60 + 1, 2**60], [2**60, 2**60 + 1]):
        axis = axes_of(pa.table({"x": large}))["x"]
        assert axis.values.to_pylist() == sorted(large), "though they are the same as floating-point numbers"
