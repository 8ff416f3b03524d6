"""From a parsed WHERE to a predicate: negation is pushed into the leaves, so unknown becomes "does not hold" there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.predicates import And, Leaf, Or, Predicate, among, compare, everything, nothing
from deniable.estimation.sql.literals import NEGATED, OPERATORS, SWAPPED, Node, is_literal, literal, shown
from deniable.estimation.sql.scope import Scope, mixes
from deniable.estimation.sql.values import Scalar


class Conditions:
    """Reads the conditions of one question.

    Args:
        scope: what names mean.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def predicate(self, node: Node, *, negated: bool = False) -> Predicate:
        """A condition, or its negation, as a predicate."""
        if isinstance(node, exp.Paren):
            return self.predicate(node.this, negated=negated)
        if isinstance(node, exp.Not):
            return self.predicate(node.this, negated=not negated)
        if isinstance(node, exp.And | exp.Or):
            both = isinstance(node, exp.And) != negated
            parts = tuple(self.predicate(part, negated=negated) for part in (node.left, node.right))
            return And(parts) if both else Or(parts)
        if isinstance(node, exp.Boolean):
            return And(()) if node.this != negated else Or(())
        return self._plain(node, negated) or self._computed(node, negated)

    def _plain(self, node: Node, negated: bool) -> Predicate | None:
        """One column of the release and values that are written out; None for anything else."""
        negated = negated != bool(node.args.get("negate"))  # NOT LIKE, as the parser has it
        column = self.scope.plain(node)
        if column is not None:
            wanted = not negated
            return Leaf(column, lambda values: compare("==", values, wanted), False)
        if type(node) in OPERATORS:
            return self._comparison(node, negated)
        column = self.scope.plain(node.this) if isinstance(node.this, exp.Column) else None
        if column is None:
            return None
        if isinstance(node, exp.In) and node.expressions and all(map(is_literal, node.expressions)):
            listed = [self.scope.as_typed(column, literal(item)) for item in node.expressions]
            self.scope.occurring(column, [value for value in listed if value is not None])
            return membership(column, listed, negated)
        if isinstance(node, exp.Between) and is_literal(node.args["low"]) and is_literal(node.args["high"]):
            ends = [self.scope.as_typed(column, literal(node.args[end])) for end in ("low", "high")]
            return _range(node, column, ends, negated)
        if isinstance(node, exp.Is):
            return _missing(node, column, negated)
        return None

    def _comparison(self, node: Node, negated: bool) -> Predicate | None:
        operator, left, right = OPERATORS[type(node)], node.this, node.expression
        if self.scope.plain(left) is None and is_literal(left):
            left, right, operator = right, left, SWAPPED[operator]
        column = self.scope.plain(left)
        if column is None or not is_literal(right):
            return None
        value = self.scope.as_typed(column, literal(right))
        if value is None:
            raise QuestionError(f"{shown(node)} is never true: ask for missing values with IS NULL.")
        operator = NEGATED[operator] if negated else operator
        if operator in ("==", "!="):
            self.scope.occurring(column, [value])
        if operator == "==":
            return Leaf(column, lambda values: among(values, [value]), False)
        return Leaf(column, lambda values: compare(operator, values, value), False)

    def _computed(self, node: Node, negated: bool) -> Predicate:
        """A condition on what is computed from columns: of one column a leaf, of several public ones a new column."""
        made = self.scope.scalar(exp.Not(this=node) if negated else node)
        return self.holds(made, node, negated)

    def holds(self, made: Scalar, node: Node, negated: bool = False) -> Predicate:
        """Where a computed truth value is true."""
        if not made.columns:
            value = made.constant()
            if value is not None and not isinstance(value, bool):
                raise _no_condition(node)
            return And(()) if value else Or(())
        if len(made.columns) > 1:
            hidden = [column for column in made.columns if self.scope.sensitive(column)]
            if hidden:
                raise mixes(node, hidden)
            text = self.scope.text(node)
            name = self.scope.new(f"NOT ({text})" if negated else text, made)
            return Leaf(name, lambda values: compare("==", values, True), False)
        (column,) = made.columns
        computed = made.of(column)
        missing = computed(self.scope.missing(column))
        if not pa.types.is_boolean(missing.type) and not pa.types.is_null(missing.type):
            raise _no_condition(node)
        return Leaf(column, lambda values: computed(values).cast(pa.bool_()), missing[0].as_py() is True)


def _no_condition(node: Node) -> QuestionError:
    return QuestionError(f"WHERE cannot hold {shown(node)}: it is a value, not a condition. Compare it with one.")


def membership(column: str, wanted: list[Any], negated: bool) -> Predicate:
    """column IN (..), or NOT IN."""
    known = tuple(value for value in wanted if value is not None)
    if not negated:
        return Leaf(column, lambda values: among(values, known), False)
    if None in wanted:  # x NOT IN (.., NULL) is never true
        return Leaf(column, nothing, False)
    return Leaf(column, lambda values: pc.invert(among(values, known)), False)


def _range(node: exp.Between, column: str, ends: list[Any], negated: bool) -> Predicate:
    low, high = ends
    if low is None or high is None:
        raise QuestionError(f"{shown(node)} is never true: both ends must be values.")
    either_way = bool(node.args.get("symmetric"))

    def test(values: pa.Array) -> pa.Array:
        inside = pc.and_(compare(">=", values, low), compare("<=", values, high))
        if either_way:
            inside = pc.or_(inside, pc.and_(compare(">=", values, high), compare("<=", values, low)))
        return pc.invert(inside) if negated else inside

    return Leaf(column, test, False)


def _missing(node: exp.Is, column: str, negated: bool) -> Predicate | None:
    if isinstance(node.expression, exp.Boolean):
        wanted = bool(node.expression.this)
        return Leaf(column, lambda values: compare("!=" if negated else "==", values, wanted), negated)
    if not isinstance(node.expression, exp.Null):
        return None
    return Leaf(column, everything, False) if negated else Leaf(column, nothing, True)
