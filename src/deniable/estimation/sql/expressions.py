"""From an expression of aggregates to a formula: COUNT, SUM, AVG, FILTER and CASE, and arithmetic of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.aggregates import average
from deniable.estimation.formula import Added, Constant, Formula, Ratio, Scaled
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.predicates import And
from deniable.estimation.sql.conditions import OPERATORS, Named, Node, literal, predicate, shown

FUNCTIONS: dict[type, str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}
AROUND = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Ordered)


@dataclass(frozen=True)
class Expression:
    """An aggregate, or arithmetic of aggregates; the same key means the same thing.

    Attributes:
        key: how it reads.
        name: what its result is called unless it is given a name.
        formula: what is estimated.
    """

    key: str
    name: str = field(compare=False)
    formula: Formula = field(compare=False)


ROWS = Expression("count(*)", "count", Term())


def expressions_in(node: Node) -> Iterator[Node]:
    """The expressions of aggregates that conditions and orders are made of."""
    if isinstance(node, AROUND) or type(node) in OPERATORS:
        for inner in node.iter_expressions():
            yield from expressions_in(inner)
    elif node.find(exp.AggFunc):
        yield node


class Reader:
    """Reads the expressions of one query; equal conditions are read once, so that they are counted once."""

    def __init__(self, named: Named, sensitive: tuple[str, ...], table: str) -> None:
        self._named, self._sensitive, self._table = named, sensitive, table
        self._conditions: dict[str, Narrowed] = {}

    def read(self, node: Node) -> Expression:
        """An expression that holds at least one aggregate, or a refusal."""
        while isinstance(node, exp.Paren):
            node = node.this
        if type(node) in FUNCTIONS and not isinstance(node.this, exp.Case):
            return self._plain(node)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise QuestionError(
                f"SELECT * shows single rows, whose sensitive values are perturbed. Ask for counts, sums or averages: "
                f"SELECT COUNT(*) AS n FROM {self._table}"
            )
        if not node.find(exp.AggFunc):
            raise _refused(node)
        text = node.sql(dialect="duckdb")
        return Expression(text, text, self._formula(node))

    def _plain(self, node: Node) -> Expression:
        """One aggregate of all rows, named after itself."""
        function = FUNCTIONS[type(node)]
        if function == "count" and _counts_rows(node):
            return ROWS
        column = self._column(node)
        return Expression(f"{function}({column})", f"{function}_{column}", self._aggregate(node, []))

    def _formula(self, node: Node) -> Formula:
        if isinstance(node, exp.Paren):
            return self._formula(node.this)
        if isinstance(node, exp.Neg):
            return _times(-1.0, self._formula(node.this))
        if isinstance(node, exp.Literal) and not node.is_string:
            return Constant(float(literal(node)))
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self._arithmetic(node)
        if isinstance(node, exp.Filter) and type(node.this) in FUNCTIONS:
            return self._aggregate(node.this, [node.expression.this])
        if type(node) in FUNCTIONS:
            return self._aggregate(node, [])
        raise _refused(node)

    def _arithmetic(self, node: Node) -> Formula:
        one, other = self._formula(node.this), self._formula(node.expression)
        if isinstance(node, exp.Add | exp.Sub):
            other = other if isinstance(node, exp.Add) else _times(-1.0, other)
            both = isinstance(one, Constant) and isinstance(other, Constant)
            return Constant(one.value + other.value) if both else Added(one, other)  # type: ignore[union-attr]
        if isinstance(node, exp.Mul):
            if isinstance(one, Constant):
                return _times(one.value, other)
            if isinstance(other, Constant):
                return _times(other.value, one)
            raise QuestionError(
                f"{shown(node)} multiplies two estimates: multiply by a number, add, subtract or divide."
            )
        if not isinstance(other, Constant):
            return Ratio(one, other)
        if other.value == 0:
            raise QuestionError(f"{shown(node)} divides by zero.")
        return _times(1 / other.value, one)

    def _aggregate(self, node: Node, conditions: list[Node]) -> Formula:
        function = FUNCTIONS[type(node)]
        if isinstance(node.this, exp.Case):
            return self._case(function, node, conditions)
        if function == "count":
            if _counts_rows(node):
                return Term("rows", None, self._narrowed(conditions))
            present = exp.Is(this=node.this.copy(), expression=exp.Null())
            self._column(node)
            return Term("rows", None, self._narrowed([*conditions, exp.Not(this=present)]))
        column = self._column(node)
        if column in self._sensitive:
            raise QuestionError(
                f"{function.upper()} of {column!r}: it is sensitive, and its published values are perturbed. Ask for "
                f"counts by value and compute from them: SELECT {column}, COUNT(*) AS n FROM {self._table} "
                f"GROUP BY {column}"
            )
        narrowed = self._narrowed(conditions)
        return Term("values", column, narrowed) if function == "sum" else average(column, narrowed)

    def _case(self, function: str, node: Node, conditions: list[Node]) -> Formula:
        """CASE WHEN condition THEN 1 or a column, ELSE 0 or nothing: the rows that satisfy the condition."""
        case = node.this
        if case.this is not None or len(case.args["ifs"]) != 1:
            raise QuestionError(f"{shown(case)}: write CASE with one WHEN condition, and ask once per condition.")
        when, default = case.args["ifs"][0], case.args.get("default")
        then, inside = when.args["true"], [*conditions, when.this]
        zero = isinstance(default, exp.Literal) and not default.is_string and float(literal(default)) == 0
        nothing = default is None or isinstance(default, exp.Null)
        if isinstance(then, exp.Literal) and not then.is_string:
            rows, number = Term("rows", None, self._narrowed(inside)), float(literal(then))
            if function == "sum" and (zero or nothing):
                return _times(number, rows)
            if function == "avg" and zero:
                return _times(number, Ratio(rows, Term("rows", None, self._narrowed(conditions))))
            if function == "count" and nothing:
                return rows
        if isinstance(then, exp.Column) and function != "count" and (nothing or (zero and function == "sum")):
            return self._aggregate(type(node)(this=then.copy()), inside)
        raise QuestionError(
            f"{shown(node)} cannot be answered: write SUM or AVG(CASE WHEN .. THEN 1 ELSE 0 END), SUM(CASE WHEN .. "
            "THEN column ELSE 0 END), or an aggregate with FILTER (WHERE ..)."
        )

    def _narrowed(self, conditions: list[Node]) -> Narrowed | None:
        if not conditions:
            return None
        text = " AND ".join(sorted(f"({node.sql(dialect='duckdb')})" for node in conditions))
        if text not in self._conditions:
            parts = tuple(predicate(node, self._named) for node in conditions)
            self._conditions[text] = Narrowed(parts[0] if len(parts) == 1 else And(parts))
        return self._conditions[text]

    def _column(self, node: Node) -> str:
        if not isinstance(node.this, exp.Column) or node.expressions:
            raise QuestionError(f"{FUNCTIONS[type(node)].upper()} takes one column, not {shown(node)}.")
        return self._named(node.this)


def _counts_rows(node: Node) -> bool:
    """COUNT(*)."""
    return node.this is None or isinstance(node.this, exp.Star)


def _times(factor: float, formula: Formula) -> Formula:
    if isinstance(formula, Constant):
        return Constant(factor * formula.value)
    if isinstance(formula, Scaled):
        return _times(factor * formula.factor, formula.of)
    return formula if factor == 1 else Scaled(factor, formula)


def _refused(node: Node) -> QuestionError:
    return QuestionError(
        f"{shown(node)} cannot be answered: select group columns and COUNT(*), COUNT(column), SUM(column) or "
        "AVG(column), with FILTER or CASE, or sums, differences and ratios of them, and compute with the results "
        "afterwards."
    )
