"""Designed channels: coins and a replacing distribution made for the frequency adversary (mathematics 2, 5)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from deniable.core.channels import Channel
from deniable.core.errors import OptionError, RequirementError, did_you_mean, option, shortened, worded
from deniable.core.exact import different, kinds
from deniable.core.histogram import Histogram, QuestionProfile
from deniable.core.plan import Plan
from deniable.core.privacy import Adversary, Privacy, amplification_limit, exact_epsilon, gamma_below, worst_posterior
from deniable.core.values import Bools, Counts, Floats, Probability, exact_number, percent, rounded
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.one_cell import (
    Limits,
    channel_for_singles,
    frequency_guarantee,
    keeps,
    limits_of,
    pool_error,
    profile_error,
)
from deniable.mechanisms.requirement import (
    OWN_MARGINS,
    check_histogram,
    coarse_counts,
    in_its_words,
    is_sparse,
    needs_values,
    upper_counts,
)

# -- Coins that bring every posterior up to rho2, for a given replacing distribution (mathematics 5, "Designed
# channels"). With prior pi, coins p, replacing distribution r and S = sum_k pi_k (1-p_k), seeing x published means x
# with probability
#
#     pi_x (p_x + (1-p_x) r_x) / (pi_x p_x + r_x S) <= rho2
#     <=>  p_x <= c_x(S) = r_x (rho2 S - pi_x) / (pi_x (1 - r_x - rho2))
#
# and seeing anything else at most with pi_x (1-p_x) / S, which is below rho2 whenever c_x(S) >= 0.
#
# Everything is computed from a *cover*: counts that are coarse or noisy, never below the true ones where a value's own
# bound relies on them, and no coin tells an exact count.


LARGEST_COIN = 1 - 2**-10
HALVINGS = 50
AT_ONCE = 2**18  # coins that are looked for at once: what a processor's cache holds


class Cover(NamedTuple):
    """What coins and replacements are computed from: coarse or noisy, so that it gives no exact count away.

    Attributes:
        prior: counts that are never below the true ones; a value's own coin relies on them.
        base: counts that the replacing distribution is made of.
        mass: shares of all values together, for S.
        tight: whether ``prior`` is the true counts or next to them; coins, which have three digits, then show shares to
            three digits.
    """

    prior: Counts
    base: Counts
    mass: Floats
    tight: bool = False


def covers(histogram: Histogram, public: Histogram | None = None) -> Iterator[Cover]:
    """Covers from safe to tight; a later one is for requirements that leave an earlier one no room.

    With ``public``, a noisy histogram, there is one, and no exact count enters it but through margins; without, an
    owner plans and publishes nothing: counts rounded up to multiples of 8 rows (fewer in small tables) and to 8 bits,
    then ever closer ones.
    """
    if public is not None:
        upper, rows = upper_counts(histogram, public), max(public.rows, 1)
        base = public.counts + OWN_MARGINS[0] if is_sparse(histogram) else upper
        mass = public.counts / rows if is_sparse(histogram) else upper / histogram.rows
        yield Cover(upper, base, mass)
        return
    step = row_step(histogram)
    coarse = coarse_counts(histogram.counts, step)
    for prior, tight in (
        (coarse, step == 1),
        (coarse_counts(histogram.counts, 1), True),
        (np.maximum(histogram.counts, 1), True),
    ):
        yield Cover(prior, coarse, prior / histogram.rows, tight)


def row_step(histogram: Histogram) -> int:
    """1, 2, 4 or 8 rows: at most a sixteenth of the average count, so that the cover stays close."""
    room = histogram.rows // (16 * histogram.m)
    return min(8, 1 << max(room.bit_length() - 1, 0))


class _Largest(NamedTuple):
    """c_x(S), the largest coins under which no posterior exceeds its limit (1: exempt), for a row of r each."""

    prior: Floats
    r: Floats
    limits: Floats
    slope: Floats  # 1 where the bound does not grow with the coin
    flat: Bools

    @classmethod
    def of(cls, prior: Floats, r: Floats, limits: Floats) -> _Largest:
        slope = prior * (1 - r - limits)
        return cls(prior, r, limits, np.where(slope > 0, slope, 1.0), (slope <= 0) | (limits >= 1))

    def __call__(self, unreplaced: Floats) -> Floats:
        """One S = ``unreplaced`` for each row of r; coins may be above 1."""
        room = self.limits * unreplaced - self.prior
        coins: Floats = self.r * room / self.slope
        if self.flat.any():
            coins = np.where(self.flat, np.where((room >= 0) | (self.limits >= 1), 1.0, 0.0), coins)
        return np.maximum(coins, 0.0)


def designed_coins(
    prior: Floats, r: Floats, limits: Floats, caps: Floats, mass: Floats | None = None
) -> list[Floats | None]:
    """The fixed points p = min(c(S), cap), S = 1 - sum_x pi_x p_x; None where it leaves some posterior above its limit.

    Several at once, as many as rows of ``r`` and of ``caps``. S + sum pi c(S) grows with S, so there is one fixed
    point, and halving finds it. ``mass`` is pi for S, where a value's own bound is computed with more than that.
    """
    at_once = max(AT_ONCE // len(prior), 1)
    return [
        coins
        for start in range(0, len(r), at_once)
        for coins in _some_coins(
            prior, r[start : start + at_once], limits, caps[start : start + at_once], prior if mass is None else mass
        )
    ]


def _some_coins(prior: Floats, r: Floats, limits: Floats, caps: Floats, mass: Floats) -> list[Floats | None]:
    caps = np.minimum(caps, LARGEST_COIN)
    largest = _Largest.of(prior, r, limits)
    low, high = np.zeros((len(r), 1)), np.ones((len(r), 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        # Not a product of vectors: its threads take longer than it does, and its last bits depend on their number.
        kept = (mass * np.minimum(largest(middle), caps)).sum(axis=1, keepdims=True)
        low, high = np.where(middle + kept > 1, (low, middle), (middle, high))
    coins = np.minimum(largest(low), caps)  # the lower end: S is not overstated
    protected = limits < 1
    enough = np.all(limits[protected] * low > prior[protected], axis=1) & np.all(coins > 0, axis=1)
    return [row if good else None for row, good in zip(coins, enough, strict=True)]


def constant_coin(prior: Floats, r: Floats, limits: Floats, mass: Floats | None = None) -> float:
    """The largest single coin for all values; with r = pi it is (rho2 - fmax/n) / (1 - fmax/n) (mathematics 5,
    identity).

    With S = 1 - p F, F = sum_k pi_k, both posteriors are at most rho2 when

        p <= r_x (rho2 - pi_x) / (rho2 r_x F + pi_x (1 - r_x - rho2)),    p <= (rho2 - pi_x) / (rho2 F - pi_x)
    """
    protected = limits < 1
    total = max(float((prior if mass is None else mass).sum()), 1.0)
    pi, drawn, rho2 = prior[protected], r[protected], limits[protected]
    if not (rho2 > pi).all():
        return 0.0
    same = drawn * (rho2 - pi) / (rho2 * drawn * total + pi * (1 - drawn - rho2))
    other = (rho2 - pi) / (rho2 * total - pi)
    return float(min(LARGEST_COIN, same.min(), other.min()))


def lowered(limits: Floats, slack: float) -> Floats:
    """Limits times ``slack``; exempt values stay so."""
    return np.where(limits >= 1, limits, limits * slack)


def as_limits(limits: Sequence[Fraction | None]) -> Floats:
    """Limits as floats rounded down; 1 for an exempt value."""
    shared = {id(limit): limit for limit in limits}  # most values share one limit
    known = {key: 1.0 if limit is None else np.nextafter(float(limit), 0) for key, limit in shared.items()}
    return np.array([known[id(limit)] for limit in limits])


# -- The tolerance rule: nobody becomes more than theta times as sure of anything (mathematics 5, THESIS 5.4.1) --------


def tolerance(
    histogram: Histogram | Mapping[Hashable, int],
    theta: Probability,
    *,
    adversary: Adversary = "frequency",
    exact: bool = False,
) -> Privacy:
    """Each value's own requirement by the rule of the thesis' experiments.

        rho1_i = f_i / n,   rho2_i = theta rho1_i  where rho1_i < 1/theta;   other values are exempt

    A manifest states these numbers, and f_i / n is an exact count. So the limit gamma_i, which grows with f_i, is that
    of a share rounded down to three digits and 8 rows (fewer in small tables), rho1_i is the share rounded up likewise,
    and rho2_i is what gamma_i makes of it: the rule still holds for f_i itself. ``exact`` is for experiments.
    Mechanisms that go by frequencies instead of gamma_i take theta times the share rounded down for the limit.

    Args:
        histogram: how many rows hold each value.
        theta: how many times as sure an attacker may become; a number above 1.
        adversary: who is held off, as for ``Privacy``.
        exact: state shares as they are.

    >>> from deniable.mechanisms import tolerance
    >>> tolerance({"flu": 9, "hiv": 1}, 5).per_value["hiv"]
    (Fraction(1, 10), Fraction(1, 2))
    """
    rows = Histogram.of(histogram)
    check_histogram(rows, None)
    factor = _factor(theta)
    step = row_step(rows)

    def pair(f: int) -> tuple[Fraction, Fraction]:
        share = Fraction(f, rows.rows)
        if exact:
            return share, factor * share
        low = share if step == 1 else rounded(Fraction(max(f // step * step, 1), rows.rows), up=False)
        gamma = amplification_limit(low, factor * low)
        high = min(rounded(Fraction(-(-f // step) * step, rows.rows), up=True), Fraction(999, 1000))
        return high, worst_posterior(high, gamma)

    per_value = {value: pair(f) for value, f in rows.items() if f and factor * Fraction(f, rows.rows) < 1}
    if not per_value:
        raise RequirementError(
            f"{option('theta')} = {theta} protects no value: every one is {float(1 / factor):.3g} of the rows or more. "
            f"Fix: {worded('lower theta', 'a lower --tolerance')}."
        )
    return Privacy(per_value=per_value, adversary=adversary, theta=factor)


def _factor(theta: Probability) -> Fraction:
    factor = exact_number(theta, "theta")
    if factor <= 1:
        raise RequirementError(
            f"{option('theta')} = {theta!r} must be a number above 1: how many times as sure an attacker may become. "
            f"Fix: {option('theta', 3)}."
        )
    return factor


# -- Designed channels: coins and a replacing distribution made for the frequency adversary (mathematics 2, 5) ---------
# Every posterior is brought up to rho2 at once, so a share of about rho2 of the rows keeps its value, the most that any
# channel can keep: sum_y Pr[y] Pr[y | y] <= rho2. The replacing distribution r ~ f^a is chosen to minimise the
# predicted error of the questions in ``profile``: counts by their selectivity, or an owner's own questions. The
# derivation is in docs/explanation/designed-channels.md.


Replacing = Literal["optimised", "frequency", "uniform"]
POWERS = tuple(a / 20 for a in range(31))  # r ~ f^a
# Caps on coins, below max(1/2, rho2): rho2 alone would let rare values be kept almost surely, with nothing to deny.
CAPS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.01, 0.003, 0.001)
TIGHT = "The share of rows of each value, to about three digits: nothing was left to hide it behind in the coins."
CHOSEN_FOR_A_POOL = (
    "The largest coin and the shape of the replacing distribution are the best of some hundred for the owner's own "
    "questions, and tell that much about their answers."
)
LOUDER = "rarer values speak louder to those who know more than frequencies"
# Below each limit by a little where coins for it do not keep it: rounded, or by a share that noise made too small.
SLACKS = (1.0, 7 / 8, 3 / 4, 1 / 2, 1 / 4)
EXEMPT_CAPS = (0.5, 0.0625, 0.125, 0.25, 0.75, 0.9)
FLOORS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)  # of the mean share: the least that a replacement is drawn
WITHIN = 0.01  # of an amplification that is allowed, for coins that are rounded
MANY = 5_000  # values from which on those that are alike are gathered


@dataclass(frozen=True)
class Designed(Mechanism):
    """Coins at the limit of what rho2 allows, and replacements for the questions that matter (mathematics 5).

        r_y ~ f_y^a;    p as large as  Pr[y | y] <= rho2  and a cap of at most  max(1/2, rho2)  allow

    Attributes:
        replacing: r ~ f^a: ``"frequency"``: a = 1, measured best on CENSUS (`deniable reproduce small-domain`);
            ``"optimised"``: the a of the smallest predicted error; ``"uniform"``: a = 0. Left out: by frequency, and
            optimised for an owner's own questions.
        profile: the counts whose error is minimised: selectivities (shares of all rows), or a ``QuestionProfile`` of
            the owner's own questions (``dn.question_profile``).
        epsilon: the odds of no statement about a person may grow by more than e^epsilon by their row, whatever anyone
            believes: no value is then a replacement too rarely. Left out: only what is required bounds them.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Designed
    >>> rows = {"flu": 500, "cold": 450, "asthma": 400, "gout": 350, "hiv": 300}
    >>> plan = dn.plan(rows, dn.Privacy(rho2="2/5"), Designed())
    >>> 0.38 < plan.record_utility <= 0.4
    True
    """

    replacing: Replacing | None = None
    profile: tuple[float, ...] | QuestionProfile = (0.001, 0.005, 0.01)
    epsilon: Probability | None = field(default=None, metadata={"later": True})
    name: ClassVar[str] = "designed"
    reveals: ClassVar[str] = LOUDER

    def __post_init__(self) -> None:
        if self.replacing is None:
            object.__setattr__(self, "replacing", "optimised" if self.for_questions else "frequency")
        if self.replacing not in get_args(Replacing):
            raise OptionError(
                f"replacing = {self.replacing!r} is not known: choose one of {', '.join(get_args(Replacing))}."
                + did_you_mean(str(self.replacing), get_args(Replacing))
            )
        self._gamma()
        if isinstance(self.profile, QuestionProfile):
            return
        object.__setattr__(self, "profile", tuple(self.profile))
        if not self.profile or not all(0 < a < 1 for a in self.profile):
            raise OptionError(
                f"profile = {self.profile!r} must name selectivities between 0 and 1. Fix: profile=(0.001, 0.01)."
            )

    @property
    def for_questions(self) -> bool:
        """Whether it is designed for an owner's own questions."""
        return isinstance(self.profile, QuestionProfile)

    @property
    def options(self) -> dict[str, Any]:
        """For the manifest; of an owner's own questions only how many there were."""
        options = super().options
        limit = options.pop("epsilon")
        options |= {} if limit is None else {"epsilon": str(limit)}
        if isinstance(self.profile, QuestionProfile):
            options["profile"] = f"{len(self.profile):,} questions of the owner"
        return options

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; ``public`` is a noisy histogram that will be published, for the replacing distribution."""
        return _plan(self, histogram, privacy, public)

    def _gamma(self) -> Fraction | None:
        """What ``epsilon`` allows a row to multiply odds by; None where it bounds nothing."""
        return None if self.epsilon is None else gamma_below(exact_epsilon(self.epsilon))

    def _channel(self, histogram: Histogram, limits: Limits, cover: Cover, slack: float) -> Channel | None:
        """The channel for these ``limits``, lowered by ``slack``, of a ``histogram`` as its ``cover`` has it."""
        profile = self.profile
        if isinstance(profile, QuestionProfile):
            profile = profile.in_order(histogram.domain)
        bounds = lowered(as_limits(limits), slack)
        search = _Search(cover.base, cover.prior / histogram.rows, cover.mass, bounds, profile)
        start = 0.0 if self.replacing == "uniform" else 1.0
        exempt_caps = EXEMPT_CAPS if None in limits else EXEMPT_CAPS[:1]
        trials = [(start, cap, exempt_cap) for cap in _caps(limits) for exempt_cap in exempt_caps]
        gamma = self._gamma()
        if gamma is not None:
            return search.within(trials, gamma, histogram.domain)
        best = search.best(trials)
        if best is None:
            return None
        constant = search.constant()
        if constant is not None and self.replacing != "uniform" and constant.error < best.error:
            best = constant
        elif self.replacing == "optimised":
            best = search.best([(power, best.cap, best.exempt_cap) for power in POWERS]) or best
        return Channel.of(histogram.domain, best.coins, best.replacing, coarse=True)


@dataclass(frozen=True)
class Identity(Mechanism):
    """One constant coin, and replacements drawn as the values are distributed (mathematics 5; OLAP Lemma 1).

        p = (rho2 - fmax/n) / (1 - fmax/n),   fmax the count of the most frequent protected value

    >>> import deniable as dn
    >>> from deniable.mechanisms import Identity
    >>> rows = {"flu": 30_000, "cold": 25_000, "gout": 24_000, "hiv": 21_000}
    >>> dn.plan(rows, dn.Privacy(rho2="2/5"), Identity()).cells[0].channel.coins.round(2).tolist()
    [0.14, 0.14, 0.14, 0.14]
    """

    name: ClassVar[str] = "identity"
    reveals: ClassVar[str] = LOUDER
    for_questions: ClassVar[bool] = False

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; ``public`` is a noisy histogram that will be published, for the replacing distribution."""
        return _plan(self, histogram, privacy, public)

    def _channel(self, histogram: Histogram, limits: Limits, cover: Cover, slack: float) -> Channel | None:
        """The channel for these ``limits``, lowered by ``slack``, of a ``histogram`` as its ``cover`` has it."""
        r = cover.base / cover.base.sum()
        coin = constant_coin(cover.prior / histogram.rows, r, lowered(as_limits(limits), slack), cover.mass)
        return Channel.of(histogram.domain, coin, r, coarse=True) if coin > 0 else None


class _Trial(NamedTuple):
    error: float
    cap: float
    exempt_cap: float
    coins: Floats
    replacing: Floats


@dataclass(frozen=True)
class _Search:
    """Trials of (power, cap on coins, cap on the coins of exempt values), judged by their predicted error."""

    base: Counts
    prior: Floats
    mass: Floats
    limits: Floats
    profile: tuple[float, ...] | QuestionProfile

    def best(self, trials: Sequence[tuple[float, float, float]]) -> _Trial | None:
        shapes = {power: self._replacing(power) for power in {power for power, *_ in trials}}
        r = np.array([shapes[power] for power, *_ in trials])
        caps = np.array([np.where(self.limits >= 1, exempt_cap, cap) for _, cap, exempt_cap in trials])
        made = [
            _Trial(self._error(coins, replacing), cap, exempt_cap, coins, replacing)
            for (_, cap, exempt_cap), replacing, coins in zip(trials, r, self._coins(r, caps), strict=True)
            if coins is not None
        ]
        return min(made, key=lambda trial: trial.error, default=None)

    def within(
        self, trials: Sequence[tuple[float, float, float]], gamma: Fraction, domain: Sequence[Hashable]
    ) -> Channel | None:
        """The best channel whose exact amplification is at most gamma: no replacement is rarer than a floor."""
        kept: list[tuple[float, Channel]] = []
        for floor in FLOORS:
            replacing = np.maximum(self._replacing(trials[0][0]), floor / len(self.base))
            replacing /= replacing.sum()
            odds = (float(gamma) * (1 - WITHIN) - 1) * float(replacing.min())
            most = odds / (1 + odds)  # 1 + p / ((1-p) r) <= gamma for equal coins, so for smaller ones, too
            caps = np.unique(np.minimum([(cap, exempt_cap) for _, cap, exempt_cap in trials], most), axis=0)
            for cap, exempt_cap in caps.tolist():
                limits = np.where(self.limits >= 1, exempt_cap, cap)
                (coins,) = self._coins(replacing[None], limits[None])
                if coins is not None:
                    channel = Channel.of(tuple(domain), coins, replacing, coarse=True)
                    if channel.exact_gamma is not None and channel.exact_gamma <= gamma:
                        kept.append((self._error(coins, replacing), channel))
        return min(kept, key=lambda one: one[0], default=(0.0, None))[1]

    def _replacing(self, power: float) -> Floats:
        r: Floats = (self.base / self.base.max()) ** power
        return r / r.sum()

    def constant(self) -> _Trial | None:
        """Identity perturbation, a member of the family."""
        r = self.base / self.base.sum()
        coin = constant_coin(self.prior, r, self.limits, self.mass)
        coins = np.full(len(r), coin)
        return _Trial(self._error(coins, r), coin, coin, coins, r) if coin > 0 else None

    def _coins(self, r: Floats, caps: Floats) -> list[Floats | None]:
        """Of many values those that are alike have one coin: it is looked for once."""
        if len(self.base) < MANY:
            return designed_coins(self.prior, r, self.limits, caps, self.mass)
        first, kind, times = self._kinds
        mass = self.mass[first] * times
        coins = designed_coins(self.prior[first], r[:, first], self.limits[first], caps[:, first], mass)
        return [None if of_kinds is None else of_kinds[kind] for of_kinds in coins]

    @cached_property
    def _kinds(self) -> tuple[Counts, Counts, Counts]:
        return kinds(self.base, self.prior, self.mass, self.limits)

    def _error(self, coins: Floats, r: Floats) -> float:
        counts = self.base.astype(np.float64)
        if isinstance(self.profile, QuestionProfile):
            return pool_error(coins, r, counts, self.profile)
        return profile_error(coins, r, counts, self.profile)


def _caps(limits: Limits) -> tuple[float, ...]:
    """From max(1/2, rho2) down; closely spaced above 1/2, where a coin too large leaves nothing to hide behind."""
    highest = max(different(limit for limit in limits if limit is not None))
    room = max(float(highest) - CAPS[0], 0.0)
    return (*(CAPS[0] + room * k / 16 for k in range(16 if room else 0, 0, -1)), *CAPS)


def _requirement(
    histogram: Histogram, privacy: Privacy | None, name: str, public: Histogram | None
) -> tuple[Privacy, list[Fraction | None]]:
    """The requirement and each value's limit on the posterior; None for exempt values."""
    if public is not None and public.domain != histogram.domain:
        raise OptionError("public must be a histogram of the same values, in the same order.")
    privacy = in_its_words(histogram, needs_values(privacy, name))
    check_histogram(histogram, privacy)
    if privacy.adversary != "frequency":
        raise RequirementError(
            f"mechanism {name!r} withstands the 'frequency' adversary only: its coins rely on every value's prior "
            f"being its share of the rows. Fix: {option('adversary', 'frequency')}, or for 'any-prior' mechanism "
            "'uniform' or 'fine-grain'."
        )
    return privacy, limits_of(histogram, privacy, public)


def _too_tight(histogram: Histogram, limits: Limits) -> RequirementError:
    ratios = [
        Fraction(0) if limit is None else histogram.frequency(value) / limit
        for value, limit in zip(histogram, limits, strict=True)
    ]
    value = histogram.domain[ratios.index(max(ratios))]
    return RequirementError(
        f"rho2 is too close to the share of rows of {shortened(value)}, {percent(histogram.frequency(value))}: nothing "
        f"could be kept. Fix: raise rho2, or exempt that value with {option('exempt', '')}."
    )


def _plan(
    mechanism: Designed | Identity, histogram: Histogram, privacy: Privacy | None, public: Histogram | None
) -> Plan:
    """The first channel that keeps every limit: covers from safe to tight, limits from as they are to a quarter."""
    required, limits = _requirement(histogram, privacy, mechanism.name, public)
    for cover in covers(histogram, public):
        for slack in SLACKS:
            channel = mechanism._channel(histogram, limits, cover, slack)
            if channel is None:
                break
            if keeps(histogram, channel, limits):
                said = (
                    *((TIGHT,) if cover.tight else ()),
                    *((CHOSEN_FOR_A_POOL,) if mechanism.for_questions else ()),
                )
                channel, loose = channel_for_singles(histogram, channel, required, public)
                promised = frequency_guarantee(histogram, required, limits, channel, public, loose, said)
                return Plan.of_channel(
                    mechanism.name, histogram, channel, promised, privacy=required, options=mechanism.options
                )
    raise _too_tight(histogram, limits)
