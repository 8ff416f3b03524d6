"""How many rows make a share accurate, before anything is published (mathematics 6; OLAP Thm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from deniable.core.errors import OptionError
from deniable.estimation.estimate import normal_quantile

MOST_COLUMNS = 16


@dataclass(frozen=True)
class RowsNeeded:
    """Rows that make a share accurate to +- error.

    Attributes:
        theorem: by OLAP Theorem 1, for one column; None for several.
        certain: by Hoeffding's inequality, for any table and any number of columns.
        variance: by the variance of the estimate and the normal distribution; what to plan with.
    """

    theorem: int | None
    certain: int
    variance: int


def rows_needed(
    coins: float | Sequence[float],
    error: float,
    *,
    masses: float | Sequence[float] | None = None,
    confidence: float = 0.95,
    boolean: bool = False,
) -> RowsNeeded:
    """Rows that make the share of rows with certain values accurate to +- error (a share), with some confidence: it is
    then (n, error, delta) reconstructible (OLAP Def. 3).

        theorem  n >= 4 ln(2/delta) / (p error)^2                     one column (OLAP Thm 1)
        certain  n >= ln(2/delta) (w_max - w_min)^2 / (2 error^2)     w the product of the columns' weights
        variance n >= z^2 V / error^2                                 V the largest variance of one row's weight

    Args:
        coins: the coin p of the column, or of each column that the question is about.
        error: how far off the share may be, for example 0.01.
        masses: for each column the share of its replacing distribution that is asked for (b); left out, the worst.
        confidence: 1 - delta.
        boolean: for a yes or no instead of a share: is it above a threshold? The answer is right with this confidence
            wherever the true share is ``error`` or more away from the threshold. Only one side can be missed, so that
            delta takes the place of delta/2.

    >>> import deniable as dn
    >>> dn.rows_needed(0.5, 0.01)
    RowsNeeded(theorem=590221, certain=73778, variance=38415)
    >>> dn.rows_needed([0.5, 0.8], 0.01, masses=[0.1, 0.5])
    RowsNeeded(theorem=None, certain=104038, variance=48781)
    >>> dn.rows_needed(0.5, 0.01, boolean=True)
    RowsNeeded(theorem=479318, certain=59915, variance=27056)
    """
    p = _numbers("coins", coins)
    b = None if masses is None else _numbers("masses", masses)
    if not 0 < error < 1:
        raise OptionError(f"error = {error!r} is not allowed: it is no share between 0 and 1. Fix: error=0.01.")
    if len(p) > MOST_COLUMNS or not all(0 < coin <= 1 for coin in p):
        raise OptionError(
            f"coins = {coins!r} is not allowed. Fix: 1 to {MOST_COLUMNS} coins, each above 0 and at most 1."
        )
    if b is not None and (len(b) != len(p) or not all(0 <= mass <= 1 for mass in b)):
        raise OptionError(f"masses = {masses!r} are not allowed. Fix: one share from 0 to 1 for each coin.")
    if boolean and not 0.5 < confidence < 1:
        raise OptionError(f"confidence = {confidence!r} is not allowed for a yes or no: above 0.5, below 1.")
    z = normal_quantile(2 * confidence - 1 if boolean else confidence)
    delta = (1 - confidence) * (2 if boolean else 1)
    try:
        theorem = math.ceil(4 * math.log(2 / delta) / (p[0] * error) ** 2) if len(p) == 1 else None
        certain = math.ceil(math.log(2 / delta) * _width(p, b) ** 2 / (2 * error**2))
        return RowsNeeded(theorem, certain, math.ceil(z**2 * _largest_variance(p, b) / error**2 - 1e-9))
    except (ArithmeticError, ValueError):  # a float has no number above 1e308
        raise OptionError(
            f"coins = {coins!r} with error = {error!r} need more rows than there can be. Fix: larger coins, or a "
            "larger error."
        ) from None


def _numbers(name: str, given: float | Sequence[float]) -> list[float]:
    numbers = [given] if isinstance(given, int | float) else list(given)
    if not numbers or not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise OptionError(f"{name} = {given!r} is not allowed: give a number, or one for each column.")
    return [float(number) for number in numbers]


def _width(coins: Sequence[float], masses: Sequence[float] | None) -> float:
    """w_max - w_min; a column's weights are (1 - (1-p) b) / p and -(1-p) b / p."""
    if masses is None:  # the largest product has every b = 0, the smallest one b = 1
        most = math.prod(1 / coin for coin in coins)
        return most if len(coins) == 1 else most * (1 + max(1 - coin for coin in coins))
    pairs = [((1 - (1 - p) * b) / p, -(1 - p) * b / p) for p, b in zip(coins, masses, strict=True)]
    low, high = 1.0, 1.0
    for pair in pairs:
        ends = [weight * end for weight in pair for end in (low, high)]
        low, high = min(ends), max(ends)
    return high - low


def _largest_variance(coins: Sequence[float], masses: Sequence[float] | None) -> float:
    """max over the states s of a row of prod E[w_r^2 | s_r] - prod s_r, with E[w^2 | s] = a (1-a) / p^2 + s."""
    squares = []
    for place, p in enumerate(coins):
        if masses is None:
            worst = 0.25 if p <= 0.5 else p * (1 - p)
            chances = (worst, worst)
        else:
            other = (1 - p) * masses[place]  # that a row without the values shows one of them
            chances = (other * (1 - other), (p + other) * (1 - p - other))
        squares.append((chances[0] / p**2, chances[1] / p**2 + 1))
    states = product(range(2), repeat=len(coins))
    return max(math.prod(pair[s] for pair, s in zip(squares, state, strict=True)) - all(state) for state in states)
