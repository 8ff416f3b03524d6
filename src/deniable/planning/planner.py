"""The planner: which mechanism, for this histogram and this requirement; and which requirement, for this error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Adversary, Privacy
from deniable.core.probability import percent
from deniable.evaluation.pools import QuestionPool
from deniable.evaluation.rival_candidates import rival_candidates
from deniable.mechanisms import Decoys, Designed, FineGrain, Identity, Mechanism, SmallDomain, Uniform
from deniable.mechanisms.fine_grain import in_its_words
from deniable.planning.beliefs import starting_belief
from deniable.planning.candidates import REVEALS, Candidate, candidate, with_beliefs
from deniable.planning.chart import Chart, Point, Series
from deniable.planning.profiles import ByPool, BySelectivity, profile_of

RIVAL = " (rival"  # in the name of a line


@dataclass(frozen=True)
class Comparison:
    """All applicable mechanisms side by side, and the one to take.

    Attributes:
        candidates: one per mechanism, the recommended one first, refused ones last.
        rivals: the baselines under the same requirement, for comparison.
        selectivities: the shares of the table that questions are about; one predicted error for each.
        reason: why the first is recommended, in two sentences.
        questions: how many questions the errors are means over, for each selectivity; None without a pool.
        independence: the errors of an answer that needs no release, on a pool.
    """

    candidates: tuple[Candidate, ...]
    rivals: tuple[Candidate, ...]
    selectivities: tuple[float, ...]
    reason: str
    questions: tuple[int, ...] | None = None
    independence: tuple[float, ...] | None = None

    @property
    def recommended(self) -> Candidate:
        return self.candidates[0]

    def to_dict(self) -> dict[str, Any]:
        found = {
            "recommended": self.recommended.name,
            "reason": self.reason,
            "selectivities": list(self.selectivities),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "rivals": [candidate.to_dict() for candidate in self.rivals],
        }
        if self.questions is None:
            return found
        return {**found, "questions": list(self.questions), "independence": list(self.independence or ())}


def standard_mechanisms(pool: QuestionPool | None = None, privacy: Privacy | None = None) -> tuple[Mechanism, ...]:
    """The mechanisms that a requirement (rho1, rho2) alone makes comparable; designed for a pool where there is one.

    Where something is required of sums, decoy groups are the only ones that can promise it.
    """
    if privacy is not None and privacy.sums:
        return (Decoys(leftovers="drop"),)
    designed = Designed() if pool is None else Designed(profile=pool.profile)
    return (Uniform(), SmallDomain(), FineGrain(), Identity(), designed)


def compare(
    histogram: Histogram | Mapping[Any, int],
    privacy: Privacy,
    *,
    selectivities: Sequence[float] | None = None,
    mechanisms: Sequence[Mechanism] | None = None,
    pool: QuestionPool | None = None,
    rivals: bool = True,
) -> Comparison:
    """Plan with every mechanism, predict its errors, and recommend one.

    Args:
        histogram: how many rows hold each value.
        privacy: the requirement.
        selectivities: predict the errors of counts about these shares of the rows; with a pool, of its questions that
            are at least as large.
        mechanisms: compare these instead of the standard ones.
        pool: predict the errors of these questions.
        rivals: whether to list the baselines too.
    """
    counts = Histogram.of(histogram)
    privacy = in_its_words(counts, privacy)
    profile = profile_of(counts, pool, selectivities)
    wanted = mechanisms or standard_mechanisms(pool, privacy)
    found = [candidate(mechanism, counts, privacy, profile) for mechanism in wanted]
    usable = [each for each in found if each.plan is not None]
    if not usable:
        reasons = "\n".join(f"- {each.name}: {each.refusal}" for each in found)
        raise RequirementError(f"No mechanism meets this requirement:\n{reasons}")
    usable.sort(key=lambda each: each.score)
    others = rival_candidates(counts, privacy, profile) if rivals and not privacy.sums else []
    ordered = sorted(others, key=lambda each: (each.guarantee is None, each.score))
    return Comparison(
        (*(with_beliefs(each, counts, privacy) for each in usable), *(each for each in found if each.plan is None)),
        tuple(with_beliefs(each, counts, privacy) for each in ordered),
        profile.selectivities,
        _reason(usable, privacy, profile),
        profile.sizes() if isinstance(profile, ByPool) else None,
        profile.independence() if isinstance(profile, ByPool) else None,
    )


def _reason(usable: Sequence[Candidate], privacy: Privacy, profile: BySelectivity | ByPool) -> str:
    best = usable[0]
    assert best.plan is not None
    shown = [
        f"{percent(error, 2)} {_size(share, profile)}"
        for share, error in zip(profile.selectivities, best.errors, strict=True)
        if not math.isnan(error)
    ]
    first = f"{best.name} has the smallest predicted error of the mechanisms that meet the requirement"
    first += f": {', '.join(shown)}." if shown else "."
    if len(usable) > 1:
        mine, next_ = best.score[0], usable[1].score[0]
        larger = f"{next_ / mine:.2g} times as large" if 0 < mine < math.inf and next_ < math.inf else "no smaller"
        larger = "about as large" if larger.startswith("1 ") else larger
        second = f" Next is {usable[1].name}, whose errors are {larger}"
        second += f"; {best.name} reveals: {REVEALS.get(best.name, 'see its guarantee')}."
    elif privacy.sums:
        second = f" Groups of {best.plan.options['c']}: no other mechanism promises anything about sums."
    else:
        second = f" No other meets it against the adversary {privacy.adversary!r}."
    return first + second


def _size(share: float, profile: BySelectivity | ByPool) -> str:
    if not isinstance(profile, ByPool):
        return f"at {percent(share, 2)} of the rows"
    return f"where the answer is {percent(share, 2)} of the rows or more" if share else "over the whole pool"


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
    asked = _Asked(Histogram.of(histogram), selectivity, rho1, adversary, tuple(exempt))
    asked.check()
    found = []
    for mechanism in mechanisms or standard_mechanisms():
        low, high = Fraction(1, 1000), Fraction(999, 1000)
        best, refusal = asked.error(mechanism, high)
        if not best <= error:
            found.append(Strongest(mechanism.name, None, best, refusal))
            continue
        for _ in range(steps):
            middle = Fraction(round(float(low + high) / 2 * 10_000), 10_000)
            reached, _ = asked.error(mechanism, middle)
            if reached <= error:
                high, best = middle, reached
            else:
                low = middle
        found.append(Strongest(mechanism.name, high, best))
    return sorted(found, key=lambda each: (each.rho2 is None, each.rho2 or 1, each.error))


@dataclass(frozen=True)
class _Asked:
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
        found = candidate(mechanism, self.counts, self.privacy(rho2), self.profile)
        known = found.plan is not None and not math.isnan(found.errors[0])
        return (found.errors[0], "") if known else (math.inf, found.refusal)

    def rivals(self, rho2: Fraction) -> list[tuple[str, float]]:
        """The baselines with a predicted error; "+ bias": systematically off beyond it."""
        return [
            (f"{each.name}{RIVAL}{', + bias' if each.biased else ''})", each.errors[0])
            for each in rival_candidates(self.counts, self.privacy(rho2), self.profile)
            if each.guarantee is not None and not math.isnan(each.errors[0])
        ]


def error_curve(
    histogram: Histogram | Mapping[Any, int],
    selectivity: float,
    *,
    rho1: Fraction | None = None,
    adversary: Adversary = "frequency",
    exempt: Iterable[Hashable] = (),
    mechanisms: Sequence[Mechanism] | None = None,
    rivals: bool = False,
    points: int = 12,
) -> list[dict[str, Any]]:
    """Predicted error against rho2 for all mechanisms: rows (mechanism, rho2, error) for a chart.

    There are none where no single value is as frequent as ``selectivity``.
    """
    asked = _Asked(Histogram.of(histogram), selectivity, rho1, adversary, tuple(exempt))
    floor = float(rho1) if rho1 is not None else starting_belief(asked.counts, asked.privacy(Fraction(1, 2)))
    grid = [Fraction(round(rho2 * 1000), 1000) for rho2 in np.geomspace(min(floor * 1.1, 0.9), 0.95, points)]
    found = [
        (mechanism.name, rho2, asked.error(mechanism, rho2)[0])
        for mechanism in mechanisms or standard_mechanisms()
        for rho2 in grid
    ]
    if rivals:
        others = [(name, rho2, error) for rho2 in grid for name, error in asked.rivals(rho2)]
        found += sorted(others, key=lambda each: each[0])  # stable: rho2 stays in order
    return [
        {"mechanism": name, "rho2": float(rho2), "error": error} for name, rho2, error in found if math.isfinite(error)
    ]


def error_chart(rows: Sequence[Mapping[str, Any]], selectivity: float) -> Chart:
    """``error_curve`` as a chart: mechanisms in one panel, their rivals in another."""
    lines: dict[str, list[Point]] = {}
    for row in rows:
        lines.setdefault(row["mechanism"], []).append(Point(row["rho2"], row["error"]))
    series = [
        Series(name, tuple(points), panel="rivals" if RIVAL in name else "mechanisms") for name, points in lines.items()
    ]
    return Chart(
        title="What accuracy costs in certainty",
        x="rho2: how sure an attacker may become",
        y=f"error of counts of {percent(selectivity, 2)} of the rows",
        series=tuple(series),
        log_x=True,
        log_y=True,
        percent=True,
        percent_x=True,
    )
