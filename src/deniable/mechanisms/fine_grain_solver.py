"""The best coins for per-value amplification limits, exactly, in O(m log m) (mathematics 5, THESIS Fig. 23).

    maximise  sum_i w_i (p_i + (1-p_i)/m)   subject to  (m-1) p_i + g_i p_j <= g_i - 1  for all i != j,   0 <= p <= 1

Value i only meets the largest coin t among the *others*: p_i <= u_i(t) = (g_i - 1 - g_i t) / (m-1). Write s_i for the
coin at which u_i(s_i) = s_i (uniform perturbation at g_i) and k for a value with the largest coin t.

- t <= s_k: nothing is lost by letting every other value come up to t as well, so p_i = min(t, u_i(t)) for all i, and
  the objective is a concave function F of t alone ("tied").
- t > s_k: value k itself keeps the others down, at v_k(t) = (g_k - 1 - (m-1) t) / g_k < t, so for them
  p_i = min(v_k(t), u_i(t)), and the objective is a concave function G_k of t alone ("single largest").

The optimum is the best of F and the m functions G_k. At a given t the values with u_i below the cap are those with
g_i < (1 + (m-1) cap) / (1 - t): a prefix in the order of g, so slopes and values come from prefix sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Floats, Ints
from deniable.core.errors import InternalError
from deniable.core.exact import FEW, kinds
from deniable.mechanisms.variances import value_variances

SHARES = np.arange(41) / 40  # of the way from uniform perturbation to the optimum of a linear objective
POWERS = (-0.75, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)  # of the counts, that are weights of further linear objectives
FEW_SHARES = SHARES[::4]  # which of them is worth a look is told by these
WORTH = 0.97  # of the error, that another objective must reach to be taken
STEPS = 64  # halvings of an interval inside [0, 1]: more than a double can tell apart


def solve_coins(weights: npt.ArrayLike, gammas: npt.ArrayLike) -> Floats:
    """The coins that keep the largest weight; a gamma of infinity exempts its value.

    >>> solve_coins([4, 4, 3, 2, 1], [15, 15, 6.6, 4.5, 39 / 11]).round(4).tolist()
    [0.5283, 0.5283, 0.5283, 0.2807, 0.1681]
    >>> solve_coins([0.9, 0.05, 0.05], [2, 100, 100]).round(6).tolist()
    [0.5, 0.0, 0.0]
    """
    w, g = np.asarray(weights, dtype=np.float64), np.asarray(gammas, dtype=np.float64)
    if w.shape != g.shape or w.ndim != 1 or w.size < 2:
        raise InternalError("fine-grain coins need one weight and one gamma for each of at least two values")
    if not (np.isfinite(w).all() and (w >= 0).all() and (g >= 1).all()):
        raise InternalError("fine-grain coins need finite weights >= 0 and gammas >= 1")
    order = np.argsort(g, kind="stable")
    problem = _Problem(w[order], g[order])
    coins = np.empty(w.size)
    coins[order] = problem.solve()
    return coins


def coins_for_errors(counts: npt.ArrayLike, gammas: npt.ArrayLike) -> Floats:
    """Coins for a small mean relative error of the values' counts, sum_i sd_i / f_i, under the same limits.

    The error is not linear in the coins. The weights w_i = f_i^-1/2 come near it where limits follow the counts: of
    the coins between their optimum and uniform perturbation, which meet every limit too, those with the smallest error
    are taken. Where a frequent value's limit is so low that these give it up, other powers of the counts do better;
    f_i^1 is the optimum for rows. Only the proportions of the counts matter; a value without rows is taken for as rare
    as the rarest.

    >>> coins_for_errors([400, 300, 200, 100], [9, 9, 9, 9]).round(4).tolist()
    [0.6667, 0.6667, 0.6667, 0.6667]
    """
    f, g = np.asarray(counts, dtype=np.float64), np.asarray(gammas, dtype=np.float64)
    f = np.maximum(f, f[f > 0].min())
    least, m = float(g.min()), f.size
    if np.isinf(least):
        return np.ones(m)
    uniform, near = np.full(m, (least - 1) / (m - 1 + least)), solve_coins(f**-0.5, g)
    if not uniform[0] > 0:
        return near

    def best(towards: Floats, shares: Floats) -> tuple[float, Floats]:
        between = [(1 - share) * uniform + share * towards for share in shares]
        return min(((relative_error(coins, f), coins) for coins in between), key=lambda pair: pair[0])

    error, coins = best(near, SHARES)
    others = [solve_coins(f**power, g) for power in POWERS]
    reached, other = min(((best(one, FEW_SHARES)[0], one) for one in others), key=lambda pair: pair[0])
    return best(other, SHARES)[1] if reached < WORTH * error else coins


def relative_error(coins: Floats, counts: Floats) -> float:
    """The mean over values of sd_i / f_i, replacements being uniform; infinite where some value is never kept."""
    if not coins.min() > 0:
        return float("inf")
    variances = value_variances(coins, np.full(coins.size, 1 / coins.size), counts)
    return float(np.mean(np.sqrt(np.maximum(variances, 0.0)) / counts))


@dataclass(frozen=True)
class _Problem:
    """Weights and limits, sorted by limit; exempt values come last."""

    w: Floats
    g: Floats

    @property
    def m(self) -> int:
        return self.w.size

    def solve(self) -> Floats:
        # An exempt value is never kept down by its own limit: s_k = 1, and F covers it.
        candidates = np.flatnonzero(np.isfinite(self.g))
        g = self.g[candidates]
        low = (g - 1) / (self.m - 1 + g)
        high = np.minimum(np.minimum(self._ceilings()[1:][candidates], (g - 1) / (self.m - 1)), 1.0)
        feasible = high > low
        candidates, low, high = candidates[feasible], low[feasible], high[feasible]
        if (
            candidates.size > FEW
        ):  # of values that are alike the first stands for all; the very first has its own ceiling
            first = np.sort(kinds(g[feasible], self.w[candidates], candidates == 0)[0])
            candidates, low, high = candidates[first], low[first], high[first]
        # No single largest coin comes first: another must be better.
        largest = np.concatenate(([-1], candidates))
        places, values = self._best(largest, np.append(0.0, low), np.append(self._ceilings()[0], high))
        winner = int(np.argmax(values))
        return self._coins(int(largest[winner]), float(places[winner]))

    def _ceilings(self) -> Floats:
        """How high a coin may rise before some limit leaves its own value no coin at all: min (g_i - 1) / g_i.

        First over all i, then, for each k, over all i != k (the two smallest limits decide).
        """
        c = 1 - 1 / self.g
        without = np.full(self.m, c[0])
        without[0] = c[1]
        return np.concatenate(([c[0]], without))

    def _best(self, largest: Ints, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Where each of several concave functions is largest within its interval, and its value there."""
        own, cap_slope = self._own(largest), self._cap_slope(largest)
        for _ in range(STEPS):
            middle = (low + high) / 2
            _, wg, rest = self._sums(largest, own, self._below(self._cap(largest, middle), middle))
            rising = own - wg / (self.m - 1) + cap_slope * rest > 0
            before, (low, high) = (low, high), (np.where(rising, middle, low), np.where(rising, high, middle))
            if (low == before[0]).all() and (high == before[1]).all():
                break
        # The two ends are neighbours by now; the better one is the exact optimum up to rounding.
        left, right = self._value(largest, low), self._value(largest, high)
        return np.where(right > left, high, low), np.maximum(left, right)

    def _cap(self, largest: Ints, t: Floats) -> Floats:
        """What the coins of the others are capped at: t itself, or v_k(t) under a single largest coin."""
        g = self.g[largest]
        with np.errstate(invalid="ignore"):
            single = (g - 1 - (self.m - 1) * t) / g
        return np.where(largest < 0, t, np.maximum(single, 0.0))

    def _below(self, cap: Floats, t: Floats) -> Ints:
        """How many values (a prefix) have their own bound u_i(t) below the cap."""
        with np.errstate(divide="ignore"):
            threshold = (1 + (self.m - 1) * cap) / (1 - t)
        return np.minimum(np.searchsorted(self.g, threshold, side="left"), self._finite)

    @cached_property
    def _finite(self) -> int:
        return int(np.isfinite(self.g).sum())

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats, Floats]:
        """The finite limits, 0 for others; and sums of the first 0, 1, 2, .. of w and of w g."""
        finite = np.where(np.isfinite(self.g), self.g, 0.0)
        return (
            finite,
            np.concatenate(([0.0], np.cumsum(self.w))),
            np.concatenate(([0.0], np.cumsum(self.w * finite))),
        )

    def _own(self, largest: Ints) -> Floats:
        return np.where(largest >= 0, self.w[largest], 0.0)

    def _cap_slope(self, largest: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            return np.where(largest < 0, 1.0, -(self.m - 1) / self.g[largest])

    def _sums(self, largest: Ints, own: Floats, j: Ints) -> tuple[Floats, Floats, Floats]:
        """Over the first j values w and w g, over the rest w; always without value k itself, whose w is ``own``."""
        finite, prefix_w, prefix_wg = self._prefixes
        inside = (largest >= 0) & (largest < j)
        first_w = prefix_w[j] - np.where(inside, own, 0.0)
        first_wg = prefix_wg[j] - np.where(inside, own * finite[largest], 0.0)
        rest = prefix_w[-1] - prefix_w[j] - np.where(inside, 0.0, own)
        return first_w, first_wg, rest

    def _value(self, largest: Ints, t: Floats) -> Floats:
        cap, own = self._cap(largest, t), self._own(largest)
        first_w, first_wg, rest = self._sums(largest, own, self._below(cap, t))
        value: Floats = own * t + (first_wg * (1 - t) - first_w) / (self.m - 1) + cap * rest
        return value

    def _coins(self, largest: int, t: float) -> Floats:
        cap = float(self._cap(np.array([largest]), np.array([t]))[0])
        finite = np.isfinite(self.g)
        bound = np.full(self.m, 1.0)
        bound[finite] = (self.g[finite] * (1 - t) - 1) / (self.m - 1)
        coins: Floats = np.clip(np.minimum(cap, bound), 0.0, 1.0)
        if largest >= 0:
            coins[largest] = t
        return coins
