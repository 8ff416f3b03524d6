"""Perturbed generalization in an experiment: one perturbed row of each box answers a pool (mathematics 9).

Channel, boxes, sample and estimate are those of ``rivals/perturbed_generalization``; only files are missing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deniable.core.arrays import Ints
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.evaluation.answered import Answered
from deniable.evaluation.boxed import Boxed
from deniable.evaluation.rivals import Rival
from deniable.mechanisms.base import Mechanism
from deniable.planning.pools import QuestionPool
from deniable.planning.tables import CodedTable
from deniable.rivals.perturbed_generalization import mechanism as rival
from deniable.rivals.perturbed_generalization.estimate import BoxSample
from deniable.rivals.perturbed_generalization.mechanism import one_of_each, perturbed


@dataclass(frozen=True, eq=False)
class Sampled:
    """What is published.

    Attributes:
        boxed: the groups, whose boxes are published.
        member: the row that was drawn from each group; not published.
        sample: its perturbed value, and the rows of its group.
    """

    boxed: Boxed
    member: Ints
    sample: BoxSample

    @classmethod
    def draw(cls, table: CodedTable, k: int, privacy: Privacy, stream: Keystream) -> Sampled:
        """Perturb, generalize, sample."""
        channel = rival.PerturbedGeneralization(k).channel(table.histogram, privacy)
        boxed = Boxed.of(table, np.arange(table.rows), k, 1)
        member = one_of_each(boxed.groups, stream.subkey("sample"))
        shown = perturbed(channel, table.codes[member], stream.subkey("draws")).astype(np.int64)
        return cls(boxed, member, BoxSample(channel, shown, np.bincount(boxed.groups)))


@dataclass(frozen=True)
class PerturbedGeneralization(Rival):
    """One perturbed row for each box of k rows or more."""

    k: int
    privacy: Privacy
    label: str = "perturbed-generalization"
    evaluates: ClassVar[type[Mechanism]] = rival.PerturbedGeneralization

    @classmethod
    def of(cls, mechanism: rival.PerturbedGeneralization, label: str, privacy: Privacy) -> PerturbedGeneralization:
        return cls(mechanism.k, privacy, label)

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        begin = time.perf_counter()
        made = Sampled.draw(pool.table, self.k, self.privacy, stream)
        drawn = time.perf_counter()
        answers = np.array([made.sample.by_value(share) for share in made.boxed.shares(pool)]) @ pool.sets.T
        answered = time.perf_counter()
        histogram = made.sample.by_value(np.ones(len(made.sample.rows)))
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))
