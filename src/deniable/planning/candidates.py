"""What one mechanism would do for a table: its guarantee and predicted errors, or why it cannot."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.audit.attacks.informed import Informed
from deniable.core.arrays import Ints
from deniable.core.errors import DeniableError, counted
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
from deniable.mechanisms.view import SPARSE, upper_counts
from deniable.planning.beliefs import Beliefs, beliefs, promised_beliefs
from deniable.planning.profiles import Errors, Profile

MARGINAL_VARIANCE = discrete_laplace_variance(COUNT_EPSILON)  # of the noise on the published histogram
EXACT = 1e-9  # a relative error that only rounding makes
NOISE_DRAWS = 400  # of the noise, some of which are planned from where it matters
NOISE_ENTRIES = 2**22  # of all draws: with more values there are fewer draws, which are more alike
MANY_PLANS, FEW_PLANS = 11, 3  # from such draws, where two of them show that plans differ
MANY_VALUES = 10_000  # few plans for more
STEADY = 1.02  # how much larger one's coin may be than the other's, where they do not
TINY = 1e-9  # a coin that keeps no row
LARGEST_MIXED = 2000  # values; hidden groups or line-ups of more are not inverted only to predict their error


def label_of(name: str, plan: Plan) -> str:
    """A mechanism's name; of line-ups also their size and truth, which tell them apart, and of decoys what to write
    where the number of rows is no multiple of their size."""
    design = plan.parts[0].lineups
    if design is None:
        return name if plan.parts[0].left_out is None else f"{name}:leftovers=drop"
    return f"{name}, {counted(design.size, 'value')}, truth {percent(design.share_true)}"


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
        """What it is called beside others."""
        return self.name if self.plan is None else label_of(self.name, self.plan)

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


def candidate(
    mechanism: Mechanism, counts: Histogram, privacy: Privacy, profile: Profile, *, noisy: bool = False
) -> Candidate:
    """A mechanism with channels: its plan, and the errors that follow from it; ``noisy`` counts are planned from as
    they stand."""

    def made() -> tuple[Plan | None, Guarantee, Errors]:
        drawn = [mechanism.plan(counts, privacy, public=counts)] if noisy else drawn_plans(mechanism, counts, privacy)
        plan, calibrated = middling(drawn), marginal_variance(privacy) is not None
        return plan, plan.guarantee, mean_errors(drawn, lambda one: errors_of(one, profile, calibrated=calibrated))

    return timed(mechanism, made)


def as_published(mechanism: Mechanism, counts: Histogram, privacy: Privacy | None) -> Plan:
    """The plan that a release would have, as far as that can be said before its noise is drawn: of ``drawn_plans`` the
    one that keeps a middling number of rows."""
    return middling(drawn_plans(mechanism, counts, privacy))


def drawn_plans(mechanism: Mechanism, counts: Histogram, privacy: Privacy | None) -> list[Plan]:
    """Plans that a release may have, one for each of some draws of the noise; one plan where the noise hardly matters.

    Releases are planned from counts with noise (mathematics 13.4). Where all values are frequent that changes nothing
    one can see. Where some are rare, a coin for all of them must do for the one that the noise understates most, and
    rows are kept far less often than exact counts would allow, in some releases half as often as in others; and cells
    are others for every draw.
    """
    knows = privacy is None or marginal_variance(privacy) is not None
    if not (knows and counts.counts.min() < SPARSE):
        return [mechanism.plan(counts, privacy)]
    noisy = _with_noise(counts)
    middle = mechanism.plan(counts, privacy, public=noisy[len(noisy) // 2])
    if len(middle.cells) != 1 and not middle.cells_published:  # line-ups and groups: coins say nothing of their errors
        return [middle]
    unkind = mechanism.plan(counts, privacy, public=noisy[len(noisy) * 9 // 10])
    if 1 / STEADY <= unkind.average_coin / max(middle.average_coin, TINY) <= STEADY:
        return [middle]
    number = MANY_PLANS if counts.m <= MANY_VALUES else FEW_PLANS
    return [mechanism.plan(counts, privacy, public=public) for public in _evenly(noisy, number)]


def middling(plans: Sequence[Plan]) -> Plan:
    """The plan that keeps a middling number of rows."""
    return plans[0] if len(plans) == 1 else sorted(plans, key=lambda one: one.average_coin)[len(plans) // 2]


def mean_errors(plans: Sequence[Plan], errors: Callable[[Plan], Errors]) -> Errors:
    """The errors to expect before the noise is drawn: the mean over the plans that it may lead to."""
    return tuple(np.mean([errors(plan) for plan in plans], axis=0).tolist())


@lru_cache(maxsize=1)  # every mechanism of a comparison is planned from the same draws
def _with_noise(counts: Histogram) -> list[Histogram]:
    """The histogram with noise, many draws of it from kind to unkind: always the same, so that a comparison can be
    repeated.

    Unkind is noise that understates a value by much: its bound is then a large multiple of its noisy share.
    """
    draws = [counts.with_counts(np.maximum(counts.counts + noise, 1)) for noise in _noise(counts.m)]
    return sorted(draws, key=lambda public: float((upper_counts(counts, public) / public.counts).max()))


def _noise(m: int) -> list[Ints]:
    stream = Keystream(Secret.from_key(bytes(32)), "planner")
    number = max(min(NOISE_DRAWS, NOISE_ENTRIES // m), MANY_PLANS)
    return [discrete_laplace(stream.subkey(str(draw)), m, COUNT_EPSILON) for draw in range(number)]


def _evenly(ordered: Sequence[Histogram], number: int) -> list[Histogram]:
    """So many that speak for all: evenly from the first to the last."""
    return [ordered[int((place + 0.5) / number * len(ordered))] for place in range(number)]


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
