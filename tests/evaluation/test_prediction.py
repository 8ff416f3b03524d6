"""Predicted errors against simulated releases.

Thresholds: the variance of 100,000 normal draws has a relative standard error of 0.45 %, so 2.3 % is five of them (a
false alarm in two million), and a formula that is wrong by 5 % fails.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable.core.channel import Channel
from deniable.core.errors import OptionError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.evaluation.prediction import (
    calibrated_variance,
    predicted_error,
    predicted_relative_error,
    predicted_variance,
)
from deniable.mechanisms.designed import Designed, Identity
from deniable.mechanisms.uniform import Uniform

DRAWS = 100_000
TOLERANCE = 0.023
ROWS = Histogram.of({"a": 900, "b": 700, "c": 500, "d": 400, "e": 300, "f": 200})
QUESTION = np.array([300.0, 100, 250, 60, 90, 20])  # rows of the question, by true value
CHOSEN = np.array([0.0, 1, 1, 0, 0, 0])
PRIVACY = Privacy(rho2="2/5")


def two_cells(published: bool) -> Plan:
    first = Histogram.of({"a": 600, "b": 500, "c": 200, "d": 400})
    second = Histogram.of({"a": 300, "b": 200, "c": 300, "e": 300, "f": 200})
    cells = (
        Cell(first, Channel.of(first.domain, [0.5, 0.4, 0.6, 0.5])),
        Cell(second, Channel.of(second.domain, 0.55, [3, 2, 3, 3, 2])),
    )
    promise = Guarantee(adversary="frequency", rho1=None, rho2=None, worst=Fraction(1), gamma=None)
    return Plan("by hand", ROWS, cells, published, None, promise)


def simulated(plan: Plan, question: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Published counts of the question's rows in each cell, one line a draw: deal rows to cells, then perturb them."""
    observed = [np.zeros((DRAWS, cell.channel.m)) for cell in plan.cells]
    for value, dealt in plan.value_cells().items():
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


def test_wrong_shapes_are_explained() -> None:
    with pytest.raises(OptionError, match="the plan has 6"):
        predicted_variance(two_cells(True), [1, 0], [3, 4])
