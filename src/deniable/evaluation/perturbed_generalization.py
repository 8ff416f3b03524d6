"""Perturbed generalization (mathematics 9; Tao et al., ICDE 2008): perturb, generalize, publish one row of each group.

Sensitive values are perturbed uniformly, so that the requirement holds whatever is published afterwards; public columns
become boxes of k rows or more (no diversity is needed); and of each box one row is drawn and published with the box's
size. Nobody who knows others of a box learns more, since a published value is one member's own draw and nobody knows
whose. The price is the sample: n/k rows or fewer speak for n.

With y_g the value that box g shows, n_g its size and p_g the share of it that a condition covers,

    f = P^-1 o,    o_y = sum over boxes with y_g = y of n_g p_g

is unbiased over draws and samples if rows lie evenly in their boxes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.core.channel import Channel
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.evaluation.answered import Answered, Floats, Setting, generator
from deniable.evaluation.boxed import Boxed
from deniable.evaluation.drawing import draw_release
from deniable.evaluation.rivals import Generalized
from deniable.mechanisms import Uniform
from deniable.planning.pools import QuestionPool
from deniable.planning.tables import CodedTable

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sampled:
    """What is published.

    Attributes:
        boxed: the groups, whose boxes are published.
        channel: by which values were perturbed.
        member: the row that was drawn from each group; not published.
        shown: its perturbed value.
        sizes: the rows of each group.
    """

    boxed: Boxed
    channel: Channel
    member: Ints
    shown: Ints
    sizes: Ints

    @classmethod
    def draw(cls, table: CodedTable, k: int, privacy: Privacy, stream: Keystream) -> Sampled:
        """Perturb, generalize, sample."""
        drawn = draw_release(table, Uniform(), privacy, stream.subkey("perturbation"))
        boxed = Boxed.of(table, np.arange(table.rows), k, 1)
        order = generator(stream).permutation(table.rows)
        _, first = np.unique(boxed.groups[order], return_index=True)
        member = order[first]
        shown = drawn.published[member].astype(np.int64)
        return cls(boxed, drawn.plan.cells[0].channel, member, shown, np.bincount(boxed.groups))

    def by_value(self, share: Floats) -> Floats:
        """The estimated count of every value, among rows that lie in this share of each box."""
        observed = np.bincount(self.shown, weights=self.sizes * share, minlength=self.channel.m)
        return self.channel.invert(observed)


@dataclass(frozen=True)
class PerturbedGeneralization(Setting):
    """One perturbed row for each box of k rows or more."""

    k: int
    privacy: Privacy
    label: str = "perturbed-generalization"

    @classmethod
    def fitted(cls, privacy: Privacy) -> PerturbedGeneralization:
        """With boxes as large as generalization needs for the same requirement."""
        return cls(Generalized.fitted(privacy).k, privacy)

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        begin = time.perf_counter()
        made = Sampled.draw(pool.table, self.k, self.privacy, stream)
        drawn = time.perf_counter()
        answers = np.array([made.by_value(share) for share in made.boxed.shares(pool)]) @ pool.sets.T
        answered = time.perf_counter()
        histogram = made.by_value(np.ones(len(made.sizes)))
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))
