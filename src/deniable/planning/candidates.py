"""What one mechanism would do for a table: its guarantee and predicted errors, or why it cannot."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable.audit.attacks.informed import Informed
from deniable.core.errors import DeniableError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.lineup import LineUpDesign
from deniable.core.part import COUNT_EPSILON
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.engines.noise import discrete_laplace, discrete_laplace_variance
from deniable.engines.randomness import Keystream, Secret
from deniable.mechanisms import Mechanism
from deniable.mechanisms.view import is_sparse
from deniable.planning.beliefs import Beliefs, beliefs, promised_beliefs
from deniable.planning.profiles import Errors, Profile

MARGINAL_VARIANCE = discrete_laplace_variance(COUNT_EPSILON)  # of the noise on the published histogram
EXACT = 1e-9  # a relative error that only rounding makes
NOISE_DRAWS = 5  # of the noise, to plan from where it matters
LARGEST_MIXED = 2000  # values; hidden groups or line-ups of more are not inverted only to predict their error


@dataclass(frozen=True)
class Candidate:
    """A mechanism for this table.

    Attributes:
        plan: how; None where it refuses, and for rivals that have no channels.
        guarantee: what it promises; None where it refuses.
        refusal: why it does not apply.
        errors: predicted mean relative errors, one for each selectivity; not a number where there is no prediction.
        rival: listed to be compared with, and never recommended.
        biased: whether its answers have a bias that only a pool of questions shows.
        beliefs: how sure each adversary can become; None where it refuses, and until ``with_beliefs``.
        informed: what someone gains who has learnt from the public columns; None where it was not measured.
        withheld: why ``auto`` does not take it although it meets the requirement.
    """

    mechanism: Mechanism
    plan: Plan | None
    guarantee: Guarantee | None
    refusal: str
    errors: Errors
    seconds: float
    rival: bool = False
    biased: bool = False
    beliefs: Beliefs | None = None
    informed: Informed | None = None
    withheld: str = ""

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def lineups(self) -> LineUpDesign | None:
        """The design of its line-ups, where it publishes line-ups."""
        return None if self.plan is None else self.plan.parts[0].lineups

    @property
    def label(self) -> str:
        """Its name; of line-ups also their size and truth, which tell them apart, and of decoys what to write where the
        number of rows is no multiple of their size."""
        design = self.lineups
        if design is None:
            rows_left_out = self.plan is not None and self.plan.parts[0].left_out is not None
            return f"{self.name}:leftovers=drop" if rows_left_out else self.name
        return f"{self.name}, {design.size} values, truth {percent(design.share_true)}"

    @property
    def risk(self) -> float:
        """How often an informed attacker is right; not a number where that was not measured."""
        return math.nan if self.informed is None else self.informed.after.right

    @property
    def epsilon(self) -> float:
        return math.inf if self.guarantee is None else self.guarantee.epsilon

    @property
    def score(self) -> tuple[float, float]:
        """Smaller is better: the geometric mean of the predicted errors, then epsilon.

        Questions that are answered exactly, those about public columns alone, say nothing about a mechanism.
        """
        known = [error for error in self.errors if not math.isnan(error)]
        errors = [error for error in known if error > EXACT]
        if not errors:
            return (0.0 if known else math.inf, self.epsilon)
        return (math.exp(sum(map(math.log, errors)) / len(errors)), self.epsilon)

    def _drawn(self) -> dict[str, Any]:
        """How rows are drawn: cells and coins, or the size and the truth of line-ups."""
        none = {"cells": None, "coin": None, "kept": None}
        if self.lineups is not None:
            return {**none, "size": self.lineups.size, "truth": round(self.lineups.share_true, 4)}
        if self.plan is None:
            return none
        coin, kept = round(self.plan.average_coin, 4), round(self.plan.record_utility, 4)
        return {"cells": len(self.plan.cells), "coin": coin, "kept": kept}

    def to_dict(self) -> dict[str, Any]:
        if self.guarantee is None:
            return {"mechanism": self.name, "rival": self.rival, "refused": self.refusal}
        return {
            "mechanism": self.name,
            "label": self.label,
            "rival": self.rival,
            "adversary": self.guarantee.adversary,
            **self._drawn(),
            "worst": round(float(self.guarantee.worst), 4),
            **({} if self.beliefs is None else {"worst_posterior": self.beliefs.to_dict()}),
            "epsilon": None if math.isinf(self.epsilon) else round(self.epsilon, 3),
            "errors": [None if math.isnan(error) else round(error, 4) for error in self.errors],
            "biased": self.biased,
            "reveals": self.mechanism.reveals,
            "guarantee": str(self.guarantee),
            "seconds": round(self.seconds, 3),
            **({} if self.informed is None else {"informed": self.informed.to_dict()}),
            **({"withheld": self.withheld} if self.withheld else {}),
        }


def candidate(mechanism: Mechanism, counts: Histogram, privacy: Privacy, profile: Profile) -> Candidate:
    """A mechanism with channels: its plan, and the errors that follow from it."""

    def made() -> tuple[Plan | None, Guarantee, Errors]:
        plan = as_published(mechanism, counts, privacy)
        return plan, plan.guarantee, errors_of(plan, profile, calibrated=marginal_variance(privacy) is not None)

    return timed(mechanism, made)


def as_published(mechanism: Mechanism, counts: Histogram, privacy: Privacy | None) -> Plan:
    """The plan that a release would have, as far as that can be said before its noise is drawn.

    Releases are planned from counts with noise (mathematics 13.4). Where values are frequent that changes nothing one
    can see. In columns of many rare values a coin for all of them must do for the one that the noise understates most,
    and rows are kept far less often than exact counts would allow: of some draws of the noise, the plan is shown that
    keeps a middling number of rows.
    """
    knows = privacy is None or marginal_variance(privacy) is not None
    if not (knows and is_sparse(counts)):
        return mechanism.plan(counts, privacy)
    first, *others = _with_noise(counts)
    plan = mechanism.plan(counts, privacy, public=first)
    if len(plan.cells) != 1:  # line-ups and groups: there is no coin for all values
        return plan
    plans = [plan, *(mechanism.plan(counts, privacy, public=public) for public in others)]
    return sorted(plans, key=lambda one: one.average_coin)[len(plans) // 2]


def _with_noise(counts: Histogram) -> list[Histogram]:
    """The histogram with noise, some draws of it: always the same, so that a comparison can be repeated."""
    stream = Keystream(Secret.from_key(bytes(32)), "planner")
    noise = (discrete_laplace(stream.subkey(str(draw)), counts.m, COUNT_EPSILON) for draw in range(NOISE_DRAWS))
    return [Histogram(counts.domain, np.maximum(counts.counts + drawn, 1)) for drawn in noise]


def errors_of(plan: Plan, profile: Profile, *, calibrated: bool) -> Errors:
    """The errors that follow from a plan; not numbers where predicting them would take too long."""
    hidden = len(plan.cells) > 1 and not plan.cells_published
    if (hidden or plan.parts[0].lineups is not None) and plan.histogram.m > LARGEST_MIXED:
        return (math.nan,) * len(profile.selectivities)
    return profile.channels(plan, MARGINAL_VARIANCE if calibrated else None)


def with_beliefs(one: Candidate, counts: Histogram, privacy: Privacy) -> Candidate:
    """The same candidate, with how sure each adversary can become."""
    if one.guarantee is None:
        return one
    sure = promised_beliefs(one.guarantee, counts, privacy) if one.plan is None else beliefs(one.plan)
    return replace(one, beliefs=sure)


def marginal_variance(privacy: Privacy) -> float | None:
    """Of the noisy histogram that a release publishes by default, if it publishes one."""
    return MARGINAL_VARIANCE if privacy.adversary == "frequency" and privacy.small_sums is None else None


def timed(
    mechanism: Any,
    make: Callable[[], tuple[Plan | None, Guarantee, Errors]],
    *,
    rival: bool = False,
    biased: bool = False,
) -> Candidate:
    begin = time.perf_counter()
    try:
        plan, promised, errors = make()
    except DeniableError as refused:
        return Candidate(mechanism, None, None, str(refused), (), time.perf_counter() - begin, rival, biased)
    return Candidate(mechanism, plan, promised, "", errors, time.perf_counter() - begin, rival, biased)
