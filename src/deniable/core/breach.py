"""(s, rho1, rho2)-breaches: what a value set, not a single value, gives away (mathematics 2; OLAP Def. 5, Thm 4, 5,
Lemma 1).

A set S has the prior p_S and the mass m_S under the replacing distribution; its *relative prior* is p_S / m_S. There is
a breach when a set of relative prior below s, believed at rho1 or less, is believed at rho2 or more after the release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from deniable.core.errors import RequirementError
from deniable.core.exact import SCALE
from deniable.core.probability import Probability, probability

Number = float | Fraction


def relative_prior_limit(coin: Number, rho1: Number, rho2: Number) -> Number:
    """One column is safe for s below (rho2 - rho1)(1 - p) / ((1 - rho2) p); infinite without a coin (OLAP Thm 4).

    >>> relative_prior_limit(Fraction(1, 5), Fraction(1, 10), Fraction(95, 100))
    Fraction(68, 1)
    """
    return math.inf if coin == 0 else (rho2 - rho1) * (1 - coin) / ((1 - rho2) * coin)


def joint_limit(coins: Sequence[Number], masses: Sequence[Number], rho1: Number, rho2: Number) -> Number:
    """S_1 x..x S_k is safe for p_S / m_S below this; every column with its own coin (OLAP Thm 5).

        rho2 (1 - rho1) prod_i (1 - p_i) / ((1 - rho2) prod_i ((1 - p_i) m_i + p_i))

    >>> tiny = [0.0, 0.0]
    >>> math.floor(joint_limit([0.2, 0.2], tiny, 0.1, 0.95))
    273
    """
    _same_length(coins, masses)
    above = rho2 * (1 - rho1)
    below = 1 - rho2
    for coin, mass in zip(coins, masses, strict=True):
        above *= 1 - coin
        below *= (1 - coin) * mass + coin
    return math.inf if below == 0 else above / below


@lru_cache(maxsize=64, typed=True)  # coins of many digits, asked for by every sentence; 0.5 is not Fraction(1, 2) here
def belief_limit(coin: Number, rho2: Number, s: Number = 1) -> Number:
    """Beliefs below rho2 - s p (1 - rho2) / (1 - p) stay below rho2, for sets of relative prior up to s (Thm 4).

    At s = 1, replacements drawn like the column itself, this is (rho2 - p) / (1 - p): OLAP Lemma 1.

    >>> belief_limit(Fraction(1, 5), Fraction(95, 100), 68)
    Fraction(1, 10)
    """
    return rho2 - s * coin * (1 - rho2) / (1 - coin) if coin < 1 else -math.inf


def posterior(prior: Number, mass: Number, coin: Number) -> Number:
    """Pr[X in S | Y in S] = p_S (p + (1-p) m_S) / (p p_S + (1-p) m_S), exactly, for one column.

    The prior is meant of S as a whole; inside S the bound is reached by any distribution.
    """
    seen = coin * prior + (1 - coin) * mass
    return prior * (coin + (1 - coin) * mass) / seen if seen else 0 * prior


def joint_posterior(prior: Number, coins: Sequence[Number], masses: Sequence[Number]) -> Number:
    """The largest Pr[X in S | Y in S] for S = S_1 x..x S_k, however the columns are correlated (OLAP Thm 5, proof).

    U p_S / (U p_S + L (1 - p_S)),  L = prod (1-p_i) m_i,  U = prod ((1-p_i) m_i + p_i)
    """
    _same_length(coins, masses)
    low: Number = 1
    high: Number = 1
    for coin, mass in zip(coins, masses, strict=True):
        low *= (1 - coin) * mass
        high *= (1 - coin) * mass + coin
    seen = high * prior + low * (1 - prior)
    return high * prior / seen if seen else 0 * prior


def largest_coin(s: Number, rho1: Probability, rho2: Probability, columns: int = 1, *, mass: Number = 0) -> float:
    """The coin below which (s, rho1, rho2)-breaches are impossible; 0 if none is small enough.

        one column:      p = (rho2-rho1) / (rho2-rho1 + s (1-rho2))                       (OLAP Thm 4)
        k columns:       ((1-p) / ((1-p) mass + p))^k = s (1-rho2) / (rho2 (1-rho1))      (OLAP Thm 5)

    Args:
        s: by how many times a set of values may be likelier than its replacements.
        rho1, rho2: the belief before, and the one that must not be reached.
        columns: how many columns get the same coin.
        mass: the largest share of a column's replacements that falls into a set; 0 speaks of single values of large
            domains only, larger sets need a smaller coin.

    >>> import deniable as dn
    >>> round(dn.largest_coin(68, 0.1, 0.95), 12)
    0.2
    """
    if columns == 1:
        return float(_coin_bound(*requirement(s, rho1, rho2)))
    exact_s, first, second = (float(number) for number in requirement(s, rho1, rho2))
    odds = (exact_s * (1 - second) / (second * (1 - first))) ** (1 / columns)
    left = 1 - odds * float(mass)
    return max(left / (left + odds), 0.0) if left > 0 else 0.0


def safe_threshold(s: Number, rho1: Probability, rho2: Probability) -> int:
    """The largest coin, as an integer out of 2^32, for which one column has no (s, rho1, rho2)-breach.

    s = 1 speaks of replacements that are drawn like the column itself: (rho2 - rho1) / (1 - rho1) (OLAP Lemma 1).
    """
    return math.ceil(_coin_bound(*requirement(s, rho1, rho2)) * SCALE) - 1  # strictly below


def requirement(s: Number, rho1: Probability, rho2: Probability) -> tuple[Fraction, Fraction, Fraction]:
    """(s, rho1, rho2) as exact numbers, or an error in words."""
    try:
        exact = Fraction(s) if isinstance(s, int | Fraction) else Fraction(repr(float(s)))
    except (ValueError, OverflowError, TypeError):
        exact = Fraction(0)
    if isinstance(s, bool) or exact <= 0:
        raise RequirementError(
            f"s = {s!r} is not allowed: it is how many times likelier a set may be than its replacing mass, a number "
            "above 0. Fix: s=68 covers all sets that are up to 68 times likelier."
        )
    first, second = probability(rho1, "rho1"), probability(rho2, "rho2")
    if first >= second:
        raise RequirementError(f"rho1 = {rho1} is not below rho2 = {rho2}: a belief may only be allowed to grow.")
    return exact, first, second


def _coin_bound(s: Fraction, rho1: Fraction, rho2: Fraction) -> Fraction:
    return (rho2 - rho1) / (rho2 - rho1 + s * (1 - rho2))


def _same_length(coins: Sequence[Number], masses: Sequence[Number]) -> None:
    if len(coins) != len(masses) or len(coins) == 0:
        raise RequirementError(
            f"{len(coins)} coins and {len(masses)} replacing masses were given: each column needs one of both."
        )
