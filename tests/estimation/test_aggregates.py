"""Estimates are unbiased, variances are right and intervals cover: many draws of tallies, fixed seeds.

Thresholds are five standard errors (false alarm below 1e-6). With 200,000 draws that is 1.6 % of a variance and 0.25
points of coverage, so a standard error that is wrong by 5 % fails.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from deniable.core.channels import Channel
from deniable.core.tally import Block, Moments
from deniable.estimation.aggregates import Computed, Count, summed
from deniable.estimation.calibration import Control
from deniable.estimation.estimate import normal_quantile
from deniable.estimation.formula import Ratio
from deniable.estimation.linear import Linear
from deniable.estimation.model.one_part import ValueSets
from deniable.estimation.model.states import States

DRAWS = 200_000
DOMAIN = list("abcde")
CELLS = {
    "uniform": States(5, (Channel.uniform(DOMAIN, gamma=Fraction(5)),), (np.arange(5),)),
    "coins": States(5, (Channel.of(DOMAIN, [0.3, 0.5, 0.4, 0.6, 0.35], [0.4, 0.1, 0.2, 0.1, 0.2]),), (np.arange(5),)),
    "two cells": States(
        5,
        (Channel.uniform(list("abc"), gamma=Fraction(5)), Channel.of(list("cde"), [0.4, 0.5, 0.6], [0.5, 0.2, 0.3])),
        (np.array([0, 1, 2]), np.array([2, 3, 4])),
    ),
}
SETS = np.array([[x == y for y in range(5)] for x in range(5)] + [[True, True, False, False, True]])[:, None, :]


def weighed(states, sets, control, tally, **moments):
    """The terms of rows by [draw, class, state], weighed by value sets."""
    block = Block(np.zeros((len(tally), 0), np.int64), tally, moments)
    often = [np.full(len(places), 1 / len(places)) for places in states.positions]
    return Linear({None: ValueSets(SimpleNamespace(states=states, often=often), block, sets, control)})


def counts_of(states, sets, control, tally):
    return Count().estimate(weighed(states, sets, control, tally), "inverse", 0.0, lambda _: (0.0, 0.0))


def draws_of(rng, states, rows, number):
    """Published tallies [draws, states] of true rows by state."""
    parts = []
    for channel, part in zip(states.channels, states.slices, strict=True):
        matrix = channel.matrix()
        parts.append(sum(rng.multinomial(f, matrix[:, x], number) for x, f in enumerate(rows[part])))
    return np.concatenate(parts, axis=1).astype(float)


def truth_of(states, rows):
    return SETS[:, 0, np.concatenate(states.positions)] @ rows


@pytest.mark.parametrize("name", CELLS)
def test_counts_are_unbiased_with_the_right_variance_and_cover(name):
    rng, states = np.random.default_rng(11), CELLS[name]
    rows = np.array([400, 200, 150, 300, 250, 100])[: states.count]
    tally = draws_of(rng, states, rows, DRAWS)
    found = counts_of(states, SETS, None, tally[:, None, :])
    truth = truth_of(states, rows)
    spread = found.value.std(axis=0)
    assert (np.abs(found.value.mean(axis=0) - truth) < 5 * spread / np.sqrt(DRAWS)).all()
    np.testing.assert_allclose(found.variance.mean(axis=0), spread**2, rtol=0.016)
    half = normal_quantile(0.95) * np.sqrt(found.variance)
    covered = (np.abs(found.value - truth) <= half).mean(axis=0)
    assert (np.abs(covered - 0.95) < 0.006).all(), covered


@pytest.mark.parametrize("name", CELLS)
def test_sums_and_averages_are_right(name):
    rng, states = np.random.default_rng(12), CELLS[name]
    small, large = (
        np.array(a)[: states.count] for a in ([900, 500, 600, 700, 800, 600], [500, 600, 300, 900, 400, 500])
    )
    one, three = (draws_of(rng, states, rows, DRAWS)[:, None, :] for rows in (small, large))
    pay = Moments(rows=one + three, sums=one + 3 * three, squares=one + 9 * three)
    rows = weighed(states, SETS, None, one + three, pay=pay)
    total, present = summed("pay", None)
    sums = Computed(total).estimate(rows, "inverse", 0.0, lambda _: (1.0, 3.0))
    truth = truth_of(states, small) + 3 * truth_of(states, large)
    spread = sums.value.std(axis=0)
    assert (np.abs(sums.value.mean(axis=0) - truth) < 5 * spread / np.sqrt(DRAWS)).all()
    np.testing.assert_allclose(sums.variance.mean(axis=0), spread**2, rtol=0.016)
    means = Computed(Ratio(total, present, (total,))).estimate(
        rows, "inverse", normal_quantile(0.95), lambda _: (1.0, 3.0)
    )
    ratio = truth / (truth_of(states, small) + truth_of(states, large))
    covered = (np.abs(means.value - ratio) <= normal_quantile(0.95) * np.sqrt(means.variance)).mean(axis=0)
    assert ((covered > 0.945) & (covered < 0.985)).all(), covered


@pytest.mark.parametrize(
    "name", [pytest.param("uniform", marks=pytest.mark.long), "two cells"]
)  # one of these has coins
def test_calibrated_counts_are_unbiased_narrower_and_their_variance_is_right(name):
    rng, states, number = np.random.default_rng(13), CELLS[name], 20_000
    inside = np.array([400, 200, 150, 300, 250, 100])[: states.count]
    outside = np.array([300, 300, 250, 200, 350, 150])[: states.count]
    ours, rest = draws_of(rng, states, inside, number), draws_of(rng, states, outside, number)
    exact = np.bincount(np.concatenate(states.positions), weights=inside + outside, minlength=5)
    q = np.exp(-1.0)
    noise = rng.geometric(1 - q, (number, 5)) - rng.geometric(1 - q, (number, 5))
    value, variance, raw = (np.empty((number, len(SETS))) for _ in range(3))
    for i in range(number):
        control = Control.of(ours[i] + rest[i], exact + noise[i], 2 * q / (1 - q) ** 2, np.ones(5, bool))
        found = counts_of(states, SETS, control, ours[i : i + 1, None, :])
        value[i], variance[i], raw[i] = found.value[0], found.variance[0], found.raw[0]
    spread = value.std(axis=0)
    assert (np.abs(value.mean(axis=0) - truth_of(states, inside)) < 5 * spread / np.sqrt(number)).all()
    np.testing.assert_allclose(variance.mean(axis=0), spread**2, rtol=0.05)
    assert (variance.mean(axis=0) < 0.8 * raw.mean(axis=0)).all()


@pytest.mark.long
def test_calibration_follows_mixed_conditions_too():
    """Two classes with different sets share one control; the covariance formula must still be right."""
    rng, states, number = np.random.default_rng(14), CELLS["coins"], 20_000
    first, second = np.array([400, 200, 150, 300, 250]), np.array([100, 200, 250, 100, 150])
    sets = np.array([[[True, True, False, False, False], [False, True, True, False, False]]])
    one, two = draws_of(rng, states, first, number), draws_of(rng, states, second, number)
    value, variance = np.empty(number), np.empty(number)
    for i in range(number):
        control = Control.of(one[i] + two[i], (first + second).astype(float), 0.0, np.ones(5, bool))
        found = counts_of(states, sets, control, np.stack([one[i], two[i]])[None])
        value[i], variance[i] = found.value[0, 0], found.variance[0, 0]
    assert abs(value.mean() - (600 + 450)) < 5 * value.std() / np.sqrt(number)
    assert variance.mean() == pytest.approx(value.var(), rel=0.05)
