"""Conditions on rows: leaves (a column and what its value may be) under and / or.

There is no *not* in the tree: negation is pushed into the leaves, where SQL's unknown (a comparison with a missing
value) can be settled as "does not hold". With only *and* and *or* above, that is exactly SQL's three-valued logic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError, did_you_mean, listing, shortened
from deniable.core.transforms import item_column
from deniable.core.values import Bools
from deniable.estimation.intervals import compare_intervals

# A test takes the distinct values of a column and says for each whether it satisfies the condition.
Test = Callable[[pa.Array], pa.Array]
Where = Mapping[str, Any]  # column -> value, list of values, between, not_ or None (missing)


class _OfOtherKindError(QuestionError):
    """What values are compared with is of another kind; which column they are of, ``comparing`` knows."""


@contextmanager
def comparing(column: str, kind: pa.DataType) -> Iterator[None]:
    """Values of a column are compared: where they cannot be, the error names it, and what to ask for."""
    try:
        yield
    except _OfOtherKindError as problem:
        ask = "a value or a list of values" if is_text(kind) else f"values of type {kind}"
        raise QuestionError(f"The condition on {column!r}: {problem} Fix: ask for {ask}.") from None


@dataclass(frozen=True)
class Leaf:
    """A condition on one column.

    Attributes:
        column: its name.
        test: which values satisfy it.
        missing: whether a missing value satisfies it.
        named: values that it names, which must exist in a column of texts or a sensitive column.
        condition: as it was given in a ``where``; None where it was not.
    """

    column: str
    test: Test
    missing: bool
    named: tuple[Hashable, ...] = ()
    condition: Any = None

    def holds(self, values: pa.Array) -> Bools:
        """Which of some values, none of them missing, satisfy it."""
        with comparing(self.column, values.type):
            truth = self.test(values)
        return np.asarray(truth.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]


Predicate = Leaf | And | Or
EVERYTHING = And(())


@dataclass(frozen=True)
class Between:
    """A range, both ends in."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Not:
    """Everything but this, missing values included unless they are what is excluded."""

    condition: Any


@dataclass(frozen=True)
class Contains:
    """A list that holds all of these items."""

    items: tuple[str, ...]


def contains(*items: str | int) -> Contains:
    """A condition on a column of lists: it holds all of these items.

    Args:
        items: one or several; an item is known by its text.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> patients = pa.table({"diagnoses": [["E11", "I10"], [], ["J45"], ["I10"]] * 500})
    >>> options = {"mechanism": "items:budget=8,most=2", "key": bytes(32)}
    >>> release = dn.publish(patients, sensitive="diagnoses", **options)
    >>> asthma = release.count({"diagnoses": dn.contains("J45")})
    >>> asthma.low < 500 < asthma.high
    True
    """
    if not items or any(isinstance(item, bool) or not isinstance(item, str | int) for item in items):
        raise QuestionError("contains(..) needs one item or several, each a text or a whole number.")
    return Contains(tuple(dict.fromkeys(map(str, items))))


def between(low: Any, high: Any) -> Between:
    """A range for a condition, both ends in.

    Args:
        low, high: two numbers, dates or texts.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"age": [20, 30, 40, 50] * 50, "disease": ["flu", "cold"] * 100})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"))
    >>> release.count({"age": dn.between(25, 45)}).value
    100.0
    """
    if low is None or high is None:
        raise QuestionError("between(low, high) needs both ends.")
    try:
        reversed_ends = bool(high < low)
    except TypeError:
        kinds = f"{type(low).__name__} and {type(high).__name__}"
        raise QuestionError(f"between({low!r}, {high!r}) compares {kinds}: give two ends of one kind.") from None
    if reversed_ends:
        raise QuestionError(f"between({low!r}, {high!r}) is empty. Fix: between({high!r}, {low!r}).")
    return Between(low, high)


def not_(condition: Any) -> Not:
    """Everything but what is named.

    Args:
        condition: a value, a list of values, a range (``between``) or missing (None).

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"age": [20, 30, 40, 50] * 50, "disease": ["flu", "cold"] * 100})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"))
    >>> release.count({"age": dn.not_([20, 30])}).value, release.count({"age": dn.not_(dn.between(40, 50))}).value
    (100.0, 100.0)
    """
    return Not(condition)


def conjunction(where: Mapping[str, Any] | None) -> And:
    """A ``where`` mapping as a predicate: column -> value, list of values, ``between``, ``not_`` or None (missing)."""
    if where is None:
        return EVERYTHING
    if not isinstance(where, Mapping):
        raise QuestionError(
            f"where = {shortened(where)} is not a mapping: write where={{'column': value}}, with a value, a list of "
            "values, between(low, high), not_(..) or None for missing."
        )
    return And(tuple(part for column, condition in where.items() for part in _parts(column, condition)))


def _parts(column: str, condition: Any) -> tuple[Predicate, ...]:
    """What a column and its condition say: of lists, one thing for each item."""
    if isinstance(condition, Contains):
        return tuple(replace(_leaf(item_column(column, item), True), condition=True) for item in condition.items)
    if isinstance(condition, Not) and isinstance(condition.condition, Contains):
        leaves = [_leaf(item_column(column, item), False) for item in condition.condition.items]
        return (replace(leaves[0], condition=False),) if len(leaves) == 1 else (Or(tuple(leaves)),)
    return (replace(_leaf(column, condition), condition=condition),)


def _leaf(column: str, condition: Any) -> Leaf:
    if isinstance(condition, Not):
        inner = _leaf(column, condition.condition)
        return Leaf(column, lambda values: pc.invert(inner.test(values)), not inner.missing, inner.named)
    if isinstance(condition, Between):
        low, high = condition.low, condition.high
        return Leaf(column, lambda values: pc.and_(compare(">=", values, low), compare("<=", values, high)), False)
    if condition is None:
        return Leaf(column, nothing, True)
    several = isinstance(condition, Iterable) and not isinstance(condition, str | bytes | Mapping)
    wanted = list(condition) if several else [condition]
    known = tuple(value for value in wanted if value is not None)
    return Leaf(column, lambda values: among(values, known), None in wanted, known)


def complement(node: Predicate) -> Predicate:
    """The rows that do not satisfy a condition, those for which it is unknown included."""
    if isinstance(node, Leaf):
        return Leaf(node.column, lambda values: pc.invert(node.test(values).fill_null(False)), not node.missing)
    parts = tuple(complement(part) for part in node.parts)
    return Or(parts) if isinstance(node, And) else And(parts)


def nothing(values: pa.Array) -> pa.Array:
    return pa.array([False] * len(values), pa.bool_()) if len(values) < 2**16 else pc.not_equal(values, values)


def everything(values: pa.Array) -> pa.Array:
    return pc.invert(nothing(values))


def among(values: pa.Array, wanted: Iterable[Any]) -> pa.Array:
    """Which values are one of those wanted."""
    wanted = list(wanted)
    coarse = int | float if pa.types.is_temporal(values.type) else float | bool
    if any(isinstance(value, coarse) for value in wanted) and not pa.types.is_floating(values.type):
        return _one_by_one(values, wanted)  # Arrow would read 30.5 as 30, True as 1 and 3 as the third day of 1970
    try:
        return pc.is_in(values, pa.array(wanted, values.type)) if wanted else nothing(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _one_by_one(values, wanted)  # a date written as text


def _one_by_one(values: pa.Array, wanted: Iterable[Any]) -> pa.Array:
    truth = nothing(values)
    for value in wanted:
        truth = pc.or_(truth, compare("==", values, value))
    return truth


COMPARISONS: dict[str, Any] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(operator: str, values: pa.Array, literal: Any) -> pa.Array:
    """Compare values with a literal; texts that name a date or time are read as one, and intervals by their edges."""
    kind = values.type
    try:
        if isinstance(literal, float) and math.isnan(literal):
            raise QuestionError("A comparison with NaN holds for no row: use None or IS NULL for missing values.")
        if isinstance(literal, float) and pa.types.is_decimal(kind) and math.isfinite(literal):
            literal = Decimal(repr(literal))  # Arrow would turn the column into floats, off by a last digit at times
        if is_text(kind) and isinstance(literal, int | float | Decimal) and not isinstance(literal, bool):
            inside = compare_intervals(operator, values, float(literal))
            if inside is not None:
                return inside
        scalar = pa.scalar(literal)
        if pa.types.is_temporal(kind) and not isinstance(literal, int | float):
            scalar = scalar.cast(kind)
        elif is_text(kind) != is_text(scalar.type) or pa.types.is_boolean(kind) != pa.types.is_boolean(scalar.type):
            raise pa.ArrowInvalid("texts, numbers and truth values do not compare")
        return COMPARISONS[operator](values, scalar).fill_null(False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        raise _OfOtherKindError(f"{shortened(literal)} cannot be compared with values of type {kind}.") from None


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def require_known(column: str, values: pa.Array, named: Iterable[Hashable], *, sensitive: bool) -> None:
    """Refuse values that do not occur: for a sensitive column always, for a public one when its values are texts."""
    if not sensitive and not is_text(values.type):
        return
    for value in named:
        with comparing(column, values.type):
            occurs = pc.any(among(values, [value])).as_py()
        if not occurs:
            known = values.to_pylist()
            near = did_you_mean(value, known if len(known) < 20_000 else [])
            near = near or f" Fix: ask for one of its values: {listing(known)}."
            raise QuestionError(f"{shortened(value)} is not a value of column {column!r}.{near}")
