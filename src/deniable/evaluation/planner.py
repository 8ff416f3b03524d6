"""The planner: which mechanism, for this histogram and this requirement; and which requirement, for this error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.evaluation.candidates import REVEALS, Candidate, candidate
from deniable.evaluation.pools import QuestionPool
from deniable.evaluation.profiles import ByPool, BySelectivity, profile_of
from deniable.evaluation.rival_candidates import rival_candidates
from deniable.mechanisms import Designed, FineGrain, Identity, Mechanism, SmallDomain, Uniform


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


def standard_mechanisms(pool: QuestionPool | None = None) -> tuple[Mechanism, ...]:
    """The mechanisms that a requirement (rho1, rho2) alone makes comparable; designed for a pool where there is one."""
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
    profile = profile_of(counts, pool, selectivities)
    wanted = mechanisms or standard_mechanisms(pool)
    found = [candidate(mechanism, counts, privacy, profile) for mechanism in wanted]
    usable = [each for each in found if each.plan is not None]
    if not usable:
        reasons = "\n".join(f"- {each.name}: {each.refusal}" for each in found)
        raise RequirementError(f"No mechanism meets this requirement:\n{reasons}")
    usable.sort(key=lambda each: each.score)
    others = rival_candidates(counts, privacy, profile) if rivals else []
    return Comparison(
        (*usable, *(each for each in found if each.plan is None)),
        tuple(sorted(others, key=lambda each: (each.guarantee is None, each.score))),
        profile.selectivities,
        _reason(usable, privacy, profile),
        profile.sizes() if isinstance(profile, ByPool) else None,
        profile.independence() if isinstance(profile, ByPool) else None,
    )


def _reason(usable: Sequence[Candidate], privacy: Privacy, profile: BySelectivity | ByPool) -> str:
    best = usable[0]
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
        second = f" Next is {usable[1].name}, whose errors are {larger}"
        second += f"; {best.name} reveals: {REVEALS.get(best.name, 'see its guarantee')}."
    else:
        second = f" It is the only one that withstands the adversary {privacy.adversary!r}."
    return first + second


def _size(share: float, profile: BySelectivity | ByPool) -> str:
    if not isinstance(profile, ByPool):
        return f"at {percent(share, 2)} of the rows"
    return f"where the answer is {percent(share, 2)} of the rows or more" if share else "over the whole pool"


@dataclass(frozen=True)
class Strongest:
    """The smallest rho2 at which a mechanism still answers within an error."""

    mechanism: str
    rho2: Fraction | None
    error: float


def strongest_rho2(
    histogram: Histogram | Mapping[Any, int],
    error: float,
    selectivity: float,
    *,
    rho1: Fraction | None = None,
    adversary: Any = "frequency",
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
    counts = Histogram.of(histogram)
    found = []
    for mechanism in mechanisms or standard_mechanisms():
        low, high = Fraction(1, 1000), Fraction(999, 1000)
        best = _error_at(mechanism, counts, high, rho1, adversary, selectivity)
        if not best <= error:
            found.append(Strongest(mechanism.name, None, best))
            continue
        for _ in range(steps):
            middle = Fraction(round(float(low + high) / 2 * 10_000), 10_000)
            reached = _error_at(mechanism, counts, middle, rho1, adversary, selectivity)
            if reached <= error:
                high, best = middle, reached
            else:
                low = middle
        found.append(Strongest(mechanism.name, high, best))
    return sorted(found, key=lambda each: (each.rho2 is None, each.rho2 or 1))


def _error_at(
    mechanism: Mechanism, counts: Histogram, rho2: Fraction, rho1: Fraction | None, adversary: Any, selectivity: float
) -> float:
    try:
        privacy = Privacy(rho1=rho1, rho2=rho2, adversary=adversary)
    except RequirementError:
        return math.inf
    found = candidate(mechanism, counts, privacy, BySelectivity(counts, (selectivity,)))
    return math.inf if found.plan is None or math.isnan(found.errors[0]) else found.errors[0]


def error_curve(
    histogram: Histogram | Mapping[Any, int],
    selectivity: float,
    *,
    rho1: Fraction | None = None,
    adversary: Any = "frequency",
    mechanisms: Sequence[Mechanism] | None = None,
    points: int = 12,
) -> list[dict[str, Any]]:
    """Predicted error against rho2 for all mechanisms: rows (mechanism, rho2, error) for a chart."""
    counts = Histogram.of(histogram)
    floor = float(rho1) if rho1 is not None else float(counts.relative.max())
    grid = np.geomspace(min(floor * 1.1, 0.9), 0.95, points)
    rows = []
    for mechanism in mechanisms or standard_mechanisms():
        for rho2 in grid:
            error = _error_at(mechanism, counts, Fraction(round(rho2 * 1000), 1000), rho1, adversary, selectivity)
            if math.isfinite(error):
                rows.append({"mechanism": mechanism.name, "rho2": round(float(rho2), 3), "error": error})
    return rows
