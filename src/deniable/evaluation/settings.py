"""What an experiment compares: mechanisms with estimators, the line to beat, and the rivals that have no channel.

A setting draws once and answers the whole pool in one or several ways. Answers are arrays [conditions, value sets].
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deniable.core.arrays import Codes
from deniable.core.errors import OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.evaluation.answered import ESTIMATORS, Answered, Setting, estimated
from deniable.evaluation.draws import draw_release
from deniable.evaluation.perturbed_generalization import PerturbedGeneralization
from deniable.evaluation.rivals import Anatomized, DecoyGroups, Generalized, Laplace, Redrawn, Rival
from deniable.mechanisms import MECHANISMS, Items, Mechanism, Retention, mechanism_named
from deniable.planning.candidates import MARGINAL_VARIANCE, as_published, drawn_plans, mean_errors
from deniable.planning.independence import IndependenceMoments, independence
from deniable.planning.pools import QuestionPool
from deniable.planning.profiles import ByPool, Errors
from deniable.planning.tables import PIECE

STANDARD = ("inverse", "calibrated", "shrunk")
RIVALS: tuple[type[Rival], ...] = (Anatomized, DecoyGroups, Generalized, Laplace, PerturbedGeneralization, Redrawn)


@dataclass(frozen=True)
class Perturbed(Setting):
    """A mechanism under a requirement, answered by some estimators."""

    label: str
    mechanism: Mechanism
    privacy: Privacy | None
    estimators: tuple[str, ...] = STANDARD

    def __post_init__(self) -> None:
        for name in self.estimators:
            if name not in ESTIMATORS:
                raise OptionError(
                    f"estimator = {name!r} is not known: choose among {', '.join(ESTIMATORS)}."
                    + did_you_mean(name, ESTIMATORS)
                )

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        begin = time.perf_counter()
        draw = draw_release(pool.table, self.mechanism, self.privacy, stream)
        drawn = time.perf_counter()
        tally = pool.tally(draw.states, draw.asking.states.count)
        whole, single = draw.asking.total[None, :], np.eye(pool.table.m, dtype=bool)
        answers = {name: estimated(draw.asking, tally, pool.sets, name) for name in self.estimators}
        answered = time.perf_counter()
        histogram = {name: estimated(draw.asking, whole, single, name)[0] for name in self.estimators}
        sets = draw.plan.parts[0].lineups is not None  # of which none is published as it is
        kept = None if sets else _share_alike(draw.published, pool.table.codes)
        return Answered(answers, histogram, kept, (drawn - begin, answered - drawn))

    def plan(self, counts: Histogram) -> Plan:
        return as_published(self.mechanism, counts, self.privacy)

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        plans = drawn_plans(self.mechanism, profile.pool.table.histogram, self.privacy)
        knows = self.privacy is None or self.privacy.adversary == "frequency"
        noise = {"inverse": None, "calibrated": MARGINAL_VARIANCE if knows else None}
        return {
            name: mean_errors(plans, lambda plan, name=name: profile.channels(plan, noise[name]))  # type: ignore[misc]
            for name in self.estimators
            if name in noise
        }


def _share_alike(published: Codes, codes: Codes) -> float:
    """The share of rows that are published as they are, a piece of them at a time."""
    pieces = (slice(start, start + PIECE) for start in range(0, len(codes), PIECE))
    return sum(int((published[piece] == codes[piece]).sum()) for piece in pieces) / len(codes)


@dataclass(frozen=True)
class Independent(Setting):
    """N_R f_x / n: the line to beat."""

    label: str = "independence"
    chance: ClassVar[bool] = False

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        counts = pool.table.histogram.counts
        answers = independence(pool.condition_rows, counts, pool.sets)
        return Answered({"": answers}, {"": counts.astype(np.float64)}, None, (0.0, 0.0))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.errors_of(IndependenceMoments())}


def setting_named(text: str, privacy: Privacy, estimators: tuple[str, ...] = STANDARD) -> Setting:
    """A setting by the name of its mechanism, which its options may follow: ``decoys:c=5``.

    Rivals that are not given a group size get the one that bounds them by rho2.
    """
    name = text.partition(":")[0]
    kind = MECHANISMS.get(name)
    if kind is Retention:
        raise OptionError("mechanism 'retention' perturbs many columns; here one is evaluated. Fix: leave it out.")
    if kind is Items:
        raise OptionError(
            "mechanism 'items' perturbs lists; here a column of single values is evaluated. Fix: leave it out."
        )
    made = mechanism_named(text)
    for rival in RIVALS:
        if rival.evaluates is kind:
            return rival.of(made.fitted(privacy) if text == name else made, text, privacy)
    return Perturbed(text, made, privacy, estimators)
