"""From SQL text to a query that a release can answer, or a refusal that says what to ask instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from deniable.core.errors import QuestionError
from deniable.estimation.linear import Term
from deniable.estimation.mapped import Grouped, name_of
from deniable.estimation.predicates import EVERYTHING, And, Predicate
from deniable.estimation.sql.aggregates import Aggregates
from deniable.estimation.sql.conditions import Conditions
from deniable.estimation.sql.expressions import Expression, Reader, has_aggregate
from deniable.estimation.sql.grouping import groupings
from deniable.estimation.sql.lists import unfolded
from deniable.estimation.sql.literals import Node
from deniable.estimation.sql.reshaping import flattened
from deniable.estimation.sql.scope import TABLE, Scope
from deniable.estimation.sql.sources import tables_of
from deniable.estimation.sql.understood import UNDERSTOOD, advise, require_understood
from deniable.estimation.sql.values import APART, Scalar, replaced_in, value_of

DEEPEST = 150  # levels: what reads a question calls itself once or more for each
LONGEST = 100_000


@dataclass(frozen=True)
class Item:
    """One selected thing: a group, something computed from groups, or an expression of aggregates."""

    name: str
    what: Scalar | Expression


@dataclass(frozen=True, eq=False)
class Query:
    """A question in SQL, understood.

    Attributes:
        items: what is selected.
        where: which rows.
        groupings: the columns of each grouping, of which there is one unless ROLLUP and the like ask for several.
        spelled: each group as it reads in SQL -> the column.
    """

    items: tuple[Item, ...]
    where: Predicate
    groupings: tuple[tuple[Grouped, ...], ...]
    spelled: Mapping[str, Grouped]
    having: Node | None
    order: tuple[Node, ...]
    limit: int | None
    offset: int
    reader: Reader
    scope: Scope

    @property
    def is_count(self) -> bool:
        """Whether it asks for one number of rows and nothing else."""
        plain = [item.what.what for item in self.items if isinstance(item.what, Expression)] == [Term()]
        return plain and len(self.items) == 1 and self.groupings == ((),) and self.having is None


EXAMPLE = "SELECT COUNT(*) AS n FROM release"


def parse(question: str | exp.Select, scope: Scope, tables: Mapping[str, pa.Table] | None = None) -> Query:
    """Read one SELECT statement over the release."""
    statement = read(question) if isinstance(question, str) else question
    if statement.find(exp.SetOperation, exp.Window) or not isinstance(statement, exp.Select):
        raise QuestionError(f"This takes one SELECT from the release alone, without windows. Fix: write {EXAMPLE}")
    written = unfolded(statement, scope.lists)
    advise(written)
    _require_clauses(written)
    require_understood(written)
    scope.tables = {name.lower(): table for name, table in (tables or {}).items()}
    select = flattened(written.copy(), scope.is_column)
    conditions = Conditions(scope)
    matching = tables_of(select, scope, conditions, scope.tables)
    where = select.args.get("where")
    held = [*matching, *([] if where is None else [conditions.predicate(where.this)])]
    reader = Reader(Aggregates(scope, conditions))
    nodes = groupings(select, scope.is_column)
    spelled = {scope.text(node): scope.column(node) for grouping in nodes for node in grouping}
    sets = tuple(tuple(dict.fromkeys(spelled[scope.text(node)] for node in grouping)) for grouping in nodes)
    items = _items(select.expressions, reader, scope, spelled)
    if select.args.get("distinct") is not None:
        _require_distinct(select, scope, spelled)
    having, order = select.args.get("having"), select.args.get("order")
    return Query(
        items,
        EVERYTHING if not held else held[0] if len(held) == 1 else And(tuple(held)),
        sets,
        spelled,
        None if having is None else having.this,
        _order(order, len(items)),
        _whole_number(select.args.get("limit"), "LIMIT"),
        _whole_number(select.args.get("offset"), "OFFSET") or 0,
        reader,
        scope,
    )


def read(text: str) -> Node:
    """The statement of a question: a SELECT, or several that are put together."""
    if not isinstance(text, str) or not text.strip():
        raise QuestionError(f"The question is empty. Fix: write for example {EXAMPLE}")
    if len(text) > LONGEST:
        raise QuestionError(f"The question has {len(text):,} characters; at most {LONGEST:,} are read.")
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect="duckdb") if statement is not None]
    except ParseError as error:
        raise QuestionError(_where_and_why(error)) from None
    except TokenError as error:
        raise QuestionError(f"The SQL cannot be read: {error}. Fix: close every quote.") from None
    except (SqlglotError, RecursionError) as error:
        raise QuestionError(f"The SQL cannot be read: {type(error).__name__}. Fix: write {EXAMPLE}") from None
    if len(statements) != 1:
        raise QuestionError(f"Ask one question at a time: this is {len(statements)} statements.")
    (statement,) = statements
    while isinstance(statement, exp.Subquery) and set(_given(statement)) == {"this"}:
        statement = statement.this
    if not isinstance(statement, exp.Select | exp.SetOperation):
        raise QuestionError("A release can only be asked: write SELECT ... FROM release.")
    if any(token.text in ("~", "!~") for token in sqlglot.tokenize(text, dialect="duckdb")):
        raise QuestionError(
            "~ asks for the whole text in some databases and for a part of it in others. Fix: REGEXP_FULL_MATCH(text, "
            "pattern) or REGEXP_MATCHES(text, pattern)."
        )
    if _depth(statement) > DEEPEST:
        raise QuestionError(
            f"The question is nested more than {DEEPEST} levels deep. Fix: IN (..) instead of many ORs, BETWEEN "
            "instead of many comparisons, or several questions."
        )
    return statement


def _given(node: Node) -> list[str]:
    return [name for name, value in node.args.items() if value]


def _depth(statement: Node) -> int:
    """How many levels a statement has, counted without recursion."""
    deepest, open_nodes = 0, [(statement, 1)]
    while open_nodes:
        node, depth = open_nodes.pop()
        deepest = max(deepest, depth)
        open_nodes += [(child, depth + 1) for child in node.iter_expressions()]
    return deepest


def _where_and_why(error: ParseError) -> str:
    first = error.errors[0] if error.errors else {}
    near = str(first.get("highlight") or "")[:40]
    place = f"line {first.get('line')}, column {first.get('col')}" if first.get("line") else "an unknown place"
    why = str(first.get("description") or "it is not SQL").rstrip(".")
    unfinished = re.search(r"missing for <class '.*\.(\w+)'>", why)
    if unfinished:
        why = f"{unfinished[1]} is incomplete (a column named like a word of SQL goes in double quotes)"
    return (
        f"The SQL cannot be read at {place}"
        + (f", near {near!r}" if near else "")
        + f": {why}. Fix: write for example {EXAMPLE}"
    )


def _require_clauses(select: exp.Select) -> None:
    for name, part in select.args.items():
        if part and name not in UNDERSTOOD[exp.Select]:
            raise QuestionError(f"{name.strip('_').upper()} is not supported in a question to a release.")


def _require_distinct(select: exp.Select, scope: Scope, spelled: Mapping[str, Grouped]) -> None:
    """SELECT DISTINCT is what GROUP BY gives, where all that decides it is public."""
    if any(has_aggregate(item) for item in select.expressions) or select.args["distinct"].args.get("on") is not None:
        raise QuestionError("DISTINCT goes with columns alone: leave it out, groups are different anyway.")
    if any(not isinstance(group, str) or scope.sensitive(group) for group in spelled.values()):
        raise QuestionError(
            "DISTINCT cannot be answered from perturbed rows: every value appears. Ask for counts by group."
        )


def _items(nodes: Sequence[Node], reader: Reader, scope: Scope, spelled: Mapping[str, Grouped]) -> tuple[Item, ...]:
    items: list[Item] = []
    for node in nodes:
        alias = node.alias if isinstance(node, exp.Alias) else ""
        inner = node.this if isinstance(node, exp.Alias) else node
        if has_aggregate(inner) or isinstance(inner, exp.Star) or isinstance(getattr(inner, "this", None), exp.Star):
            expression = reader.read(inner)
            items.append(Item(alias or expression.name, expression))
        else:
            plain = scope.plain(inner)
            name = plain or (inner.name if isinstance(inner, exp.Column) else inner.sql(dialect="duckdb"))
            items.append(Item(alias or name, _of_groups(inner, scope, spelled)))
    names = [name for item in items for name in columns_of(item)]
    names += [hopeless_of(item) for item in items if isinstance(item.what, Expression)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise QuestionError(f"Two columns of the result would be called {twice!r}: give one another name with AS.")
    return tuple(items)


def group_column(group: Grouped) -> str:
    """What a group is called beside the columns of the result, whatever those are called."""
    return f"{APART}group {name_of(group)}"


def columns_of(item: Item) -> list[str]:
    """The result's columns of an item: an aggregate n comes with n_low and n_high."""
    return [item.name] if isinstance(item.what, Scalar) else [item.name, f"{item.name}_low", f"{item.name}_high"]


def hopeless_of(item: Item) -> str:
    """What the column is called that says why nothing was learned."""
    return f"{item.name}_hopeless"


def _of_groups(node: Node, scope: Scope, spelled: Mapping[str, Grouped]) -> Scalar:
    """Something selected as a function of the result's group columns."""

    def group(inner: Node) -> Node | None:
        column = spelled.get(scope.text(inner))
        if column is None and isinstance(inner, exp.Column):
            raise _ungrouped(scope.plain(inner) or scope.text(inner), scope)
        return None if column is None else value_of(group_column(column))

    return scope.made(replaced_in(node, group), node)


def _ungrouped(name: str, scope: Scope) -> QuestionError:
    if scope.sensitive(name):
        return QuestionError(
            f"{name!r} is sensitive: single rows show perturbed values, which say nothing about a person. Ask for "
            f"counts instead: SELECT {name}, COUNT(*) AS n FROM {TABLE} GROUP BY {name}"
        )
    return QuestionError(
        f"{name!r} is selected but not grouped by. Fix: SELECT {name}, COUNT(*) AS n FROM {TABLE} GROUP BY {name}"
    )


def _order(order: Node | None, items: int) -> tuple[Node, ...]:
    """What is ordered by; ALL is every column that is selected, from the left."""
    if order is None:
        return ()
    (first, *others) = order.expressions
    if others or first.this.sql().upper() != "ALL":
        return tuple(order.expressions)
    return tuple(exp.Ordered(this=exp.Literal.number(place + 1), desc=first.args.get("desc")) for place in range(items))


def _whole_number(node: Node | None, clause: str) -> int | None:
    if node is None:
        return None
    inner = node.expression if isinstance(node, exp.Limit | exp.Offset) else node
    if not isinstance(inner, exp.Literal) or not inner.is_int:
        raise QuestionError(f"{clause} takes a whole number.")
    return int(inner.this)
