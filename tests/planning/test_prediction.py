"""Predicted errors against simulated releases.

Thresholds: the variance of 100,000 normal draws has a relative standard error of 0.45 %, so 2.3 % is five of them (a
false alarm in two million), and a formula that is wrong by 5 % fails.
"""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from deniable.core.channels import Channel, uniform_weights
from deniable.core.histogram import Histogram, QuestionProfile
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee, Nothing
from deniable.mechanisms.decoys import Decoys
from deniable.mechanisms.designed import Designed, Identity
from deniable.mechanisms.fine_grain import FineGrain
from deniable.mechanisms.lineup import Lineup
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.uniform import Uniform
from deniable.planning.prediction import calibrated_variance, pool_variance, predicted_error, predicted_relative_error

DRAWS = 100_000
TOLERANCE = 0.023
ROWS = Histogram.of({"a": 900, "b": 700, "c": 500, "d": 400, "e": 300, "f": 200})
QUESTION = np.array([300.0, 100, 250, 60, 90, 20])  # rows of the question, by true value
CHOSEN = np.array([0.0, 1, 1, 0, 0, 0])
PRIVACY = Privacy(rho2="2/5")
PROMISED = Guarantee(
    promises=(Nothing("made by hand"),), adversary="frequency", rho1=None, rho2=None, worst=Fraction(1), gamma=None
)


def predicted_variance(
    plan: Plan, chosen: npt.ArrayLike, rows: npt.ArrayLike, *, marginal_variance: float | None = None
) -> np.ndarray:
    """The variance of single questions: their value sets, and the rows of their conditions by true value."""
    sets, by_value = np.atleast_2d(chosen) > 0, np.atleast_2d(np.asarray(rows, dtype=float))
    each = np.arange(len(sets))
    profile = QuestionProfile(plan.histogram.domain, by_value, sets, each, each)
    return pool_variance(plan, profile, marginal_variance=marginal_variance)


def two_cells(published: bool) -> Plan:
    first = Histogram.of({"a": 600, "b": 500, "c": 200, "d": 400})
    second = Histogram.of({"a": 300, "b": 200, "c": 300, "e": 300, "f": 200})
    cells = (
        Cell(first, Channel.of(first.domain, [0.5, 0.4, 0.6, 0.5])),
        Cell(second, Channel.of(second.domain, 0.55, [3, 2, 3, 3, 2])),
    )
    return Plan.of_cells("by hand", ROWS, cells, PROMISED, cells_published=published)


def simulated(plan: Plan, question: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Published counts of the question's rows in each cell, one line a draw: deal rows to cells, then perturb them."""
    observed = [np.zeros((DRAWS, cell.channel.m)) for cell in plan.cells]
    for value, dealt in plan.parts[0].value_cells().items():
        asked = int(question[plan.histogram.position(value)])
        shares = rng.multivariate_hypergeometric([rows for _, rows in dealt], asked, size=DRAWS)
        for (index, _), number in zip(dealt, shares.T, strict=True):
            channel = plan.cells[index].channel
            column = channel.matrix()[:, channel.values.index(value)]
            observed[index] += rng.multinomial(number, column / column.sum())
    return observed


def estimates(plan: Plan, observed: list[np.ndarray]) -> np.ndarray:
    total = np.zeros(DRAWS)
    for cell, counts in zip(plan.cells, observed, strict=True):
        total += counts @ cell.channel.weights(CHOSEN[plan.positions(cell)])
    return total


@pytest.mark.parametrize(
    "plan",
    [Uniform().plan(ROWS, PRIVACY), Identity().plan(ROWS, PRIVACY), Designed().plan(ROWS, PRIVACY), two_cells(True)],
    ids=lambda plan: plan.mechanism,
)
def test_predicted_variance_is_the_simulated_one(plan: Plan) -> None:
    values = estimates(plan, simulated(plan, QUESTION, np.random.default_rng(11)))
    variance = predicted_variance(plan, CHOSEN, QUESTION)[0]
    assert values.mean() == pytest.approx(QUESTION @ CHOSEN, abs=5 * np.sqrt(variance / DRAWS))
    assert values.var() == pytest.approx(variance, rel=TOLERANCE)
    assert np.abs(values - QUESTION @ CHOSEN).mean() == pytest.approx(predicted_error(variance), rel=TOLERANCE)


def test_unpublished_cells_are_predicted_through_their_mixture() -> None:
    plan = two_cells(False)
    question = np.floor(ROWS.counts * 0.4)  # enough of each value that dealing without replacement matters
    mixture = np.zeros((6, 6))
    published = np.zeros((DRAWS, 6))
    for cell, counts in zip(plan.cells, simulated(plan, question, np.random.default_rng(12)), strict=True):
        places = plan.positions(cell)
        mixture[np.ix_(places, places)] += cell.channel.matrix() * (cell.rows.counts / ROWS.counts[places])
        published[:, places] += counts
    values = published @ np.linalg.solve(mixture.T, CHOSEN)
    assert values.mean() == pytest.approx(question @ CHOSEN, abs=5 * values.std() / np.sqrt(DRAWS))
    assert values.var() == pytest.approx(predicted_variance(plan, CHOSEN, question)[0], rel=TOLERANCE)


def test_calibrated_variance_is_the_simulated_one() -> None:
    plan, rng, noise = Designed().plan(ROWS, PRIVACY), np.random.default_rng(13), 9.0
    inside = estimates(plan, simulated(plan, QUESTION, rng))
    outside = estimates(plan, simulated(plan, ROWS.counts - QUESTION, rng))
    marginal = ROWS.counts @ CHOSEN + rng.normal(0, np.sqrt(noise * 2), DRAWS)  # two noisy counts
    v_r = predicted_variance(plan, CHOSEN, QUESTION)[0]
    v_t = predicted_variance(plan, CHOSEN, ROWS.counts)[0]
    values = inside - v_r / (v_t + 2 * noise) * (inside + outside - marginal)
    predicted = predicted_variance(plan, CHOSEN, QUESTION, marginal_variance=noise)[0]
    assert predicted < 0.9 * v_r
    assert values.var() == pytest.approx(predicted, rel=TOLERANCE)


def test_calibration_does_not_undo_the_dealing_of_hidden_cells() -> None:
    """All rows of a value are dealt as planned, so the table's estimate shows nothing of how the question's were.

    With V_R for the covariance the prediction would be 27 % smaller.
    """
    plan, rng, draws, noise = Decoys(c=2).plan(ROWS, None), np.random.default_rng(14), 20_000, 2.0
    question, chosen = np.floor(ROWS.counts * 0.4), np.eye(6)[4]
    inside, outside, mixture = np.zeros((draws, 6)), np.zeros((draws, 6)), np.zeros((6, 6))
    for value, dealt in plan.parts[0].value_cells().items():
        place = plan.histogram.position(value)
        rows = [number for _, number in dealt]
        mine = rng.multivariate_hypergeometric(rows, int(question[place]), size=draws)
        for (index, number), own in zip(dealt, mine.T, strict=True):
            shown = plan.positions(plan.cells[index])
            inside[:, shown] += rng.multinomial(own, [0.5, 0.5])
            outside[:, shown] += rng.multinomial(number - own, [0.5, 0.5])
            mixture[shown, place] += 0.5 * number / ROWS.counts[place]
    weights = np.linalg.solve(mixture.T, chosen)
    of_question, of_table = inside @ weights, (inside + outside) @ weights
    known = ROWS.counts @ chosen + rng.normal(0, np.sqrt(noise), draws)
    covariance = np.cov(of_question, of_table)
    values = of_question - covariance[0, 1] / (covariance[1, 1] + noise) * (of_table - known)
    predicted = predicted_variance(plan, chosen, question, marginal_variance=noise)[0]
    assert values.var() == pytest.approx(predicted, rel=0.06)  # six standard errors
    share = 0.4 * ROWS.counts[4] / ROWS.rows
    by_size = predicted_relative_error(plan, ROWS, [share], marginal_variance=noise)
    each = [
        predicted_variance(plan, s, ROWS.counts * share * ROWS.rows / f, marginal_variance=noise)[0]
        for s, f in zip(np.eye(6), ROWS.counts, strict=True)
        if f >= share * ROWS.rows
    ]
    assert by_size == pytest.approx(np.mean(predicted_error(each)) / (share * ROWS.rows), rel=1e-9)


@pytest.mark.parametrize(
    "mechanism", [Uniform(), SmallDomain(), Designed(), Lineup(), Decoys(c=2)], ids=lambda each: each.name
)
def test_errors_by_size_agree_with_each_questions_own_variance(mechanism) -> None:
    plan = mechanism.plan(ROWS, None if mechanism.name == "decoys" else Privacy(rho2="2/5"))
    share = float(ROWS.relative.min()) / 2
    each = [
        predicted_variance(plan, chosen, ROWS.counts * share * ROWS.rows / f)[0]
        for chosen, f in zip(np.eye(ROWS.m), ROWS.counts, strict=True)
    ]
    found = predicted_relative_error(plan, ROWS, [share])
    assert found == pytest.approx(np.mean(predicted_error(each)) / (share * ROWS.rows), rel=1e-9)


def test_a_coin_of_zero_is_predicted_for_too() -> None:
    keep = np.array([0, 2**31, 2**30, 2**29, 2**31, 2**31])
    channel = Channel(ROWS.domain, keep, uniform_weights(6))
    plan = Plan.of_channel("made", ROWS, channel, PROMISED)
    each = [
        predicted_variance(plan, chosen, ROWS.counts * 0.01 * ROWS.rows / f)[0]
        for chosen, f in zip(np.eye(6), ROWS.counts, strict=True)
    ]
    found = predicted_relative_error(plan, ROWS, [0.01])
    assert found == pytest.approx(np.mean(predicted_error(each)) / (0.01 * ROWS.rows), rel=1e-9)


def test_prediction_and_planning_for_many_values_take_memory_in_proportion() -> None:
    """A matrix of the pairs of 4,000 values would be 128 MB, and 16 MB as bytes; 4,000 numbers are 0.03 MB."""
    counts = np.random.default_rng(1).integers(1, 200, 4_000)
    rows = Histogram(tuple(range(4_000)), counts)
    tracemalloc.start()
    for mechanism in (FineGrain(), Designed(), Identity(), Uniform()):
        plan = mechanism.plan(rows, Privacy(rho2="1/6"))
        assert predicted_relative_error(plan, rows, [5e-5]) > 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6


def test_calibration_halves_the_variance_of_half_the_table() -> None:
    assert calibrated_variance(50.0, 100.0, 0.0) == 25.0
    assert calibrated_variance(0.0, 0.0, 0.0) == 0.0


def test_many_questions_are_one_call() -> None:
    plan = two_cells(True)
    chosen = np.vstack([CHOSEN, np.eye(6)])
    rows = np.vstack([QUESTION] * 7)
    together = predicted_variance(plan, chosen, rows)
    assert together == pytest.approx([predicted_variance(plan, s, r)[0] for s, r in zip(chosen, rows, strict=True)])


def test_relative_error_follows_from_the_variances() -> None:
    plan = Designed().plan(ROWS, PRIVACY)
    n, a = ROWS.rows, 0.1
    expected = []
    for x in np.flatnonzero(ROWS.counts >= a * n):
        question = ROWS.counts * (a * n / ROWS.counts[x])
        expected.append(predicted_error(predicted_variance(plan, np.eye(6)[x], question)[0]) / (a * n))
    got = predicted_relative_error(plan, ROWS, (a, 0.9))
    assert got[0] == pytest.approx(np.mean(expected))
    assert np.isnan(got[1])
    assert predicted_relative_error(plan, ROWS, (a,), marginal_variance=2.0)[0] < got[0]


def test_the_order_of_mechanisms_on_a_census_like_column() -> None:
    rows = Histogram(tuple(range(50)), np.round(7_400 * np.linspace(1, 0.13, 50) ** 2).astype(int))
    privacy = Privacy("1/13", "1/6")
    uniform, identity, frequency, designed = (
        predicted_relative_error(mechanism.plan(rows, privacy), rows).mean()
        for mechanism in (Uniform(), Identity(), Designed("frequency"), Designed())
    )
    assert uniform > 3 * identity
    assert identity > 1.2 * designed
    assert frequency >= 0.99 * designed
