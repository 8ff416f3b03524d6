"""Literals of SQL as Python values, operators by their meaning, and pieces of a question as they are shown."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from deniable.core.errors import QuestionError

Node = Any  # of sqlglot's tree; the name of its base class depends on the version

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
TYPED: dict[Any, Callable[[str], Any]] = {
    exp.DataType.Type.DATE: datetime.date.fromisoformat,
    exp.DataType.Type.TIMESTAMP: datetime.datetime.fromisoformat,
    exp.DataType.Type.TIME: datetime.time.fromisoformat,
}


def shown(node: Node) -> str:
    """A piece of the question as it reads in SQL, shortened for a message."""
    try:
        text = node.sql(dialect="duckdb")
    except Exception:  # of a parser that cannot write what it has read; its own words do not matter here
        text = ""
    return f"'{text[:80]}{'..' * (len(text) > 80)}'" if text else type(node).__name__.upper()


def is_literal(node: Node) -> bool:
    """Whether a node is a value written out."""
    if isinstance(node, exp.Paren):
        return is_literal(node.this)
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    if isinstance(node, exp.Cast | exp.TryCast):
        return isinstance(node.this, exp.Literal) and node.args["to"].this in TYPED
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


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
    if is_literal(node):
        return _typed(node)
    raise QuestionError(f"{shown(node)} is not a value: write a number, a text in single quotes or NULL.")


def _typed(node: Node) -> Any:
    text, kind = str(node.this.this), node.args["to"].this
    try:
        return TYPED[kind](text)
    except ValueError:
        raise QuestionError(f"{shown(node)} is not a {str(kind.value).lower()}.") from None
