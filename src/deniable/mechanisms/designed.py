"""Designed channels: coins and a replacing distribution made for the frequency adversary (mathematics 2, 5).

Every posterior is brought up to rho2 at once, so a share of about rho2 of the rows keeps its value, the most that any
channel can keep: sum_y Pr[y] Pr[y | y] <= rho2. The replacing distribution r ~ f^a is chosen to minimise the predicted
error of the questions in ``profile``: counts by their selectivity, or an owner's own questions. The derivation is in
docs/explanation/designed-channels.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from deniable.core.arrays import Counts, Floats
from deniable.core.channel import Channel
from deniable.core.errors import OptionError, RequirementError, did_you_mean, option, shortened
from deniable.core.exact import different, kinds
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.profile import QuestionProfile
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.designed_coins import (
    Cover,
    as_limits,
    constant_coin,
    covers,
    designed_coins,
    lowered,
)
from deniable.mechanisms.one_cell import limits_of
from deniable.mechanisms.posterior import Limits, frequency_guarantee, keeps
from deniable.mechanisms.requirement import check_histogram, in_its_words, needs_values
from deniable.mechanisms.singles import channel_for_singles
from deniable.mechanisms.variances import pool_error, profile_error

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

    >>> import deniable as dn
    >>> from deniable.mechanisms import Designed
    >>> rows = {"flu": 500, "cold": 450, "asthma": 400, "gout": 350, "hiv": 300}
    >>> plan = dn.plan(rows, dn.Privacy(rho2="2/5"), Designed())
    >>> 0.38 < plan.record_utility <= 0.4
    True
    """

    replacing: Replacing | None = None
    profile: tuple[float, ...] | QuestionProfile = (0.001, 0.005, 0.01)
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
        if isinstance(self.profile, QuestionProfile):
            options["profile"] = f"{len(self.profile):,} questions of the owner"
        return options

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; ``public`` is a noisy histogram that will be published, for the replacing distribution."""
        return _plan(self, histogram, privacy, public)

    def _channel(self, histogram: Histogram, limits: Limits, cover: Cover, slack: float) -> Channel | None:
        """The channel for these ``limits``, lowered by ``slack``, of a ``histogram`` as its ``cover`` has it."""
        profile = self.profile
        if isinstance(profile, QuestionProfile):
            profile = profile.in_order(histogram.domain)
        bounds = lowered(as_limits(limits), slack)
        search = _Search(cover.base, cover.prior / histogram.rows, cover.mass, bounds, profile)
        start = 0.0 if self.replacing == "uniform" else 1.0
        exempt_caps = EXEMPT_CAPS if None in limits else EXEMPT_CAPS[:1]
        best = search.best([(start, cap, exempt_cap) for cap in _caps(limits) for exempt_cap in exempt_caps])
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
