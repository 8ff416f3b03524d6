"""Large line-ups as codes: a row names its set by a number, and a table of ranges says which values stand in it.

The points of all orders, one order after the other, are cut into intervals that stand for one set each. They are
numbered from 0, and a set's *code* is the number of the first interval that stands for it: one code for each set, so
a code tells what the set tells and nothing else. Along an order a value enters the sets where its arc begins and leaves
them where it ends, so the codes of the sets that hold it are one range of each order, or two where its arc goes over
the end of the turn. The table lists these ranges for the whole design, whatever the rows are:

    x stands in the set with code c  if and only if  first <= c <= last  in one of the rows of x

That is K m to 2 K m rows of three columns, where sets themselves would be K m lists of L values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deniable.core.arrays import Ints
from deniable.core.lineup import ARC_STEP, TURN, LineUpDesign

# A list of 16 values takes up to 15 bytes a row in Parquet and some 200 in CSV; a code takes 2 to 3, and 7.
MOST_LISTED = 16


class Ranges(NamedTuple):
    """Which sets hold which value: positions in the domain, and the first and the last code, all of one length."""

    values: Ints
    first: Ints
    last: Ints


def is_coded(design: LineUpDesign) -> bool:
    """Whether rows name their sets by codes: sets of more than 16 values. Nothing but the design decides it."""
    return design.size > MOST_LISTED


def codes(design: LineUpDesign) -> Ints:
    """The code of each set, in the order of ``design.sets``.

    >>> design = LineUpDesign.of([1.0, 1.0, 1.0], size=1, truth=0.5)
    >>> sorted(codes(design).tolist())
    [0, 1, 2]
    """
    return np.unique(design.sets.of_edge, return_index=True)[1].astype(np.int64)


def ranges(design: LineUpDesign) -> Ranges:
    """The ranges of all values, in the order of the domain and of the codes.

    >>> design = LineUpDesign.of([1.0, 1.0, 1.0], size=1, truth=0.5)
    >>> ranges(design)[0][:2].tolist(), len(ranges(design).values)
    ([0, 0], 192)
    """
    edges = design.sets.edges
    values = np.tile(np.arange(design.m), design.orders)
    order = np.repeat(np.arange(design.orders) * TURN, design.m)
    steps = np.tile(design.arcs // ARC_STEP, design.orders)
    begin = np.where(steps == TURN, 0, design.starts.ravel())  # who is always in has one range of each order
    end = begin + steps
    over = end > TURN
    pieces = [
        (values, order + begin, order + np.minimum(end, TURN)),
        (values[over], order[over], order[over] + end[over] - TURN),
    ]
    where, low, high = (np.concatenate(column) for column in zip(*pieces, strict=True))
    first, last = np.searchsorted(edges, low), np.searchsorted(edges, high) - 1
    ranked = np.lexsort((first, where))
    return Ranges(where[ranked], first[ranked], last[ranked])
