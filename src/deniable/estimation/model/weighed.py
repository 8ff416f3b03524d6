"""A tally and what it is worth: every estimate is a sum over published rows of their weights (mathematics 8).

    E[w | original row] = 1[it satisfies],   estimate = sum w,   Cov = sum (w w' - w'') + what pairs of rows add

with w'' the weight of rows that satisfy both conditions. Whatever the parts of a release are, aggregates see only this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from deniable.core.errors import InternalError
from deniable.core.values import Floats, Ints

if TYPE_CHECKING:
    from deniable.estimation.calibration import Calibration

NEARLY = 1e-9  # a variance of weights that is rounding alone


@dataclass(frozen=True, eq=False)
class Answers:
    """Estimates [groups, labels] with their variances and what is possible; ``raw`` is the variance uncalibrated.

    ``slope`` says how much larger the variance is for each row more that the truth has: intervals of small counts are
    lopsided by it. It is 0 where nothing is known of it.
    """

    value: Floats
    variance: Floats
    raw: Floats
    smallest: Floats
    largest: Floats
    slope: Floats | float = 0.0

    @classmethod
    def joined(cls, parts: list[Answers], axis: int) -> Answers:
        names = ("value", "variance", "raw", "smallest", "largest", "slope")
        parts = [replace(part, slope=np.broadcast_to(part.slope, part.value.shape)) for part in parts]
        return cls(*(np.concatenate([getattr(part, name) for part in parts], axis=axis) for name in names))

    def picked(self, labels: Ints) -> Answers:
        """Some of the labels."""
        return self._changed(lambda column: column[:, labels])

    def first(self, groups: int | None) -> Answers:
        """Of some groups, the first; None: of all."""
        return self if groups is None else self._changed(lambda column: column[:groups].copy())

    def spread(self, rows: Ints, labels: Ints) -> Answers:
        """At other groups and labels, given where each of them stands here; 0 where it is not (-1)."""
        there = (rows >= 0)[:, None] & (labels >= 0)[None, :]
        if not there.any():
            return self._changed(lambda _: np.zeros(there.shape))
        return self._changed(lambda column: np.where(there, column[rows][:, labels], 0.0))

    def _changed(self, change: Callable[[Floats], Floats]) -> Answers:
        slope = np.broadcast_to(self.slope, self.value.shape)
        return Answers(*map(change, (self.value, self.variance, self.raw, self.smallest, self.largest, slope)))

    def without_claim(self) -> Answers:
        """Where a channel cannot be inverted no error can be stated: the interval becomes all that is possible."""
        unknown = np.where(self.largest > self.smallest, np.inf, 0.0)
        return Answers(self.value, self.variance + unknown, self.raw + unknown, self.smallest, self.largest)


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
        unbiased: whether the channels can be inverted; where not, no interval is claimed.
        control: what the whole table is known to be off by; None where nothing is.
    """

    keys: Ints
    counts: Floats
    moments: Mapping[str, Tallies]
    unbiased: bool = True
    control: Calibration | None = None

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

    def followed(self, other: Self, tally: Floats) -> Floats:
        """The covariance of this sum with the error of the whole table that another condition's control shows."""
        raise InternalError(f"{type(self).__name__} has no control, and was asked for it")

    def typical(self, tally: Floats) -> Floats:
        """The tally as it would be if its rows showed what rows of the whole table show."""
        raise InternalError(f"{type(self).__name__} has no control, and was asked for it")

    def shared(self, other: Self) -> Calibration:
        """The covariance of the errors that two conditions' controls show, by label."""
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
        """How much larger the variance of a count is for each row more that the truth has [groups, labels].

        Where weights take two values only, w+ for rows that show what is asked for and w- for others, the estimated
        variance is linear in the estimate, with the slope w+ + w- - 1 exactly. Elsewhere the regression of w^2 - w on w
        over published rows stands for it.
        """
        return 0.0

    def shrunk(self, linear: Answers) -> Answers:
        """The linear estimate, drawn towards independence."""
        raise InternalError(f"{type(self).__name__} has no shrinkage, and was asked for it")


def slopes(weights: Floats, references: list[tuple[slice, Floats]]) -> Floats:
    """The regression of w^2 - w on w within cells, [sets, states] -> [sets]; 0 where all weights are the same."""
    above, below = np.zeros(len(weights)), np.zeros(len(weights))
    for part, often in references:
        w = weights[:, part]
        mass = often.sum(-1, keepdims=True)
        own = often / np.where(mass > 0, mass, 1.0)
        centred = w - (own * w).sum(-1, keepdims=True)
        above += (own * centred * (w**2 - w)).sum(-1)
        below += (own * centred**2).sum(-1)
    return regressed(above, below)


def regressed(common: Floats, variance: Floats) -> Floats:
    """The slope of a regression; 0 where weights differ by rounding alone."""
    differ = variance > NEARLY
    return np.where(differ, common / np.where(differ, variance, 1.0), 0.0)
