"""Errors, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deniable.lab.experiments import (
    FEWEST,
    errors_by_band,
    errors_by_selectivity,
    fitted_line,
    reconstruction_error,
    spread_out,
)


def test_errors_are_averaged_over_questions_of_at_least_the_selectivity() -> None:
    truth, estimates = np.array([1.0, 10.0, 100.0]), np.array([3.0, 15.0, 110.0])
    found = errors_by_selectivity(estimates, truth, 1000, (0.001, 0.01, 0.2))
    assert found["relative"][:2] == pytest.approx([(2 + 0.5 + 0.1) / 3, 0.3])
    assert found["absolute"][:2] == pytest.approx([17 / 3, 7.5])
    assert math.isnan(found["relative"][2])


def test_reconstruction_error_leaves_out_values_without_rows_or_below_a_size() -> None:
    assert reconstruction_error([8.0, 30.0, 7.0], [10, 20, 0]) == pytest.approx(0.35)
    assert reconstruction_error([8.0, 30.0], [10, 20], least=15) == pytest.approx(0.5)


def test_a_line_through_scattered_points() -> None:
    truth = np.arange(100.0)
    slope, r2 = fitted_line(truth, 0.5 * truth + 3 + np.tile([1.0, -1.0], 50))
    assert slope == pytest.approx(0.5, abs=0.01)
    assert 0.99 < r2 < 1
    assert math.isnan(fitted_line(np.ones(3), np.ones(3))[0])


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
