"""Errors, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deniable.evaluation.metrics import (
    FEWEST,
    errors_by_band,
    errors_by_selectivity,
    fitted_line,
    mean_between,
    reconstruction_error,
    relative_error,
    spread,
    spread_out,
    spreads,
)
from deniable.planning.independence import independence


def test_relative_error_is_not_a_number_where_the_truth_is_zero() -> None:
    errors = relative_error([12.0, 5.0, 1.0], [10.0, 10.0, 0.0])
    assert errors[:2] == pytest.approx([0.2, 0.5])
    assert math.isnan(errors[2])


def test_errors_are_averaged_over_questions_of_at_least_the_selectivity() -> None:
    truth, estimates = np.array([1.0, 10.0, 100.0]), np.array([3.0, 15.0, 110.0])
    found = errors_by_selectivity(estimates, truth, 1000, (0.001, 0.01, 0.2))
    assert found["relative"][:2] == pytest.approx([(2 + 0.5 + 0.1) / 3, 0.3])
    assert found["absolute"][:2] == pytest.approx([17 / 3, 7.5])
    assert math.isnan(found["relative"][2])


def test_a_range_of_true_answers_leaves_its_upper_end_out() -> None:
    assert mean_between(np.array([1.0, 2.0, 4.0]), np.array([1.0, 5.0, 10.0]), 1, 10) == 1.5


def test_reconstruction_error_leaves_out_values_without_rows_or_below_a_size() -> None:
    assert reconstruction_error([8.0, 30.0, 7.0], [10, 20, 0]) == pytest.approx(0.35)
    assert reconstruction_error([8.0, 30.0], [10, 20], least=15) == pytest.approx(0.5)


def test_a_line_through_scattered_points() -> None:
    truth = np.arange(100.0)
    line = fitted_line(truth, 0.5 * truth + 3 + np.tile([1.0, -1.0], 50))
    assert line.slope == pytest.approx(0.5, abs=0.01)
    assert 0.99 < line.r2 < 1
    assert math.isnan(fitted_line(np.ones(3), np.ones(3)).slope)


def test_spreads_over_draws() -> None:
    found = spreads([{"a": 1.0, "b": math.nan}, {"a": 2.0}, {"a": 3.0}])
    assert (found["a"].mean, found["a"].deviation, found["a"].draws) == (2.0, 1.0, 3)
    assert math.isnan(found["b"].mean)
    assert str(spread([0.25])) == "0.250"


def test_independence_multiplies_shares() -> None:
    found = independence([100.0, 10.0], [30, 10], [[True, False], [True, True]])
    assert found.tolist() == [[75.0, 100.0], [7.5, 10.0]]


def test_bands_hold_questions_of_their_size_and_none_that_are_too_few() -> None:
    truth = np.array([10.0] * FEWEST + [50.0] * (FEWEST - 1) + [200.0] * FEWEST + [0.0] * FEWEST)
    found = errors_by_band(truth * 1.5 + (truth >= 200) * 100, truth, 1000, (0.0, 0.02, 0.1, 0.3))
    assert found == {(0.0, 0.02): pytest.approx(0.5), (0.1, 0.3): pytest.approx(1.0)}


def test_questions_of_a_cloud_are_spread_over_sizes_without_chance() -> None:
    truth = np.array([0.0, *range(1000, 0, -1)])
    chosen = spread_out(truth, 101, most=10)
    assert truth[chosen].tolist() == [101, 201, 301, 401, 501, 600, 700, 800, 900, 1000]
    assert len(spread_out(truth, 1e9)) == 0
    assert len(spread_out(truth, 0, most=5000)) == 1000, "a question without rows is no point of a logarithmic axis"
