"""Lookup tables: values of the release's columns and what they belong to, joined by one key.

A lookup says something about values, not about rows: a diagnosis belongs to a chapter, a code has a name. So joining it
is a function of a column, public or sensitive, and costs nothing per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean, listing
from deniable.estimation.sql.literals import Node
from deniable.estimation.sql.values import APART

Tables = Mapping[str, pa.Table]  # by name, in small letters


def stored(name: str) -> str:
    """What a lookup table is called in the database, where no column or other table is called so."""
    return f"{APART}table {name.lower()}"


def table_of(name: str, alias: str) -> Node:
    """A lookup table in the database, called as a question calls it."""
    return exp.table_(exp.to_identifier(stored(name), quoted=True), alias=exp.to_identifier(alias, quoted=True))


@dataclass(frozen=True, eq=False)
class Lookup:
    """A lookup table, joined by a function of the release's columns.

    Attributes:
        name: of the table.
        table: its rows.
        key: its column that is joined, of which no value stands twice.
        source: what it is compared with, over the release's columns.
    """

    name: str
    table: pa.Table
    key: str
    source: Node

    def __post_init__(self) -> None:
        keys = self.table[self.key].drop_null()
        if len(keys.unique()) < len(keys):
            raise QuestionError(
                f"Column {self.key!r} of {self.name!r} holds a value twice, so that a row would count twice. Fix: join "
                "a lookup table by a column that holds every value once."
            )

    def has(self, column: str) -> bool:
        return named_in(self.table, column) is not None

    def column(self, column: str) -> Node:
        """One of its columns, as a function of what it is joined with."""
        own = self._own(required_in(self.table, column, self.name))
        matching = exp.EQ(this=self._own(self.key), expression=exp.Paren(this=self.source.copy()))
        return exp.Subquery(this=exp.select(own).from_(self._rows()).where(matching))

    def matches(self) -> Node:
        """Whether a row has a partner."""
        keys = exp.Subquery(this=exp.select(self._own(self.key)).from_(self._rows()))
        return exp.In(this=exp.Paren(this=self.source.copy()), query=keys)

    def _own(self, column: str) -> Node:
        return exp.column(column, table="l", quoted=True)

    def _rows(self) -> Node:
        return table_of(self.name, "l")


def named_in(table: pa.Table, column: str) -> str | None:
    """A column of a lookup table, letter case aside."""
    if column in table.column_names:
        return column
    same = [name for name in table.column_names if name.lower() == column.lower()]
    return same[0] if len(same) == 1 else None


def required_in(table: pa.Table, column: str, name: str) -> str:
    """The same, refused where the lookup called ``name`` has none."""
    own = named_in(table, column)
    if own is None:
        near = did_you_mean(column, table.column_names)
        raise QuestionError(
            f"Lookup {name!r} has no column {column!r}.{near} Its columns are: {listing(table.column_names, most=20)}."
        )
    return own
