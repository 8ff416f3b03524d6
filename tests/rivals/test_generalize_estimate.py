"""Estimates from boxes against enumeration of every position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.rivals.generalize.estimate import BoxCounts, Ranges, Sets


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


def test_missing_rows_are_counted_apart() -> None:
    boxes = Ranges(np.array([1.0, np.nan]), np.array([4.0, np.nan]), np.array([0.25, 1.0]), whole=True)
    covered = boxes.covered([[1, 2]])
    assert boxes.share(covered, missing=False).tolist() == [0.375, 0.0]
    assert boxes.share(covered, missing=True).tolist() == [0.625, 1.0]


def test_listed_values_are_counted() -> None:
    sets = Sets(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 2, 3]), 2)
    assert sets.share(np.array([True, False, False, True])) == pytest.approx([1 / 2, 2 / 3])


def test_the_estimate_is_the_mean_and_its_variance_that_of_rows_that_lie_evenly() -> None:
    """Every row falls into the condition with its box's share: all outcomes of seven rows, by enumeration."""
    box, codes = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 2, 1, 1, 0])
    share, wanted = np.array([0.3, 0.8]), np.array([False, True, True])
    counts = BoxCounts.of_codes(box, codes, 3, 2)
    mean = square = 0.0
    for outcome in range(2**7):
        falls = (outcome >> np.arange(7)) & 1
        chance = np.prod(np.where(falls, share[box], 1 - share[box]))
        answer = int((falls * wanted[codes]).sum())
        mean, square = mean + chance * answer, square + chance * answer**2
    value, variance = counts.count(share, wanted)
    assert value == pytest.approx(mean)
    assert variance == pytest.approx(square - mean**2)
    assert counts.by_value(share, 3) @ wanted == pytest.approx(value)
