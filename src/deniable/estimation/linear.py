"""Linear estimates over the same rows, and their covariances (mathematics 8).

    a = sum over rows of v_a w_a,    Cov(a, b) = sum over rows of v_a v_b (w_a w_b - w_{a and b})

w_a is the weight of a's condition, v_a the number that is added up: 1, or a public column. With calibration
a - beta_a e_a, where e_a is what the whole table is known to be off by, the covariance becomes

    Cov(a, b) - beta_b Cov(a, e_b) - beta_a Cov(b, e_a) + beta_a beta_b Cov(e_a, e_b)

Several columns have an e each; columns are perturbed independently, so each is followed by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.tally import Derived
from deniable.core.values import Bools, Floats
from deniable.estimation.mapped import Mapped
from deniable.estimation.model.weighed import Weighed
from deniable.estimation.predicates import Predicate


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A further condition on the rows of a question; one object is tallied once, however many terms have it.

    Attributes:
        condition: which rows.
        numbers: what each of them counts for, a number of its sensitive value; None: 1.
    """

    condition: Predicate
    numbers: Mapped | None = None


@dataclass(frozen=True)
class Term:
    """A sum over the rows of a question.

    Attributes:
        adds: 1 for every row ("rows"), 1 where a column is not missing ("present"), or the column itself ("values").
        column: a public numeric column; None for rows.
        narrowed: which of the question's rows; None for all.
    """

    adds: Literal["rows", "present", "values"] = "rows"
    column: str | None = None
    narrowed: Narrowed | None = None

    @property
    def number(self) -> str | None:
        """What it adds up: a public column, or numbers of a sensitive one; None for rows."""
        if self.column is not None or self.narrowed is None or self.narrowed.numbers is None:
            return self.column
        return self.narrowed.numbers.name


def product_of(one: str, other: str) -> str:
    """What the column is called that holds the products of two; whichever comes first."""
    return " * ".join(sorted((one, other)))


def where_present(one: str, other: str) -> str:
    """What the column is called that holds one column where another is not missing."""
    return f"{one} where {other}"


def paired(columns: Sequence[str]) -> list[Derived]:
    """The columns that tell how sums of different columns err together."""
    pairs = [(one, other) for one, other in product(columns, repeat=2) if one != other]
    made = {product_of(*sorted(pair)): Derived(product_of(*sorted(pair)), pair, _product) for pair in pairs}
    return [*made.values(), *(Derived(where_present(*pair), pair, _where_present) for pair in pairs)]


def _product(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.multiply(*(pc.cast(array, pa.float64(), safe=False) for array in (one, other)))


def _where_present(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.if_else(other.is_valid(), pc.cast(one, pa.float64(), safe=False), pa.scalar(None, pa.float64()))


@dataclass(frozen=True, eq=False)
class Covariance:
    """Of two terms [groups, labels]: as estimated, what the tails of the calibration's noise add, and uncalibrated."""

    own: Floats
    tail: Floats | float
    raw: Floats


class Linear:
    """The terms of a question over one tally.

    Args:
        rows: the rows weighed by the question's condition (None), and by each further condition.
    """

    def __init__(self, rows: Mapping[Narrowed | None, Weighed]) -> None:
        self.rows = rows
        self._betas: dict[Term, list[Floats]] = {}
        self._followed: dict[tuple[Term, Narrowed | None], list[Floats]] = {}
        self._covariances: dict[tuple[Term, Term], Covariance] = {}

    def value(self, term: Term) -> Floats:
        """The estimate, calibrated where something is known of the whole table."""
        rows = self.rows[term.narrowed]
        value = rows.first(self._tally(term))
        for control, beta in zip(rows.controls, self._slopes(term), strict=True):
            value = value - beta * control.error
        return value

    def bounds(self, term: Term) -> tuple[Floats, Floats]:
        """What the sum is at the least and at the most, if all that is added up has one sign."""
        return self.rows[term.narrowed].bounds(self._tally(term))

    def covariance(self, one: Term, other: Term) -> Covariance:
        known = self._covariances.get((one, other))
        if known is None:
            known = self._covariances[one, other] = self._covariances[other, one] = self._covariance(one, other)
        return known

    def variance(self, slopes: Mapping[Term, Floats | float]) -> tuple[Floats | float, Floats | float]:
        """Of a combination of terms, each times a number [groups, labels]; and the same uncalibrated."""
        own: Floats | float = 0.0
        tail: Floats | float = 0.0
        raw: Floats | float = 0.0
        for (one, first), (other, second) in product(slopes.items(), repeat=2):
            covariance, both = self.covariance(one, other), first * second
            own, tail, raw = own + both * covariance.own, tail + both * covariance.tail, raw + both * covariance.raw
        least = self.rows[None].rounding * sum(slope**2 for slope in slopes.values())
        own, raw = np.maximum(own, least) + np.maximum(tail, 0.0), np.maximum(raw, least)
        lost = [lost for term in slopes if (lost := self._lost(term)) is not None]
        return (own, raw) if not lost else (np.where(sum(lost), np.inf, own), np.where(sum(lost), np.inf, raw))

    def _lost(self, term: Term) -> Bools | None:
        """Where nothing can be estimated of a term, but for what is certain by public columns [groups, labels]."""
        unknown = self.rows[term.narrowed].unknown
        if unknown is None or not unknown.any():
            return None
        least, most = self.bounds(term)
        return unknown[None, :] & (least != most)

    def _covariance(self, one: Term, other: Term) -> Covariance:
        rows, others = self.rows[one.narrowed], self.rows[other.narrowed]
        tally, its = self._tally(one), self._tally(other)
        raw = rows.covariance(others, tally, its, self._products(one, other))
        if not rows.controls:
            return Covariance(raw, 0.0, raw)
        own, tail = raw, np.zeros_like(raw)
        along = zip(
            rows.shared(others),
            self._slopes(one),
            self._slopes(other),
            self._following(one, other.narrowed),
            self._following(other, one.narrowed),
            strict=True,
        )
        for shared, first, second, one_follows, other_follows in along:
            both = first * second
            own = own - second * one_follows - first * other_follows + both * shared.noise
            tail = tail + both * shared.tail
        return Covariance(own, tail, raw)

    def _slopes(self, term: Term) -> list[Floats]:
        """beta, by which a term follows what the whole table is off by, for each of its controls.

        From what rows like these would show on average, not from what they show: a beta that moves with the very draws
        that it corrects is wrong where a value is shown by few rows. Whatever it is, the estimate has no bias.
        """
        if term not in self._betas:
            rows = self.rows[term.narrowed]
            usual = rows.usual(self._tally(term)) if rows.controls else []
            self._betas[term] = [own.slope(common) for own, common in zip(rows.controls, usual, strict=True)]
        return self._betas[term]

    def _following(self, term: Term, narrowed: Narrowed | None) -> list[Floats]:
        """The covariances of a term with what the whole table is off by, where a condition follows it."""
        if (term, narrowed) not in self._followed:
            rows = self.rows[term.narrowed]
            self._followed[term, narrowed] = rows.followed(self.rows[narrowed], self._tally(term))
        return self._followed[term, narrowed]

    def _tally(self, term: Term) -> Floats:
        """Sums of v."""
        rows = self.rows[term.narrowed]
        if term.column is None:
            return rows.counts
        return rows.moments[term.column].rows if term.adds == "present" else rows.moments[term.column].sums

    def _products(self, one: Term, other: Term) -> Floats:
        """Sums of v_a v_b."""
        if one.column is None or (one.adds == "present" and one.column == other.column):
            return self._tally(other)
        if other.column is None or (other.adds == "present" and one.column == other.column):
            return self._tally(one)
        moments = self.rows[None].moments
        if one.column == other.column:
            return moments[one.column].squares
        product = moments[product_of(one.column, other.column)]
        return product.rows if one.adds == other.adds == "present" else self._mixed(one, other)

    def _mixed(self, one: Term, other: Term) -> Floats:
        """Sums of v_a v_b of two columns, one of which may only count where it is not missing."""
        moments = self.rows[None].moments
        if one.adds == other.adds == "values":
            return moments[product_of(one.column or "", other.column or "")].sums
        values, present = (one, other) if one.adds == "values" else (other, one)
        return moments[where_present(values.column or "", present.column or "")].sums
