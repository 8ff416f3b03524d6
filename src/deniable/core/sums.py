"""Small sums private, large sums accurate: what decoy groups of size c promise of counts (mathematics 2, 7; SPLU Def.
1, 2).

A value with f rows is published by f' ~ Binomial(c f, 1/c) rows, exactly, so both promises are binomial tails:

    small:  Pr[|f' - f| >  e f] >= T_P  for every f = 1..alpha       (SPLU Lemma 2)
    large:  Pr[|f' - f| >= e f] <= T_E  for every f >= T_f

A deviation of exactly e f counts against the promise in both, so they hold whichever way the definitions are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.errors import RequirementError
from deniable.core.probability import Probability, percent, probability

LARGEST_SMALL_SUM = 1000
SMALLEST_ERROR = Fraction(1, 100)
EXACT_TRIALS = 4000  # binomials of up to this many trials are summed in whole numbers
MARGIN = 1e-9  # beyond, floating-point tails must clear a limit by this much; their own error is below 1e-10


@dataclass(frozen=True, init=False)
class SmallSums:
    """Counts of a few rows must stay uncertain: Pr[|f' - f| > e f] >= T_P for every f = 1..alpha (SPLU Def. 1).

    Attributes:
        error: e, the share that a count must be off by.
        below: alpha, the largest small count, in rows.
        at_least: T_P, the probability that it is off by more.

    >>> import deniable as dn
    >>> promise = dn.SmallSums(error=0.3, below=3, at_least=0.6)
    >>> promise.holds(c=10), float(round(promise.reached(c=10), 4))
    (True, 0.6126)
    """

    error: Fraction
    below: int
    at_least: Fraction

    def __init__(self, error: Probability = "0.3", below: int = 3, at_least: Probability = "0.6") -> None:
        if isinstance(below, bool) or not isinstance(below, int) or not 1 <= below <= LARGEST_SMALL_SUM:
            raise RequirementError(
                f"below = {below!r} is not allowed: the largest small sum is a whole number from 1 to "
                f"{LARGEST_SMALL_SUM:,}. Fix: below=3."
            )
        object.__setattr__(self, "error", probability(error, "error"))
        object.__setattr__(self, "below", below)
        object.__setattr__(self, "at_least", probability(at_least, "at_least"))

    def reached(self, c: int) -> Fraction:
        """min over f = 1..alpha of Pr[|f' - f| > e f], for decoy groups of size ``c`` (SPLU Lemma 2)."""
        return min(miss(f, c, self.error, strictly=True) for f in range(1, self.below + 1))

    def holds(self, c: int) -> bool:
        """Whether decoy groups of size ``c`` keep the promise; stops at the first count that breaks it."""
        return all(
            miss(f, c, self.error, strictly=True) >= self.at_least + _margin(f, c) for f in range(1, self.below + 1)
        )

    def __str__(self) -> str:
        return (
            f"a sum of 1 to {self.below} rows is off by more than {percent(self.error)} with probability "
            f"{percent(self.at_least)} or more"
        )

    def sentence(self, c: int) -> str:
        """The promise as it is kept at group size ``c``, with the exact tail."""
        return (
            f"The published number of rows of a value that 1 to {self.below} rows have is off by more than "
            f"{percent(self.error)} with probability at least {_down(self.reached(c))} (exact binomial tail)."
        )

    def to_dict(self) -> dict[str, object]:
        """As the manifest has it."""
        return {"error": str(self.error), "below": self.below, "at_least": str(self.at_least)}


@dataclass(frozen=True, init=False)
class LargeSums:
    """Counts of many rows must stay accurate: Pr[|f' - f| >= e f] <= T_E for every f >= T_f (SPLU Def. 2).

    Attributes:
        error: e, the share that a count may not be off by.
        above: T_f, the smallest large count, in rows.
        at_most: T_E, the probability that it is off by as much.

    >>> import deniable as dn
    >>> dn.LargeSums(error=0.1, above=1000, at_most=0.05).holds(c=5)
    True
    """

    error: Fraction
    above: int
    at_most: Fraction

    def __init__(self, error: Probability = "0.1", above: int = 1000, at_most: Probability = "0.05") -> None:
        exact = probability(error, "error")
        if exact < SMALLEST_ERROR:
            raise RequirementError(
                f"error = {error} is not allowed for large sums: the smallest is {float(SMALLEST_ERROR)}. "
                "Fix: ask for a larger error, or publish with a mechanism that has error bars."
            )
        if isinstance(above, bool) or not isinstance(above, int) or above < 1:
            raise RequirementError(f"above = {above!r} is not a whole number of rows, 1 or more. Fix: above=1000.")
        object.__setattr__(self, "error", exact)
        object.__setattr__(self, "above", above)
        object.__setattr__(self, "at_most", probability(at_most, "at_most"))

    def reached(self, c: int) -> Fraction:
        """Pr[|f' - f| >= e f] at the threshold itself, f = T_f, for decoy groups of size ``c``."""
        return miss(self.above, c, self.error, strictly=False)

    def holds(self, c: int) -> bool:
        """Whether every f >= T_f keeps the promise in decoy groups of size ``c``.

        From some f* on, Chernoff's bound, which only falls, is below the limit; up to there each tail is summed.
        """
        last = max(self.above, _chernoff_from(c, self.error, self.at_most))
        counts = range(self.above, last + 1)
        return all(miss(f, c, self.error, strictly=False) <= self.at_most - _margin(f, c) for f in counts)

    def __str__(self) -> str:
        return (
            f"a sum of {self.above:,} rows or more is off by {percent(self.error)} or more with probability "
            f"{percent(self.at_most)} or less"
        )

    def sentence(self, c: int) -> str:
        """The promise as it is kept at group size ``c``, with the exact tail and its explanation."""
        return (
            f"The published number of rows of a value that {self.above:,} rows or more have is off by "
            f"{percent(self.error)} or more with probability at most {percent(self.at_most)} (exact binomial tail; at "
            f"{self.above:,} rows {_up(self.reached(c))}, by Chebyshev's inequality at most "
            f"{_up(chebyshev(self.above, c, self.error))})."
        )

    def to_dict(self) -> dict[str, object]:
        """As the manifest has it."""
        return {"error": str(self.error), "above": self.above, "at_most": str(self.at_most)}


def miss(f: int, c: int, error: Fraction, *, strictly: bool) -> Fraction:
    """Pr[|f' - f| >= e f], or > where ``strictly``, for f' ~ Binomial(c f, 1/c).

    In whole numbers up to c f = 4000; beyond in floating point, given as the fraction that the float is.

    >>> float(round(miss(5, 10, Fraction(3, 10), strictly=True), 2))
    0.48
    """
    away = error * f
    width = math.floor(away) if strictly else math.ceil(away) - 1  # |f' - f| <= width is no miss
    low, high = max(f - width, 0), min(f + width, c * f)
    if low > high:
        return Fraction(1)
    return 1 - _within(f, c, low, high) if c * f <= EXACT_TRIALS else Fraction(1 - _within_float(f, c, low, high))


def chebyshev(f: int, c: int, error: Fraction) -> Fraction:
    """Chebyshev's bound on Pr[|f' - f| >= e f]: (1 - 1/c) / (e^2 f), at most 1 (mathematics 11.1).

    SPLU Theorem 3 and Lemma 1 say 1 / (c e^2 f^2): they divide by the number of trials twice.
    """
    return min(Fraction(1), (1 - Fraction(1, c)) / (error * error * f))


@lru_cache(maxsize=4096)
def _within(f: int, c: int, low: int, high: int) -> Fraction:
    """Pr[low <= f' <= high] in whole numbers: C(N, x) (c-1)^(N-x) out of c^N, N = c f."""
    trials = c * f
    term = math.comb(trials, low) * (c - 1) ** (trials - low)
    total = 0
    for x in range(low, high + 1):
        total += term
        term = term * (trials - x) // ((x + 1) * (c - 1))
    return Fraction(total, c**trials)


def _within_float(f: int, c: int, low: int, high: int) -> float:
    """The same by logarithms: the largest term by lgamma, the others relative to it."""
    trials = c * f
    x = np.arange(low, high)
    steps = np.log((trials - x) / ((x + 1.0) * (c - 1)))
    logs: Floats = np.concatenate(([0.0], np.cumsum(steps))) - float(steps[: f - low].sum())
    return min(1.0, math.exp(_log_at_mean(f, c)) * float(np.exp(logs).sum()))


def _log_at_mean(f: int, c: int) -> float:
    """ln Pr[f' = f], by Stirling's series of the three factorials: lgamma itself would lose digits at large c f.

    ln N! = N ln N - N + ln(2 pi N)/2 + s(N); the first terms cancel at the mean.
    """
    trials, rest = c * f, (c - 1) * f
    return (
        0.5 * math.log(trials / (2 * math.pi * f * rest))
        + _stirling_rest(trials)
        - _stirling_rest(f)
        - _stirling_rest(rest)
    )


def _stirling_rest(n: int) -> float:
    """s(n) = ln n! - (n ln n - n + ln(2 pi n)/2); exactly for small n, else 1/12n - 1/360n^3 + 1/1260n^5."""
    if n < 64:
        return math.lgamma(n + 1) - (n * math.log(n) - n + 0.5 * math.log(2 * math.pi * n))
    return 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5)


def _chernoff_from(c: int, error: Fraction, limit: Fraction) -> int:
    """The first f from which Chernoff's bound of both tails stays at or below ``limit``.

    Pr[f' >= (1+e) f] <= exp(-c f D((1+e)/c || 1/c)), and likewise below; both exponents are linear in f.
    """
    e = float(error)
    rates = [rate for rate in (_divergence((1 + e) / c, 1 / c), _divergence((1 - e) / c, 1 / c)) if rate < math.inf]
    slowest = c * min(rates)
    return math.ceil(math.log(2 / float(limit)) / slowest) + 1


def _divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence of two coins; infinite where a is impossible."""
    if a > 1:
        return math.inf
    return sum(x * math.log(x / y) for x, y in ((a, b), (1 - a, 1 - b)) if x > 0)


def _margin(f: int, c: int) -> Fraction:
    return Fraction(0) if c * f <= EXACT_TRIALS else Fraction(MARGIN)


def _down(value: Fraction) -> str:
    """Three digits of a percentage, rounded down."""
    return f"{math.floor(value * 1000) / 10:g} %"


def _up(value: Fraction) -> str:
    """Two significant digits of a percentage, rounded up."""
    digits = max(0, 1 - math.floor(math.log10(100 * value))) if value > 0 else 0
    return f"{math.ceil(100 * value * 10**digits) / 10**digits:g} %"
