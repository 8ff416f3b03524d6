"""WITH and subqueries that only reshape: one SELECT is made of several.

A subquery that selects, names and filters rows is put in place of its name: its expressions for its columns, its
conditions beside those of the outer query. A subquery that counts is taken as it is, and the outer query's conditions
become conditions on its results.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean
from deniable.estimation.sql.expressions import has_aggregate
from deniable.estimation.sql.grouping import groupings
from deniable.estimation.sql.literals import Node, shown

DEEPEST = 20


class OverResultsError(QuestionError):
    """A question that computes with results: ``results`` answers it."""


Named = dict[str, exp.Select]
IsColumn = Callable[[str], bool]  # whether the release has a column of this name


def flattened(select: exp.Select, is_column: IsColumn, known: Named | None = None, depth: int = 0) -> exp.Select:
    """A question without subqueries in FROM, with the same answer; a refusal where there is none."""
    if depth > DEEPEST:
        raise QuestionError(f"The question has subqueries within subqueries, more than {DEEPEST} deep.")
    known = {**(known or {}), **_with(select, is_column, known or {}, depth)}
    source = select.args.get("from_") or select.args.get("from")
    if source is None:
        return select
    inner, alias = source.this, source.this.alias_or_name.lower()
    if isinstance(inner, exp.Subquery):
        if not isinstance(inner.this, exp.Select):
            raise OverResultsError(f"{shown(inner)} is not a SELECT.")
        below = flattened(_renamed(inner.this.copy(), inner.args.get("alias")), is_column, known, depth + 1)
    elif isinstance(inner, exp.Table) and inner.name.lower() in known and not inner.db:
        below = known[inner.name.lower()].copy()
    else:
        return select
    return _merged(select, below, alias, is_column)


def _with(select: exp.Select, is_column: IsColumn, known: Named, depth: int) -> Named:
    clause = select.args.pop("with_", None) or select.args.pop("with", None)
    named: Named = {}
    if clause is None:
        return named
    if clause.args.get("recursive"):
        raise QuestionError("WITH RECURSIVE is not supported: ask one SELECT.")
    for one in clause.expressions:
        if not isinstance(one.this, exp.Select):
            raise OverResultsError(f"WITH {one.alias} is not a SELECT.")
        inner = _renamed(one.this.copy(), one.args.get("alias"))
        named[one.alias.lower()] = flattened(inner, is_column, {**known, **named}, depth + 1)
    return named


def _renamed(select: exp.Select, alias: Node | None) -> exp.Select:
    """x(a, b) AS (SELECT ..): the columns get these names."""
    names = [] if alias is None else alias.args.get("columns") or []
    if not names:
        return select
    if len(names) > len(select.expressions):
        raise QuestionError(f"{len(names)} names are given to a subquery of {len(select.expressions)} columns.")
    for place, name in enumerate(names):
        item = select.expressions[place]
        inner = item.this if isinstance(item, exp.Alias) else item
        select.expressions[place] = exp.Alias(this=inner, alias=exp.to_identifier(name.name, quoted=True))
    return select


def _counts(select: exp.Select) -> bool:
    group = select.args.get("group") is not None or select.args.get("distinct") is not None
    return group or any(has_aggregate(item) for item in select.expressions) or select.args.get("having") is not None


def _merged(outer: exp.Select, inner: exp.Select, alias: str, is_column: IsColumn) -> exp.Select:
    columns, star = _columns(inner)
    if inner.args.get("limit") is not None or inner.args.get("offset") is not None:
        raise QuestionError("A subquery has LIMIT, which hangs on single rows or estimates. Fix: put it outside.")
    if _counts(inner):
        return _results(outer, _with_groups(inner, is_column), columns, alias)
    result = outer.copy()
    if any(isinstance(item, exp.Star) for item in result.expressions):
        spelled = [
            one.copy()
            for item in result.expressions
            for one in (inner.expressions if isinstance(item, exp.Star) else [item])
        ]
        result.set("expressions", spelled)
    for place, item in enumerate(result.expressions):  # what is selected keeps its name
        if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            result.expressions[place] = exp.Alias(this=item.copy(), alias=exp.to_identifier(item.name, quoted=True))
    joined = {join.alias_or_name.lower() for join in result.args.get("joins") or []}
    named = {item.alias.lower() for item in result.expressions if isinstance(item, exp.Alias)}
    for clause, part in list(result.args.items()):
        kept = named if clause in ("having", "order", "group") else set()
        if clause in ("from_", "from"):
            continue
        for node in part if isinstance(part, list) else [part]:
            if hasattr(node, "find_all"):
                _substitute(node, columns, star, alias, joined, kept)
    source = inner.args.get("from_") or inner.args.get("from")
    if source is None:
        raise QuestionError(f"{shown(inner)} reads no table: write FROM release.")
    result.set("from_", source.copy())
    result.set("joins", [*(join.copy() for join in inner.args.get("joins") or []), *(result.args.get("joins") or [])])
    wheres = [part.this for part in (inner.args.get("where"), result.args.get("where")) if part is not None]
    if wheres:
        result.set("where", exp.Where(this=_both([where.copy() for where in wheres])))
    return result


def _both(conditions: list[Node]) -> Node:
    return (
        conditions[0] if len(conditions) == 1 else exp.And(this=_paren(conditions[0]), expression=_paren(conditions[1]))
    )


def _paren(node: Node) -> Node:
    return exp.Paren(this=node)


def _columns(select: exp.Select) -> tuple[dict[str, Node], bool]:
    """What a subquery offers: expressions by name, and whether all columns of its table."""
    columns: dict[str, Node] = {}
    star = False
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            star = True
        else:
            inner = item.this if isinstance(item, exp.Alias) else item
            columns[item.alias_or_name.lower() or inner.sql(dialect="duckdb").lower()] = inner
    return columns, star


def _substitute(node: Node, columns: dict[str, Node], star: bool, alias: str, joined: set[str], kept: set[str]) -> None:
    """Put a subquery's expressions in place of its columns."""
    for column in list(node.find_all(exp.Column)):
        table, name = column.table.lower(), column.name.lower()
        if isinstance(column.this, exp.Star) or (table and table != alias):
            continue
        if name in columns:
            if column is not node:
                column.replace(_paren(columns[name].copy()))
            continue
        if star:
            column.set("table", None)
        elif not joined and name not in kept:
            near = did_you_mean(column.name, list(columns))
            raise QuestionError(f"The subquery has no column {column.name!r}.{near}")


def _with_groups(select: exp.Select, is_column: IsColumn) -> exp.Select:
    """The same with its groups written out: what is selected may change, and names and places would with it."""
    sets = [exp.Tuple(expressions=[node.copy() for node in nodes]) for nodes in groupings(select, is_column)]
    result = select.copy()
    result.set("distinct", None)
    result.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=sets)]) if sets[0].expressions else None)
    return result


def _results(outer: exp.Select, inner: exp.Select, columns: dict[str, Node], alias: str) -> exp.Select:
    """An outer query that picks, filters and orders what a subquery has counted."""
    reshapes = not _counts(outer) and not outer.args.get("joins")
    if not reshapes:
        raise OverResultsError(
            "The outer query counts what a subquery has already counted, row by row of its result. Fix: ask the "
            "subquery by itself, and compute with its result."
        )
    result, own = inner.copy(), outer.copy()
    picked: list[Node] = []
    for item in own.expressions:
        if isinstance(item, exp.Star):
            picked += [one.copy() for one in inner.expressions]
            continue
        named = item.alias_or_name
        wrapped = exp.Paren(this=item.this.copy() if isinstance(item, exp.Alias) else item.copy())
        _substitute(wrapped, columns, False, alias, set(), set())
        picked.append(exp.Alias(this=wrapped, alias=exp.to_identifier(named or wrapped.sql(), quoted=True)))
    result.set("expressions", picked)
    for clause in ("where", "order"):
        if own.args.get(clause) is not None:
            _substitute(own.args[clause], columns, True, alias, set(), set())
    if own.args.get("where") is not None:
        both = [part.this for part in (inner.args.get("having"), own.args["where"]) if part is not None]
        result.set("having", exp.Having(this=_both([part.copy() for part in both])))
    for clause in ("order", "limit", "offset"):
        if own.args.get(clause) is not None:
            result.set(clause, own.args[clause].copy())
    return result
