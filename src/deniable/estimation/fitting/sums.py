"""Sums over rows of functions of their originals, and how far the perturbation moves them together.

Where a column was swapped among rows (see ``model.swapped``), pairs of rows add to the covariance

    -(1 / (n p^2)) (2 p (1-p) sum_i t~_i(x_i) T~(x_i)^T + (1-p)^2 sum_v b_v T~(v) T~(v)^T),    T(v) = sum_i t_i(v)

with t_i(v) the score that row i would have with the value v, on average over its other columns, and t~ = t - b . t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.estimation.fitting.expanded import Block, Expanded
from deniable.estimation.published import Floats

Score = Callable[[Block], Floats]  # what originals add to sums [kinds, combinations, size]


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

    def covariance(self, population: bool) -> Floats:
        """Of the errors: with the sampling of people where the population is meant."""
        return self.everything if population else self.randomization


def summed(rows: Expanded, score: Score, size: int) -> Sums:
    """Add a function of the originals up over all rows."""
    total, meat, own = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))
    for block in rows:
        psi = score(block)
        star = block.shown(psi, block.weights)
        flat, weight = psi.reshape(-1, size), block.rows.ravel()
        total += weight @ flat
        own += (flat * weight[:, None]).T @ flat
        meat += (star * block.counts.data[:, None]).T @ star
    meat += _pairs_of(rows, score, size)
    return Sums(total, meat - own, meat)


def _pairs_of(rows: Expanded, score: Score, size: int) -> Floats:
    """The covariance that pairs of rows add, for all swapped columns together."""
    added = np.zeros((size, size))
    for place, levels in enumerate(rows.levels):
        if levels.source.swap is not None and levels.masses is not None:
            coin, _, among = levels.source.swap
            added += _of_column(rows, score, size, place, levels.masses, coin, among)
    return added


def _of_column(
    rows: Expanded,
    score: Score,
    size: int,
    place: int,
    masses: Floats,
    coin: float,
    among: int,
) -> Floats:
    whole, own = np.zeros((len(masses), size)), np.zeros((len(masses), size))
    level = rows.places[place]
    for block in rows:
        t, others = score(block), block.without(place)
        mean = block.shown(t, others * masses[level][:, None])
        shown, rows_shown = block.counts.indices, block.counts.data
        for one in range(len(masses)):
            at = np.flatnonzero(level == one)
            here = t[:, at].reshape(-1, size)
            whole[one] += (block.counts @ others[at].T).ravel() @ here
            own[one] += block.rows[:, at].ravel() @ here
            own[one] -= (block.factors[place][at[0], shown] * rows_shown) @ mean  # from t to t~
    centred = np.where((masses > 0)[:, None], whole - masses @ whole, 0.0)
    first = own.T @ centred
    second = (centred * masses[:, None]).T @ centred
    joined = coin * (1 - coin) * (first + first.T) + (1 - coin) ** 2 * second
    return -joined / (among * coin**2)
