"""From a parsed WHERE to a predicate: negation is pushed into the leaves, so unknown becomes "does not hold" there."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.predicates import And, Leaf, Or, Predicate, among, compare, everything, nothing

Node = Any  # of sqlglot's tree; the name of its base class depends on the version
Named = Callable[[exp.Column], str]  # resolves a column reference to a column of the release

OPERATORS: dict[type, str] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def predicate(node: Node, named: Named, *, negated: bool = False) -> Predicate:
    """A condition, or its negation, as a predicate."""
    negated = negated != bool(node.args.get("negate"))  # NOT LIKE, as the parser has it
    if isinstance(node, exp.Paren):
        return predicate(node.this, named, negated=negated)
    if isinstance(node, exp.Not):
        return predicate(node.this, named, negated=not negated)
    if isinstance(node, exp.And | exp.Or):
        both = isinstance(node, exp.And) != negated
        parts = tuple(predicate(part, named, negated=negated) for part in (node.left, node.right))
        return And(parts) if both else Or(parts)
    if isinstance(node, exp.Boolean):
        return And(()) if node.this != negated else Or(())
    if isinstance(node, exp.Column):
        wanted = not negated
        return Leaf(named(node), lambda values: compare("==", values, wanted), False)
    if type(node) in OPERATORS:
        return _comparison(node, named, negated)
    if isinstance(node, exp.In):
        return _membership(node, named, negated)
    if isinstance(node, exp.Between):
        return _range(node, named, negated)
    if isinstance(node, exp.Is):
        return _missing(node, named, negated)
    if isinstance(node, exp.Like | exp.ILike):
        return _like(node, named, negated)
    raise _refused(node)


def _refused(node: Node) -> QuestionError:
    return QuestionError(
        f"WHERE cannot hold {shown(node)}: compare a column with a value (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE, "
        "IS NULL) and combine such conditions with AND, OR and NOT."
    )


def shown(node: Node) -> str:
    """A piece of the question as it reads in SQL, shortened for a message."""
    text = node.sql(dialect="duckdb")
    return f"'{text if len(text) <= 80 else text[:80] + '..'}'"


def literal(node: Node) -> Any:
    """The value of a literal: a number, a text, a truth value, NULL, or a date or time written as one."""
    if isinstance(node, exp.Paren):
        return literal(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        inner = literal(node.this)
        if isinstance(inner, int | float):
            return -inner
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        try:
            return int(node.this)
        except ValueError:
            return float(node.this)
    if isinstance(node, exp.Cast | exp.TryCast) and isinstance(node.this, exp.Literal):
        return _typed(node)
    raise _refused(node)


def _typed(node: Node) -> Any:
    text, kind = str(node.this.this), node.args["to"].this
    readers: dict[Any, Callable[[str], Any]] = {
        exp.DataType.Type.DATE: datetime.date.fromisoformat,
        exp.DataType.Type.TIMESTAMP: datetime.datetime.fromisoformat,
        exp.DataType.Type.TIME: datetime.time.fromisoformat,
        exp.DataType.Type.DECIMAL: decimal.Decimal,
    }
    if kind not in readers:
        raise _refused(node)
    try:
        return readers[kind](text)
    except (ValueError, ArithmeticError):
        raise QuestionError(f"{shown(node)} is not a {str(kind.value).lower()}.") from None


def _comparison(node: Node, named: Named, negated: bool) -> Predicate:
    operator = OPERATORS[type(node)]
    left, right = node.this, node.expression
    if not isinstance(left, exp.Column):
        left, right, operator = right, left, SWAPPED[operator]
    if not isinstance(left, exp.Column):
        raise _refused(node)
    if isinstance(right, exp.Column):
        raise QuestionError(
            f"{shown(node)} compares two columns: compare a column with a value. Texts go in single quotes."
        )
    value = literal(right)
    if value is None:
        raise QuestionError(f"{shown(node)} is never true: ask for missing values with IS NULL.")
    operator = NEGATED[operator] if negated else operator
    existing = (value,) if operator in ("==", "!=") else ()
    if operator == "==":
        return Leaf(named(left), lambda values: among(values, [value]), False, existing)
    return Leaf(named(left), lambda values: compare(operator, values, value), False, existing)


def _membership(node: exp.In, named: Named, negated: bool) -> Predicate:
    if not isinstance(node.this, exp.Column) or node.args.get("query") or node.args.get("unnest"):
        raise _refused(node)
    wanted = [literal(item) for item in node.expressions]
    known = tuple(value for value in wanted if value is not None)
    if not negated:
        return Leaf(named(node.this), lambda values: among(values, known), False, known)
    if None in wanted:  # x NOT IN (.., NULL) is never true
        return Leaf(named(node.this), nothing, False, known)
    return Leaf(named(node.this), lambda values: pc.invert(among(values, known)), False, known)


def _range(node: exp.Between, named: Named, negated: bool) -> Predicate:
    if not isinstance(node.this, exp.Column):
        raise _refused(node)
    low, high = literal(node.args["low"]), literal(node.args["high"])
    if low is None or high is None:
        raise QuestionError(f"{shown(node)} is never true: both ends must be values.")
    column, either_way = named(node.this), bool(node.args.get("symmetric"))

    def test(values: pa.Array) -> pa.Array:
        inside = pc.and_(compare(">=", values, low), compare("<=", values, high))
        if either_way:
            inside = pc.or_(inside, pc.and_(compare(">=", values, high), compare("<=", values, low)))
        return pc.invert(inside) if negated else inside

    return Leaf(column, test, False)


def _missing(node: exp.Is, named: Named, negated: bool) -> Predicate:
    if not isinstance(node.this, exp.Column):
        raise _refused(node)
    if isinstance(node.expression, exp.Boolean):
        wanted = bool(node.expression.this)
        test = compare
        return Leaf(named(node.this), lambda values: test("!=" if negated else "==", values, wanted), negated)
    if not isinstance(node.expression, exp.Null):
        raise _refused(node)
    column = named(node.this)
    return Leaf(column, everything, False) if negated else Leaf(column, nothing, True)


def _like(node: exp.Like | exp.ILike, named: Named, negated: bool) -> Predicate:
    pattern = literal(node.expression) if isinstance(node.expression, exp.Literal) else None
    if not isinstance(node.this, exp.Column) or not isinstance(pattern, str):
        raise _refused(node)
    column, any_case = named(node.this), isinstance(node, exp.ILike)

    def test(values: pa.Array) -> pa.Array:
        try:
            holds = pc.match_like(values, pattern, ignore_case=any_case)
        except pa.ArrowNotImplementedError:
            raise QuestionError(f"LIKE needs a column of texts; {column!r} is of type {values.type}.") from None
        return pc.invert(holds) if negated else holds

    return Leaf(column, test, False)
