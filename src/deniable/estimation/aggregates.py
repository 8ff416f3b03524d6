"""What can be asked of the rows that satisfy a condition, and how it is estimated from weighed tallies (mathematics 8).

count = sum w,   Var = sum (w^2 - w);      sum of v = sum v w,   Var = sum v^2 (w^2 - w);      mean = sum / count
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.core.part import Part
from deniable.estimation.formula import Formula, Ranges, Widened, evaluate, terms_of
from deniable.estimation.linear import Linear, Narrowed, Term
from deniable.estimation.mapped import edges_of, plain
from deniable.estimation.model.weighed import Answers, Weighed
from deniable.estimation.predicates import EVERYTHING, Leaf, everything

NEARLY = 1e-6  # of a variance that is rounding alone
LinearMethod = Literal["inverse", "mle", "shrunk"]


@dataclass(frozen=True)
class Count:
    """How many rows; of those that satisfy a further condition, where there is one."""

    narrowed: Narrowed | None = None

    @property
    def formula(self) -> Formula:
        return Term("rows", None, self.narrowed)

    def estimate(self, linear: Linear, method: LinearMethod, z: float, ranges: Ranges) -> Answers:
        return count_of(linear, self.narrowed, method)


@dataclass(frozen=True)
class Computed:
    """Any arithmetic of counts, sums and averages; an average is not a number where by the estimate no row is left."""

    formula: Formula

    def estimate(self, linear: Linear, method: str, z: float, ranges: Ranges) -> Answers:
        return evaluate(self.formula, linear, z, ranges)


Aggregate = Count | Computed


def summed(column: str, part: Part | None) -> tuple[Formula, Formula]:
    """What the numbers of a column add up to, and how many rows have one; ``part``: of a sensitive column."""
    if part is None:
        return Term("values", column), Term("present", column)
    present, bins = Term("rows", None, Narrowed(Leaf(column, everything, False))), part.bins.get(column)
    if bins is None:
        return Term("rows", None, Narrowed(EVERYTHING, plain(column))), present
    lower, upper = (Term("rows", None, Narrowed(EVERYTHING, numbers)) for numbers in edges_of(column, bins))
    return Widened(lower, upper), present


def columns_of(aggregate: Aggregate) -> list[str]:
    """The public numeric columns that an aggregate adds up."""
    return list(dict.fromkeys(term.column for term in terms_of(aggregate.formula) if term.column is not None))


def conditions_of(aggregate: Aggregate) -> list[Narrowed]:
    """The further conditions that an aggregate has."""
    return list(dict.fromkeys(term.narrowed for term in terms_of(aggregate.formula) if term.narrowed is not None))


def count_of(linear: Linear | Weighed, narrowed: Narrowed | None = None, method: LinearMethod = "inverse") -> Answers:
    """A count: the linear estimate as it is, shrunk, or replaced by the one of maximum likelihood."""
    linear = Linear({None: linear}) if isinstance(linear, Weighed) else linear
    term, rows = Term("rows", None, narrowed), linear.rows[narrowed]
    variance, raw = (np.asarray(x, np.float64) for x in linear.variance({term: 1.0}))
    ends = linear.bounds(term)
    if method == "mle":
        return Answers(rows.likely(), raw, raw, *ends, whole=True)
    # What calibration takes from the variance it takes from its slope: a count of the whole table has but the noise.
    left = np.divide(variance, raw, out=np.ones_like(variance), where=(raw > 0) & np.isfinite(raw))
    value = linear.value(term)
    if method == "shrunk":
        return rows.shrunk(Answers(value, variance, raw, *ends, whole=True))
    cumulants = rows.cumulants(value, raw, ends[0])
    if cumulants is not None and rows.controls:
        cumulants = cumulants.scaled(np.minimum(left, 1.0))
    if cumulants is not None:  # what few rows show may be too like each other to tell of an error
        typical, _ = cumulants.at(np.clip(value, *ends) - ends[0])
        variance, raw = (
            np.where((one <= 0) & (ends[0] < ends[1]) & (typical > NEARLY), typical, one) for one in (variance, raw)
        )
    return Answers(value, variance, raw, *ends, cumulants=cumulants, whole=True)
