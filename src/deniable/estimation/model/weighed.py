"""A tally and what it is worth: every estimate is a sum over published rows of their weights (mathematics 8).

    E[w | original row] = 1[it satisfies],   estimate = sum w,   Cov = sum (w w' - w'') + what pairs of rows add

with w'' the weight of rows that satisfy both conditions. Whatever the parts of a release are, aggregates see only this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from deniable.core.errors import InternalError
from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.limits import Cumulants, hopeless, limits, reasons

if TYPE_CHECKING:
    from deniable.estimation.calibration import Calibration


@dataclass(frozen=True, eq=False)
class Answers:
    """Estimates [groups, labels] with their variances and what is possible; ``raw`` is the variance uncalibrated.

    ``cumulants`` say how they are distributed for any truth, where that is known; ``whole``: a truth is a whole number.
    """

    value: Floats
    variance: Floats
    raw: Floats
    smallest: Floats
    largest: Floats
    _: KW_ONLY
    cumulants: Cumulants | None = None
    whole: bool = False

    @classmethod
    def joined(cls, parts: Sequence[Answers], axis: int) -> Answers:
        columns = zip(*(part._arrays() for part in parts), strict=True)
        return parts[0]._made([np.concatenate(arrays, axis) for arrays in columns])

    def picked(self, labels: Ints) -> Answers:
        """Some of the labels."""
        return self._changed(lambda column: column[:, labels])

    def first(self, groups: int | None) -> Answers:
        """Of some groups, the first; None: of all."""
        return self if groups is None else self._changed(lambda column: column[:groups].copy())

    def at(self, groups: Ints) -> Answers:
        """Of some groups."""
        return self._changed(lambda column: column[groups])

    def first_label(self) -> Answers:
        """At the first label alone."""
        return self._changed(lambda column: column[:, 0])

    def spread(self, rows: Ints, labels: Ints) -> Answers:
        """At other groups and labels, given where each of them stands here; 0 where it is not (-1)."""
        there = (rows >= 0)[:, None] & (labels >= 0)[None, :]
        if not there.any():
            return self._changed(lambda _: np.zeros(there.shape))
        return self._changed(lambda column: np.where(there, column[rows][:, labels], 0.0))

    def _changed(self, change: Callable[[Floats], Floats]) -> Answers:
        return self._made(list(map(change, self._arrays())))

    def _arrays(self) -> list[Floats]:
        further = () if self.cumulants is None else self.cumulants.numbers()
        return [self.value, self.variance, self.raw, self.smallest, self.largest, *further]

    def _made(self, arrays: Sequence[Floats]) -> Answers:
        """The same with other numbers."""
        cumulants = None if self.cumulants is None else Cumulants(*arrays[5:])
        return Answers(*arrays[:5], cumulants=cumulants, whole=self.whole)

    def hopeless(self, z: float) -> pa.Array:
        """Why nothing was learned, answer by answer; missing where something was."""
        lost = hopeless(self.variance, self.smallest, self.largest, z) & ~np.isnan(self.value)
        return reasons(lost, np.isinf(self.variance) & self.whole)

    def limits(self, z: float) -> tuple[Floats, Floats]:
        """The ends of the intervals."""
        return limits(self.value, self.variance, self.smallest, self.largest, z, self.cumulants, self.whole)


@dataclass(frozen=True, eq=False)
class Tallies:
    """Of a numeric column: rows that have a value, its sum and its sum of squares, each tallied like the rows."""

    rows: Floats
    sums: Floats
    squares: Floats


class Weighed(ABC):
    """Rows of some public groups, tallied, with the weights of one condition at a question's labels.

    Two conditions on the same tally have a covariance; they are of one and the same subclass.

    Attributes:
        keys: the groups: codes of the public group columns, one row per group.
        counts: how many rows, in the shape that the methods take.
        moments: numeric columns in the same shape.
        unknown: at which labels nothing can be estimated, and no interval is claimed [labels]; None: at none.
        controls: what the whole table is known to be off by, column by column.
    """

    keys: Ints
    counts: Floats
    moments: Mapping[str, Tallies]
    unknown: Bools | None = None
    controls: Sequence[Calibration] = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """How many groups and labels."""

    @abstractmethod
    def first(self, tally: Floats) -> Floats:
        """Sum of w, [groups, labels]."""

    @abstractmethod
    def common(self, other: Self, tally: Floats) -> Floats:
        """Sum of w w' - w'': the covariance with another condition, of rows that are independent; with itself the
        variance. The tally holds the products of what is added up."""

    @abstractmethod
    def bounds(self, tally: Floats) -> tuple[Floats, Floats]:
        """What the tally is at the least and at the most, by what is public alone."""

    @abstractmethod
    def likely(self) -> Floats:
        """The counts of maximum likelihood."""

    def followed(self, other: Self, tally: Floats) -> list[Floats]:
        """The covariances of this sum with the errors of the whole table that another condition's controls show."""
        raise InternalError(f"{type(self).__name__} has no control, and was asked for it")

    def usual(self, tally: Floats) -> list[Floats]:
        """The same with its own controls, if its rows showed what rows of the whole table show."""
        raise InternalError(f"{type(self).__name__} has no control, and was asked for it")

    def shared(self, other: Self) -> Sequence[Calibration]:
        """The covariances of the errors that two conditions' controls show, by label."""
        raise InternalError(f"{type(self).__name__} has no control, and was asked for it")

    def covariance(self, other: Self, tally: Floats, its: Floats, products: Floats) -> Floats:
        """The covariance of this sum over a tally with another condition's over its own; ``products`` is the tally of
        what both add up, multiplied."""
        return self.common(other, products)

    @property
    def rounding(self) -> float:
        """The variance below which nothing is claimed."""
        return 0.0

    def slope(self) -> Floats | float:
        """How much larger the variance of a count is for each row more that the truth has [groups, labels]."""
        return 0.0

    def cumulants(self, value: Floats, variance: Floats, smallest: Floats) -> Cumulants | None:
        """How a count is distributed for any truth: as a number of jumps, each as large as the slope."""
        slope = np.broadcast_to(self.slope(), value.shape)
        second = variance - slope * (value - smallest)
        return Cumulants(second, slope, slope * second, slope**2)

    def shrunk(self, linear: Answers) -> Answers:
        """The linear estimate, drawn towards independence."""
        raise InternalError(f"{type(self).__name__} has no shrinkage, and was asked for it")
