"""Errors and their spread, and the line to beat, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deniable.planning.prediction import independence, mean_between, relative_error, spread, spreads


def test_relative_error_is_not_a_number_where_the_truth_is_zero() -> None:
    errors = relative_error([12.0, 5.0, 1.0], [10.0, 10.0, 0.0])
    assert errors[:2] == pytest.approx([0.2, 0.5])
    assert math.isnan(errors[2])


def test_a_range_of_true_answers_leaves_its_upper_end_out() -> None:
    assert mean_between(np.array([1.0, 2.0, 4.0]), np.array([1.0, 5.0, 10.0]), 1, 10) == 1.5


def test_spreads_over_draws() -> None:
    found = spreads([{"a": 1.0, "b": math.nan}, {"a": 2.0}, {"a": 3.0}])
    assert (found["a"].mean, found["a"].deviation, found["a"].draws) == (2.0, 1.0, 3)
    assert math.isnan(found["b"].mean)
    assert str(spread([0.25])) == "0.250"


def test_independence_multiplies_shares() -> None:
    found = independence([100.0, 10.0], [30, 10], [[True, False], [True, True]])
    assert found.tolist() == [[75.0, 100.0], [7.5, 10.0]]
