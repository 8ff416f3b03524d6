"""Estimates from generalized groups: the rows of a box are spread evenly over it (the usual uniformity assumption).

A box whose rows are w with a wanted sensitive value, and of which a condition covers the share p, answers

    sum over boxes of w p,    p = product over columns of (positions covered) / (positions of the box)

Positions are counted for whole numbers, dates and listed values, and measured for other numbers. If rows lie in their
boxes independently and evenly, the variance is sum w p (1 - p). Where they do not, the estimate is biased, and nothing
in the release says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Ranges:
    """A measured column of all boxes.

    Attributes:
        low, high: the ends of each box, both in; NaN where all its rows are missing.
        missing: the share of each box's rows in which the column is missing.
        whole: whether only whole numbers are positions.
    """

    low: Floats
    high: Floats
    missing: Floats
    whole: bool

    def covered(self, intervals: npt.ArrayLike) -> Floats:
        """The share of each box, missing rows apart, that lies in one of some intervals, which may not overlap.

        >>> boxes = Ranges(np.array([17.0]), np.array([26.0]), np.zeros(1), whole=True)
        >>> boxes.covered([[15, 18.5], [26, 26]]).round(3).tolist()
        [0.3]
        """
        total = np.zeros(len(self.low))
        for low, high in np.asarray(intervals, dtype=np.float64).reshape(-1, 2):
            if self.whole:
                shared = np.minimum(np.floor(high), self.high) - np.maximum(np.ceil(low), self.low) + 1
                part = np.maximum(shared, 0.0) / (self.high - self.low + 1)
            else:
                shared = np.minimum(high, self.high) - np.maximum(low, self.low)
                point = self.high == self.low
                width = np.where(point, 1.0, self.high - self.low)
                part = np.where(point, shared >= 0, np.maximum(shared, 0.0) / width)
            total += np.nan_to_num(part)
        return np.minimum(total, 1.0)

    def share(self, covered: Floats, missing: bool) -> Floats:
        """The share of each box's rows, ``missing`` saying whether a missing value satisfies the condition."""
        return (1 - self.missing) * covered + self.missing * float(missing)


@dataclass(frozen=True, eq=False)
class Sets:
    """A listed column of all boxes: pairs of a box and the position of a value that it lists."""

    box: Ints
    value: Ints
    boxes: int

    def share(self, satisfying: Bools) -> Floats:
        """The share of each box's listed values that satisfy a condition, given for every position."""
        listed = np.maximum(np.bincount(self.box, minlength=self.boxes), 1)
        return np.bincount(self.box, weights=satisfying[self.value], minlength=self.boxes) / listed


@dataclass(frozen=True, eq=False)
class BoxCounts:
    """How many rows of each box have each sensitive value: box, position in the domain, rows; and how many boxes."""

    box: Ints
    value: Ints
    rows: Ints
    boxes: int

    @classmethod
    def of_codes(cls, box: npt.ArrayLike, codes: npt.ArrayLike, m: int, boxes: int) -> BoxCounts:
        """From the box and the sensitive value of every published row."""
        pairs, rows = np.unique(np.asarray(box, np.int64) * m + np.asarray(codes, np.int64), return_counts=True)
        return cls(pairs // m, pairs % m, rows.astype(np.int64), boxes)

    def count(self, share: Floats, wanted: Bools) -> tuple[float, float]:
        """An estimate and its variance.

        >>> counts = BoxCounts.of_codes([0, 0, 0, 1], [0, 1, 1, 1], 2, 2)
        >>> counts.count(np.array([0.5, 1.0]), np.array([False, True]))
        (2.0, 0.5)
        """
        rows = np.bincount(self.box, weights=self.rows * wanted[self.value], minlength=self.boxes)
        return float((rows * share).sum()), float((rows * share * (1 - share)).sum())

    def by_value(self, share: Floats, m: int) -> Floats:
        """An estimate for every sensitive value."""
        counts: Floats = np.bincount(self.value, weights=self.rows * share[self.box], minlength=m).astype(np.float64)
        return counts
