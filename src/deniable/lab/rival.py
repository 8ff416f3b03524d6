"""What the lab compares: a setting answers a pool of questions; a rival publishes something else than perturbed rows.

A rival groups a coded table in memory and answers from its groups. Nobody publishes it: a release is rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from deniable.core.errors import DeniableError, RequirementError, listing
from deniable.core.histogram import SELECTIVITIES, Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee, Promise
from deniable.core.values import Bools, Codes, Counts, Floats, Ints, percent
from deniable.estimation.asking import Asking, Options
from deniable.estimation.many import every_value_of, value_sets_of
from deniable.mechanisms.base import options_in
from deniable.mechanisms.decoys import cut_to_fit
from deniable.mechanisms.requirement import check_histogram, in_its_words, refuse_sums
from deniable.planning.informed import Informed, against, informed_attacker
from deniable.planning.pools import CodedTable, QuestionPool
from deniable.planning.prediction import ByPool, Errors, Profile
from deniable.tables.keys import Keystream
from deniable.tables.shuffling import order_of

ESTIMATORS: dict[str, Options] = {
    "inverse": Options("inverse", calibrate=False),
    "calibrated": Options("inverse"),
    "shrunk": Options("shrunk"),
    "mle": Options("mle"),
}


@dataclass(frozen=True, eq=False)
class Answered:
    """What one draw of a setting gives.

    Attributes:
        answers: estimator -> [conditions, sets].
        histogram: estimator -> the estimated histogram of the whole table.
        kept: the share of rows that were published as they are; None where rows are not published.
        seconds: for making the draw, and for answering.
    """

    answers: Mapping[str, Floats]
    histogram: Mapping[str, Floats]
    kept: float | None
    seconds: tuple[float, float]


class Setting(ABC):
    """One row group of the table of results: a frozen dataclass.

    Attributes:
        label: names the rows of the table.
        chance: whether draws differ.
    """

    label: str
    chance: ClassVar[bool] = True

    @abstractmethod
    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        """Draw once, answer all questions."""

    def plan(self, counts: Histogram) -> Plan | None:
        """The channels that rows go through; None where a row's value is not published."""
        return None

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        """Estimator -> mean relative errors, without those that have no closed form (shrunk, mle, four states)."""
        return {}


def predicted_errors(
    setting: Setting, pool: QuestionPool, selectivities: Sequence[float] = SELECTIVITIES
) -> dict[str, Errors]:
    """What an experiment should find, before it is run: a setting's errors on a pool, in closed form."""
    try:
        return setting.predicted(ByPool(pool, tuple(selectivities)))
    except DeniableError:  # a mechanism that refuses says why when it is run
        return {}


def informed_by_setting(settings: Sequence[Setting], table: CodedTable) -> dict[str, Informed]:
    """Setting -> what someone gains who has learnt from half of the table, of settings that publish perturbed rows;
    none without public columns."""
    attacker = informed_attacker(table)
    gained: dict[str, Informed] = {}
    for setting in settings:
        if attacker is None:
            break
        try:
            plan = setting.plan(table.histogram)
        except DeniableError:  # a mechanism that refuses says why when it is run
            continue
        if plan is not None:
            gained[setting.label] = against(attacker, plan)
    return gained


def estimated(ask: Asking, tally: Floats, sets: Bools, estimator: str) -> Floats:
    """Counts [conditions, sets] from rows by state [conditions, states]; of all single values without their weights,
    which are many where there are many states."""
    if sets.shape == (ask.states.m, ask.states.m) and np.array_equal(sets, np.eye(ask.states.m, dtype=bool)):
        return every_value_of(ask, tally, ESTIMATORS[estimator]).value
    return value_sets_of(ask, tally, sets, ESTIMATORS[estimator]).value


def generator(stream: Keystream) -> np.random.Generator:
    """A generator for simulations, seeded by a draw's randomness."""
    return np.random.default_rng(stream.subkey("generator").words(0, 4))


# -- rivals ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class Bound(Guarantee):
    """What a rival bounds: stated to be compared with, never published, so that no promise is there to be rechecked."""

    promises: tuple[Promise, ...] = ()

    def __post_init__(self) -> None:
        """Nothing of it is written into a manifest, so that there is nothing to refuse."""

    def __repr__(self) -> str:
        return f"<Bound, adversary {self.adversary!r}: at most {percent(self.worst)} sure>"


class Rival(ABC):
    """A way to publish something else than perturbed rows: a frozen dataclass whose fields are its options.

    Attributes:
        name: in options and tables.
        reveals: what it gives away beside perturbed columns, in words.
        biased: whether its answers have a bias that only a pool of questions shows.
    """

    name: ClassVar[str]
    reveals: ClassVar[str]
    biased: ClassVar[bool] = False

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The rival with options in a ``text``, as a command line has them: ``k=10,l=6``."""
        return options_in(cls, text)

    def fitted(self, privacy: Privacy | None) -> Rival:
        """The rival by its name alone, for a requirement: itself, unless an option follows from ``privacy``."""
        return self

    @abstractmethod
    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Bound:
        """What it bounds; refused when a requirement asks for more.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
        """

    @abstractmethod
    def setting(self, label: str, privacy: Privacy) -> Setting:
        """The rival under a requirement, as an experiment runs it."""

    @abstractmethod
    def errors(self, profile: Profile, privacy: Privacy, bound: Guarantee) -> Errors:
        """What its answers would be off by, before anything is grouped."""


# -- l-diversity: no value has more than 1/l of a group's rows (mathematics 9) -----------------------------------------


def group_size(privacy: Privacy) -> int:
    """1/rho2: the smallest group in which no value need be surer than rho2 allows."""
    limits = [privacy.own_limit(value) for value in privacy.per_value]
    return math.ceil(1 / min([*limits, *([privacy.rho2] if privacy.rho2 is not None else []), Fraction(1, 2)]))


def rows_to_suppress(histogram: Histogram, l: int) -> Counts:
    """How many rows of each value cannot be grouped: the fewest, of the most frequent values (SDR 6.3).

    Rows can be grouped exactly when fmax <= n/l.
    """
    check_histogram(histogram, None)
    counts = histogram.counts
    values = int((counts > 0).sum())
    if values < l:
        raise RequirementError(
            f"l = {l} is too large: the sensitive column has {values} different values. Fix: l={max(values, 2)}."
        )
    cut: Counts = counts - cut_to_fit(counts, l)
    return cut


def rows_kept(codes: Codes, suppressed: Ints, stream: Keystream) -> Ints:
    """The rows that are grouped, in their order; which rows of a value are not is drawn."""
    left_out: list[Ints] = []
    words = stream.words(0, len(codes)) if suppressed.any() else None
    for value in np.flatnonzero(suppressed):
        own = np.flatnonzero(codes == value)
        assert words is not None
        left_out.append(own[order_of(words[own])][: suppressed[value]])
    kept = np.ones(len(codes), dtype=bool)
    kept[np.concatenate([np.zeros(0, np.int64), *left_out])] = False
    return np.flatnonzero(kept)


def diverse_bound(name: str, l: int, least: int, histogram: Histogram, privacy: Privacy | None, sentence: str) -> Bound:
    """Pr[x | group] <= 1/l, to who knows how frequent values are.

    Refused: any prior, a rho2 below 1/l, and protected values of which rows are left out; ``least`` is the smallest l.
    """
    _require_diversity(name, l, least, histogram, privacy)
    return Bound(
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=None if privacy is None else privacy.rho2,
        worst=Fraction(1, l),
        gamma=None,
        sentence=sentence,
    )


def _require_diversity(name: str, l: int, least: int, histogram: Histogram, privacy: Privacy | None) -> None:
    refuse_sums(privacy)
    if privacy is None:
        return
    if privacy.adversary == "any-prior":
        raise RequirementError(
            f"mechanism {name!r} cannot withstand adversary 'any-prior': in a group other values are impossible. "
            "Fix: adversary='frequency', or mechanism='uniform'."
        )
    check_histogram(histogram, privacy)
    privacy = in_its_words(histogram, privacy)
    limits = [*([] if privacy.rho2 is None else [privacy.rho2]), *map(privacy.own_limit, privacy.per_value)]
    needed = max([least, *(-(-limit.denominator // limit.numerator) for limit in limits)])
    if l < needed:
        raise RequirementError(
            f"l = {l} lets an attacker become {percent(Fraction(1, l))} sure, more than rho2 allows. Fix: l={needed}."
        )
    lost = [value for value, rows in zip(histogram, rows_to_suppress(histogram, l).tolist(), strict=True) if rows]
    given_away = [value for value in lost if _protected(value, histogram, privacy)]
    if given_away:
        raise RequirementError(
            f"mechanism {name!r} with l = {l} leaves rows of {listing(given_away)} out, which the requirement "
            "protects: whoever is missing is then known to have such a value. "
            f"Fix: exempt={given_away[:1]!r}, a smaller l with a larger rho2, or mechanism='designed'."
        )


def _protected(value: Hashable, histogram: Histogram, privacy: Privacy) -> bool:
    if value in privacy.per_value:
        return histogram.frequency(value) <= privacy.per_value[value][0]
    if privacy.rho2 is None or value in privacy.exempt:
        return False
    return privacy.rho1 is None or histogram.frequency(value) <= privacy.rho1
