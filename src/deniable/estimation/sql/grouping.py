"""GROUP BY: columns, expressions, names and places of what is selected, ALL, and several groupings at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.sql.expressions import has_aggregate
from deniable.estimation.sql.literals import Node, shown

MOST_SETS = 64
Groupings = list[tuple[Node, ...]]


def groupings(select: exp.Select, is_column: Callable[[str], bool]) -> Groupings:
    """The expressions of each grouping: one, unless ROLLUP, CUBE or GROUPING SETS ask for several."""
    group = select.args.get("group")
    if group is None:
        return [tuple(_plain(select))] if select.args.get("distinct") else [()]
    if group.args.get("all"):
        return [tuple(_plain(select))]
    reader = _Reader(select, is_column)
    sets = [[merged for part in parts for merged in part] for parts in product(*map(reader.sets, group.expressions))]
    if len(sets) > MOST_SETS:
        raise QuestionError(f"GROUP BY asks for {len(sets)} groupings; at most {MOST_SETS} are answered at once.")
    return [tuple({node.sql(dialect="duckdb"): node for node in nodes}.values()) for nodes in sets]


def _plain(select: exp.Select) -> list[Node]:
    """What is selected and is no aggregate."""
    inner = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    return [node for node in inner if not has_aggregate(node) and not isinstance(node, exp.Star)]


class _Reader:
    def __init__(self, select: exp.Select, is_column: Callable[[str], bool]) -> None:
        self._select, self._is_column = select, is_column

    def sets(self, node: Node) -> list[list[Node]]:
        """One element of GROUP BY as a list of groupings."""
        if isinstance(node, exp.Rollup):
            parts = [self._tuple(part) for part in node.expressions]
            return [[one for part in parts[:length] for one in part] for length in range(len(parts), -1, -1)]
        if isinstance(node, exp.Cube):
            parts = [self._tuple(part) for part in node.expressions]
            chosen = [some for size in range(len(parts), -1, -1) for some in combinations(parts, size)]
            return [[one for part in some for one in part] for some in chosen]
        if isinstance(node, exp.GroupingSets):
            return [one for part in node.expressions for one in self.sets(part)]
        return [self._tuple(node)]

    def _tuple(self, node: Node) -> list[Node]:
        inner: Sequence[Node] = node.expressions if isinstance(node, exp.Tuple) else [node]
        return [self._one(part) for part in inner]

    def _one(self, node: Node) -> Node:
        """A place or a name of what is selected, or the expression itself."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Literal):
            return self._at(node)
        if isinstance(node, exp.Column) and not node.table and not self._is_column(node.name):
            named = [item.this for item in self._select.expressions if _name(item) == node.name.lower()]
            node = named[0] if named else node
        if has_aggregate(node):
            raise QuestionError(f"GROUP BY takes columns and expressions of them, not the aggregate {shown(node)}.")
        return node

    def _at(self, node: Node) -> Node:
        items = self._select.expressions
        if not node.is_int or not 1 <= int(node.this) <= len(items):
            raise QuestionError(f"GROUP BY {node.this}: the question selects {len(items)} things.")
        item = items[int(node.this) - 1]
        return item.this if isinstance(item, exp.Alias) else item


def _name(item: Node) -> str:
    return str(item.alias).lower() if isinstance(item, exp.Alias) else ""
