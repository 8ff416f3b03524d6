"""Errors of questions by their size: of answers that are biased, noisy, or not possible."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.histogram import Histogram
from deniable.planning.pools import CodedTable, sql_pool
from deniable.planning.prediction import ByPool, BySelectivity, IndependenceMoments, RedrawMoments, folded_mean


def test_a_folded_normal_mean_is_the_simulated_one() -> None:
    rng = np.random.default_rng(1)
    bias, variance = np.array([0.0, 1.0, -3.0]), np.array([4.0, 1.0, 0.25])
    simulated = np.abs(rng.normal(bias, np.sqrt(variance), (400_000, 3))).mean(0)
    assert folded_mean(bias, variance) == pytest.approx(simulated, rel=0.01)


def test_selectivities_above_the_most_frequent_value_have_no_error() -> None:
    profile = BySelectivity(Histogram.of({"a": 700, "b": 300}), (0.001, 0.9))
    for errors in (profile.errors_of(RedrawMoments()), profile.noise(3.0)):
        assert errors[0] > 0
        assert math.isnan(errors[1])


def test_independence_is_off_by_what_the_columns_say_about_each_other() -> None:
    """Of 6 women 5 have a, of 4 men 1 has: 6 * 6/10 is said of the women, 4 * 6/10 of the men."""
    sexes, values = ["F"] * 6 + ["M"] * 4, list("aaaaab") + list("abbb")
    table = CodedTable.of(pa.table({"sex": sexes, "value": values}), "value")
    text = "\n".join(f"SELECT COUNT(*) FROM release WHERE sex = '{sex}' AND value = 'a'" for sex in "FM")
    profile = ByPool(sql_pool(table, text), (0.0, 0.5))
    assert profile.errors_of(IndependenceMoments()) == pytest.approx(((1.4 / 5 + 1.4 / 1) / 2, 1.4 / 5))
    assert profile.sizes == (2, 1)
    assert BySelectivity(table.histogram, (0.1,)).errors_of(IndependenceMoments()) == (0.0,)


def test_redrawn_values_add_the_noise_of_their_draws() -> None:
    rng = np.random.default_rng(2)
    histogram = Histogram.of({"a": 600, "b": 400})
    (error,) = BySelectivity(Histogram.of({"a": 600, "b": 400}), (0.5,)).errors_of(RedrawMoments())
    rows = 0.5 * 1000 / 0.6  # of the question, so that 500 of them have the value
    drawn = rng.binomial(round(rows), histogram.relative[0], 200_000)
    assert error == pytest.approx(np.abs(drawn - 500).mean() / 500, rel=0.02)
