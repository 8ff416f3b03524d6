"""From an expression of aggregates to a formula: COUNT, SUM, AVG and their kin, and arithmetic of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.formula import Constant, Formula, Ratio, added, times
from deniable.estimation.ordered import Extreme, Quantile
from deniable.estimation.sql.aggregates import AGGREGATES, Aggregates
from deniable.estimation.sql.literals import Node, is_literal, literal, shown
from deniable.estimation.sql.scope import TABLE

FLOATS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)


@dataclass(frozen=True)
class Expression:
    """An aggregate, or arithmetic of aggregates; the same key means the same thing.

    Attributes:
        key: how it reads.
        name: what its result is called unless it is given a name.
        what: what is estimated.
        decimals: what the result is rounded to, intervals outwards; None where it is not.
    """

    key: str
    name: str = field(compare=False)
    what: Formula | Extreme | Quantile = field(compare=False)
    decimals: int | None = field(default=None, compare=False)


def has_aggregate(node: Node) -> bool:
    """Whether an expression is about groups of rows."""
    return node.find(exp.AggFunc) is not None or node.find(exp.WithinGroup) is not None


def outermost(node: Node) -> Iterator[Node]:
    """The largest expressions inside conditions and orders that are made of aggregates and arithmetic alone."""
    if _is_formula(node):
        yield node
        return
    for inner in node.iter_expressions():
        yield from outermost(inner)


def _is_formula(node: Node) -> bool:
    if isinstance(node, exp.Paren | exp.Neg | exp.Round):
        return _is_formula(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        parts = (node.this, node.expression)
        return all(_is_formula(part) or is_literal(part) for part in parts) and any(map(_is_formula, parts))
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


class Reader:
    """Reads the expressions of one query."""

    def __init__(self, aggregates: Aggregates) -> None:
        self._aggregates = aggregates

    def read(self, node: Node) -> Expression:
        """An expression that holds at least one aggregate, or a refusal."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise QuestionError(
                f"SELECT * shows single rows, whose sensitive values are perturbed. Ask for counts, sums or averages: "
                f"SELECT COUNT(*) AS n FROM {TABLE}"
            )
        if not has_aggregate(node):
            raise _refused(node)
        text = node.sql(dialect="duckdb")
        if isinstance(node, exp.Round):
            inner, digits = self.read(node.this), node.args.get("decimals")
            places = literal(digits) if digits is not None and is_literal(digits) else 0
            if not isinstance(places, int) or not (isinstance(digits, exp.Literal | exp.Neg) or digits is None):
                raise QuestionError(f"{shown(node)}: how many decimals is a whole number, written out.")
            return Expression(text, text, inner.what, places)
        ordered = self._aggregates.ordered(node)
        if ordered is not None:
            return Expression(text, self._aggregates.name(node) or text, ordered)
        return Expression(text, self._aggregates.name(node) or text, self._formula(node))

    def _formula(self, node: Node) -> Formula:
        if isinstance(node, exp.Paren):
            return self._formula(node.this)
        if isinstance(node, exp.Neg):
            return times(-1.0, self._formula(node.this))
        if isinstance(node, exp.Literal) and not node.is_string:
            return Constant(float(literal(node)))
        if isinstance(node, exp.Cast) and node.args["to"].this in FLOATS:
            return self._formula(node.this)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self._arithmetic(node)
        if isinstance(node, exp.Filter) and type(node.this) in AGGREGATES:
            return self._aggregates.formula(node.this, node.expression.this)
        if type(node) in AGGREGATES:
            return self._aggregates.formula(node, None)
        raise _refused(node)

    def _arithmetic(self, node: Node) -> Formula:
        one, other = self._formula(node.this), self._formula(_divisor(node))
        if isinstance(node, exp.Add | exp.Sub):
            return added(one, other if isinstance(node, exp.Add) else times(-1.0, other))
        if isinstance(node, exp.Mul):
            if isinstance(one, Constant):
                return times(one.value, other)
            if isinstance(other, Constant):
                return times(other.value, one)
            raise QuestionError(
                f"{shown(node)} multiplies two estimates: multiply by a number, add, subtract or divide."
            )
        if not isinstance(other, Constant):
            return Ratio(one, other)
        if other.value == 0:
            raise QuestionError(f"{shown(node)} divides by zero.")
        return times(1 / other.value, one)


def _divisor(node: Node) -> Node:
    """What is divided by: NULLIF(x, 0) is x, since a ratio over nothing has no value anyway."""
    below = node.expression
    if isinstance(node, exp.Div) and isinstance(below, exp.Nullif) and is_literal(below.expression):
        return below.this if literal(below.expression) == 0 else below
    return below


def _refused(node: Node) -> QuestionError:
    return QuestionError(
        f"{shown(node)} cannot be answered: select group columns and COUNT, SUM, AVG, STDDEV, VARIANCE, MEDIAN, "
        "QUANTILE_CONT, CORR, REGR_SLOPE, MIN or MAX, with FILTER or CASE, or sums, differences and ratios of them, "
        "and compute with the results afterwards."
    )
