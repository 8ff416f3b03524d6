"""The iteration by which SPLU reconstructs counts from decoy groups, stopped where SPLU stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.core.values import Floats, Ints
from deniable.estimation.decoys import ROUNDS, Others, bayesian_round, by_question

STOP = 0.01  # the change of every state at which SPLU stops


class Iterated(NamedTuple):
    """What SPLU's own iteration comes to.

    Attributes:
        rows: estimated rows by state, shaped like what was observed.
        rounds: how many rounds each question took.
    """

    rows: Floats
    rounds: Ints


def splu_iteration(
    observed: npt.ArrayLike,
    sizes: Sequence[int],
    *,
    others: Others = "as published",
    stop: float = STOP,
    most: int = ROUNDS,
) -> Iterated:
    """SPLU's rule as SPLU runs it (Eq. 13, 14): from the published counts, until no state changes by more than 1 %.

        x_p <- x_p sum_q M_pq y_q / (x M)_q,    x^0 = y,    until |x_p' - x_p| <= stop x_p for every p

    That is no fixed point: the rule creeps, and where it is left early the estimate is still near the published counts.
    They are shrunk towards what a row shows by chance, so that stopping early is a way of shrinking, and of a bias.

    Args:
        observed: rows by state, [.., 2, 2, .., 2] as for ``several_columns``.
        sizes: the group size of each sensitive column.
        others: which a.
        stop: the largest relative change of a state at the end; 0.01 in the paper.
        most: rounds after which it is left where it is.

    >>> splu_iteration([[950, 50], [90, 10]], [5]).rows.round(1).tolist()
    [[975.9, 24.1], [69.5, 30.5]]
    """
    k = len(sizes)
    y, shape = by_question(observed, k)
    rows, columns = y.sum(tuple(range(1, k + 2))), list(enumerate(sizes, start=2))
    x, rounds, moving = y.copy(), np.zeros(len(y), np.int64), np.flatnonzero(rows > 0)
    for _ in range(most):
        if not len(moving):
            break
        now = x[moving]
        following = bayesian_round(now, y[moving], rows[moving], columns, others)
        far = (np.abs(following - now) > stop * now).reshape(len(moving), -1).any(1)
        x[moving], rounds[moving] = following, rounds[moving] + 1
        moving = moving[far]
    return Iterated(x.reshape(shape), rounds.reshape(shape[: len(shape) - k - 1]))
