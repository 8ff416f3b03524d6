"""The planner: which mechanism, for this histogram and this requirement; and which requirement, for this error."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.errors import DeniableError, OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.evaluation.prediction import predicted_relative_error
from deniable.mechanisms import Designed, FineGrain, Identity, Mechanism, SmallDomain, Uniform

SELECTIVITIES = (0.001, 0.005, 0.01)
MARGINAL_VARIANCE = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2  # of the noise on the published histogram, epsilon 1
REVEALS = {
    "uniform": "nothing beyond the columns",
    "small-domain": "the cell: a row's value is one of the cell's",
    "fine-grain": "nothing beyond the columns",
    "identity": "rarer values speak louder to those who know more than frequencies",
    "designed": "rarer values speak louder to those who know more than frequencies",
}


@dataclass(frozen=True)
class Candidate:
    """What one mechanism would do for this table: its plan and predicted errors, or why it cannot."""

    name: str
    plan: Plan | None
    refusal: str
    errors: tuple[float, ...]
    seconds: float

    @property
    def epsilon(self) -> float:
        return math.inf if self.plan is None else self.plan.guarantee.epsilon

    def to_dict(self) -> dict[str, Any]:
        if self.plan is None:
            return {"mechanism": self.name, "refused": self.refusal}
        return {
            "mechanism": self.name,
            "adversary": self.plan.guarantee.adversary,
            "cells": len(self.plan.cells),
            "coin": round(self.plan.average_coin, 4),
            "kept": round(self.plan.record_utility, 4),
            "epsilon": None if math.isinf(self.epsilon) else round(self.epsilon, 3),
            "errors": [None if math.isnan(error) else round(error, 4) for error in self.errors],
            "reveals": REVEALS.get(self.name, ""),
            "guarantee": str(self.plan.guarantee),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Comparison:
    """All applicable mechanisms side by side, and the one to take.

    Attributes:
        candidates: one per mechanism, the recommended one first, refused ones last.
        selectivities: the shares of the table that questions are about; one predicted error for each.
        reason: why the first is recommended, in two sentences.
    """

    candidates: tuple[Candidate, ...]
    selectivities: tuple[float, ...]
    reason: str

    @property
    def recommended(self) -> Candidate:
        return self.candidates[0]

    def to_dict(self) -> dict[str, Any]:
        return {
            "recommended": self.recommended.name,
            "reason": self.reason,
            "selectivities": list(self.selectivities),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
        }


def standard_mechanisms() -> tuple[Mechanism, ...]:
    """The mechanisms that a requirement (rho1, rho2) alone makes comparable."""
    return (Uniform(), SmallDomain(), FineGrain(), Identity(), Designed())


def compare(
    histogram: Histogram | Mapping[Any, int],
    privacy: Privacy,
    *,
    selectivities: Sequence[float] = SELECTIVITIES,
    mechanisms: Sequence[Mechanism] | None = None,
) -> Comparison:
    """Plan with every mechanism, predict its errors, and recommend one."""
    counts = Histogram.of(histogram)
    found = [_candidate(mechanism, counts, privacy, selectivities) for mechanism in mechanisms or standard_mechanisms()]
    usable = [candidate for candidate in found if candidate.plan is not None]
    if not usable:
        reasons = "\n".join(f"- {candidate.name}: {candidate.refusal}" for candidate in found)
        raise RequirementError(f"No mechanism meets this requirement:\n{reasons}")
    usable.sort(key=_score)
    ordered = (*usable, *(candidate for candidate in found if candidate.plan is None))
    return Comparison(ordered, tuple(selectivities), _reason(usable, privacy, selectivities))


def _candidate(mechanism: Mechanism, counts: Histogram, privacy: Privacy, selectivities: Sequence[float]) -> Candidate:
    begin = time.perf_counter()
    try:
        plan = mechanism.plan(counts, privacy)
        variance = MARGINAL_VARIANCE if privacy.adversary == "frequency" else None
        errors = predicted_relative_error(plan, counts, selectivities, marginal_variance=variance)
    except DeniableError as refused:
        return Candidate(mechanism.name, None, str(refused), (), time.perf_counter() - begin)
    return Candidate(mechanism.name, plan, "", tuple(errors.tolist()), time.perf_counter() - begin)


def _score(candidate: Candidate) -> tuple[float, float]:
    """Smaller is better: the geometric mean of the predicted errors, then epsilon."""
    errors = [error for error in candidate.errors if not math.isnan(error)]
    return (float(np.exp(np.mean(np.log(errors)))) if errors and min(errors) > 0 else math.inf, candidate.epsilon)


def _reason(usable: Sequence[Candidate], privacy: Privacy, selectivities: Sequence[float]) -> str:
    best = usable[0]
    shown = [
        f"{percent(error, 2)} off at {percent(share, 2)} of the rows"
        for share, error in zip(selectivities, best.errors, strict=True)
        if not math.isnan(error)
    ]
    first = f"{best.name} has the smallest predicted error of the mechanisms that meet the requirement"
    first += f" ({', '.join(shown)})." if shown else "."
    if len(usable) > 1:
        ratio = _score(usable[1])[0] / _score(best)[0] if _score(best)[0] > 0 else math.inf
        second = f" Next is {usable[1].name}, whose errors are {ratio:.2g} times as large"
        second += f"; {best.name} reveals: {REVEALS.get(best.name, 'see its guarantee')}."
    else:
        second = f" It is the only one that withstands the adversary {privacy.adversary!r}."
    return first + second


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
    found = _candidate(mechanism, counts, privacy, [selectivity])
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
