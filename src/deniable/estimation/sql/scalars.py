"""Expressions of columns, row by row: what SQL computes from values that are known, evaluated with Arrow.

A scalar is a function of the values of some columns. Where it is of one column, it is evaluated on its distinct
values alone, public or sensitive: `lower(town)` and `substr(diagnosis, 1, 3) = '250'` cost nothing per row. Unknown is
missing, as in SQL, and `AND` and `OR` are those of three values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError, shortened
from deniable.estimation.predicates import COMPARISONS, compare, matches
from deniable.estimation.sql.functions import FUNCTIONS, NAMES, Computed, Made
from deniable.estimation.sql.literals import OPERATORS, SWAPPED, Node, is_literal, literal, shown

Values = Mapping[str, pa.Array]
Compute = Callable[[Values], pa.Array]

WRONG = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError, OverflowError, TypeError)
KINDS: dict[Any, pa.DataType] = {
    exp.DataType.Type.INT: pa.int64(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.SMALLINT: pa.int64(),
    exp.DataType.Type.TINYINT: pa.int64(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.FLOAT: pa.float64(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.VARCHAR: pa.string(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMP: pa.timestamp("us"),
    exp.DataType.Type.TIMESTAMPNTZ: pa.timestamp("us"),  # what the parser calls the same
    exp.DataType.Type.BOOLEAN: pa.bool_(),
}


@dataclass(frozen=True, eq=False)
class Scalar:
    """A function of columns.

    Attributes:
        columns: those it reads, in the order of first mention.
        compute: equally long arrays by column -> an array as long.
        plain: the column that it is, where nothing is computed.
    """

    columns: tuple[str, ...]
    compute: Compute
    plain: str | None = None

    @classmethod
    def named(cls, name: str) -> Scalar:
        """A column itself."""
        return cls((name,), lambda values: values[name], name)

    def of(self, column: str) -> Callable[[pa.Array], pa.Array]:
        """As a function of one column's values."""
        return lambda values: self.compute({column: values})

    def constant(self) -> Any:
        """Its value, where it reads no column."""
        return self.compute({"": pa.nulls(1)})[0].as_py()


KnownAs = Callable[[Node], Scalar | None]  # what stands for a node: a column of the release, of a lookup or of a result


def scalar(node: Node | None, known_as: KnownAs) -> Scalar:
    """An expression as a function of columns; a refusal where it is not understood."""
    if node is None:  # as the parser reads MIN( without its end
        raise QuestionError("The question lacks an expression, or a bracket is not closed. Fix: complete it.")
    known = known_as(node)
    if known is not None:
        return known
    if isinstance(node, exp.Paren):
        return scalar(node.this, known_as)
    if is_literal(node):
        value = literal(node)
        return Scalar((), lambda values: _repeated(value, values))
    make = MADE.get(type(node))
    if make is None:
        raise QuestionError(
            f"{shown(node)} is not a function that can be computed here: use +, -, *, /, %, CASE, CAST, COALESCE, "
            f"comparisons, or one of {', '.join(NAMES)}."
        )
    inner, compute = make(node)
    parts = [scalar(part, known_as) for part in inner]
    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))

    def computed(values: Values) -> pa.Array:
        try:
            return _array(compute([part.compute(values) for part in parts]))
        except WRONG:
            raise QuestionError(f"{shown(node)} cannot be computed from values of these types.") from None

    return Scalar(columns, computed)


def _comparison(node: Node) -> Computed:
    operator, left, right = OPERATORS[type(node)], node.this, node.expression
    if is_literal(left) and not is_literal(right):
        left, right, operator = right, left, SWAPPED[operator]
    if not is_literal(right):
        return [left, right], lambda a: COMPARISONS[operator](*a)
    value = literal(right)
    if value is None:
        return [left], lambda a: pa.nulls(len(a[0]), pa.bool_())
    return [left], lambda a: _known(compare(operator, a[0], value), a[0])


def _known(holds: pa.Array, values: pa.Array) -> pa.Array:
    """Unknown where the value is missing."""
    return pc.if_else(values.is_valid(), holds, pa.scalar(None, pa.bool_()))


def _between(node: Node) -> Computed:
    low, high = node.args["low"], node.args["high"]
    ends = [exp.GTE(this=node.this, expression=low), exp.LTE(this=node.this, expression=high)]
    if not node.args.get("symmetric"):
        return ends, lambda a: pc.and_kleene(*a)
    ends += [exp.GTE(this=node.this, expression=high), exp.LTE(this=node.this, expression=low)]
    return ends, lambda a: pc.or_kleene(pc.and_kleene(*a[:2]), pc.and_kleene(*a[2:]))


def _among(node: Node) -> Computed:
    if node.args.get("query") or node.args.get("unnest"):
        raise QuestionError(f"{shown(node)}: IN (SELECT ..) reads a lookup table only, and stands in WHERE.")
    if not node.expressions:
        raise QuestionError(f"{shown(node)}: IN goes with a list of values. Fix: IN (1, 2, 3).")
    comparisons: list[Node] = [exp.EQ(this=node.this, expression=item) for item in node.expressions]

    def any_of(arrays: list[pa.Array]) -> pa.Array:
        result = arrays[0]
        for array in arrays[1:]:
            result = pc.or_kleene(result, array)
        return result

    return comparisons, any_of


def _is(node: Node) -> Computed:
    negate = bool(node.args.get("negate"))
    if isinstance(node.expression, exp.Null):
        return [node.this], lambda a: a[0].is_valid() if negate else a[0].is_null()
    if not isinstance(node.expression, exp.Boolean):
        raise QuestionError(f"{shown(node)}: IS goes with NULL, TRUE and FALSE.")
    wanted = bool(node.expression.this)
    return [node.this], lambda a: _flipped(pc.equal(_truth(a[0]), wanted).fill_null(False), negate)


def _flipped(holds: pa.Array, negate: bool) -> pa.Array:
    return pc.invert(holds) if negate else holds


def _like(node: Node) -> Computed:
    negate = bool(node.args.get("negate"))
    pattern = literal(node.expression) if is_literal(node.expression) else None
    if not isinstance(pattern, str):
        raise QuestionError(f"{shown(node)}: LIKE goes with a pattern in quotes.")
    return [node.this], lambda a: _flipped(matches(a[0], pattern, isinstance(node, exp.ILike)), negate)


def _case(node: Node) -> Computed:
    inner: list[Node] = []
    for when in node.args["ifs"]:
        condition = when.this if node.this is None else exp.EQ(this=node.this, expression=when.this)
        inner += [condition, when.args["true"]]
    inner.append(node.args.get("default") or exp.Null())

    def first_true(arrays: list[pa.Array]) -> pa.Array:
        result = arrays[-1]
        for place in range(len(arrays) - 3, -1, -2):
            result = _choose([arrays[place], arrays[place + 1], result])
        return result

    return inner, first_true


def _choose(arrays: list[pa.Array]) -> pa.Array:
    condition, then, other = arrays
    return pc.if_else(_truth(condition).fill_null(False), *_alike(then, other))


def _alike(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Two arrays of one type; a missing literal has any."""
    if pa.types.is_null(one.type):
        return one.cast(other.type), other
    return (one, other.cast(one.type)) if pa.types.is_null(other.type) else (one, other)


def _cast(node: Node) -> Computed:
    kind = KINDS.get(node.args["to"].this)
    if kind is None:
        raise QuestionError(f"{shown(node)}: CAST to INTEGER, DOUBLE, VARCHAR, DATE, TIMESTAMP or BOOLEAN.")
    gentle = isinstance(node, exp.TryCast)
    decimals = any(not one.is_string and not one.is_int for one in node.find_all(exp.Literal))

    def cast(arrays: list[pa.Array]) -> pa.Array:
        (values,) = arrays
        if pa.types.is_integer(kind) and pa.types.is_floating(values.type):
            if decimals and pc.any(pc.equal(pc.subtract(values, pc.floor(values)), 0.5)).as_py():
                raise QuestionError(f"{shown(node)} rounds halves, which databases do in two ways. Fix: FLOOR.")
            values = pc.round(values, round_mode="half_to_even")
        try:
            return values.cast(kind)
        except WRONG:
            if not gentle:
                raise
        return pa.array([_one(value, kind) for value in values], kind)

    return [node.this], cast


def _one(value: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return value.cast(kind).as_py()
    except WRONG:
        return None


def _same(node: Node) -> Computed:
    """IS [NOT] DISTINCT FROM: missing is a value like any other."""

    def same(arrays: list[pa.Array]) -> pa.Array:
        equal, one, other = arrays
        both = pc.and_(one.is_null(), other.is_null())
        return pc.or_(equal.fill_null(False), both)

    inner = [exp.EQ(this=node.this, expression=node.expression), node.this, node.expression]
    if isinstance(node, exp.NullSafeEQ):
        return inner, same
    return inner, lambda a: pc.invert(same(a))


def _truth(values: pa.Array) -> pa.Array:
    if pa.types.is_null(values.type):
        return values.cast(pa.bool_())
    if not pa.types.is_boolean(values.type):
        raise pa.ArrowTypeError("not a truth value")
    return values


def _widened(values: pa.Array) -> pa.Array:
    """Numbers wide enough to compute with."""
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    return (
        values.cast(pa.float64()) if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type) else values
    )


def _subtracted(one: pa.Array, other: pa.Array) -> pa.Array:
    """Numbers, or two dates: the days between them."""
    if one.type == other.type == pa.date32():
        return pc.subtract(*(array.cast(pa.int32()).cast(pa.int64()) for array in (one, other)))
    if pa.types.is_temporal(one.type) or pa.types.is_temporal(other.type):
        raise pa.ArrowTypeError("a duration, which is no number")
    return pc.subtract(one, other)


def _repeated(value: Any, values: Values) -> pa.Array:
    length = len(next(iter(values.values())))
    try:
        return pa.array([value] * length) if length < 2 else pa.repeat(pa.scalar(value), length)
    except OverflowError:
        raise QuestionError(f"{shortened(value)} is larger than any number of a table. Fix: a smaller one.") from None


def _array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _of_truths(function: Callable[..., pa.Array]) -> Made:
    return lambda node: ([node.this, node.expression], lambda a: function(*map(_truth, a)))


def _of_numbers(function: Callable[..., pa.Array]) -> Made:
    return lambda node: ([node.this, node.expression], lambda a: function(*map(_widened, a)))


MADE: dict[type, Made] = {
    exp.Not: lambda node: ([node.this], lambda a: pc.invert(_truth(a[0]))),
    exp.And: _of_truths(pc.and_kleene),
    exp.Or: _of_truths(pc.or_kleene),
    exp.Neg: lambda node: ([node.this], lambda a: pc.negate(_widened(a[0]))),
    exp.Add: _of_numbers(pc.add),
    exp.Sub: _of_numbers(_subtracted),
    exp.Mul: _of_numbers(pc.multiply),
    **dict.fromkeys(OPERATORS, _comparison),
    exp.Between: _between,
    exp.In: _among,
    exp.Is: _is,
    **dict.fromkeys((exp.Like, exp.ILike), _like),
    exp.Case: _case,
    exp.If: lambda node: ([node.this, node.args["true"], node.args.get("false") or exp.Null()], _choose),
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _same),
    **{kind: made for kind, (_, made) in FUNCTIONS.items()},
}
