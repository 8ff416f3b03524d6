"""Anatomy's predicted errors, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.histogram import Histogram
from deniable.engines.randomness import Keystream, Secret
from deniable.planning.pools import sql_pool
from deniable.planning.profiles import BySelectivity
from deniable.planning.tables import CodedTable
from deniable.rivals.anatomy.estimate import AnatomyTables
from deniable.lab.anatomy import anatomy_groups
from deniable.lab import Anatomy
from deniable.rivals.anatomy.prediction import AnatomyMoments


def test_the_moments_of_anatomy_are_those_of_brute_force() -> None:
    """Shuffling who matches within each value many times gives the predicted mean and variance of the answer."""
    rng = np.random.default_rng(5)
    values = np.repeat(np.arange(6), [80, 70, 60, 50, 40, 30])
    sex = np.where(rng.random(len(values)) < 0.2 + 0.1 * values, "F", "M")
    table = CodedTable.of(pa.table({"sex": sex, "value": values}), "value")
    pool = sql_pool(table, "SELECT COUNT(*) FROM release WHERE sex = 'F' AND value IN (0, 3)")
    draws = Keystream(Secret.from_key(bytes(32)), "prediction")
    means, variances = AnatomyMoments(Anatomy(3), draws).moments(pool)
    bias, variance = means[0, 0], variances[0, 0]
    q = pool.by_value / table.histogram.counts
    groups = anatomy_groups(table.codes, 6, 3, draws.subkey("groups"), np.zeros(6, np.int64))
    tables = AnatomyTables.of_codes(table.codes, groups, 6)
    number = 20_000
    match = rng.random((number, len(values))) < q[0][table.codes]  # each row matches on its own
    inside = np.isin(table.codes, [0, 3])
    off = tables.counts(match)[:, [0, 3]].sum(1) - (match & inside).sum(1)
    assert off.mean() == pytest.approx(bias, abs=5 * math.sqrt(variance / number))
    assert off.var() == pytest.approx(variance, rel=0.05)  # five standard errors of a variance over 20,000 draws


def test_by_selectivity_each_group_with_the_value_is_off_by_one_row() -> None:
    """One value of a tenth, asked about half of its rows: Var = f q (1-q) (1 - 1/l) = 250 * 3/4."""
    histogram = Histogram.of({"x": 1000, **{f"other {number}": 100 for number in range(90)}})
    moments = AnatomyMoments(Anatomy(4), Keystream(Secret.from_key(bytes(32)), "prediction"))
    (error,) = BySelectivity(histogram, (0.05,)).errors_of(moments)
    assert error == pytest.approx(math.sqrt(2 / math.pi * 187.5) / 500)
