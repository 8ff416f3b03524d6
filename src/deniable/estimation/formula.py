"""Arithmetic of linear estimates: sums, multiples and ratios, with intervals by the delta method (mathematics 8).

    Var(f(a, b, ..)) = sum over a, b of (df/da) (df/db) Cov(a, b)

A ratio whose lower part B is uncertain itself has its variance enlarged by 1 / (1 - g)^2, g = z^2 Var(B) / B^2
(Fieller's); where B may be zero, anything is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from deniable.core.values import Floats
from deniable.estimation.linear import Linear, Term
from deniable.estimation.model.weighed import Answers

Number = Floats | float
Ranges = Callable[[Term], tuple[Number, Number]]  # of what a term adds up: the smallest and the largest number


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
    """One formula divided by another; an average lies among the numbers that some terms above the line add up."""

    above: Formula
    below: Formula
    averaged: tuple[Formula, ...] = ()

    @property
    def is_share(self) -> bool:
        """Whether rows above the line are among those below it."""
        return self.below == Term() and isinstance(self.above, Term) and self.above.adds == "rows"


@dataclass(frozen=True)
class Present:
    """A formula that has no value where no row can be there: a sum over nothing."""

    of: Formula
    rows: Formula


@dataclass(frozen=True)
class Product:
    """One formula times another."""

    one: Formula
    other: Formula


@dataclass(frozen=True)
class Spread:
    """How numbers vary together: (S_ab - S_a S_b / N) / (N - 1), or / N where they are not a sample. Of one and the
    same it is the variance, or its root.

    Attributes:
        one, other, both: what the numbers and their products add up to.
        rows: N, how many there are.
        sample: whether 1 is taken off N.
        root: whether the standard deviation is meant.
    """

    one: Formula
    other: Formula
    both: Formula
    rows: Formula
    sample: bool = False
    root: bool = False


@dataclass(frozen=True)
class Correlation:
    """Of two spreads and what they have in common, from -1 to 1; or its square."""

    common: Spread
    one: Spread
    other: Spread
    squared: bool = False


@dataclass(frozen=True)
class Widened:
    """The middle of two terms, between which the truth lies even without noise: numbers that are known to their bin."""

    lower: Term
    upper: Term


Formula = Term | Constant | Scaled | Added | Product | Ratio | Present | Spread | Correlation | Widened


def times(factor: float, formula: Formula) -> Formula:
    """A formula times a number."""
    if isinstance(formula, Constant):
        return Constant(factor * formula.value)
    if isinstance(formula, Scaled):
        return times(factor * formula.factor, formula.of)
    return formula if factor == 1 else Scaled(factor, formula)


def added(first: Formula, *others: Formula) -> Formula:
    """The sum of formulas."""
    total = first
    for other in others:
        both = isinstance(total, Constant) and isinstance(other, Constant)
        total = Constant(total.value + other.value) if both else Added(total, other)  # type: ignore[union-attr]
    return total


def terms_of(formula: Formula) -> list[Term]:
    """All terms that a formula is made of."""
    if isinstance(formula, Term):
        return [formula]
    return [term for part in vars(formula).values() if isinstance(part, Formula) for term in terms_of(part)]


@dataclass(frozen=True, eq=False)
class Traced:
    """A value, its derivatives by the terms, what is possible, the largest g of its ratios, and what it may be off by
    without any noise."""

    value: Number
    slopes: Mapping[Term, Number]
    smallest: Number
    largest: Number
    doubt: Number = 0.0
    slack: Number = 0.0

    def scaled(self, factor: float) -> Traced:
        ends = (factor * self.smallest, factor * self.largest)
        slopes = {term: factor * slope for term, slope in self.slopes.items()}
        return Traced(
            factor * self.value, slopes, np.minimum(*ends), np.maximum(*ends), self.doubt, abs(factor) * self.slack
        )

    def plus(self, other: Traced) -> Traced:
        return Traced(
            self.value + other.value,
            chained((self, 1.0), (other, 1.0)),
            self.smallest + other.smallest,
            self.largest + other.largest,
            np.maximum(self.doubt, other.doubt),
            self.slack + other.slack,
        )


def chained(*parts: tuple[Traced, Number]) -> dict[Term, Number]:
    """The chain rule: the derivatives by terms of what has these derivatives by its parts."""
    slopes: dict[Term, Number] = {}
    for part, outer in parts:
        for term, own in part.slopes.items():
            slopes[term] = slopes.get(term, 0.0) + own * outer
    return slopes


def evaluate(formula: Formula, linear: Linear, z: float, ranges: Ranges) -> Answers:
    """The formula's value [groups, labels] with its variance and what is possible; NaN where it has none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        traced = _Tracing(linear, z, ranges).traced(formula)
        grown = np.where(np.less(traced.doubt, 1), 1 / (1 - traced.doubt) ** 2, np.inf)
        known = np.maximum(traced.slack, 0.0) / z if z > 0 else 0.0  # as if it were z standard errors less
        errors = [np.square(np.sqrt(x * grown) + known) for x in linear.variance(traced.slopes)]
        errors = [np.where(np.isfinite(x), x, np.inf) for x in errors]
    columns, shape = (traced.value, *errors, traced.smallest, traced.largest), linear.rows[None].shape
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
        if isinstance(formula, Present):
            inner, rows = self.traced(formula.of), self.traced(formula.rows)
            return replace(inner, value=np.where(np.greater(rows.largest, 0), inner.value, np.nan))
        if isinstance(formula, Product):
            return self._product(self.traced(formula.one), self.traced(formula.other))
        if isinstance(formula, Spread):
            return self._spread(formula)
        if isinstance(formula, Correlation):
            return self._correlation(formula)
        if isinstance(formula, Widened):
            lower, upper = self._term(formula.lower), self._term(formula.upper)
            middle = lower.plus(upper).scaled(0.5)
            half = np.subtract(upper.value, lower.value) / 2
            return replace(middle, smallest=lower.smallest, largest=upper.largest, slack=half)
        return self._term(formula) if isinstance(formula, Term) else self._ratio(formula)

    def _term(self, term: Term) -> Traced:
        ends = self.linear.bounds(term)
        if term.adds == "values":
            low, high = self.ranges(term)
            either_sign = np.less(low, 0) & np.less(0, high)
            ends = np.where(either_sign, -np.inf, ends[0]), np.where(either_sign, np.inf, ends[1])
        return Traced(self.linear.value(term), {term: 1.0}, np.minimum(*ends), np.maximum(*ends))

    def _ratio(self, formula: Ratio) -> Traced:
        above, below = self.traced(formula.above), self.traced(formula.below)
        value = np.divide(above.value, below.value)
        counted = np.greater_equal(below.smallest, 0)  # an estimate of what cannot be negative, but is
        value = np.where((counted & np.less_equal(below.value, 0)) | ~np.isfinite(value), np.nan, value)
        slopes = chained((above, 1 / below.value), (below, -value / below.value))
        doubt = np.maximum(np.maximum(above.doubt, below.doubt), self._doubt(below))
        possible = self._possible(formula, above, below)
        if formula.averaged:  # an average lies among what is averaged
            value = np.clip(value, *possible)
        slack = np.divide(above.slack + np.abs(value) * below.slack, np.abs(below.value))
        return Traced(value, slopes, *possible, doubt, slack)

    def _range(self, averaged: tuple[Formula, ...]) -> tuple[Number, Number]:
        """The smallest and the largest number that rows count for in one of some sums."""
        lows, highs = zip(*map(self._ends, averaged), strict=True)
        return reduce(np.fmin, lows), reduce(np.fmax, highs)

    def _ends(self, added_up: Formula) -> tuple[Number, Number]:
        if isinstance(added_up, Scaled):
            low, high = (added_up.factor * end for end in self._ends(added_up.of))
            return np.minimum(low, high), np.maximum(low, high)
        if isinstance(added_up, Widened):
            return self.ranges(added_up.lower)[0], self.ranges(added_up.upper)[1]
        assert isinstance(added_up, Term)
        return (1.0, 1.0) if added_up.number is None else self.ranges(added_up)

    def _product(self, one: Traced, other: Traced) -> Traced:
        ends = [first * second for first in (one.smallest, one.largest) for second in (other.smallest, other.largest)]
        unknown = reduce(np.logical_or, map(np.isnan, ends))  # nothing times anything
        return Traced(
            one.value * other.value,
            chained((one, other.value), (other, one.value)),
            np.where(unknown, -np.inf, reduce(np.fmin, ends)),
            np.where(unknown, np.inf, reduce(np.fmax, ends)),
            np.maximum(one.doubt, other.doubt),
            np.abs(one.value) * other.slack + np.abs(other.value) * one.slack,
        )

    def _spread(self, formula: Spread) -> Traced:
        """dV/dS_ab = 1/d, dV/dS_a = -(S_b/N) / d, dV/dN = (S_a S_b/N^2 - V) / d with d = N - 1 or N."""
        one, other, both, rows = (
            self.traced(part) for part in (formula.one, formula.other, formula.both, formula.rows)
        )
        below = np.subtract(rows.value, float(formula.sample))
        mean, its = np.divide(one.value, rows.value), np.divide(other.value, rows.value)
        value = np.where(np.greater(below, 0), (both.value - one.value * its) / below, np.nan)
        value = np.where(np.abs(value) < 1e-12 * np.abs(both.value / below), 0.0, value)
        slopes = chained(
            (both, 1 / below), (one, -its / below), (other, -mean / below), (rows, (mean * its - value) / below)
        )
        widest = self._widest(formula, rows)
        least = 0.0 if formula.one == formula.other else -widest
        spread = Traced(value, slopes, least, widest, self._doubt(rows))
        return self._root(spread) if formula.root else replace(spread, value=np.clip(value, least, widest))

    def _widest(self, formula: Spread, rows: Traced) -> Number:
        """The largest variance of numbers from a to b, half of them at each end: (b - a)^2 / 4, of a sample times
        N / (N - 1) (Popoviciu's); two kinds of numbers vary together by the root of both at most."""
        (low, high), (least, most) = self._ends(formula.one), self._ends(formula.other)
        few = np.maximum(rows.smallest, 2.0)
        return (high - low) * (most - least) / 4 * (few / (few - 1) if formula.sample else 1.0)

    def _correlation(self, formula: Correlation) -> Traced:
        """r = C / sqrt(V W): dr/dC = 1 / sqrt(V W), dr/dV = -r / 2V. Of its square, whose tangent is flat where r is 0,
        the ends are those of r."""
        common, one, other = self.traced(formula.common), self.traced(formula.one), self.traced(formula.other)
        varies = np.greater(one.value, 0) & np.greater(other.value, 0)
        scale = np.where(varies, np.sqrt(np.abs(one.value * other.value)), np.nan)
        r = np.clip(common.value / scale, -1.0, 1.0)
        slopes = chained((common, 1 / scale), (one, -r / (2 * one.value)), (other, -r / (2 * other.value)))
        doubt = reduce(np.maximum, (common.doubt, self._doubt(one), self._doubt(other)))
        if not formula.squared:
            return Traced(r, slopes, -1.0, 1.0, doubt)
        half = np.where(np.less(doubt, 1), self.z * np.sqrt(self.linear.variance(slopes)[0]) / (1 - doubt), np.inf)
        low, high = (np.clip(end, -1.0, 1.0) for end in (r - half, r + half))
        most = np.maximum(low**2, high**2)
        least = np.where(np.less(low, 0) & np.greater(high, 0), 0.0, np.minimum(low**2, high**2))
        squared = {term: 2 * r * slope for term, slope in slopes.items()}
        slack = np.maximum(np.maximum(r**2 - least, most - r**2) - 2 * np.abs(r) * half, 0.0)
        return Traced(r**2, squared, 0.0, 1.0, doubt, slack)

    def _root(self, spread: Traced) -> Traced:
        """The root of a variance V: from sqrt(V - h) to sqrt(V + h) where V itself is known to h = z stderr. A tangent
        would be too short below, most of all where V is little more than its error."""
        error = np.sqrt(self.linear.variance(spread.slopes)[0])
        half = np.where(np.less(spread.doubt, 1), self.z * error / (1 - spread.doubt), np.inf)
        most = np.add(spread.value, half)
        high = np.sqrt(np.where(np.isfinite(most), np.maximum(most, 0.0), np.inf))
        low = np.sqrt(np.maximum(np.where(np.isfinite(half), spread.value - half, 0.0), 0.0))
        widest = np.sqrt(spread.largest)
        low, high = np.minimum(low, widest), np.minimum(high, widest)
        value = np.where(np.greater_equal(most, 0), np.sqrt(np.clip(spread.value, 0.0, spread.largest)), np.nan)
        scale = 1 / np.where(np.greater(value, 0), 2 * value, np.inf)
        slopes = {term: slope * scale for term, slope in spread.slopes.items()}
        by_tangent = np.where(np.greater(value, 0), half * scale, 0.0)
        slack = np.maximum(np.maximum(value - low, high - value) - by_tangent, 0.0)
        return Traced(value, slopes, low, high, spread.doubt, slack)

    def _doubt(self, below: Traced) -> Floats:
        """g of what is divided by; without a number, anything is possible."""
        uncertain = self.z**2 * self.linear.variance(below.slopes)[0] / np.square(below.value)
        return np.where(np.isnan(uncertain), np.inf, uncertain)

    def _possible(self, formula: Ratio, above: Traced, below: Traced) -> tuple[Number, Number]:
        if formula.is_share:
            return 0.0, 1.0
        if formula.averaged:
            return self._range(formula.averaged)
        sure = np.greater_equal(above.smallest, 0) & np.greater_equal(below.smallest, 0)
        low = np.where(sure & np.greater(below.largest, 0), np.divide(above.smallest, below.largest), -np.inf)
        low = np.where(sure, np.maximum(low, 0.0), -np.inf)
        high = np.where(sure & np.greater(below.smallest, 0), np.divide(above.largest, below.smallest), np.inf)
        return low, high
