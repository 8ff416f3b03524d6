"""Lookup tables: values of the release's columns and what they belong to, joined by one key.

A lookup says something about values, not about rows: a diagnosis belongs to a chapter, a code has a name. So joining it
is a function of a column, public or sensitive, and costs nothing per row.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean, listing
from deniable.estimation.sql.literals import Node, shown
from deniable.estimation.sql.scalars import Scalar, Values, scalar


@dataclass(frozen=True, eq=False)
class Lookup:
    """A lookup table, joined by a function of the release's columns.

    Attributes:
        name: of the table.
        table: its rows.
        key: its column that is joined, of which no value stands twice.
        source: what it is compared with.
    """

    name: str
    table: pa.Table
    key: str
    source: Scalar

    def __post_init__(self) -> None:
        keys = self.table[self.key].drop_null()
        if len(keys.unique()) < len(keys):
            raise QuestionError(
                f"Column {self.key!r} of {self.name!r} holds a value twice, so that a row would count twice. Fix: join "
                "a lookup table by a column that holds every value once."
            )

    def has(self, column: str) -> bool:
        return named_in(self.table, column) is not None

    def column(self, column: str) -> Scalar:
        """One of its columns, as a function of what it is joined with."""
        content = self.table[_required_in(self.table, column, self.name)].combine_chunks()
        return Scalar(self.source.columns, lambda values: content.take(self._places(values)))

    def matches(self) -> Scalar:
        """Whether a row has a partner."""
        return Scalar(self.source.columns, lambda values: self._places(values).is_valid())

    def _places(self, values: Values) -> pa.Array:
        sought = self.source.compute(values)
        return pc.index_in(sought, value_set=matched(self.table[self.key], sought.type, self.name), skip_nulls=True)


def matched(values: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.Array:
    """A lookup's values in the type of what they are compared with."""
    array = values.combine_chunks()
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise QuestionError(
            f"Lookup {name!r} holds values of type {array.type} that are compared with values of type {kind}. "
            "Fix: give the lookup's column the same type."
        ) from None


def named_in(table: pa.Table, column: str) -> str | None:
    """A column of a lookup table, letter case aside."""
    if column in table.column_names:
        return column
    same = [name for name in table.column_names if name.lower() == column.lower()]
    return same[0] if len(same) == 1 else None


def _required_in(table: pa.Table, column: str, name: str) -> str:
    """The same, refused where the lookup called ``name`` has none."""
    own = named_in(table, column)
    if own is None:
        near = did_you_mean(column, table.column_names)
        raise QuestionError(
            f"Lookup {name!r} has no column {column!r}.{near} Its columns are: {listing(table.column_names, most=20)}."
        )
    return own


def listed(select: Node, tables: dict[str, pa.Table]) -> tuple[str, pa.ChunkedArray]:
    """The values of SELECT column FROM lookup [WHERE ..], and the lookup's name."""
    source = select.args.get("from_") or select.args.get("from")
    plain = all(not part for name, part in select.args.items() if name not in ("expressions", "from", "from_", "where"))
    name = source.this.name.lower() if source is not None and isinstance(source.this, exp.Table) else ""
    if name not in tables or not plain or len(select.expressions) != 1:
        known = f" The lookup tables are: {listing(sorted(tables))}." if tables else ""
        raise QuestionError(
            f"{shown(select)} does not list one column of a lookup table. Write IN (SELECT column FROM lookup WHERE "
            f"..), with tables={{'lookup': ..}} or --with lookup=file.csv.{known}"
        )
    table = tables[name]

    def column(node: Node) -> Scalar | None:
        if not isinstance(node, exp.Column):
            return None
        return Scalar.named(_required_in(table, node.name, name))

    values = {one: table[one].combine_chunks() for one in table.column_names}
    where, (item,) = select.args.get("where"), select.expressions
    listed_values = scalar(item.this if isinstance(item, exp.Alias) else item, column).compute(values)
    if where is not None:
        listed_values = listed_values.filter(scalar(where.this, column).compute(values).fill_null(False))
    return name, pa.chunked_array([listed_values])
