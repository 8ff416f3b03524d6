"""From SQL text to a query that a release can answer, or a refusal that says what to ask instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from deniable.core.errors import QuestionError, did_you_mean
from deniable.estimation.predicates import EVERYTHING, Predicate
from deniable.estimation.published import Layout
from deniable.estimation.questions import require_column
from deniable.estimation.sql.conditions import Node, predicate, shown
from deniable.estimation.sql.expressions import Expression, Reader
from deniable.estimation.sql.understood import UNDERSTOOD, require_understood

TABLE = "release"
DEEPEST = 150  # levels: what reads a question calls itself once or more for each
LONGEST = 100_000


@dataclass(frozen=True)
class Item:
    """One selected thing: a group column, or an expression of aggregates."""

    name: str
    what: str | Expression


@dataclass(frozen=True)
class Query:
    """A question in SQL, understood."""

    items: tuple[Item, ...]
    where: Predicate
    groups: tuple[str, ...]
    having: Node | None
    order: tuple[Node, ...]
    limit: int | None
    offset: int
    reader: Reader


REFUSED: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (exp.With, "WITH is not supported: ask one SELECT."),
    (exp.SetOperation, "UNION and the like are not supported: ask one SELECT at a time."),
    (exp.Join, "Joins are not supported: a perturbed value cannot be matched row by row. Ask for counts by group."),
    (exp.Window, "Window functions need the order of true rows. Ask for counts, sums or averages by group."),
    (
        exp.Distinct,
        "DISTINCT cannot be answered from perturbed rows: every value appears. Ask for counts by group.",
    ),
    (
        (exp.Min, exp.Max, exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc),
        "MIN, MAX and MEDIAN hang on single rows, which are perturbed. Ask for COUNT(*) by ranges instead, for example "
        "WHERE age BETWEEN 60 AND 90, or AVG.",
    ),
)


def parse(text: str, manifest: Layout) -> Query:
    """Read one SELECT statement over the release."""
    select = _select(text)
    for kind, reason in REFUSED:
        if select.find(*(kind if isinstance(kind, tuple) else (kind,))):
            raise QuestionError(reason)
    if any(inner is not select for inner in select.find_all(exp.Select)):
        raise QuestionError("Subqueries are not supported: ask one SELECT.")
    _require_table(select)
    _require_clauses(select)
    groups = _groups(select, manifest)
    where = select.args.get("where")
    named = partial(column_name, manifest=manifest)
    condition = EVERYTHING if where is None else predicate(where.this, named)
    having, order = select.args.get("having"), select.args.get("order")
    reader = Reader(named, tuple(manifest.sensitive_columns), TABLE)
    items = _items(select.expressions, reader, manifest, groups)
    require_understood(select)
    return Query(
        items,
        condition,
        groups,
        None if having is None else having.this,
        tuple(order.expressions) if order is not None else (),
        _whole_number(select.args.get("limit"), "LIMIT"),
        _whole_number(select.args.get("offset"), "OFFSET") or 0,
        reader,
    )


def _select(text: str) -> exp.Select:
    if not isinstance(text, str) or not text.strip():
        raise QuestionError("The question is empty. Write for example: SELECT COUNT(*) AS n FROM release")
    if len(text) > LONGEST:
        raise QuestionError(f"The question has {len(text):,} characters; at most {LONGEST:,} are read.")
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect="duckdb") if statement is not None]
    except ParseError as error:
        raise QuestionError(_where_and_why(error)) from None
    except TokenError as error:
        raise QuestionError(f"The SQL cannot be read: {error}. Is a quote left open?") from None
    except (SqlglotError, RecursionError) as error:
        raise QuestionError(f"The SQL cannot be read: {type(error).__name__}.") from None
    if len(statements) != 1:
        raise QuestionError(f"Ask one question at a time: this is {len(statements)} statements.")
    (statement,) = statements
    if isinstance(statement, exp.SetOperation):
        raise QuestionError("UNION and the like are not supported: ask one SELECT at a time.")
    if not isinstance(statement, exp.Select):
        raise QuestionError("A release can only be asked: write SELECT ... FROM release.")
    if _depth(statement) > DEEPEST:
        raise QuestionError(
            f"The question is nested more than {DEEPEST} levels deep. Fix: IN (..) instead of many ORs, BETWEEN "
            "instead of many comparisons, or several questions."
        )
    return statement


def _depth(statement: exp.Select) -> int:
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
    return f"The SQL cannot be read at {place}" + (f", near {near!r}" if near else "") + f": {why}."


def _require_table(select: exp.Select) -> None:
    source = select.args.get("from_") or select.args.get("from")
    if source is None:
        raise QuestionError(f"The question names no table: write FROM {TABLE}.")
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or table.db:
        raise QuestionError(f"A question reads the release itself: write FROM {TABLE}, not {shown(table)}.")
    if table.name.lower() != TABLE:
        near = did_you_mean(table.name, [TABLE])
        raise QuestionError(f"There is no table {table.name!r}: a release is one table. Write FROM {TABLE}.{near}")


def _require_clauses(select: exp.Select) -> None:
    for name, part in select.args.items():
        if part and name not in UNDERSTOOD[exp.Select]:
            raise QuestionError(f"{name.upper()} is not supported in a question to a release.")


def column_name(node: exp.Column, manifest: Layout) -> str:
    """The column that a reference means; letter case matters only where two columns differ by nothing else."""
    if node.table and node.table.lower() != TABLE:
        raise QuestionError(f"There is no table {node.table!r}: columns are those of {TABLE!r}.")
    known = [*manifest.public_columns, *manifest.sensitive_columns]
    if node.name not in known:
        same = [name for name in known if name.lower() == node.name.lower()]
        if len(same) == 1:
            return same[0]
        require_column(manifest, node.name)
    return node.name


def _groups(select: exp.Select, manifest: Layout) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    if any(part for name, part in group.args.items() if name != "expressions"):
        raise QuestionError("GROUP BY takes columns only: no ROLLUP, CUBE, GROUPING SETS or ALL.")
    names = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and node.is_int:
            node = _at_position(select.expressions, int(node.this), "GROUP BY")
        if not isinstance(node, exp.Column):
            raise QuestionError(f"GROUP BY takes columns only, not {shown(node)}.")
        names.append(column_name(node, manifest))
    return tuple(dict.fromkeys(names))


def _at_position(nodes: Sequence[Node], place: int, clause: str) -> Node:
    if not 1 <= place <= len(nodes):
        raise QuestionError(f"{clause} {place}: the question selects {len(nodes)} things.")
    node = nodes[place - 1]
    return node.this if isinstance(node, exp.Alias) else node


def _items(nodes: Sequence[Node], reader: Reader, manifest: Layout, groups: tuple[str, ...]) -> tuple[Item, ...]:
    items: list[Item] = []
    for node in nodes:
        alias = node.alias if isinstance(node, exp.Alias) else ""
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
            name = column_name(inner, manifest)
            _require_grouped(name, groups, manifest)
            items.append(Item(alias or name, name))
        else:
            expression = reader.read(inner)
            items.append(Item(alias or expression.name, expression))
    names = [name for item in items for name in columns_of(item)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise QuestionError(f"Two columns of the result would be called {twice!r}: give one another name with AS.")
    return tuple(items)


def columns_of(item: Item) -> list[str]:
    """The result's columns of an item: an aggregate n comes with n_low and n_high."""
    return [item.name] if isinstance(item.what, str) else [item.name, f"{item.name}_low", f"{item.name}_high"]


def _require_grouped(name: str, groups: tuple[str, ...], manifest: Layout) -> None:
    if name in groups:
        return
    if name in manifest.sensitive_columns:
        raise QuestionError(
            f"{name!r} is sensitive: single rows show perturbed values, which say nothing about a person. Ask for "
            f"counts instead: SELECT {name}, COUNT(*) AS n FROM {TABLE} GROUP BY {name}"
        )
    raise QuestionError(f"{name!r} is selected but not grouped by. Fix: add GROUP BY {name}.")


def _whole_number(node: Node | None, clause: str) -> int | None:
    if node is None:
        return None
    inner = node.expression if isinstance(node, exp.Limit | exp.Offset) else node
    if not isinstance(inner, exp.Literal) or not inner.is_int:
        raise QuestionError(f"{clause} takes a whole number.")
    return int(inner.this)
