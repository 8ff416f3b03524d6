"""Fine-grain perturbation: every value has its own limit, and keeps as much as that allows (mathematics 5, THESIS ch.
5).

    P[i][i] = p_i + (1-p_i)/m,   P[j][i] = (1-p_i)/m;   P[i][i] / P[i][k] <= gamma_i for all k != i     (THESIS Thm 7)

Why this bounds what y tells about x_i: for every y and k != i, P[y][i] / P[y][k] <= P[i][i] / P[i][k'] for the k' with
the largest coin. (y = i by definition; for y != i the left side is at most (1-p_i)/(1-p_k) <= 1/(1-p_k), and the right
side is at least 1/(1-p_k).) So a belief of up to rho1_i in x_i grows to at most rho2_i, whatever else was believed.
The same does not follow for becoming *less* sure of x_i: seeing y = j speaks against x_i by P[j][j] / P[j][i], which
gamma_j limits, not gamma_i. THESIS Thm 7 claims it; here it is computed, and promised only where it holds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np

from deniable.core.arrays import Counts, Floats
from deniable.core.channel import Channel, coarsened
from deniable.core.errors import InternalError, OptionError
from deniable.core.exact import different_pairs, downward_amplifications, own_amplifications
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit, worst_posterior
from deniable.core.promise import PerValue, Promise
from deniable.core.promise_numbers import Single
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.fine_grain_solver import coins_for_errors, solve_coins
from deniable.mechanisms.posterior import rounded_up
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    check_histogram,
    frequency_promise,
    in_its_words,
    matched_requirements,
    needs_rho1,
    needs_values,
    nothing_covered,
    own_limits,
    require_values,
    shares_told,
)
from deniable.mechanisms.singles import channel_for_singles
from deniable.mechanisms.view import beyond_rho1_at, checks_tell, covered_values, largest_share, upper_counts

Requirements = Mapping[Hashable, tuple[Fraction, Fraction]]
Objective = Literal["rows", "errors"]
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
        objective: ``"rows"``: the largest weight that is kept. ``"errors"``: a small mean relative error of the values'
            counts instead, which the thesis leaves open (5.5); it takes no weights.

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
            raise OptionError(f"objective = {self.objective!r} is not known: choose 'rows' or 'errors'.")
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
            fine_grain_channel(histogram.domain, weights, gammas, errors=self.objective == "errors"),
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
    errors: bool = False,
) -> Channel:
    """The best channel with P[i][i] / P[i][k] <= gamma_i (None: exempt), checked in exact arithmetic; with ``errors``
    that of a small error where the weights are the values' shares.

    Coins are rounded down to a coarse grid (mathematics 11.6): every limit only gets easier when a coin falls.
    """
    shared = {id(gamma): gamma for gamma in gammas}
    rounded = {alike: np.inf if gamma is None else float(gamma) for alike, gamma in shared.items()}
    limits = np.array([rounded[id(gamma)] for gamma in gammas])
    coins = coins_for_errors(weights, limits) if errors else solve_coins(weights, limits)
    least = float(limits.min())
    uniform = 1.0 if np.isinf(least) else (least - 1) / (len(values) - 1 + least)
    if coins.min() < UNIFORM_SHARE * uniform:
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
    return frequency_promise(histogram, privacy, above, loose)
