"""Questions about lists: what a list holds is what the columns of its items say.

list_contains(diagnoses, 'E11')            ->  "diagnoses=E11"
list_has_all(diagnoses, ['E11', 'I10'])    ->  ("diagnoses=E11" AND "diagnoses=I10")
list_has_any(diagnoses, ['E11', 'I10'])    ->  ("diagnoses=E11" OR "diagnoses=I10")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean
from deniable.estimation.sql.literals import Node, is_literal, literal, shown

Lists = Mapping[str, Mapping[str, str]]  # column of lists -> item -> its column
KINDS: dict[type, str] = {exp.ArrayContains: "one", exp.ArrayContainsAll: "all", exp.ArrayOverlaps: "any"}
NAMES = {  # as parsers that do not know them hand them over
    **dict.fromkeys(("list_contains", "array_contains", "list_has", "array_has"), "one"),
    **dict.fromkeys(("list_has_all", "array_has_all"), "all"),
    **dict.fromkeys(("list_has_any", "array_has_any"), "any"),
}


def lists_of(manifest: Any) -> Lists:
    """The columns of lists of a release, with the column of each item."""
    lists: dict[str, dict[str, str]] = {}
    for part in manifest.parts:
        if part.item is not None:
            lists.setdefault(part.item.list, {})[part.item.item] = part.item.column
    return lists


def unfolded(select: exp.Select, lists: Lists) -> exp.Select:
    """The question with columns of items in the place of what it asks of lists; anything else about them is refused."""
    if not lists:
        return select
    for node in list(select.walk()):
        how, arguments = _asks(node)
        column = _list(arguments[0], lists) if how else None
        if column is not None:
            node.replace(_items(node, how, column, arguments, lists[column]))
    for node in select.find_all(exp.Column):
        column = _list(node, lists)
        if column is not None:
            some = next(iter(lists[column]))
            raise QuestionError(
                f"{column!r} holds lists, which are published item by item: ask list_contains({column}, '{some}'), "
                "list_has_all or list_has_any. How many items a list has, and which of them stand in what order, is "
                "not published."
            )
    return select


def _asks(node: Node) -> tuple[str, Sequence[Node]]:
    """Whether a node asks what a list holds: one item, all or any of several; and its arguments."""
    if isinstance(node, exp.Anonymous):
        how = NAMES.get(str(node.this).lower(), "")
        return (how, node.expressions) if how and len(node.expressions) == 2 else ("", ())
    how = KINDS.get(type(node), "")
    return (how, [node.this, node.expression]) if how else ("", ())


def _list(node: Node, lists: Lists) -> str | None:
    """The column of lists that a reference means."""
    if isinstance(node, exp.Paren):
        return _list(node.this, lists)
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    return next((name for name in lists if name.lower() == node.name.lower()), None)


def _items(node: Node, how: str, column: str, arguments: Sequence[Node], items: Mapping[str, str]) -> Node:
    wanted = [arguments[1]] if how == "one" else list(getattr(arguments[1], "expressions", []))
    if not wanted or not all(map(is_literal, wanted)):
        raise QuestionError(f"{shown(node)}: write the items out, list_contains({column}, '{next(iter(items))}').")
    table = arguments[0].unnest().args.get("table")
    columns: list[Node] = []
    for item in map(literal, wanted):
        if str(item) not in items:
            raise QuestionError(f"{item!r} is no item of {column!r}.{did_you_mean(str(item), list(items))}")
        name = exp.Identifier(this=items[str(item)], quoted=True)
        columns.append(exp.Column(this=name, table=None if table is None else table.copy()))
    if len(columns) == 1:
        return columns[0]
    together = exp.And if how == "all" else exp.Or
    return exp.Paren(this=reduce(lambda one, other: together(this=one, expression=other), columns))
