"""Perturbed generalization in an experiment: one perturbed row of each box answers a pool (mathematics 9).

Channel, boxes, sample and estimate are those of ``rivals/perturbed_generalization``; only files are missing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Ints
from deniable.core.channel import Channel
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.evaluation.answered import Answered, Setting
from deniable.evaluation.boxed import Boxed
from deniable.planning.pools import QuestionPool
from deniable.planning.tables import CodedTable
from deniable.rivals.perturbed_generalization import mechanism as rival
from deniable.rivals.perturbed_generalization.estimate import BoxSample
from deniable.rivals.perturbed_generalization.publish import one_of_each, perturbed


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

    @property
    def channel(self) -> Channel:
        """By which values were perturbed."""
        return self.sample.channel

    @property
    def shown(self) -> Ints:
        """The perturbed value of each group."""
        return self.sample.shown

    @property
    def sizes(self) -> Ints:
        """The rows of each group."""
        return self.sample.rows


@dataclass(frozen=True)
class PerturbedGeneralization(Setting):
    """One perturbed row for each box of k rows or more."""

    k: int
    privacy: Privacy
    label: str = "perturbed-generalization"

    @classmethod
    def named(cls, text: str, mechanism: rival.PerturbedGeneralization, privacy: Privacy) -> PerturbedGeneralization:
        """The setting of a mechanism as it was spelled; by its name alone with as many rows as rho2 asks for."""
        own = mechanism if ":" in text else mechanism.fitted(privacy)
        return cls(own.k, privacy, text)

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        begin = time.perf_counter()
        made = Sampled.draw(pool.table, self.k, self.privacy, stream)
        drawn = time.perf_counter()
        answers = np.array([made.sample.by_value(share) for share in made.boxed.shares(pool)]) @ pool.sets.T
        answered = time.perf_counter()
        histogram = made.sample.by_value(np.ones(len(made.sizes)))
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))
