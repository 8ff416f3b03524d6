"""The ends of an interval: every truth f under which an estimate as high, or as low, as this one is not too unlikely.

An estimate is a sum of rows' weights. Among rows of which f satisfy the condition it has the mean f and the cumulants

    k2(f) = k2 + k2' f,    k3(f) = k3 + k3' f

Where many rows decide it is normal, and f is within when (est - f)^2 <= z^2 k2(f) (a score interval). Where few do it
is lopsided and made of jumps of about k3 / k2: then it has the tails of a gamma distribution with the same three
cumulants, and an end is moved out by a part of a jump. Counts are whole numbers: their ends are the first and the last
of these within.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import gammainc, gammaincc, ndtr

from deniable.core.values import Bools, Floats

FEW = 50.0  # jumps, below which an estimate is not taken for normal
BELOW, ABOVE = 0.25, 0.5  # of a jump, by which an end is moved out
STRAIGHT = 1e-3  # a skewness below which a distribution is taken for normal
PIECE = 2**13  # intervals at a time
CLOSE = 1e-6  # of a whole number, which rounding has missed


@dataclass(frozen=True, eq=False)
class Cumulants:
    """k2, k2', k3 and k3' of some estimates, with f counted from the smallest truth that is possible."""

    second: Floats
    second_slope: Floats
    third: Floats
    third_slope: Floats

    def numbers(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.second, self.second_slope, self.third, self.third_slope

    def at(self, above: Floats) -> tuple[Floats, Floats]:
        """k2 and k3 for truths so far above the smallest."""
        return np.maximum(self.second + self.second_slope * above, 0.0), self.third + self.third_slope * above

    def scaled(self, left: Floats) -> Cumulants:
        """Of estimates whose variance is so much of what it was."""
        return Cumulants(
            self.second * left, self.second_slope * left, self.third * left**1.5, self.third_slope * left**1.5
        )


def limits(
    value: Floats,
    variance: Floats,
    smallest: Floats,
    largest: Floats,
    z: float,
    cumulants: Cumulants | None = None,
    whole: bool = False,
) -> tuple[Floats, Floats]:
    """The ends of intervals, within what is possible; all of that where an interval would be wider.

    >>> ends = limits(np.array([4.0]), np.array([4.0]), np.zeros(1), np.array([90.0]), 1.96)
    >>> [round(float(end[0]), 2) for end in ends]
    [0.08, 7.92]
    >>> [float(end[0]) for end in limits(*map(np.array, ([4.0], [4.0], [0.0], [90.0])), 1.96, whole=True)]
    [1.0, 7.0]
    """
    given = np.broadcast_arrays(value, variance, smallest, largest)
    if cumulants is not None:
        given += np.broadcast_arrays(given[0], *cumulants.numbers())[1:]
    flat = [np.asarray(one, np.float64).reshape(-1) for one in given]
    ends = np.empty((2, flat[0].size))
    for start in range(0, flat[0].size, PIECE):  # much is held for each of them
        value, variance, smallest, largest, *further = (one[start : start + PIECE] for one in flat)
        known = Cumulants(*further) if further else None
        ends[:, start : start + PIECE] = _limits(value, variance, smallest, largest, z, known, whole)
    low, high = ends.reshape(2, *given[0].shape)
    return low, high


def _limits(
    value: Floats,
    variance: Floats,
    smallest: Floats,
    largest: Floats,
    z: float,
    cumulants: Cumulants | None,
    whole: bool,
) -> tuple[Floats, Floats]:
    lost = hopeless(variance, smallest, largest, z)
    value = np.clip(value, smallest, largest)  # what lies outside says no more than what is just possible
    slope = np.zeros(value.shape)
    if cumulants is not None:
        slope = np.where((variance > 0) & np.isfinite(variance), cumulants.second_slope, 0.0)
    with np.errstate(invalid="ignore"):
        shift = z**2 * slope / 2
        half = np.sqrt(shift**2 + z**2 * np.maximum(variance, 0.0))
        low, high = _within(value - half + shift, value + half + shift, value, smallest, largest, whole)
        if cumulants is not None:
            few = _few(value, smallest, largest, cumulants) & (largest > smallest) & np.isfinite(variance) & ~lost
            if few.any():
                some = Cumulants(*(number[few] for number in cumulants.numbers()))
                low[few], high[few] = _of_few(value[few], smallest[few], largest[few], some, z)
    none = np.isnan(value)  # what has no value has no ends
    return np.where(lost & ~none, smallest, low), np.where(lost & ~none, largest, high)


UNKNOWN = "these values cannot be told apart in this release"
WIDE = "the interval is wider than everything that is possible, ask about more rows or values"


def reasons(lost: Bools, unknown: Bools) -> pa.Array:
    """Why nothing was learned, in words; missing where something was."""
    which = pa.array(unknown.reshape(-1).astype(np.int8), mask=~lost.reshape(-1))
    return pa.array([WIDE, UNKNOWN]).take(which)


def hopeless(variance: Floats, smallest: Floats, largest: Floats, z: float) -> Bools:
    """Where z standard errors to both sides are more than everything that is possible: nothing was learned."""
    possible = largest - smallest
    return np.asarray((possible > 0) & np.isfinite(possible) & (2 * z * np.sqrt(np.maximum(variance, 0)) >= possible))


def _within(
    low: Floats, high: Floats, value: Floats, smallest: Floats, largest: Floats, whole: bool
) -> tuple[Floats, Floats]:
    if whole:
        first, last = np.ceil(low - CLOSE), np.floor(high + CLOSE)
        nearest = np.round(value)
        none = first > last  # between two counts
        low, high = np.where(none, nearest, first), np.where(none, nearest, last)
    return np.clip(low, smallest, largest), np.clip(high, smallest, largest)


def _few(value: Floats, smallest: Floats, largest: Floats, cumulants: Cumulants) -> Bools:
    """Where fewer than ``FEW`` jumps decide."""
    above = np.clip(value, smallest, largest) - smallest
    second, third = cumulants.at(above)
    return second**3 < FEW * third**2


def _of_few(value: Floats, smallest: Floats, largest: Floats, cumulants: Cumulants, z: float) -> tuple[Floats, Floats]:
    """The smallest and the largest whole number within, by halving."""
    tail = float(ndtr(-z))

    def unlikely(truth: Floats, above: bool) -> Bools:
        return np.asarray(_tail(value, truth, truth - smallest, cumulants, above) < tail)

    middle = np.clip(np.round(value), smallest, largest)
    low = _first(lambda truth: ~unlikely(truth, above=True), smallest, middle)
    high = -_first(lambda truth: ~unlikely(-truth, above=False), -largest, -middle)
    return low, high


def _first(holds: Callable[[Floats], Bools], low: Floats, high: Floats) -> Floats:
    """The first whole number from low to high from which on something holds; high where nowhere."""
    low, high = low - 1, high.copy()  # does not hold, may hold
    while (high - low > 1).any():
        middle = np.where(high - low > 1, np.floor((low + high) / 2), high)
        inside = holds(middle)
        high, low = np.where(inside, middle, high), np.where(inside, low, np.minimum(middle, high - 1))
    return high


def _tail(value: Floats, truth: Floats, above_smallest: Floats, cumulants: Cumulants, above: bool) -> Floats:
    """The probability of an estimate as high as this one, or as low, if the truth is this."""
    second, third = cumulants.at(above_smallest)
    error = np.sqrt(second)
    jump = np.divide(np.abs(third), second, out=np.zeros_like(third), where=second > 0)
    moved = value - truth + np.where(above, -BELOW, ABOVE) * jump
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, moved / error, np.where(moved == 0, 0.0, np.sign(moved) * np.inf))
        skew = np.where(error > 0, third / error**3, 0.0)
        t, skew = np.where(skew < 0, -t, t), np.abs(skew)
        shape = 4 / np.maximum(skew, STRAIGHT) ** 2
        reached = np.clip(shape + t * np.sqrt(shape), 0.0, None)
        upper = (third >= 0) == above  # whether the long tail is asked for
        gamma = np.where(upper, gammaincc(shape, reached), gammainc(shape, reached))
    return np.where(skew > STRAIGHT, gamma, ndtr(np.where(upper, -t, t)))
