"""Weights of rows for a condition or a number written in SQL."""

from __future__ import annotations

import numpy as np
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from deniable.core.errors import QuestionError, shortened
from deniable.estimation.answering import row_numbers, row_weights
from deniable.estimation.formula import Added, Constant, Formula, Present, Scaled, Widened
from deniable.estimation.linear import Term
from deniable.estimation.predicates import EVERYTHING
from deniable.estimation.published import Floats, Published, with_columns
from deniable.estimation.sql.expressions import Expression
from deniable.estimation.sql.lists import KINDS
from deniable.estimation.sql.literals import Node
from deniable.estimation.sql.parsing import parse
from deniable.estimation.sql.scope import Scope

TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.In, exp.Between, exp.Boolean, *KINDS)


def weights_of(published: Published, text: str) -> Floats:
    """One weight a row: of a condition 1 or 0 on average, of a number that number."""
    node = _expression(text)
    written, scope = node.sql(dialect="duckdb"), Scope.of(published)
    if isinstance(node.unnest(), TRUTHS):
        where = parse(f"SELECT COUNT(*) AS n FROM release WHERE {written}", scope).where
        return row_weights(with_columns(published, tuple(scope.derived.values())), where)
    (item,) = parse(f"SELECT SUM({written}) AS n FROM release", scope).items
    assert isinstance(item.what, Expression)
    formula = item.what.what
    return _weights(with_columns(published, tuple(scope.derived.values())), formula)  # type: ignore[arg-type]


def _expression(text: str) -> Node:
    try:
        (statement,) = sqlglot.parse(f"SELECT {text}", dialect="duckdb")
    except (SqlglotError, ValueError):
        statement = None
    clauses = {} if statement is None else {k: v for k, v in statement.args.items() if v and k != "expressions"}
    if not isinstance(statement, exp.Select) or clauses or len(statement.expressions) != 1:
        raise QuestionError(
            f"{shortened(text)} is not one condition or expression in SQL: write \"ill = 'flu' AND age > 40\", or a "
            'number such as "age * 12".'
        )
    return statement.expressions[0]


def _weights(published: Published, formula: Formula) -> Floats:
    if isinstance(formula, Present):
        return _weights(published, formula.of)
    if isinstance(formula, Widened):
        return (_weights(published, formula.lower) + _weights(published, formula.upper)) / 2
    if isinstance(formula, Scaled):
        return formula.factor * _weights(published, formula.of)
    if isinstance(formula, Added):
        return _weights(published, formula.one) + _weights(published, formula.other)
    if isinstance(formula, Constant):
        return np.full(published.counter().rows, formula.value)
    if not isinstance(formula, Term):
        raise QuestionError("Only conditions and numbers that are added up row by row have weights.")
    narrowed = formula.narrowed
    condition, numbers = (EVERYTHING, None) if narrowed is None else (narrowed.condition, narrowed.numbers)
    weights = row_weights(published, condition, numbers)
    return weights if formula.column is None else weights * row_numbers(published, formula.column, missing=0.0)
