"""Small and large sums: the promises are exact binomial tails, and SPLU's Lemma 1 is not one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from deniable.core import privacy as sums
from deniable.core.errors import RequirementError
from deniable.core.privacy import LargeSums, SmallSums, chebyshev, miss
from reproduction.splu_sums import splu_lemma_1


def by_scipy(f: int, c: int, error: Fraction, strictly: bool) -> float:
    x = np.arange(c * f + 1)
    off = np.abs(x - f)
    inside = off <= math.floor(error * f) if strictly else off < math.ceil(error * f)
    return float(stats.binom.pmf(x, c * f, 1 / c)[~inside].sum())


@pytest.mark.parametrize("strictly", [True, False])
@pytest.mark.parametrize("error", ["1/10", "3/10", "1/2", "99/100"])
@pytest.mark.parametrize(("f", "c"), [(1, 2), (3, 10), (5, 10), (7, 2), (10, 5), (10, 3), (100, 5), (390, 10)])
def test_tails_are_those_of_the_binomial(f, c, error, strictly):
    assert float(miss(f, c, Fraction(error), strictly=strictly)) == pytest.approx(
        by_scipy(f, c, Fraction(error), strictly), abs=1e-10
    )


@pytest.mark.parametrize("error", ["1/100", "1/20", "1/2"])
@pytest.mark.parametrize(("f", "c"), [(50, 2), (400, 5), (400, 10), (39, 100), (2000, 2)])
def test_floating_point_and_whole_numbers_agree(f, c, error, monkeypatch):
    exact = miss(f, c, Fraction(error), strictly=False)
    monkeypatch.setattr(sums, "EXACT_TRIALS", 0)
    assert float(miss(f, c, Fraction(error), strictly=False)) == pytest.approx(float(exact), abs=1e-11)


@pytest.mark.parametrize(("f", "c"), [(2000, 5), (100_000, 10), (1_000_000, 3)])
def test_large_tails_agree_with_scipy(f, c):
    # More digits than one normal approximation has: the two differ there in the fifth digit.
    width = math.ceil(f / 100) - 1
    expected = stats.binom.cdf(f - width - 1, c * f, 1 / c) + stats.binom.sf(f + width, c * f, 1 / c)
    assert float(miss(f, c, Fraction(1, 100), strictly=False)) == pytest.approx(expected, abs=1e-9)


def test_worked_numbers():
    assert round(float(miss(5, 10, Fraction(3, 10), strictly=True)), 2) == 0.48
    assert round(float(SmallSums(error=0.3, below=3, at_least=0.6).reached(10)), 4) == 0.6126


def test_splu_lemma_1_promises_what_does_not_hold():
    f, c, error = 100, 5, Fraction(1, 10)
    at_least, more = miss(f, c, error, strictly=False), miss(f, c, error, strictly=True)
    assert splu_lemma_1(f, c, error) == Fraction(2, 1000)
    # "At least 10 rows off" and "more than 10 rows off"; counting the deviation of exactly 10 on one side gives .265.
    assert round(float(at_least), 3) == 0.288
    assert round(float(more), 3) == 0.240
    assert float(more + stats.binom.pmf(90, 500, 0.2)) == pytest.approx(0.265, abs=5e-4)
    assert chebyshev(f, c, error) == Fraction(8, 10) >= at_least > 100 * splu_lemma_1(f, c, error)


@pytest.mark.parametrize("c", [2, 3, 5, 10, 40])
@pytest.mark.parametrize("f", [1, 4, 10, 33, 100])
def test_chebyshev_never_promises_too_much(f, c):
    for error in (Fraction(1, 10), Fraction(1, 3), Fraction(9, 10)):
        assert miss(f, c, error, strictly=False) <= chebyshev(f, c, error)


@pytest.mark.parametrize("error", ["1/100", "1/10", "3/10", "1/2", "99/100"])
@pytest.mark.parametrize("strictly", [True, False])
def test_larger_groups_make_every_sum_less_certain(error, strictly):
    """The size is found by halving, which needs it: what holds at some c holds at all larger (or smaller) ones."""
    for f in (1, 2, 3, 5, 8, 10, 40):
        tails = [miss(f, c, Fraction(error), strictly=strictly) for c in range(2, 40)]
        assert tails == sorted(tails)


def test_a_promise_met_with_equality_is_met():
    assert miss(1, 2, Fraction(3, 10), strictly=True) == Fraction(1, 2)
    assert SmallSums(error=0.3, below=1, at_least=0.5).holds(2)
    assert not SmallSums(error=0.3, below=1, at_least="0.500001").holds(2)


def test_large_sums_hold_for_every_count_above_and_not_only_at_the_threshold():
    # At f = 5 a deviation of 50 % is 3 rows, at f = 6 too, but 6 rows vary more.
    limit = miss(5, 2, Fraction(1, 2), strictly=False)
    assert limit < miss(6, 2, Fraction(1, 2), strictly=False)
    assert not LargeSums(error=0.5, above=5, at_most=limit).holds(2)
    assert LargeSums(error=0.1, above=1000, at_most=0.05).holds(5)
    assert not LargeSums(error=0.1, above=100, at_most=0.05).holds(5)


def test_what_holds_above_holds_in_a_long_stretch():
    wanted = LargeSums(error=0.2, above=60, at_most=0.2)
    assert wanted.holds(5)
    assert max(miss(f, 5, wanted.error, strictly=False) for f in range(60, 800)) <= wanted.at_most


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SmallSums(error=0),
        lambda: SmallSums(below=0),
        lambda: SmallSums(below=2.5),  # type: ignore[arg-type]
        lambda: SmallSums(at_least=1),
        lambda: LargeSums(error=0.001),
        lambda: LargeSums(above=0),
        lambda: LargeSums(at_most="much"),
    ],
)
def test_what_is_not_allowed_is_refused(wrong):
    with pytest.raises(RequirementError, match="not a"):
        wrong()


def test_sentences_round_to_the_safe_side():
    assert "at least 61.2 %" in SmallSums().sentence(10)
    assert "at 1,000 rows 0.044 %" in LargeSums().sentence(5)
    assert "Chebyshev's inequality at most 8 %" in LargeSums().sentence(5)
