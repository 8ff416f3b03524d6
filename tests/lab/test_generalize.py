"""Generalization: what it bounds and refuses, its boxes, and groups that are large and diverse enough."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.errors import InternalError, OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab import Anatomy, Generalize
from deniable.lab.generalize import Axis, BoxCounts, Boxed, Ranges, Sets, axis_of, diverse, mondrian
from deniable.tables.encoding import encode

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))


@pytest.mark.parametrize(("option", "value"), [("k", 0), ("k", -3), ("k", True), ("k", 2.5), ("l", 0), ("l", False)])
def test_bad_options_are_named(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{option} = {value}"):
        Generalize(**{option: value})  # type: ignore[arg-type]


def test_it_bounds_the_largest_share() -> None:
    guarantee = Generalize(k=5, l=3).guarantee(COUNTS, Privacy(rho2="1/3"))
    assert guarantee.worst == Fraction(1, 3)
    assert guarantee.gamma is None
    assert "at least 5 rows" in guarantee.sentence


def test_plain_k_anonymity_promises_nothing_about_values() -> None:
    guarantee = Generalize(k=5, l=1).guarantee(COUNTS, None)
    assert guarantee.worst == 1
    assert guarantee.sentence.startswith("Nothing is promised")
    assert not Generalize(k=5, l=1).suppressed(COUNTS).any()


@pytest.mark.parametrize("l", [2, 3, 5, 8])
def test_it_suppresses_what_anatomy_does(l: int) -> None:
    assert np.array_equal(Generalize(k=1, l=l).suppressed(COUNTS), Anatomy(l=l).suppressed(COUNTS))


def test_a_requirement_is_checked_and_never_weakened() -> None:
    with pytest.raises(RequirementError, match="l=6"):
        Generalize(l=3).guarantee(COUNTS, Privacy(rho2="1/6"))
    with pytest.raises(RequirementError, match="l=2"):
        Generalize(l=1).guarantee(COUNTS, Privacy(rho2="1/2"))
    with pytest.raises(RequirementError, match="l=5"):
        Generalize(l=3).guarantee(COUNTS, Privacy(per_value={"h": ("1/10", "2/9")}))
    with pytest.raises(RequirementError, match=r"'generalize'.*any-prior"):
        Generalize(l=3).guarantee(COUNTS, Privacy(rho1="1/9", rho2="1/3", adversary="any-prior"))
    with pytest.raises(RequirementError, match="more than rho2 allows"):  # it is stated, though no value is covered
        Generalize(l=1).guarantee(COUNTS, Privacy(rho2="1/6", exempt=tuple("abcdefgh")))


def test_tables_that_are_too_small_are_refused() -> None:
    few = Histogram.of({"a": 5, "b": 3, "c": 2, "d": 0})
    with pytest.raises(RequirementError, match="l = 4 is too large: the sensitive column has 3 different values"):
        Generalize(k=2, l=4).guarantee(few, None)
    with pytest.raises(TableError, match=r"k = 11 is larger than the table.*k=10"):
        Generalize(k=11, l=1).guarantee(few, None)
    with pytest.raises(TableError, match="k = 7 is larger"):
        Generalize(k=7, l=3).guarantee(few, None)  # 2 rows of each value are left
    with pytest.raises(TableError, match="no rows"):
        Generalize().guarantee(Histogram.of({"a": 0, "b": 0}), None)


@pytest.mark.parametrize("mechanism", [Generalize(k=2, l=2), Anatomy(l=2)])
def test_a_protected_value_is_not_given_away_by_leaving_its_rows_out(mechanism):
    """Whoever is missing has the value that was left out: 6 of the 9 rows of "a"."""
    rows = Histogram.of({"a": 9, "b": 2, "c": 1})
    for privacy in (Privacy(rho2="1/2"), Privacy(rho1="3/4", rho2="4/5"), Privacy(per_value={"a": ("3/4", "4/5")})):
        with pytest.raises(RequirementError, match="leaves rows of 'a' out, which the requirement protects"):
            mechanism.guarantee(rows, privacy)
    for privacy in (Privacy(rho2="1/2", exempt="a"), Privacy(rho1="1/4", rho2="1/2")):
        assert mechanism.guarantee(rows, privacy).worst == Fraction(1, 2)


# -- boxes -------------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.integers(-20, 20),
    st.integers(0, 15),
    st.lists(st.tuples(st.floats(-25, 40), st.floats(0, 20)), max_size=3),
)
def test_whole_positions_are_counted(low: int, width: int, asked: list[tuple[float, float]]) -> None:
    intervals, end = [], -100.0
    for start, length in sorted(asked):  # kept apart by more than a whole number
        if start > end + 1:
            intervals.append((start, start + length))
            end = start + length
    box = Ranges(np.array([float(low)]), np.array([float(low + width)]), np.zeros(1), whole=True)
    inside = [any(a <= place <= b for a, b in intervals) for place in range(low, low + width + 1)]
    assert box.covered(np.array(intervals).reshape(-1, 2))[0] == pytest.approx(np.mean(inside))


def test_real_positions_are_measured_and_a_point_is_in_or_out() -> None:
    boxes = Ranges(np.array([0.0, 2.0, 5.0]), np.array([4.0, 2.0, 5.0]), np.zeros(3), whole=False)
    assert boxes.covered([[1, 2]]).tolist() == [0.25, 1.0, 0.0]
    assert boxes.covered([[-1, 0.5], [3, 9]]).tolist() == [0.375, 0.0, 1.0]
    assert boxes.covered([[2, 2]]).tolist() == [0.0, 1.0, 0.0]
    assert boxes.covered(np.zeros((0, 2))).tolist() == [0.0, 0.0, 0.0]


def test_runs_of_values_are_intervals_and_missing_rows_are_counted_apart() -> None:
    axis = axes_of(pa.table({"x": [1, 2, 3, 4, None]}))["x"]
    boxes = Ranges(np.array([1.0, np.nan]), np.array([4.0, np.nan]), np.array([0.25, 1.0]), whole=True)
    first_two = np.array([True, True, False, False, False])
    assert boxes.satisfying(axis, first_two).tolist() == [0.375, 0.0]
    assert boxes.satisfying(axis, first_two | (np.arange(5) == 4)).tolist() == [0.625, 1.0]
    assert boxes.satisfying(axis, np.array([True, False, True, True, False])) == pytest.approx([0.5625, 0.0])


def test_listed_values_are_counted() -> None:
    sets = Sets(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 2, 3]), 2)
    axis = axes_of(pa.table({"x": ["a", "b", "c", None]}))["x"]
    assert sets.satisfying(axis, np.array([True, False, False, True])) == pytest.approx([1 / 2, 2 / 3])


def test_the_estimate_is_the_mean_of_rows_that_lie_evenly() -> None:
    """Every row falls into the condition with its box's share: all outcomes of seven rows, by enumeration."""
    box, codes = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 2, 1, 1, 0])
    share = np.array([0.3, 0.8])
    mean = np.zeros(3)
    for outcome in range(2**7):
        falls = (outcome >> np.arange(7)) & 1
        chance = np.prod(np.where(falls, share[box], 1 - share[box]))
        mean += chance * np.bincount(codes, falls, 3)
    assert BoxCounts.of_codes(box, codes, 3, 2).by_value(share, 3) == pytest.approx(mean)


# -- Mondrian ----------------------------------------------------------------------------------------------------------


def axes_of(table: pa.Table) -> dict[str, Axis]:
    """Every column of a table as an axis."""
    return {name: axis_of(name, encode(table[name])) for name in table.column_names}


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
    axes = axes_of(table)
    boxed = Boxed(axes, groups, int(groups.max()) + 1)
    inside = np.ones((n, boxed.number), bool)
    for name, axis in axes.items():
        box = boxed.box(name)
        for row, code in enumerate(axis.codes):
            if isinstance(box, Ranges):
                there = (box.low <= axis.places[code]) & (axis.places[code] <= box.high)
                inside[row] &= there if code < len(axis.values) else box.missing > 0
            else:
                inside[row] &= box.satisfying(axis, np.arange(len(axis.values) + 1) == code) > 0
    assert np.array_equal(inside, np.arange(boxed.number) == groups[:, None]), "in its own box and in no other"


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


def test_columns_without_places_are_refused() -> None:
    with pytest.raises(TableError, match="'x' holds infinite"):
        axes_of(pa.table({"x": [1.0, float("inf")]}))
    with pytest.raises(InternalError):
        groups_of(pa.table({"x": [1, 2]}), np.array([0, 1]), 3, 1)


def test_equal_numbers_are_one_place_and_large_ones_are_told_apart() -> None:
    axis = axes_of(pa.table({"x": [0.0, -0.0, 1.0]}))["x"]
    assert axis.codes.tolist() == [0, 0, 1]
    for large in ([2**60 + 1, 2**60], [2**60, 2**60 + 1]):
        axis = axes_of(pa.table({"x": large}))["x"]
        assert axis.values.to_pylist() == sorted(large), "though they are the same as floating-point numbers"
