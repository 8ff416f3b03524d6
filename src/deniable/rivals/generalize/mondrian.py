"""Mondrian: groups of rows by halving the table along its columns, as long as halves are large and diverse enough.

Strict multidimensional partitioning (LeFevre, DeWitt, Ramakrishnan, ICDE 2006): a group is cut at the median of its
widest column, width being measured against the whole table's. Rows with the same value stay together, so the halves are
"at most the median" and the rest, or "below the median" and the rest, whichever is more even. Where no half may stand
(fewer than k rows, or a value with more than 1/l of them) the next column is tried, and a group that no column can cut
is final. Nothing is drawn, and the order of rows plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.core.arrays import Bools, Codes, Floats, Ints
from deniable.core.errors import InternalError
from deniable.engines.batch.columns import code_type
from deniable.rivals.generalize.axes import Axis


def mondrian(axes: Sequence[Axis], values: Codes, k: int, l: int) -> Ints:
    """The group of each row, numbered along the axes.

    Args:
        axes: the public columns.
        values: the sensitive value of each row, as a code.
        k: the fewest rows of a group.
        l: no value may have more than 1/l of a group's rows.
    """
    own = np.asarray(values)
    everybody: Codes = np.arange(len(own), dtype=np.uint32 if len(own) < 2**32 else np.int64)
    if len(own) < k or not diverse(own, l):
        raise InternalError("these rows cannot be grouped: they are too few, or a value has more than 1/l of them")
    space = _Space(axes)
    groups = np.empty(len(own), dtype=np.int64)
    waiting, number = [everybody], 0
    while waiting:
        rows = waiting.pop()
        left = space.cut(rows, own[rows], k, l) if len(rows) >= 2 * k else None
        if left is None:
            groups[rows] = number
            number += 1
        else:
            waiting += (rows[~left], rows[left])  # the lower half is taken next
    return groups


def diverse(values: Codes, l: int) -> bool:
    """Whether no value has more than 1/l of the rows: then no two equal ones stand n // l apart when sorted.

    >>> diverse(np.array([3, 1, 3, 2]), 2), diverse(np.array([3, 1, 3, 3]), 2)
    (True, False)
    """
    most = len(values) // l
    if l == 1 or most == 0:
        return l == 1
    ordered = np.sort(values)
    return not bool((ordered[most:] == ordered[:-most]).any())


class _Space:
    """All axes side by side."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        longest = max((len(axis.places) for axis in axes), default=0)
        kind = code_type(longest)
        self.codes = np.array([axis.codes for axis in axes], dtype=kind).reshape(len(axes), -1)
        self.places = np.array([np.pad(axis.places, (0, longest - len(axis.places))) for axis in axes])
        self.number = np.arange(len(axes))
        self.whole: Floats = np.ones(len(axes))
        if self.codes.size:
            widths = self._widths(self.codes)
            self.whole = np.where(widths > 0, widths, 1.0)

    def cut(self, rows: Codes, values: Codes, k: int, l: int) -> Bools | None:
        """Which rows go to the lower half; None where no cut is allowed."""
        inside = self.codes[:, rows]
        widths = self._widths(inside) / self.whole
        for axis in np.argsort(-widths, kind="stable"):
            if widths[axis] <= 0:
                return None
            for left in _halves(inside[axis], k):
                if diverse(values[left], l) and diverse(values[~left], l):
                    return left
        return None

    def _widths(self, inside: Codes) -> Floats:
        if not len(self.number):
            return np.zeros(0)
        high, low = inside.max(axis=1), inside.min(axis=1)
        widths: Floats = self.places[self.number, high] - self.places[self.number, low]
        return widths


def _halves(codes: Codes, k: int) -> list[Bools]:
    """The two cuts at the median that leave k rows on both sides, the more even one first."""
    middle = (len(codes) - 1) // 2
    median = np.partition(codes, middle)[middle]
    cuts = [(abs(2 * int(left.sum()) - len(codes)), left) for left in (codes <= median, codes < median)]
    allowed = [(off, left) for off, left in cuts if len(codes) - off >= 2 * k]
    return [left for _, left in sorted(allowed, key=lambda cut: cut[0])]
