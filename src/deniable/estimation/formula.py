"""Arithmetic of linear estimates: sums, multiples and ratios, with intervals by the delta method (mathematics 8).

    Var(f(a, b, ..)) = sum over a, b of (df/da) (df/db) Cov(a, b)

A ratio whose lower part B is uncertain itself has its variance enlarged by 1 / (1 - g)^2, g = z^2 Var(B) / B^2
(Fieller's); where B may be zero, anything is possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Floats
from deniable.estimation.linear import Linear, Term
from deniable.estimation.model.weighed import Answers

Ranges = Mapping[str, tuple[float, float]]  # of numeric columns: smallest and largest value
Number = Floats | float


@dataclass(frozen=True)
class Constant:
    """A number that is known."""

    value: float


@dataclass(frozen=True)
class Scaled:
    """A formula times a known number."""

    factor: float
    of: Formula


@dataclass(frozen=True)
class Added:
    """The sum of two formulas."""

    one: Formula
    other: Formula


@dataclass(frozen=True)
class Ratio:
    """One formula divided by another; ``column`` says that it is an average of that column."""

    above: Formula
    below: Formula
    column: str | None = None

    @property
    def is_share(self) -> bool:
        """Whether rows above the line are among those below it."""
        return self.below == Term() and isinstance(self.above, Term) and self.above.adds == "rows"


Formula = Term | Constant | Scaled | Added | Ratio


def terms_of(formula: Formula) -> list[Term]:
    """All terms that a formula is made of."""
    if isinstance(formula, Term):
        return [formula]
    if isinstance(formula, Constant):
        return []
    if isinstance(formula, Scaled):
        return terms_of(formula.of)
    parts = (formula.one, formula.other) if isinstance(formula, Added) else (formula.above, formula.below)
    return [term for part in parts for term in terms_of(part)]


@dataclass(frozen=True, eq=False)
class Traced:
    """A value, its derivatives by the terms, what is possible, and the largest g of its ratios."""

    value: Number
    slopes: Mapping[Term, Number]
    smallest: Number
    largest: Number
    doubt: Number = 0.0

    def scaled(self, factor: float) -> Traced:
        ends = (factor * self.smallest, factor * self.largest)
        slopes = {term: factor * slope for term, slope in self.slopes.items()}
        return Traced(factor * self.value, slopes, np.minimum(*ends), np.maximum(*ends), self.doubt)

    def plus(self, other: Traced) -> Traced:
        slopes = dict(self.slopes)
        for term, slope in other.slopes.items():
            slopes[term] = slopes.get(term, 0.0) + slope
        return Traced(
            self.value + other.value,
            slopes,
            self.smallest + other.smallest,
            self.largest + other.largest,
            np.maximum(self.doubt, other.doubt),
        )


def evaluate(formula: Formula, linear: Linear, z: float, ranges: Ranges) -> Answers:
    """The formula's value [groups, labels] with its variance and what is possible; NaN where it has none."""
    shape = linear.rows[None].first(linear.rows[None].counts).shape
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        traced = _Tracing(linear, z, ranges).traced(formula)
        grown = np.where(np.less(traced.doubt, 1), 1 / (1 - traced.doubt) ** 2, np.inf)
        errors = [np.where(np.isfinite(x * grown), x * grown, np.inf) for x in linear.variance(traced.slopes)]
    columns = (traced.value, *errors, traced.smallest, traced.largest)
    return Answers(*(np.broadcast_to(np.asarray(column, np.float64), shape).copy() for column in columns))


@dataclass(frozen=True, eq=False)
class _Tracing:
    linear: Linear
    z: float
    ranges: Ranges

    def traced(self, formula: Formula) -> Traced:
        if isinstance(formula, Constant):
            return Traced(formula.value, {}, formula.value, formula.value)
        if isinstance(formula, Scaled):
            return self.traced(formula.of).scaled(formula.factor)
        if isinstance(formula, Added):
            return self.traced(formula.one).plus(self.traced(formula.other))
        return self._term(formula) if isinstance(formula, Term) else self._ratio(formula)

    def _term(self, term: Term) -> Traced:
        ends = self.linear.bounds(term)
        if term.adds == "values" and term.column is not None:
            low, high = self.ranges[term.column]
            if low < 0 < high:
                ends = np.full_like(ends[0], -np.inf), np.full_like(ends[1], np.inf)
        return Traced(self.linear.value(term), {term: 1.0}, np.minimum(*ends), np.maximum(*ends))

    def _ratio(self, formula: Ratio) -> Traced:
        above, below = self.traced(formula.above), self.traced(formula.below)
        value = np.divide(above.value, below.value)
        counted = np.greater_equal(below.smallest, 0)  # an estimate of what cannot be negative, but is
        value = np.where((counted & np.less_equal(below.value, 0)) | ~np.isfinite(value), np.nan, value)
        combined = above.plus(Traced(0.0, below.slopes, 0.0, 0.0))
        slopes = {
            term: (above.slopes.get(term, 0.0) - value * below.slopes.get(term, 0.0)) / below.value
            for term in combined.slopes
        }
        doubt = np.maximum(above.doubt, below.doubt)
        uncertain = self.z**2 * self.linear.variance(below.slopes)[0] / np.square(below.value)
        doubt = np.maximum(doubt, np.where(np.isnan(uncertain), np.inf, uncertain))
        if formula.column is not None:  # an average lies among what is averaged
            value = np.clip(value, *self.ranges[formula.column])
        return Traced(value, slopes, *self._possible(formula, above, below), doubt)

    def _possible(self, formula: Ratio, above: Traced, below: Traced) -> tuple[Number, Number]:
        if formula.is_share:
            return 0.0, 1.0
        if formula.column is not None:
            return self.ranges[formula.column]
        sure = np.greater_equal(above.smallest, 0) & np.greater_equal(below.smallest, 0)
        low = np.where(sure & np.greater(below.largest, 0), np.divide(above.smallest, below.largest), -np.inf)
        low = np.where(sure, np.maximum(low, 0.0), -np.inf)
        high = np.where(sure & np.greater(below.smallest, 0), np.divide(above.largest, below.smallest), np.inf)
        return low, high
