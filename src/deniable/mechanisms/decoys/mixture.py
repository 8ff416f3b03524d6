"""The channel of decoy groups as an analyst knows it: planned once more, from counts that are public (mathematics 7).

    P[y][x] = sum over cells of (share of x's rows in the cell) P_cell[y][x]

Who was in which group is not published. What an estimate needs of it, Pr[x is published as y] in the whole table,
follows nearly from any histogram that is near the true one: the noisy one, where a release publishes it, or else the
release's own published counts, which estimate the true ones without bias and are out already.
"""

from __future__ import annotations

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.histogram import Histogram
from deniable.core.part import Grouping, Mixture
from deniable.core.plan import Plan, PlannedPart
from deniable.mechanisms.decoys.grouping import cut_to_fit

LARGEST_MIXTURE = 1000  # values; a dense channel of more would not fit a manifest that people open


def mixture_of(public: Histogram, groups: Grouping) -> Mixture | None:
    """The channel of the whole table, by a public histogram; six digits. None where there are too many values."""
    if public.m > LARGEST_MIXTURE:
        return None
    matrix = full_channel(replanned(public, groups).parts[0]).round(6)
    empty = ~matrix.any(0)
    matrix[empty, empty] = 1.0
    return tuple(tuple(row) for row in matrix.tolist())


def replanned(public: Histogram, groups: Grouping) -> Plan:
    """Nearly the plan of a table, from its noisy histogram: all that an analyst needs of it, and nothing exact.

    Noise may lift a value above 1/c of the rows, which no table that was grouped had; it is cut to that.
    """
    from deniable.mechanisms.decoys.mechanism import Decoys

    counts = cut_to_fit(public.counts, groups.c)
    again = Decoys(c=groups.c, leftovers="drop", grouping=groups.kind)
    return again.plan(Histogram(public.domain, counts), None)


def full_channel(part: PlannedPart) -> Floats:
    """P, m x m, of the rows that are published; columns of values without rows are zero."""
    m = part.values.m
    joint, total = np.zeros((m, m)), np.zeros(m)
    for number, cell in enumerate(part.cells):
        if number != part.left_out:
            places = part.positions(cell)
            joint[np.ix_(places, places)] += cell.channel.matrix() * cell.rows.counts
            total[places] += cell.rows.counts
    matrix: Floats = np.divide(joint, total, out=np.zeros((m, m)), where=total > 0)
    return matrix
