"""Fine-grain perturbation: every value has its own limit, and keeps as much as that allows (mathematics 5, THESIS ch.
5).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from deniable.core.channels import Channel, coarsened
from deniable.core.errors import InternalError, OptionError
from deniable.core.exact import FEW, different_pairs, downward_amplifications, kinds, own_amplifications
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit, worst_posterior
from deniable.core.promise import Guarantee, PerValue, Promise, Single
from deniable.core.values import Counts, Floats, Ints
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.one_cell import channel_for_singles, rounded_up, value_variances
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    beyond_rho1_at,
    check_histogram,
    checks_tell,
    covered_values,
    frequency_promise,
    in_its_words,
    largest_share,
    matched_requirements,
    needs_rho1,
    needs_values,
    nothing_covered,
    own_limits,
    require_some_within,
    require_values,
    shares_told,
    upper_counts,
)

# -- The best coins for per-value amplification limits, exactly, in O(m log m) (mathematics 5, THESIS Fig. 23) ---------
#     maximise  sum_i w_i (p_i + (1-p_i)/m)   subject to  (m-1) p_i + g_i p_j <= g_i - 1  for all i != j,   0 <= p <= 1
#
# Value i only meets the largest coin t among the *others*: p_i <= u_i(t) = (g_i - 1 - g_i t) / (m-1). Write s_i for the
# coin at which u_i(s_i) = s_i (uniform perturbation at g_i) and k for a value with the largest coin t.
#
# - t <= s_k: nothing is lost by letting every other value come up to t as well, so p_i = min(t, u_i(t)) for all i, and
#   the objective is a concave function F of t alone ("tied").
# - t > s_k: value k itself keeps the others down, at v_k(t) = (g_k - 1 - (m-1) t) / g_k < t, so for them
#   p_i = min(v_k(t), u_i(t)), and the objective is a concave function G_k of t alone ("single largest").
#
# The optimum is the best of F and the m functions G_k. At a given t the values with u_i below the cap are those with
# g_i < (1 + (m-1) cap) / (1 - t): a prefix in the order of g, so slopes and values come from prefix sums.


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


# -- Fine-grain perturbation: every value has its own limit, and keeps as much as that allows (mathematics 5, THESIS ch.
# 5).
#
#     P[i][i] = p_i + (1-p_i)/m,   P[j][i] = (1-p_i)/m;   P[i][i] / P[i][k] <= gamma_i for all k != i     (THESIS Thm 7)
#
# Why this bounds what y tells about x_i: for every y and k != i, P[y][i] / P[y][k] <= P[i][i] / P[i][k'] for the k'
# with the largest coin. (y = i by definition; for y != i the left side is at most (1-p_i)/(1-p_k) <= 1/(1-p_k), and the
# right side is at least 1/(1-p_k).) So a belief of up to rho1_i in x_i grows to at most rho2_i, whatever else was
# believed. The same does not follow for becoming *less* sure of x_i: seeing y = j speaks against x_i by P[j][j] /
# P[j][i], which gamma_j limits, not gamma_i. THESIS Thm 7 claims it; here it is computed, and promised only where it
# holds.


Requirements = Mapping[Hashable, tuple[Fraction, Fraction]]
Objective = Literal["rows", "rows-only", "errors"]
UNIFORM_SHARE = 0.05  # how far coins move towards uniform perturbation where the optimum gives up on a value
SINGLE_VALUES = (
    "Statements about several values at once ('one of these three diseases'): each bound is for one single value."
)


@dataclass(frozen=True)
class FineGrain(Mechanism):
    """Coins that keep the largest weight under per-value requirements (mathematics 5, THESIS ch. 5).

        P[i][i] / P[i][k] <= gamma_i = rho2_i (1-rho1_i) / (rho1_i (1-rho2_i))  for all k != i

    Attributes:
        weights: value -> how much keeping one of its rows is worth, as a share of all rows; None: its frequency, so
            that the most rows keep their value (record utility), and the same for all values against any prior.
            Values that are not named weigh nothing.
        objective: ``"rows"``: the largest weight that is kept, with a twentieth of uniform perturbation where that all
            but gives up on a value, whose count nobody could estimate. ``"rows-only"``: without it, the optimum of the
            thesis (Fig. 23). ``"errors"``: a small mean relative error of the values' counts instead, which the thesis
            leaves open (5.5); it takes no weights.

    >>> from fractions import Fraction
    >>> import deniable as dn
    >>> from deniable.mechanisms import FineGrain
    >>> rows = {"flu": 4, "cold": 4, "gout": 3, "tb": 2, "hiv": 1}
    >>> threefold = dn.Privacy(per_value={value: (Fraction(f, 14), Fraction(3 * f, 14)) for value, f in rows.items()})
    >>> round(dn.plan(rows, threefold, FineGrain()).record_utility, 3)
    0.573
    """

    weights: Mapping[Hashable, float] | None = None
    objective: Objective = "rows"
    name: ClassVar[str] = "fine-grain"
    reveals: ClassVar[str] = "nothing beyond the columns"

    def __post_init__(self) -> None:
        if self.objective not in get_args(Objective):
            raise OptionError(f"objective = {self.objective!r} is not known: choose 'rows', 'rows-only' or 'errors'.")
        if self.objective == "errors" and self.weights is not None:
            raise OptionError("objective = 'errors' takes no weights. Fix: leave weights out, or objective='rows'.")

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        check_histogram(histogram, privacy)
        privacy = in_its_words(histogram, needs_values(privacy, self.name))
        requirements = requirements_of(histogram, privacy, public)
        if not requirements:
            raise nothing_covered()
        shared = {(id(rho1), id(rho2)): (rho1, rho2) for rho1, rho2 in requirements.values()}
        limits = {alike: amplification_limit(*pair) for alike, pair in shared.items()}
        pairs = (requirements.get(value) for value in histogram.domain)
        gammas = [None if pair is None else limits[id(pair[0]), id(pair[1])] for pair in pairs]
        weights = self._weights(histogram if public is None else public, privacy)
        channel, loose = channel_for_singles(
            histogram,
            fine_grain_channel(histogram.domain, weights, gammas, objective=self.objective),
            privacy,
            public,
        )
        promised = _guarantee(histogram, privacy, requirements, channel, public, loose)
        return Plan.of_channel(self.name, histogram, channel, promised, privacy=privacy, options=self.options)

    def _weights(self, histogram: Histogram, privacy: Privacy) -> Floats:
        if self.weights is None:
            # Against any prior nothing may depend on the table: coins that follow its counts are evidence, too.
            return np.ones(histogram.m) if privacy.adversary == "any-prior" else histogram.relative
        require_values("weights", self.weights, histogram)
        weights = np.array([float(self.weights.get(value, 0.0)) for value in histogram.domain])
        if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
            raise OptionError("weights must be finite numbers >= 0, at least one of them above 0.")
        return weights


def fine_grain_channel(
    values: Sequence[Hashable],
    weights: Floats,
    gammas: Sequence[Fraction | None],
    *,
    objective: Objective = "rows",
) -> Channel:
    """The best channel with P[i][i] / P[i][k] <= gamma_i (None: exempt), checked in exact arithmetic; for ``"errors"``
    that of a small error where the weights are the values' shares.

    Coins are rounded down to a coarse grid (mathematics 11.6): every limit only gets easier when a coin falls.
    """
    shared = {id(gamma): gamma for gamma in gammas}
    rounded = {alike: np.inf if gamma is None else float(gamma) for alike, gamma in shared.items()}
    limits = np.array([rounded[id(gamma)] for gamma in gammas])
    coins = coins_for_errors(weights, limits) if objective == "errors" else solve_coins(weights, limits)
    least = float(limits.min())
    uniform = 1.0 if np.isinf(least) else (least - 1) / (len(values) - 1 + least)
    if objective != "rows-only" and coins.min() < UNIFORM_SHARE * uniform:
        # The optimum all but gives up on some value. A little of uniform perturbation, which meets every limit too
        # (the limits are convex), makes its count estimable again.
        coins = (1 - UNIFORM_SHARE) * coins + UNIFORM_SHARE * uniform
    channel = Channel.of(values, coins, coarse=True)
    keep = channel.keep.copy()
    while too_high := _above_limit(keep, channel.replace, gammas):
        # Only rounding can bring us here. A limit couples a coin with the largest other one: both give way a little.
        involved = {*too_high, *(_two_largest(keep))}
        for i in involved:
            keep[i] = coarsened(int(keep[i]) - 1)
        if (keep < 0).any():
            raise InternalError("fine-grain coins cannot be made to meet their limits")
    return Channel(tuple(values), keep, channel.replace)


def requirements_of(histogram: Histogram, privacy: Privacy, public: Histogram | None = None) -> Requirements:
    """Each protected value's own (rho1, rho2) in this table; values that are not in it are exempt.

    One (rho1, rho2) for the table means, for the frequency adversary, rho1_i = f_i/n, or a bound on it where counts are
    not to be told (``public``); for any prior, rho1 for all.
    """
    exempt = {value for value in histogram.domain if value in privacy.exempt}
    if privacy.per_value:
        named = matched_requirements(histogram, privacy)
        return {value: pair for value, pair in named.items() if value not in exempt}
    rho2 = privacy.rho2
    assert rho2 is not None
    if privacy.adversary == "any-prior":
        rho1 = needs_rho1(privacy)
        return {value: (rho1, rho2) for value in histogram.domain if value not in exempt}
    protected = covered_values(histogram, privacy, public)
    largest_share(histogram, public, protected, rho2)
    counts = upper_counts(histogram, public, protected)
    shares = {count: Fraction(count, histogram.rows) for count in set(counts.tolist())}
    return {
        value: (shares[count], rho2)
        for value, count, covered in zip(histogram.domain, counts.tolist(), protected.tolist(), strict=True)
        if covered and count
    }


def _above_limit(keep: Counts, replace: Counts, gammas: Sequence[Fraction | None]) -> list[int]:
    owns = own_amplifications(keep, replace)
    pairs = different_pairs(owns, gammas)
    above = {(id(own), id(gamma)) for own, gamma in pairs if gamma is not None and (own is None or own > gamma)}
    every = zip(map(id, owns), map(id, gammas), strict=True)
    return [i for i, pair in enumerate(every) if pair in above] if above else []


def _two_largest(keep: Counts) -> tuple[int, int]:
    order = np.argsort(-keep, kind="stable")
    return int(order[0]), int(order[1])


def _guarantee(
    histogram: Histogram,
    privacy: Privacy,
    requirements: Requirements,
    channel: Channel,
    public: Histogram | None,
    loose: tuple[Single, ...],
) -> Guarantee:
    upward = own_amplifications(channel.keep, channel.replace)
    downward = downward_amplifications(channel.keep, channel.replace)
    worst, open_downward = Fraction(0), 0
    known: dict[tuple[int, ...], bool] = {}  # values that are alike share their fractions: they are looked at once
    for value, (rho1, rho2) in requirements.items():
        place = histogram.position(value)
        own, against = upward[place], downward[place]
        alike = id(rho1), id(rho2), id(own), id(against)
        if alike not in known:
            limit = amplification_limit(rho1, rho2)
            if own is None or own > limit:
                raise InternalError("a fine-grain channel exceeds a limit that it was built for")
            worst = max(worst, min(rounded_up(worst_posterior(rho1, own)), rho2))
            known[alike] = against is None or against > limit
        open_downward += known[alike]
    number, exempt = len(requirements), histogram.m - len(requirements)
    belief = "its share of the rows" if not privacy.per_value and privacy.adversary == "frequency" else "its rho1"
    also = [f"It holds for each protected value believed at up to {belief}, whatever was believed of other values."]
    not_protected = [*EVERY_RELEASE, SINGLE_VALUES]
    if exempt:
        not_protected.append(f"{exempt:,} of {histogram.m:,} values are exempt: there is no promise for them.")
    not_protected += [*shares_told(histogram, privacy), *checks_tell(histogram, None if privacy.per_value else public)]
    if open_downward:
        not_protected.append(
            f"Becoming less sure: for {open_downward:,} of {number:,} protected values a belief above rho2 can fall "
            "below rho1."
        )
    else:
        also.append("It holds upward and downward: a belief above rho2 in a protected value stays above rho1.")
    return Guarantee(
        promises=(
            _promise(histogram, privacy, requirements, beyond_rho1_at(histogram, privacy, public, upward), loose),
        ),
        adversary=privacy.adversary,
        rho1=None if privacy.per_value else privacy.rho1,
        rho2=None if privacy.per_value else privacy.rho2,
        worst=worst,
        gamma=channel.exact_gamma,
        also=tuple(also),
        not_protected=tuple(not_protected),
    )


def _promise(
    histogram: Histogram,
    privacy: Privacy,
    requirements: Requirements,
    above: tuple[int, ...],
    loose: tuple[Single, ...],
) -> Promise:
    """Each value's own amplification, or posteriors where rho1 is every value's frequency, which is not to be told."""
    if privacy.per_value:
        return PerValue(own_limits(histogram, requirements))
    if privacy.adversary == "any-prior":  # one (rho1, rho2) for all, which tells no count: exact
        return PerValue(tuple((histogram.position(value), *pair) for value, pair in requirements.items()))
    require_some_within(histogram, privacy, above)
    return frequency_promise(histogram, privacy, above, loose)
