"""OptRR: an evolutionary search over matrices, what it bounds, and how its draws are answered."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab import OptRR
from deniable.lab.draws import draw_plan, stream_of
from deniable.lab.optrr import Problem, as_mixture, in_whole_numbers, searched, surest
from deniable.lab.rival import estimated
from deniable.mechanisms import Designed
from reproduction.zipf import table_of

COUNTS = Histogram(tuple("abcdefgh"), np.array([2200, 2000, 1500, 1300, 1000, 1000, 600, 400]))
PRIVACY = Privacy(rho2="1/3")
QUICK = OptRR(population=12, generations=15)


def problem() -> Problem:
    return Problem(COUNTS.relative, np.full(8, 1 / 3))


def test_objectives_are_the_largest_posterior_and_the_variance_of_counts() -> None:
    """Against the definition, entry by entry, and against counts that are drawn."""
    rng = np.random.default_rng(2)
    matrix = 0.6 * np.eye(3) + 0.4 * rng.dirichlet(np.ones(3), 3).T
    shares, limits = np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.8, np.inf])
    ((privacy, error),) = Problem(shares, limits).objectives(matrix[None])
    by_hand = max(
        shares[x] * matrix[y, x] / sum(shares[k] * matrix[y, k] for k in range(3)) / limits[x]
        for x in range(2)
        for y in range(3)
    )
    assert privacy == pytest.approx(by_hand)
    rows, draws = 1000, 4000
    counts = (rows * shares).astype(int)
    shown = np.array([[rng.multinomial(n, matrix[:, x]) for x, n in enumerate(counts)] for _ in range(draws)]).sum(1)
    squared = ((shown @ np.linalg.inv(matrix).T - counts) ** 2).mean()
    assert squared == pytest.approx(error * rows, rel=0.06)  # 12,000 squares of normal draws: 5 deviations are 0.065


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_matrices_are_brought_back_to_the_limits_and_no_further(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(5, 3.0))
    limits = np.where(rng.random(5) < 0.7, np.minimum(shares + rng.random(5) * 0.3 + 1e-3, 1.0), np.inf)
    own = Problem(shares, limits)
    matrices = rng.dirichlet(np.full(5, 0.5), (3, 5)).swapaxes(1, 2)
    back = own.returned(matrices)
    assert back.sum(1) == pytest.approx(np.ones((3, 5)))
    assert (own.posteriors(back) <= limits + 1e-9).all()
    beyond = (own.posteriors(matrices) > limits + 1e-9).any((1, 2))
    assert back[~beyond] == pytest.approx(matrices[~beyond])
    reached = (own.posteriors(back) / limits).max((1, 2))
    assert reached[beyond] == pytest.approx(np.ones(int(beyond.sum())), abs=1e-6)


def test_the_search_gets_better_and_is_the_same_every_time() -> None:
    own = problem()
    errors = [own.objectives(searched(own, np.random.default_rng(1), 20, n)[None])[0] for n in (1, 30, 120)]
    assert all(privacy <= 1 + 1e-9 for privacy, _ in errors)
    assert errors[2][1] < errors[1][1] < errors[0][1]
    once, again = (searched(own, np.random.default_rng(5), 20, 10) for _ in range(2))
    assert np.array_equal(once, again)


def test_a_short_search_comes_near_what_is_designed() -> None:
    own = problem()
    found, designed = (own.objectives(np.array(_matrix(mechanism))[None])[0][1] for mechanism in (OptRR(), Designed()))
    assert 0.8 * designed < found < 1.5 * designed


def _matrix(mechanism: Any) -> Any:
    plan = mechanism.plan(COUNTS, PRIVACY)
    part = plan.parts[0]
    return plan.cells[0].channel.matrix() if part.mixture is None else part.mixture


@pytest.mark.parametrize("noise", [None, 3, -3])
def test_the_certificate_holds_for_the_true_counts_in_whole_numbers(noise: int | None) -> None:
    public = None if noise is None else Histogram(COUNTS.domain, COUNTS.counts + noise)
    plan = QUICK.plan(COUNTS, PRIVACY, public=public)
    mixture = plan.parts[0].mixture
    assert mixture is not None
    exact = [[round(entry * 2**32) for entry in entries] for entries in mixture]
    assert as_mixture(exact) == mixture, "published as the whole numbers that are used"
    assert [sum(column) for column in zip(*exact, strict=True)] == [2**32] * 8
    for place, cell in enumerate(plan.cells):
        assert cell.channel.replace.tolist() == [row[place] for row in exact]
        assert cell.rows.rows == COUNTS.counts[place]
    brute = max(
        Fraction(int(COUNTS.counts[x]) * row[x], sum(int(n) * e for n, e in zip(COUNTS.counts, row, strict=True)))
        for row in exact
        for x in range(8)
    )
    assert brute == max(surest(exact, COUNTS.counts, 0)) <= Fraction(1, 3)
    assert brute <= plan.guarantee.worst <= Fraction(1, 3)
    (promise,) = plan.guarantee.promises
    assert promise.rho2 == Fraction(1, 3)  # type: ignore[union-attr]


def test_rounding_keeps_columns_and_bounds_allow_for_spare_rows() -> None:
    exact = in_whole_numbers(np.array([[0.7, 0.1], [0.3, 0.9]]))
    assert [sum(column) for column in zip(*exact, strict=True)] == [2**32] * 2
    upper, true = np.array([60, 50]), np.array([55, 45])
    bound, real = surest(exact, upper, 10), surest(exact, true, 0)
    assert all(high >= low for high, low in zip(bound, real, strict=True))


def test_estimates_are_unbiased_over_draws() -> None:
    plan, table = QUICK.plan(COUNTS, PRIVACY), table_of(COUNTS)
    wanted = np.eye(8, dtype=bool)
    draws = [draw_plan(table, plan, stream_of(1, number, "optrr"), None) for number in range(120)]
    found = np.array([estimated(draw.asking, draw.asking.total[None, :], wanted, "inverse")[0] for draw in draws])
    error = found.std(axis=0, ddof=1) / np.sqrt(120)
    assert (np.abs(found.mean(axis=0) - COUNTS.counts) < 8 * error).all()  # Student's t, 119 degrees, eight values
    assert (error < 0.05 * COUNTS.counts).all()


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(OptionError, match="population = 2"):
        OptRR(population=2)
    many = Histogram(tuple(range(65)), np.full(65, 10))
    with pytest.raises(RequirementError, match="up to 64 values"):
        OptRR().plan(many, Privacy(rho2="1/2"))
    with pytest.raises(RequirementError, match="any-prior"):
        QUICK.plan(COUNTS, Privacy("1/4", "1/3", adversary="any-prior"))
    with pytest.raises(RequirementError, match="needs a requirement"):
        QUICK.plan(COUNTS, None)
    with pytest.raises(RequirementError, match="cannot be met"):
        QUICK.plan(COUNTS, Privacy(rho2="1/5"))
    with pytest.raises(OptionError, match="one sensitive column"):
        QUICK.layout(("sex", "job"))
    exempt = QUICK.plan(COUNTS, Privacy(rho2="1/5", exempt=["a", "b"]))
    assert exempt.guarantee.worst <= Fraction(1, 5)
