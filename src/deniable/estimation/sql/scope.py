"""What names mean in a question: columns of the release, columns of lookup tables, and what is computed from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean, listing, shortened
from deniable.core.tally import Counter, Derived
from deniable.core.transforms import Bins
from deniable.estimation.intervals import compare_intervals
from deniable.estimation.mapped import Mapped, name_of
from deniable.estimation.model.columns import sensitive_values
from deniable.estimation.predicates import among, comparing, is_text
from deniable.estimation.published import Layout, Published
from deniable.estimation.questions import ends_of, is_number
from deniable.estimation.sql.lists import Lists, lists_of
from deniable.estimation.sql.literals import OPERATORS, Node, is_literal, literal, shown
from deniable.estimation.sql.lookups import Lookup, Tables, named_in, required_in, stored, table_of
from deniable.estimation.sql.values import Scalar, replaced_in, value_of

TABLE = "release"
MOST_ALIKE = 20_000  # values among which one that is alike is looked for


@dataclass(eq=False)
class Scope:
    """The names of one question.

    Attributes:
        manifest, counter: the release that is asked.
        hidden: the values that a sensitive column may have.
        bins: of sensitive columns whose values are intervals of numbers.
        lists: columns of lists that are published item by item.
        aliases: what the question calls it, in small letters.
        lookups: joined lookup tables, by what the question calls them, in small letters.
        tables: all lookup tables that are given, by name in small letters.
        derived: public columns that the question computes.
        notes: what to know before believing the result.
    """

    manifest: Layout
    counter: Counter
    hidden: Callable[[str], pa.Array]
    bins: Mapping[str, Bins] = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)
    aliases: set[str] = field(default_factory=lambda: {TABLE})
    lookups: dict[str, Lookup] = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)
    derived: dict[str, Derived] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, published: Published) -> Scope:
        """The names of a release."""
        manifest = published.manifest
        bins = {name: own for part in manifest.parts for name, own in part.bins.items()}
        return cls(
            manifest, published.counter(), lambda column: sensitive_values(manifest, column), bins, lists_of(manifest)
        )

    def plain(self, node: Node) -> str | None:
        """The column of the release that a reference means; None for everything else."""
        if isinstance(node, exp.Paren):
            return self.plain(node.this)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        meant = self._meant(node)
        return meant.name if isinstance(meant, exp.Column) else None

    def scalar(self, node: Node) -> Scalar:
        """An expression as a function of the release's columns."""
        if node is None:  # as the parser reads MIN( without its end
            raise QuestionError("The question lacks an expression, or a bracket is not closed. Fix: complete it.")
        return self.made(replaced_in(node, self._replaced), node)

    def made(self, tree: Node, node: Node) -> Scalar:
        """What is computed from columns and lookup tables, and how it was written."""
        return Scalar(tree, shown(node), {stored(name): table for name, table in self.tables.items()})

    def _replaced(self, node: Node) -> Node | None:
        if isinstance(node, exp.Select):
            return self._of_lookups(node, {})
        return self._meant(node) if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) else None

    def _of_lookups(self, select: exp.Select, around: Tables) -> Node:
        """A subquery that reads lookup tables; whatever column is theirs is not the release's."""
        named = dict(around)
        sources = [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or [])]
        for source in sources:
            table = None if source is None else source.this
            if not isinstance(table, exp.Table) or table.name.lower() not in self.tables:
                raise QuestionError(
                    f"{shown(select)} reads {'no table' if table is None else shown(table)}: a subquery within a "
                    f"condition reads a lookup table, IN (SELECT column FROM lookup), with tables={{'lookup': ..}} or "
                    f"--with lookup=file.csv.{self._known_tables()}"
                )
            named[table.alias_or_name.lower()] = self.tables[table.name.lower()]

        def replaced(node: Node) -> Node | None:
            if isinstance(node, exp.Select) and node is not made:
                return self._of_lookups(node, named)
            if isinstance(node, exp.Table):
                return table_of(node.name, node.alias_or_name)
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return None
            if node.table.lower() in named:
                required_in(named[node.table.lower()], node.name, node.table)
                return None
            its = not node.table and any(named_in(table, node.name) is not None for table in named.values())
            return None if its else self._meant(node)

        made = select.copy()
        return made.transform(lambda node: replaced(node) or node, copy=False)

    def _known_tables(self) -> str:
        return f" The lookup tables are: {listing(sorted(self.tables))}." if self.tables else ""

    def _meant(self, node: Node) -> Node:
        """What stands for a reference to a column of the release or of a lookup."""
        table = node.table.lower()
        if table and table not in self.aliases and table not in self.lookups:
            near = did_you_mean(node.table, [*self.aliases, *self.lookups])
            raise QuestionError(f"There is no table {node.table!r} in this question.{near}")
        if table in self.lookups:
            return self.lookups[table].column(node.name)
        name = self._own(node.name)
        if name is None and not table:
            holding = [lookup for lookup in self.lookups.values() if lookup.has(node.name)]
            if len(holding) == 1:
                return holding[0].column(node.name)
        if name is None:
            known = [*self.manifest.public_columns, *self.manifest.sensitive_columns]
            raise QuestionError(
                f"There is no column {node.name!r}.{did_you_mean(node.name, known)} The columns are: "
                f"{listing(known, most=20)}. Texts go in single quotes."
            )
        return value_of(name)

    def _own(self, name: str) -> str | None:
        """A column of the release; letter case matters only where two columns differ by nothing else."""
        known = [*self.manifest.public_columns, *self.manifest.sensitive_columns]
        if name in known:
            return name
        same = [column for column in known if column.lower() == name.lower()]
        return same[0] if len(same) == 1 else None

    def is_column(self, name: str) -> bool:
        """Whether the release or a lookup has a column of this name."""
        return self._own(name) is not None or any(lookup.has(name) for lookup in self.lookups.values())

    def as_typed(self, column: str, value: Any) -> Any:
        """A value that is written out, by the column's type: '30' is a number where the column has numbers."""
        kind = self.values(column).type
        if isinstance(value, str) and is_number(kind):
            try:
                return int(value) if pa.types.is_integer(kind) else float(value)
            except ValueError:
                return value
        if isinstance(value, str) and pa.types.is_boolean(kind):
            return {"true": True, "t": True, "false": False, "f": False}.get(value.lower(), value)
        return str(value) if is_text(kind) and type(value) is int and not self._intervals(column) else value

    def _intervals(self, column: str) -> bool:
        """Whether its texts are intervals of numbers, which are compared by their edges."""
        return compare_intervals("<", self.values(column), -math.inf) is not None

    def occurring(self, column: str, wanted: Sequence[Any]) -> None:
        """Note the values that do not occur: nobody has them, and they count 0."""
        values = self.values(column)
        if not self.sensitive(column) and not is_text(values.type):
            return
        for value in wanted:
            with comparing(column, values.type):
                occurs = pc.any(among(values, [value])).as_py()
            if not occurs:
                near = did_you_mean(value, values.to_pylist() if len(values) < MOST_ALIKE else [])
                self.notes.append(f"{shortened(value)} is not a value of column {column!r}, so it counts 0.{near}")

    def sensitive(self, column: str) -> bool:
        return column in self.manifest.sensitive_columns

    def missing(self, column: str) -> pa.Array:
        """One missing value of a column's type."""
        return pa.nulls(1, self.values(column).type)

    def column(self, node: Node) -> str | Mapped:
        """What an expression is as a column: one of the release, a new public one, or a function of a sensitive one."""
        name = self.plain(node)
        if name is not None:
            return name
        by_edges = self._by_edges(node)
        if by_edges is not None:
            return by_edges
        made, text = self.scalar(node), self.text(node)
        if not made.columns:
            raise QuestionError(f"{shown(node)} is the same for every row: name a column.")
        if not any(self.sensitive(column) for column in made.columns):
            return self.new(text, made)
        if len(made.columns) == 1:
            return Mapped(text, made.columns[0], made.of(made.columns[0]))
        raise mixes(node, [column for column in made.columns if self.sensitive(column)])

    def _by_edges(self, node: Node) -> str | Mapped | None:
        """Bins or bands compared with a number, by their edges, of which a database knows nothing."""
        name = self.plain(node.this) if type(node) in OPERATORS else None
        if name is None or not is_literal(node.expression) or not isinstance(literal(node.expression), int | float):
            return None
        operator, number = OPERATORS[type(node)], float(literal(node.expression))

        def compute(values: pa.Array) -> pa.Array:
            return pc.if_else(pc.is_valid(values), compare_intervals(operator, values, number), None)

        if not is_text(self.values(name).type) or compare_intervals(operator, self.values(name), number) is None:
            return None
        if self.sensitive(name):
            return Mapped(self.text(node), name, compute)
        self.derived.setdefault(self.text(node), Derived(self.text(node), (name,), compute))
        return self.text(node)

    def text(self, node: Node) -> str:
        """How an expression reads, whatever tables and columns are called in it: the same text is the same thing."""
        while isinstance(node, exp.Paren):
            node = node.this
        whole = exp.Paren(this=node.copy())
        for column in list(whole.find_all(exp.Column)):
            if isinstance(column.this, exp.Star):
                continue
            own = None if column.table.lower() in self.lookups else self._own(column.name)
            holding = [alias for alias, lookup in self.lookups.items() if own is None and lookup.has(column.name)]
            table = next(iter(holding), None) if column.table.lower() not in self.lookups else column.table.lower()
            column.replace(exp.column(own or column.name.lower(), table=table, quoted=own is not None))
        return str(whole.this.sql(dialect="duckdb"))

    def values(self, column: str | Mapped) -> pa.Array:
        """All values that a column, or a function of a sensitive one, may have."""
        if isinstance(column, Mapped):
            return column.compute(self.values(column.column))
        if self.sensitive(column):
            return self.hidden(column)
        counter = self.counter.with_columns(tuple(self.derived.values())) if column in self.derived else self.counter
        return counter.distinct(column)

    def middle(self, column: str | Mapped) -> float:
        """A number in the middle of a column's values."""
        values = self.values(column)
        if not is_number(values.type):
            raise QuestionError(f"{name_of(column)!r} is of type {values.type}: only numbers vary by so and so much.")
        return float(np.round(sum(ends_of(values)) / 2, 6))

    def new(self, text: str, made: Scalar) -> str:
        """A public column that is computed; the same text is computed once."""
        known = {*self.manifest.public_columns, *self.manifest.sensitive_columns}
        name = text if text not in known else f"({text})"
        columns = made.columns
        self.derived.setdefault(
            name, Derived(name, columns, lambda *arrays: made.compute(dict(zip(columns, arrays, strict=True))))
        )
        return name


def mixes(node: Node, sensitive: Sequence[str]) -> QuestionError:
    """The refusal of what is computed from several columns of which some are perturbed."""
    return QuestionError(
        f"{shown(node)} is computed row by row from {sensitive[0]!r}, whose rows are perturbed, and another column. "
        f"Compare {sensitive[0]!r} with values, and group by the other column."
    )
