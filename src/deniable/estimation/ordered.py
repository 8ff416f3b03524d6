"""What hangs on the order of a column's values: quantiles, and what is exact of public columns.

A quantile at q is where the sum over rows of w (1[v <= t] - q) changes sign: w is what a published row counts for. The
sum is linear in the rows, with the variance

    Var T(t) = sum (w^2 - w) (1[v <= t] - q)^2

so the interval holds every t at which T(t) is not further from 0 than z standard errors (Woodruff's, for estimating
equations). Counts up to t are made to rise by pooling neighbours before the value is read off them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError
from deniable.core.values import Floats
from deniable.estimation.aggregates import Computed, Count
from deniable.estimation.answering import answer, places_among, require_numbers
from deniable.estimation.asking import Options, asking
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.mapped import Grouped, Mapped, column_of, plain
from deniable.estimation.model.columns import sensitive_values
from deniable.estimation.model.conditions import leaves_of
from deniable.estimation.possible import Possible, values_left, with_missing
from deniable.estimation.predicates import And, Predicate
from deniable.estimation.published import Published
from deniable.estimation.question import Answer, Question
from deniable.estimation.questions import as_numbers

MOST_PLACES = 200  # of a sensitive column, at which its distribution is estimated
ROUNDING = 1e-9  # of sums of weights, next to the largest


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


def extremes(published: Published, question: Question, what: Extreme, answered: Answer) -> pa.Array:
    """The smallest, largest or number of different values of a public column, by group of an answer."""
    where = _where(question, what.narrowed)
    sensitive = published.manifest.sensitive_columns
    hidden = [leaf.column for leaf in leaves_of(where) if leaf.column in sensitive]
    hidden += [column_of(group) for group in question.groups if column_of(group) in sensitive]
    if hidden:
        raise QuestionError(
            f"{what.kind.upper()} of {what.column!r} among rows chosen by {hidden[0]!r} hangs on single rows, whose "
            f"{hidden[0]!r} is perturbed. Ask for QUANTILE_CONT({what.column}, 0.01) or 0.99, or for counts by "
            f"{what.column!r}."
        )
    groups = (*(group for group in question.groups if isinstance(group, str)), what.column)
    counted = answer(published, Question(where, groups, (Count(),), question.options))
    values = asking(published).counter.distinct(what.column)
    places = places_among(counted.keys[:, :-1].tolist(), answered.keys.tolist())
    codes, inside = counted.keys[:, -1], counted.by_aggregate[Count()].value[:, 0] > 0
    inside &= codes < len(values)
    if what.kind == "distinct":
        return pa.array(np.bincount(places[inside], minlength=len(answered.keys)))
    order = np.asarray(pc.sort_indices(values)).astype(np.int64)
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    best = np.full(len(answered.keys), len(values) if what.kind == "min" else -1)
    pick = np.minimum if what.kind == "min" else np.maximum
    pick.at(best, places[inside], rank[codes[inside]])
    none = (best < 0) | (best >= len(values))
    return values.take(pa.array(np.append(order, 0)[np.where(none, len(values), best)], mask=none))


def quantiles(published: Published, question: Question, what: Quantile, answered: Answer) -> list[Floats]:
    """Values and the ends of their intervals [groups, labels], by group of an answer; NaN where there is none."""
    if question.options.method != "inverse":
        raise QuestionError(f"method = {question.options.method!r} answers counts only: ask quantiles with 'inverse'.")
    if column_of(what.column) in published.manifest.sensitive_columns:
        return _of_sensitive(published, question, what, answered)
    return _of_public(published, question, what, answered)


def _of_public(published: Published, question: Question, what: Quantile, answered: Answer) -> list[Floats]:
    column, options = column_of(what.column), Options("inverse", False, question.options.confidence)
    require_numbers(asking(published), column)
    public = [g for g in question.groups if column_of(g) not in published.manifest.sensitive_columns]
    hidden = [g for g in question.groups if g not in public]
    groups = (*public, column, *hidden)
    counted = answer(published, Question(_where(question, what.narrowed), groups, (Count(),), options))
    numbers = pc.cast(asking(published).counter.distinct(column), pa.float64(), safe=False).to_numpy()
    counts, places = counted.by_aggregate[Count()], places_among(counted.keys[:, :-1].tolist(), answered.keys.tolist())
    known = counted.keys[:, -1] < len(numbers)
    result = np.full((3, len(answered.keys), len(answered.labels)), np.nan)
    label_at = {label: place for place, label in enumerate(answered.labels)}
    own = np.where(known, np.append(numbers, 0.0)[counted.keys[:, -1]], np.inf)
    for group in range(len(answered.keys)):
        rows = np.flatnonzero((places == group) & known)
        rows = rows[np.argsort(own[rows], kind="stable")]
        for place, label in enumerate(counted.labels):
            result[:, group, label_at[label]] = read_off(
                own[rows], counts.value[rows, place], counts.raw[rows, place], what, options.z
            )
    return list(result)


def read_off(values: Floats, counts: Floats, variances: Floats, what: Quantile, z: float) -> tuple[float, float, float]:
    """A quantile and its interval from counts by value, in rising order, whose errors are independent."""
    total, q = counts.sum(), what.share
    if not len(values) or (total <= 0 and np.isfinite(variances).all()):
        return np.nan, np.nan, np.nan
    up_to, spread = np.cumsum(counts), np.cumsum(variances)
    if not np.isfinite(spread[-1]):  # nothing is known but the values
        return np.nan, float(values[0]), float(values[-1])
    if spread[-1] <= 0:
        exact = _exact(values, up_to, what)
        return exact, exact, exact
    error = np.sqrt(np.maximum((1 - q) ** 2 * spread + q**2 * (spread[-1] - spread), 0.0))
    return crossing(values, up_to - q * total, error, z, values)


def _exact(values: Floats, up_to: Floats, what: Quantile) -> float:
    """As a database has it: between two rows, or the first value that reaches the share."""
    if not what.smooth:
        return float(values[np.argmax(up_to >= what.share * up_to[-1] - 1e-9)])
    rank = what.share * (up_to[-1] - 1)
    low, high = (values[np.argmax(up_to > place + 1e-9)] for place in (np.floor(rank + 1e-9), np.ceil(rank - 1e-9)))
    return float(low + (rank - np.floor(rank + 1e-9)) * (high - low))


def crossing(values: Floats, off: Floats, error: Floats, z: float, lowest: Floats) -> tuple[float, float, float]:
    """Where T(t) = ``off`` rises through 0, and between which values it may: made to rise by its running extremes.

    ``lowest`` is for each value the first number above the value before it, where T is known at some of them only.
    """
    off = np.where(np.abs(off) <= ROUNDING * np.abs(off).max(), 0.0, off)
    rising = (np.maximum.accumulate(off) + np.minimum.accumulate(off[::-1])[::-1]) / 2
    reached = rising >= 0
    place = int(np.argmax(reached)) if reached.any() else len(values) - 1
    above, below = off + z * error >= 0, off - z * error <= 0
    first = int(np.argmax(above)) if above.any() else len(values) - 1
    last = len(values) - 1 - int(np.argmax(below[::-1])) if below.any() else -1
    low, high = lowest[min(first, place)], values[max(min(last + 1, len(values) - 1), place)]
    return float(values[place]), float(low), float(high)


def _of_sensitive(published: Published, question: Question, what: Quantile, answered: Answer) -> list[Floats]:
    """From estimates of T(t) at the column's values, or at some of them where there are many."""
    numbers = what.column if isinstance(what.column, Mapped) else plain(what.column)
    values = sensitive_values(published.manifest, numbers.column)
    as_numbers(numbers, values[:0])
    left = pa.array(values_left(_where(question, what.narrowed), numbers.column, values))
    computed = numbers.compute(with_missing(values).filter(left))
    every = np.unique(pc.cast(computed, pa.float64(), safe=False).drop_null().to_numpy())
    if not len(every):  # a function that has no value
        return list(np.full((3, len(answered.keys), len(answered.labels)), np.nan))
    places = np.unique(np.linspace(0, len(every) - 1, min(len(every), MOST_PLACES)).astype(np.int64))
    lowest = every[np.append(0, places[:-1] + 1)]  # what is above one place may be any value up to the next
    terms = [Computed(Term("rows", None, _step(what, numbers, float(t)))) for t in every[places]]
    counted = answer(published, Question(question.where, question.groups, tuple(terms), question.options))
    off = np.stack([counted.by_aggregate[term].value for term in terms])
    error = np.sqrt(np.stack([counted.by_aggregate[term].variance for term in terms]))
    result = np.empty((3, *off.shape[1:]))
    for place in np.ndindex(*off.shape[1:]):
        at = (slice(None), *place)
        # At the largest value T = (1 - q) N: without rows there is no quantile.
        if not np.isfinite(error[at]).all():
            result[at] = np.nan, every[0], every[-1]
        elif off[at][-1] > 0:
            result[at] = crossing(every[places], off[at], error[at], question.options.z, lowest)
        else:
            result[at] = np.nan
    condition = And(()) if what.narrowed is None else what.narrowed.condition
    term = Term("rows", None, Narrowed(condition, numbers))
    return list(np.clip(result, *Possible(published, question).range(answered.keys, answered.labels, term)))


def _step(what: Quantile, numbers: Mapped, t: float) -> Narrowed:
    """The rows, counting 1 - q where the number is at most t, -q where it is above, and nothing where it is missing."""

    def counted(values: pa.Array) -> pa.Array:
        own = pc.cast(numbers.compute(values), pa.float64(), safe=False)
        return pc.subtract(pc.cast(pc.less_equal(own, t), pa.float64()), what.share)

    condition = And(()) if what.narrowed is None else what.narrowed.condition
    return Narrowed(condition, Mapped(f"{numbers.name} up to {t!r} at {what.share!r}", numbers.column, counted))


def _where(question: Question, narrowed: Narrowed | None) -> Predicate:
    return question.where if narrowed is None else And((question.where, narrowed.condition))
