"""Sums over rows of functions of their originals, and how far the perturbation moves them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.estimation.fitting.expanded import Combination, Expanded
from deniable.estimation.fitting.pairs import pairs_of
from deniable.estimation.published import Floats

Score = Callable[[Combination], Floats]  # what every kind of row adds at one combination of levels [kinds, size]


@dataclass(frozen=True, eq=False)
class Sums:
    """Estimated sums, and the covariance of their errors.

    Attributes:
        total: sum psi*.
        randomization: sum (psi* psi*^T - (psi psi^T)*): over fresh perturbations of the same table.
        everything: sum psi* psi*^T: over fresh tables as well, where psi adds up to 0 on average.
    """

    total: Floats
    randomization: Floats
    everything: Floats


def summed(rows: Expanded, score: Score, size: int) -> Sums:
    """Add a function of the originals up over all rows."""
    counts = rows.counts
    star, own = np.zeros((len(counts), size)), np.zeros((size, size))
    for combination in rows:
        psi = score(combination)
        star += psi * combination.weight[:, None]
        own += (psi * (counts * combination.weight)[:, None]).T @ psi
    meat = (star * counts[:, None]).T @ star + pairs_of(rows, score, size)
    return Sums(counts @ star, meat - own, meat)
