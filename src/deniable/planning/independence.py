"""The estimate that needs no release: what the public columns and the column's distribution say by themselves.

    N_R f_x / n                                                                                     (mathematics 5, 9)

It is the honest zero of every comparison: an estimate that is not better teaches nothing about how the sensitive column
and the public ones belong together. Redrawn values (DBR) say just this, with the noise of their draws on top.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Floats
from deniable.planning.pools import QuestionPool


def independence(rows: npt.ArrayLike, counts: npt.ArrayLike, sets: npt.ArrayLike) -> Floats:
    """Answers [conditions, sets]: rows of each condition, the histogram, and value sets [sets, m].

    >>> independence([10.0], [3, 1], [[True, False], [False, True]]).tolist()
    [[7.5, 2.5]]
    """
    histogram = np.asarray(counts, dtype=np.float64)
    share = np.asarray(sets, dtype=np.float64) @ (histogram / max(histogram.sum(), 1.0))
    answers: Floats = np.outer(np.asarray(rows, dtype=np.float64), share)
    return answers


class IndependenceMoments:
    """Independence has a bias and no variance; there is none either where the columns tell nothing about each other."""

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return np.zeros(share.shape)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        answers = independence(pool.condition_rows, pool.table.histogram.counts, pool.sets)
        return answers - pool.true_answers, np.zeros(answers.shape)


class RedrawMoments:
    """N_R values redrawn from f/n: Var = N_R pi_x (1 - pi_x)."""

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return 1 - share

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        answers = independence(pool.condition_rows, pool.table.histogram.counts, pool.sets)
        share = answers / np.maximum(pool.condition_rows, 1.0)[:, None]
        return answers - pool.true_answers, answers * (1 - share)
