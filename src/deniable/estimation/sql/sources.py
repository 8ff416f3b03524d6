"""FROM and JOIN: the release, by whatever name, and lookup tables that are joined to it."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean, listing
from deniable.estimation.predicates import Predicate
from deniable.estimation.sql.conditions import Conditions
from deniable.estimation.sql.literals import Node, shown
from deniable.estimation.sql.lookups import Lookup, Tables, named_in
from deniable.estimation.sql.scope import TABLE, Scope


def tables_of(select: exp.Select, scope: Scope, conditions: Conditions, tables: Tables) -> list[Predicate]:
    """Put the question's tables into scope; what an inner join leaves out comes back as conditions."""
    source, joins = select.args.get("from_") or select.args.get("from"), select.args.get("joins") or []
    if source is None:
        raise QuestionError(f"The question names no table: write FROM {TABLE}.")
    sources = [source.this, *(join.this for join in joins)]
    for table in sources:
        _require_table(table, tables)
    places = [place for place, table in enumerate(sources) if table.name.lower() == TABLE]
    if len(places) != 1:
        many = "twice: a row cannot be matched with other rows" if places else f"nowhere: write FROM {TABLE}"
        raise QuestionError(f"The question reads the release {many}.")
    if places[0] > 1 or (places[0] == 1 and joins[0].args.get("side")):
        raise QuestionError(f"The release comes first: write FROM {TABLE} JOIN {sources[0].name} ON ..")
    scope.aliases = {TABLE, sources[places[0]].alias_or_name.lower()}
    matching = []
    for place, join in enumerate(joins):
        table = source.this if places[0] == 1 and place == 0 else join.this
        matching += _joined(join, table, scope, conditions, tables)
    return matching


def _require_table(table: Node, tables: Tables) -> None:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or table.db:
        raise QuestionError(f"A question reads the release itself: write FROM {TABLE}, not {shown(table)}.")
    if table.name.lower() not in (TABLE, *tables):
        near = did_you_mean(table.name, [TABLE, *tables])
        known = f"the tables are {listing([TABLE, *tables])}" if tables else "a release is one table"
        raise QuestionError(
            f"There is no table {table.name!r}: {known}. Write FROM {TABLE}.{near} Lookup tables are given with "
            "tables={'NAME': ..} or --with NAME=FILE."
        )


def _joined(join: Node, table: Node, scope: Scope, conditions: Conditions, tables: Tables) -> list[Predicate]:
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER") or join.args.get("method"):
        raise QuestionError(
            f"{shown(join)}: a lookup table is joined with JOIN or LEFT JOIN. Rows of the lookup that no row of the "
            "release matches cannot be shown."
        )
    own = tables[table.name.lower()]
    key, other = _key(join, table, own, scope)
    alias = table.alias_or_name.lower()
    source = scope.scalar(other)
    lookup = Lookup(table.name, own, key, source.tree)
    if not source.columns:
        raise QuestionError(f"{shown(join)} joins by no column of the release.")
    scope.lookups[alias] = lookup
    return [] if side == "LEFT" else [conditions.holds(scope.made(lookup.matches(), join), join)]


def _key(join: Node, table: Node, own: pa.Table, scope: Scope) -> tuple[str, Node]:
    """The lookup's column, and the expression that it must equal."""
    using, on = join.args.get("using"), join.args.get("on")
    if using:
        if len(using) != 1 or named_in(own, using[0].name) is None:
            raise QuestionError(f"{shown(join)}: USING takes one column that both tables have.")
        return str(named_in(own, using[0].name)), exp.Column(this=using[0].copy())
    while isinstance(on, exp.Paren):
        on = on.this
    if not isinstance(on, exp.EQ):
        raise QuestionError(
            f"{shown(join)}: a lookup table is joined by one equality, JOIN {table.name} ON {TABLE}.column = "
            f"{table.name}.column."
        )
    names = {table.alias_or_name.lower(), table.name.lower()} - scope.aliases
    for side, other in ((on.this, on.expression), (on.expression, on.this)):
        if not isinstance(side, exp.Column) or any(one.table.lower() in names for one in other.find_all(exp.Column)):
            continue
        mine = side.table.lower() in names or (not side.table and not scope.is_column(side.name))
        if mine and named_in(own, side.name) is not None:
            return str(named_in(own, side.name)), other
    raise QuestionError(f"{shown(join)}: say which column of {table.name!r} is joined: {table.name}.column.")
