"""How far Anatomy's answers are off, before anything is grouped (mathematics 9): which values share groups, and who
matches.

    est - act = sum_i M_i (c_g / |g| - 1[v_i in S])

where row i of group g matches the public condition (M_i = 1) with q_v = N_Rv / f_v, and c_g rows of its group hold a
value of S. Which values share groups is seen in one grouping of the table; the rest is closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Floats
from deniable.engines.randomness import Keystream
from deniable.planning.pools import QuestionPool
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.anatomy.mechanism import Anatomy


@dataclass(frozen=True)
class AnatomyMoments:
    """Bias and variance of Anatomy's answers; ``draws`` makes the one grouping that is looked at."""

    mechanism: Anatomy
    draws: Keystream

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        """Each of the f_x groups with x is off by a row that matches with q: Var = f_x q (1-q) (1 - 1/l)."""
        return (1 - question) * (1 - 1 / self.mechanism.l)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        matches = pool.by_value / np.maximum(pool.table.histogram.counts, 1)
        first, second = self.group_sums(pool)
        return matches @ first.T, (matches * (1 - matches)) @ second.T

    def group_sums(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        """For each value set and value: the sums over its rows of c_g/|g| - 1[v in S], and of its square."""
        table = pool.table
        suppressed = self.mechanism.suppressed(table.histogram)
        group = anatomy_groups(table.codes, table.m, self.mechanism.l, self.draws.subkey("groups"), suppressed)
        there = group >= 0
        codes, group = table.codes[there].astype(np.int64), group[there]
        size = np.maximum(np.bincount(group), 1)
        first, second = np.zeros(pool.sets.shape), np.zeros(pool.sets.shape)
        for place, values in enumerate(pool.sets):
            inside = values[codes].astype(np.float64)
            off = (np.bincount(group, inside, len(size)) / size)[group] - inside
            first[place] = np.bincount(codes, off, table.m)
            second[place] = np.bincount(codes, off**2, table.m)
        # A suppressed row is missing from every answer: it is off by -1 where it matches, and never anything else.
        first -= pool.sets * suppressed
        second += pool.sets * suppressed
        return first, second
