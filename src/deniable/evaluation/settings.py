"""What an experiment compares: mechanisms with estimators, and the rivals that have no channel.

A setting draws once and answers the whole pool in one or several ways. Answers are arrays [conditions, value sets].
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.errors import OptionError, did_you_mean
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.evaluation.answered import ESTIMATORS, Answered, Setting, estimated, generator
from deniable.evaluation.drawing import draw_release
from deniable.evaluation.perturbed_generalization import PerturbedGeneralization
from deniable.evaluation.pools import QuestionPool
from deniable.evaluation.rivals import Anatomized, DecoyGroups, Generalized, Laplace, Noisy, Redrawn
from deniable.mechanisms import Anatomy, Decoys, Generalize, Mechanism, mechanism_named
from deniable.planning.independence import independence

__all__ = [
    "ESTIMATORS",
    "STANDARD",
    "Anatomized",
    "Answered",
    "DecoyGroups",
    "Generalized",
    "Independent",
    "Laplace",
    "Noisy",
    "Perturbed",
    "PerturbedGeneralization",
    "Redrawn",
    "Setting",
    "estimated",
    "generator",
    "setting_named",
]

STANDARD = ("inverse", "calibrated", "shrunk")
FEWEST = 10  # rows of a box


@dataclass(frozen=True)
class Perturbed:
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
        whole, each = draw.asking.total[None, :], np.eye(pool.table.m, dtype=bool)
        answers = {name: estimated(draw.asking, tally, pool.sets, name) for name in self.estimators}
        answered = time.perf_counter()
        histogram = {name: estimated(draw.asking, whole, each, name)[0] for name in self.estimators}
        kept = float((draw.published == pool.table.codes).mean())
        return Answered(answers, histogram, kept, (drawn - begin, answered - drawn))


@dataclass(frozen=True)
class Independent:
    """N_R f_x / n: the line to beat."""

    label: str = "independence"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        counts = pool.table.histogram.counts
        answers = independence(pool.condition_rows, counts, pool.sets)
        return Answered({"": answers}, {"": counts.astype(np.float64)}, None, (0.0, 0.0))


# Rivals by the name of their mechanism: how each is set up from its own options and the requirement.
RIVALS: dict[str, Callable[[Any, str, Privacy], Setting]] = {
    "anatomy": lambda rival, label, privacy: Anatomized(rival.l, label, privacy),
    "decoys": lambda rival, label, privacy: DecoyGroups(rival.c or group_size(privacy), label),
    "generalize": lambda rival, label, privacy: Generalized(rival.k, rival.l, label, privacy),
    "laplace": lambda rival, label, privacy: Laplace(rival, privacy, label),
    "redraw": lambda rival, label, privacy: Redrawn(label),
}


def group_size(privacy: Privacy) -> int:
    """1/rho2: the smallest group in which no value need be surer than rho2 allows."""
    limits = [rho2 for _, rho2 in privacy.per_value.values()]
    return math.ceil(1 / min([*limits, *([privacy.rho2] if privacy.rho2 is not None else []), Fraction(1, 2)]))


def setting_named(text: str, privacy: Privacy, estimators: tuple[str, ...] = STANDARD) -> Setting:
    """A setting by the name of its mechanism, which its options may follow: ``decoys:c=5``.

    Rivals that are not given a group size get the one that bounds them by rho2.
    """
    name, size = text.partition(":")[0], group_size(privacy)
    if name == "perturbed-generalization":
        return PerturbedGeneralization(max(FEWEST, size), privacy)
    if name == "retention":
        raise OptionError("mechanism 'retention' perturbs many columns; here one is evaluated. Fix: leave it out.")
    fitted: dict[str, Mechanism] = {
        "anatomy": Anatomy(size),
        "generalize": Generalize(max(FEWEST, size), size),
        "decoys": Decoys(c=size),
    }
    mechanism = fitted.get(text) or mechanism_named(text)
    if name in RIVALS:
        return RIVALS[name](mechanism, text, privacy)
    return Perturbed(text, mechanism, privacy, estimators)
