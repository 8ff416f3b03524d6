"""The fixed point of the iterative Bayesian rule, reached quickly (mathematics 8; OLAP 4.3).

    x <- x * A^T (y / A x)

climbs to the counts x >= 0 that make the published counts y likeliest, a little each time. Two steps show where a third
would lead: the squared extrapolation x + 2 a r + a^2 v, with r the first step, v the change of the step and
a = |r| / |v|, both measured in units of the counts' own spread, leaps there. A leap that is less likely than the place
it started from is not taken, so the likelihood never falls. ``squarem`` leaps so for any rule, without a likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.core.values import Floats

Apply = Callable[[Floats], Floats]
MOST_LEAPS = 2000
WINDOW = 10
PRECISE = 1e-9
# Many states: one part in 10^4 of a unit of log-likelihood is 0.014 standard errors in the flattest direction.
LARGE, LARGE_PRECISE = 2**12, 1e-4
LONGEST = 1e6  # a leap, in steps
SLOWEST_FALL = 0.1  # a leap may shrink a count to a tenth; zero would be final
NOTHING = 1e-30  # of the rows: counts are not followed below
SHARES_OF = 1e5  # rows: what shares, whose rows are not known, are taken to be of
TINY = 1e-280  # instead of zero, where something is divided or its logarithm taken


@dataclass(frozen=True, eq=False)
class Fit:
    """The likeliest counts [questions, states], and how they were reached.

    Attributes:
        counts: never negative; they add up to what was published.
        leaps: how many extrapolations the slowest question took.
        gain: what the last ``WINDOW`` of them gained in log-likelihood of rows, at most.
    """

    counts: Floats
    leaps: int
    gain: float


def fixed_point(apply: Apply, transposed: Apply, y: Floats, states: int | None = None) -> Fit:
    """The likeliest counts for each row of published counts, or of shares, [questions, published states].

    A question is done when ``WINDOW`` leaps together gain less than ``PRECISE`` in log-likelihood
    (``LARGE_PRECISE`` with more than ``LARGE`` states). That is a statement about rows: where a number between 0 and
    1 is published, all of them are taken for shares of ``SHARES_OF`` rows.

    Args:
        apply, transposed: the channel and its transpose.
        y: what was published.
        states: how many true states there are, where that is not the number of published ones.
    """
    states = y.shape[1] if states is None else states
    unit = _row(y)
    y = y / unit
    total = y.sum(axis=1, keepdims=True)
    precise = PRECISE if states <= LARGE else LARGE_PRECISE
    start = y if states == y.shape[1] else np.zeros((len(y), states))
    climb = _Climb(apply, transposed, y, total, _scaled(start + 0.5 * total / states, total))
    counts = climb.x
    alive = np.flatnonzero(total[:, 0] > 0)
    climb = climb.only(alive)
    before, gained, leaps = climb.height, 0.0, 0
    while len(alive) and leaps < MOST_LEAPS:
        climb.leap()
        leaps += 1
        if leaps % WINDOW:
            continue
        gain = climb.height - before
        gained = float(gain.max())
        counts[alive] = climb.x
        going = np.flatnonzero(gain > precise)
        alive, climb = alive[going], climb.only(going)
        before = climb.height
    counts[alive] = climb.x
    return Fit(counts * unit, leaps, gained)


def _row(y: Floats) -> Floats:
    """What one row comes to in each question's numbers: 1 for counts, less for shares."""
    shares = np.where(y > 0, y, np.inf).min(axis=1, keepdims=True, initial=np.inf) < 1
    return np.where(shares, np.minimum(y.sum(axis=1, keepdims=True) / SHARES_OF, 1.0), 1.0)


@dataclass(eq=False)
class _Climb:
    """Where each question stands: its counts x, what they lead to be published, and their log-likelihood."""

    apply: Apply
    transposed: Apply
    y: Floats
    total: Floats
    x: Floats

    def __post_init__(self) -> None:
        self.seen = self.apply(self.x)
        self.height = self._log_likelihood(self.seen)
        self.least = NOTHING * self.total / self.y.shape[1]

    def only(self, rows: npt.NDArray[np.intp]) -> _Climb:
        """The same for some of the questions."""
        if len(rows) == len(self.y):
            return self
        return _Climb(self.apply, self.transposed, self.y[rows], self.total[rows], self.x[rows])

    def leap(self) -> None:
        one = self._step(self.x, self.seen)
        two = self._step(one, self.apply(one))
        r = one - self.x
        v = two - one - r
        unit = 1 / np.maximum(two, self.least)
        length = np.maximum(np.sqrt(_dot(r, r * unit) / np.maximum(_dot(v, v * unit), TINY)), 1.0)
        length = np.minimum(length, LONGEST)
        far = np.maximum(self.x + length * (2 * r + length * v), SLOWEST_FALL * two)
        far = _scaled(np.maximum(far, self.least), self.total)
        seen = self.apply(far)
        height = self._log_likelihood(seen)
        worse = np.flatnonzero(height < self.height)
        if len(worse):
            far[worse] = two[worse]
            seen[worse] = self.apply(two[worse])
            height[worse] = self._log_likelihood(seen)[worse]
        self.x, self.seen, self.height = far, seen, height

    def _step(self, x: Floats, seen: Floats) -> Floats:
        return x * self.transposed(self.y / np.maximum(seen, TINY))

    def _log_likelihood(self, seen: Floats) -> Floats:
        # In units of the rows: differences of large sums would lose the digits that decide.
        return _dot(self.y, np.log(np.maximum(seen, TINY) / np.maximum(self.total, TINY)))[:, 0]


def _scaled(x: Floats, total: Floats) -> Floats:
    return x * (total / np.maximum(x.sum(axis=1, keepdims=True), math.ulp(0.0)))


def _dot(a: Floats, b: Floats) -> Floats:
    return np.einsum("qs,qs->q", a, b)[:, None]


def squarem(rule: Apply, x: Floats, steps: int, nearly: float) -> Floats:
    """The fixed point of a rule, from x [questions, values], by SQUAREM's extrapolation; done when nothing moves more.

    A leap that would make a count negative is not taken.
    """
    for _ in range(steps):
        first = rule(x)
        second = rule(first)
        one, two = first - x, second - 2 * first + x
        size = np.linalg.norm(two, axis=1, keepdims=True)
        length = -np.linalg.norm(one, axis=1, keepdims=True) / np.maximum(size, 1e-300)
        length = np.minimum(np.where(size > 0, length, -1.0), -1.0)
        leap = x - 2 * length * one + length**2 * two
        moved = rule(np.where((leap > 0).all(axis=1, keepdims=True), leap, second))
        done = np.abs(moved - x).max(initial=0.0) <= nearly
        x = moved
        if done:
            break
    return x
