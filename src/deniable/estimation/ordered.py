"""Aggregates that hang on the order of a column's values: quantiles, and what is exact of public columns.

A quantile at q is where the sum over rows of w (1[v <= t] - q) changes sign: w is what a published row counts for. The
sum is linear in the rows, with the variance

    Var T(t) = sum (w^2 - w) (1[v <= t] - q)^2

so the interval holds every t at which T(t) is not further from 0 than z standard errors (Woodruff's, for estimating
equations). Counts up to t are made to rise by pooling neighbours before the value is read off them.
"""

from __future__ import annotations

from dataclasses import dataclass

from deniable.estimation.linear import Narrowed
from deniable.estimation.mapped import Grouped


@dataclass(frozen=True)
class Extreme:
    """The smallest or largest value of a public column, or how many different ones: exact, or refused.

    Attributes:
        kind: ``min``, ``max`` or ``distinct``.
        column: the public column.
        narrowed: which of the question's rows.
    """

    kind: str
    column: str
    narrowed: Narrowed | None = None


@dataclass(frozen=True)
class Quantile:
    """The value below which a share of the rows lies.

    Attributes:
        share: q.
        column: a public column, a sensitive one or a function of it.
        smooth: whether values between two rows are possible (QUANTILE_CONT), or only those that occur (QUANTILE_DISC).
        narrowed: which of the question's rows.
    """

    share: float
    column: Grouped
    smooth: bool = True
    narrowed: Narrowed | None = None
