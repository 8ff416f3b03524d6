"""(s, rho1, rho2)-breaches: the papers' numbers, and the theorems against exhaustive search."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.errors import RequirementError
from deniable.core.exact import (
    belief_limit,
    joint_limit,
    joint_posterior,
    largest_coin,
    posterior,
    relative_prior_limit,
    requirement,
    safe_threshold,
)

TENTH, ALMOST = Fraction(1, 10), Fraction(95, 100)


def test_a_coin_of_one_fifth_is_safe_from_68_in_one_column_and_273_in_two():
    assert relative_prior_limit(Fraction(1, 5), TENTH, ALMOST) == 68
    assert 273 < joint_limit([Fraction(1, 5)] * 2, [Fraction(0)] * 2, TENTH, ALMOST) < 274


def test_half_of_all_sets_are_likelier_than_their_replacements():
    """OLAP Thm 3 by counting: over all subsets but the empty and the full one, the median of p_S / m_S is 1."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        prior, mass = rng.dirichlet(np.ones(10)), rng.dirichlet(np.ones(10))
        sets = (np.arange(1, 2**10 - 1)[:, None] >> np.arange(10)) & 1
        ratios = np.sort((sets @ prior) / (sets @ mass))
        assert (ratios > 1).sum() == (ratios < 1).sum()
        below, above = ratios[len(ratios) // 2 - 1], ratios[len(ratios) // 2]
        assert below <= 1 <= above


def test_the_largest_coin_is_the_inverse_of_the_limit():
    assert largest_coin(68, 0.1, 0.95) == pytest.approx(0.2)
    assert relative_prior_limit(largest_coin(10, 0.1, 0.5), 0.1, 0.5) == pytest.approx(10)
    for mass in (0.05, 0.5, 0.9):  # larger sets need a smaller coin, and get it
        coin = largest_coin(5, 0.1, 0.95, columns=2, mass=mass)
        assert coin < largest_coin(5, 0.1, 0.95, columns=2)
        assert joint_limit([coin] * 2, [mass] * 2, 0.1, 0.95) == pytest.approx(5)
    p = largest_coin(273.6, 0.1, 0.95, columns=2)
    assert p == pytest.approx(0.2, abs=1e-9)


def test_the_integer_coin_is_the_largest_that_is_strictly_safe():
    keep = safe_threshold(68, "0.1", "0.95")
    assert relative_prior_limit(Fraction(keep, 2**32), TENTH, ALMOST) > 68
    assert relative_prior_limit(Fraction(keep + 1, 2**32), TENTH, ALMOST) <= 68
    for s in (1, 3):  # 1: replacements like the column itself, OLAP Lemma 1
        keep = safe_threshold(s, "0.1", "0.95")
        below, above = (belief_limit(Fraction(k, 2**32), ALMOST, s) for k in (keep, keep + 1))
        assert below > TENTH >= above


def test_exact_limits_stay_exact_whatever_was_computed_before():
    for half, three_quarters in ((0.5, 0.75), (Fraction(1, 2), Fraction(3, 4))):
        assert type(belief_limit(half, three_quarters)) is type(half)


def test_the_belief_that_stays_below_rho2_is_lemma_1_where_replacements_are_like_the_column():
    p = Fraction(1, 5)
    assert belief_limit(p, ALMOST) == (ALMOST - p) / (1 - p)
    assert belief_limit(1, ALMOST) < 0
    for s, mass in ((1, Fraction(1, 20)), (5, Fraction(1, 200))):
        limit = belief_limit(p, ALMOST, s)
        assert posterior(limit, limit / s, p) == ALMOST
        assert posterior(s * mass, mass, p) < ALMOST


@given(st.floats(0.01, 0.99), st.floats(0.001, 0.5), st.floats(0.001, 0.9), st.floats(0.51, 0.99))
def test_below_the_limit_no_set_is_believed_at_rho2_and_the_limit_is_sharp(coin, prior, mass, rho2):
    believed = posterior(prior, mass, coin)
    if prior / mass < relative_prior_limit(coin, prior, rho2) * (1 - 1e-9):
        assert believed < rho2
    elif prior / mass > relative_prior_limit(coin, prior, rho2) * (1 + 1e-9):
        assert believed > rho2


def test_the_joint_bound_holds_for_any_correlation():
    rng = np.random.default_rng(5)
    for _ in range(300):
        coins, m = rng.uniform(0.05, 0.95, 2), rng.integers(2, 5, 2)
        joint = rng.dirichlet(np.full(m.prod(), 0.3)).reshape(m)
        channels = [p * np.eye(k) + (1 - p) / k for p, k in zip(coins, m, strict=True)]
        published = channels[0] @ joint @ channels[1].T
        # S is the first value of each column: X in S and Y in S, over Y in S
        both = channels[0][0, 0] * channels[1][0, 0] * joint[0, 0]
        assert both / published[0, 0] <= joint_posterior(joint[0, 0], coins, 1 / m) + 1e-12


def test_the_joint_limit_is_where_the_joint_posterior_reaches_rho2():
    coins, masses, prior = [0.3, 0.5, 0.2], [0.1, 0.2, 0.4], 0.05
    reached = joint_posterior(prior, coins, masses)
    assert joint_limit(coins, masses, prior, reached) == pytest.approx(prior / np.prod(masses))


@pytest.mark.parametrize(
    "wrong", [(0, 0.1, 0.9), (-3, 0.1, 0.9), ("x", 0.1, 0.9), (5, 0.9, 0.1), (5, 0, 0.5), (True, 0.1, 0.9)]
)
def test_requirements_that_make_no_sense_are_refused(wrong):
    with pytest.raises(RequirementError):
        requirement(*wrong)


def test_each_column_needs_a_coin_and_a_mass():
    with pytest.raises(RequirementError, match="each column"):
        joint_limit([0.2], [0.1, 0.2], 0.1, 0.9)
