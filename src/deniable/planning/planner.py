"""The planner: which mechanism, for this histogram and this requirement; and which requirement, for this error."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable.core.errors import OptionError, RequirementError, option, worded
from deniable.core.histogram import Histogram
from deniable.core.part import COUNT_EPSILON
from deniable.core.plan import Plan
from deniable.core.privacy import EPSILON_LIMIT, Adversary, Privacy, as_privacy, exact_epsilon
from deniable.core.registry import entry_points
from deniable.core.values import Probability, percent
from deniable.mechanisms import (
    MECHANISMS,
    Decoys,
    Designed,
    FineGrain,
    Identity,
    Lineup,
    Mechanism,
    SmallDomain,
    Synthetic,
    Uniform,
    mechanism_named,
)
from deniable.mechanisms.registry import AUTO
from deniable.mechanisms.requirement import check_histogram, in_its_words
from deniable.planning.candidates import (
    Candidate,
    beliefs,
    candidate,
    marginal_variance,
    with_beliefs,
)
from deniable.planning.comparison import Comparison, judged
from deniable.planning.outlook import COLUMNS, Outlook, limit_for
from deniable.planning.pools import QuestionPool
from deniable.planning.prediction import BySelectivity, IndependenceMoments, Profile, profile_of
from deniable.tables.base import Progress, no_progress

# -- The planner: which mechanism, for this histogram and this requirement; and which requirement, for this error ------


LIFTED = "epsilon_limit=None", "--epsilon-limit none"
LEAST_EPSILON = 0.1  # of rows, that a floor is looked for
BY_NOISE = " (shares are those that a plan is made from, so that it gives no count away: with noise, or all alike)"
Rivals = Callable[[Histogram, Privacy, Profile], list[Candidate]]


def standard_mechanisms(
    pool: QuestionPool | None = None,
    privacy: Privacy | None = None,
    limit: float = math.inf,
    only_bounded: bool = False,
) -> tuple[Mechanism, ...]:
    """The mechanisms that a requirement (rho1, rho2) alone makes comparable; designed for a pool where there is one.

    Where something is required of sums, decoy groups are the only ones with rows that can promise it. Mechanisms of
    other packages are compared by their defaults. With a ``limit`` on epsilon, those that can keep it are there once
    more with a floor that does; ``only_bounded``: and those without one are not.
    """
    if privacy is not None and privacy.sums:
        return (Decoys(leftovers="drop"),)
    bounded = _bounded(pool, privacy, limit)
    others = [MECHANISMS[name]() for name in entry_points("deniable.mechanisms")]
    if only_bounded:
        return (Synthetic(), Uniform(), FineGrain(), *(bounded or (Lineup(),)), *others)
    plain = (Synthetic(), Uniform(), SmallDomain(), FineGrain(), Identity(), _designed(pool), Lineup())
    return (*plain, *bounded, *others)


def _designed(pool: QuestionPool | None) -> Designed:
    return Designed() if pool is None else Designed(profile=pool.profile)


def _bounded(pool: QuestionPool | None, privacy: Privacy | None, limit: float) -> tuple[Mechanism, ...]:
    """What keeps a limit on epsilon by a floor, the noisy histogram beside its rows included."""
    if privacy is None or privacy.adversary != "frequency" or math.isinf(limit):
        return ()
    rows = limit if marginal_variance(privacy) is None else limit - 2 * COUNT_EPSILON
    if rows < LEAST_EPSILON:
        return ()
    return (replace(_designed(pool), epsilon=f"{rows:g}"), Lineup(epsilon=f"{rows:g}"))


def compare(
    histogram: Histogram | Mapping[Any, int],
    privacy: Privacy,
    *,
    selectivities: Sequence[float] | None = None,
    mechanisms: Sequence[Mechanism] | None = None,
    pool: QuestionPool | None = None,
    rivals: Rivals | None = None,
    without: Sequence[str] = (),
    noisy: bool = False,
    limit: float = math.inf,
    columns: int = COLUMNS,
    declared: bool = True,
    progress: Progress = no_progress,
) -> Comparison:
    """Plan with every mechanism, predict its errors, and recommend one.

    Args:
        histogram: how many rows hold each value.
        privacy: the requirement.
        selectivities: predict the errors of counts about these shares of the rows; with a pool, of its questions that
            are at least as large.
        mechanisms: compare these instead of the standard ones.
        pool: predict the errors of these questions.
        rivals: list these baselines too, under the same requirement.
        without: names of mechanisms that do not go with what else is asked of the release.
        noisy: the histogram has the noise of a release: plans are made from it as it stands.
        limit: on epsilon against any attacker: what is above it is listed, and not recommended.
        columns: how many public columns a model is learned from.
        declared: whether all values are declared that the sensitive columns may hold.
        progress: called with (mechanisms done, in all, what).
    """
    counts = Histogram.of(histogram)
    privacy = in_its_words(counts, privacy)
    check_histogram(counts, privacy)  # an exempt value that is none is refused once, not by every mechanism
    profile = profile_of(counts, pool, selectivities)
    wanted = mechanisms or standard_mechanisms(pool, privacy, limit)
    applying = [one for one in wanted if one.name not in without]
    planned = []
    for done, one in enumerate(applying):
        progress(done, len(applying), "planning")
        planned.append(candidate(one, counts, privacy, profile, noisy=noisy, columns=columns))
    progress(len(applying), len(applying), "planning")
    candidates = judged(planned, Outlook(counts.rows, columns, privacy, limit, declared))
    every = sorted((one for one in candidates if one.plan is not None), key=lambda one: one.score)
    usable = [one for one in every if not one.withheld] or every
    withheld = [one for one in every if one not in usable]
    refused = [one for one in candidates if one.plan is None]
    if not usable:
        raise RequirementError(f"No mechanism meets this requirement{BY_NOISE if noisy else ''}{_refusals(refused)}")
    others = [] if rivals is None or privacy.sums else rivals(counts, privacy, profile)
    ordered = sorted(others, key=lambda one: (one.guarantee is None, one.score))
    return Comparison(
        (*(with_beliefs(one, counts, privacy) for one in (*usable, *withheld)), *refused),
        tuple(with_beliefs(one, counts, privacy) for one in ordered),
        profile.selectivities,
        _reason(usable, withheld, privacy, profile),
        profile.sizes,
        None if profile.sizes is None else profile.errors_of(IndependenceMoments()),
    )


def _refusals(refused: Sequence[Candidate]) -> str:
    """Why mechanisms refuse: each reason once, with those that have it."""
    names: dict[str, dict[str, None]] = {}
    for one in refused:
        names.setdefault(one.refusal, {})[one.name] = None
    return ":\n" + "\n".join(f"- {', '.join(those)}: {reason}" for reason, those in names.items())


def _reason(usable: Sequence[Candidate], withheld: Sequence[Candidate], privacy: Privacy, profile: Profile) -> str:
    best = usable[0]
    assert best.plan is not None
    shown = [
        f"{percent(error, 2)} {profile.in_words(share)}"
        for share, error in zip(profile.selectivities, best.errors, strict=True)
        if not math.isnan(error)
    ]
    kept = "the requirement"
    if any(one.score < best.score for one in withheld):
        kept += ", and may be taken without being named"
    if not shown:
        return (
            "No value is frequent enough for counts of these sizes, so no errors are predicted; of the mechanisms that "
            f"meet {kept} {best.label} promises most to someone of any belief (the smallest epsilon)."
        )
    first = f"{best.label} has the smallest predicted error of the mechanisms that meet {kept}: {', '.join(shown)}."
    if len(usable) > 1:
        mine, next_ = best.score[0], usable[1].score[0]
        larger = f"{next_ / mine:.2g} times as large" if 0 < mine < math.inf and next_ < math.inf else "no smaller"
        larger = "about as large" if larger.startswith("1 ") else larger
        second = f" Next is {usable[1].label}, whose errors are {larger}"
        second += f"; {best.name} reveals: {best.mechanism.reveals}."
    elif privacy.sums:
        groups = best.plan.parts[0].groups
        size = "" if groups is None else f" Groups of {groups.c}:"
        second = f"{size} no other mechanism that publishes rows promises anything about sums."
    else:
        second = f" No other meets it against the adversary {privacy.adversary!r}."
    return first + second


@dataclass(frozen=True)
class Strongest:
    """The smallest rho2 at which a mechanism still answers within an error; None, and why, where there is none."""

    mechanism: str
    rho2: Fraction | None
    error: float
    refusal: str = ""


def strongest_rho2(
    histogram: Histogram | Mapping[Any, int],
    error: float,
    selectivity: float,
    *,
    rho1: Fraction | None = None,
    adversary: Adversary = "frequency",
    exempt: Iterable[Hashable] = (),
    mechanisms: Sequence[Mechanism] | None = None,
    steps: int = 12,
) -> list[Strongest]:
    """For each mechanism the smallest rho2 whose predicted relative error at ``selectivity`` is at most ``error``.

    Bisection: a larger rho2 allows larger coins, so the error falls as rho2 grows.
    """
    if not error > 0 or not 0 < selectivity < 1:
        raise OptionError(
            f"error = {error:g} and selectivity = {selectivity:g} must be positive, and selectivity below 1: "
            "for example an error of 5% for questions about 1% of the rows."
        )
    situation = _Situation(Histogram.of(histogram), selectivity, rho1, adversary, tuple(exempt))
    situation.check()
    strongest = []
    for mechanism in mechanisms or standard_mechanisms():
        low, high = Fraction(1, 1000), Fraction(999, 1000)
        best, refusal = situation.error(mechanism, high)
        if not best <= error:
            strongest.append(Strongest(mechanism.name, None, best, refusal))
            continue
        for _ in range(steps):
            middle = Fraction(round(float(low + high) / 2 * 10_000), 10_000)
            reached, _ = situation.error(mechanism, middle)
            if reached <= error:
                high, best = middle, reached
            else:
                low = middle
        strongest.append(Strongest(mechanism.name, high, best))
    return sorted(strongest, key=lambda one: (one.rho2 is None, one.rho2 or 1, one.error))


@dataclass(frozen=True)
class _Situation:
    """Everything but rho2: what a mechanism's error is looked at for."""

    counts: Histogram
    selectivity: float
    rho1: Fraction | None
    adversary: Adversary
    exempt: tuple[Hashable, ...]

    def check(self) -> None:
        """Refuse what no rho2 can change."""
        most = float(self.counts.relative.max(initial=0.0))
        if self.selectivity > most:
            raise OptionError(
                f"No single value is as much as {percent(self.selectivity, 2)} of the rows, so no count of one is. "
                f"Fix: ask about {percent(most, 2)} of the rows or less."
            )
        if self.adversary == "any-prior" and self.rho1 is None:
            raise RequirementError(
                "adversary 'any-prior' needs rho1: the strongest belief beforehand that must be covered. "
                "Fix: give rho1, for example 1/13."
            )

    def privacy(self, rho2: Fraction) -> Privacy:
        return Privacy(self.rho1, rho2, adversary=self.adversary, exempt=self.exempt)

    @property
    def profile(self) -> BySelectivity:
        return BySelectivity(self.counts, (self.selectivity,))

    def error(self, mechanism: Mechanism, rho2: Fraction) -> tuple[float, str]:
        """The predicted error; infinite, and why, where the mechanism does not apply."""
        if self.rho1 is not None and rho2 <= self.rho1:
            return math.inf, "rho2 must be larger than rho1"
        one = candidate(mechanism, self.counts, self.privacy(rho2), self.profile)
        known = one.plan is not None and not math.isnan(one.errors[0])
        return (one.errors[0], "") if known else (math.inf, one.refusal)


# -- ``dn.plan``: one mechanism's plan, or the planner's choice; ``dn.beliefs``: what attackers can make of it ---------


__all__ = ["AUTO", "beliefs", "plan", "planners_choice"]


def planners_choice(
    histogram: Histogram,
    privacy: Privacy | None,
    without: Sequence[str] = (),
    noisy: bool = False,
    limit: float = math.inf,
) -> Comparison:
    """What ``"auto"`` compares: the first candidate is its choice; refused where all are above a limit on epsilon."""
    required = require_something(privacy)
    mechanisms = standard_mechanisms(None, required, limit, only_bounded=math.isfinite(limit))
    try:
        compared = compare(histogram, required, mechanisms=mechanisms, without=without, noisy=noisy, limit=limit)
    except RequirementError as refused:
        if math.isinf(limit):
            raise
        raise RequirementError(
            f"{refused}\nOnly what keeps epsilon at or below {limit:g} against any attacker was tried. Fix: as said "
            f"above, or {worded(*LIFTED)}, which lifts that."
        ) from None
    return within_limit(compared, limit)


def within_limit(compared: Comparison, limit: float) -> Comparison:
    """The same comparison; refused where the best of it is above a limit on epsilon against any attacker."""
    if not compared.recommended.withheld:
        return compared
    least = min(compared.withheld, key=lambda one: one.epsilon)
    known, lifted = "no bound on it", worded(*LIFTED)
    if math.isfinite(least.epsilon):
        known = f"{math.ceil(least.epsilon * 100) / 100:g}"
        lifted = option("epsilon_limit", known)
    raise RequirementError(
        f"No mechanism that meets this requirement keeps epsilon at or below {limit:g} against any attacker: "
        f"{least.label} comes nearest, with {known}. Fix: {lifted}, or {option('mechanism', least.name)}."
    )


def require_something(privacy: Privacy | None) -> Privacy:
    """Refuse to choose a mechanism where nothing is required of the release."""
    if privacy is None:
        raise RequirementError(
            f"mechanism 'auto' needs a requirement to choose for. Fix: {option('privacy', '1/6')}, how sure an "
            f"attacker may become; or {option('mechanism', '')} with one that needs no requirement, for example 'pram'."
        )
    return privacy


def plan(
    rows: Mapping[Hashable, int] | Histogram | Any,
    privacy: Privacy | Probability | None = None,
    mechanism: str | Mechanism = AUTO,
    epsilon_limit: Probability | None = EPSILON_LIMIT,
) -> Plan:
    """Plan a release from a histogram alone.

    Args:
        rows: how many rows hold each value: a mapping, a ``Histogram``, or a pandas Series (``value_counts()``).
        privacy: the requirement, or rho2 alone; None for mechanisms that need none.
        mechanism: a mechanism's name or object; left out, or ``"auto"``: the planner's choice.
        epsilon_limit: of the planner's choice, on epsilon against any attacker; None lifts it.

    >>> import deniable as dn
    >>> plan = dn.plan({"flu": 5, "cold": 7}, dn.Privacy(rho1="1/2", rho2="3/4"), "uniform")
    >>> plan
    <Plan by uniform: 1 cell, rho2 75 %>
    >>> plan.cells[0].channel.gamma
    3.0
    """
    histogram, required = Histogram.of(rows), as_privacy(privacy)
    if mechanism == AUTO:
        lifted = None if epsilon_limit is None else exact_epsilon(epsilon_limit, "epsilon_limit")
        limit = limit_for(require_something(required), lifted)
        return planners_choice(histogram, required, limit=limit).recommended.mechanism.plan(histogram, required)
    return mechanism_named(mechanism).plan(histogram, required)
