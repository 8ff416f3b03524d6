"""Expressions of columns, row by row: what SQL computes from values that are known, by DuckDB.

A scalar is a function of the values of some columns. Where it is of one column, it is evaluated on its distinct
values alone, public or sensitive: `lower(town)` and `substr(diagnosis, 1, 3) = '250'` cost nothing per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.sql.database import run
from deniable.estimation.sql.literals import Node

APART = "\x1f"  # begins names that no question gives
VALUES, ROW, RESULT = f"{APART}values", f"{APART}row", f"{APART}result"
Values = Mapping[str, pa.Array]
Replaced = Callable[[Node], Node | None]  # what stands for a node: a column, or what is computed from columns


@dataclass(frozen=True, eq=False)
class Scalar:
    """A function of columns.

    Attributes:
        tree: the expression, in which ``value_of`` stands for columns.
        said: how it was written.
        tables: lookup tables that it reads.
    """

    tree: Node
    said: str
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in the order of first mention."""
        read = (column.name for column in self.tree.find_all(exp.Column) if column.table == VALUES)
        return tuple(dict.fromkeys(read))

    @property
    def plain(self) -> str | None:
        """The column that it is, where nothing is computed."""
        tree = self.tree.unnest()
        return tree.name if isinstance(tree, exp.Column) and tree.table == VALUES else None

    @cached_property
    def _text(self) -> str:
        """In SQL, with columns by their places: DuckDB tells names apart without their letter case."""
        whole = exp.Paren(this=self.tree.copy())
        for column in list(whole.find_all(exp.Column)):
            if column.table == VALUES:
                column.replace(exp.column(f"c{self.columns.index(column.name)}", table=VALUES, quoted=True))
        return str(whole.sql(dialect="duckdb"))

    def compute(self, values: Values) -> pa.Array:
        """Equally long arrays by column -> an array as long."""
        if self.plain is not None:
            return values[self.plain]
        own = [values[name] for name in self.columns]
        length = len(next(iter(values.values())))
        table = pa.table([*own, np.arange(length)], [*(f"c{place}" for place in range(len(own))), ROW])
        query = f'SELECT {self._text} AS "{RESULT}" FROM "{VALUES}" ORDER BY "{ROW}"'
        try:
            made = run(query, {VALUES: table, **self.tables})[RESULT]
        except QuestionError as problem:
            fix = (
                "TRY_CAST(.. AS ..), which has no value where there is none"
                if "convert" in str(problem)
                else "values of one type, with CAST(.. AS ..) where they are of several"
            )
            raise QuestionError(f"{self.said} cannot be computed: {problem}. Fix: {fix}.") from None
        kinds = [array.type for array in own]
        if made.null_count == length and kinds and all(map(pa.types.is_null, kinds)):
            return pa.nulls(length)
        if isinstance(self.tree, exp.DateTrunc | exp.TimestampTrunc) and all(map(pa.types.is_date, kinds)):
            made = made.cast(pa.date32())  # of a date it is one
        return tidy(made, self.said)

    def of(self, column: str) -> Callable[[pa.Array], pa.Array]:
        """As a function of one column's values."""
        return lambda values: self.compute({column: values})

    def constant(self) -> Any:
        """Its value, where it reads no column."""
        return self.compute({"": pa.nulls(1)})[0].as_py()


def value_of(column: str) -> Node:
    """What stands for a column in the tree of a scalar."""
    return exp.column(column, table=VALUES, quoted=True)


def replaced_in(node: Node, replaced: Replaced) -> Node:
    """A tree with what stands for some of its nodes in their place; where something does, it is not looked into."""
    return node.transform(lambda inner: replaced(inner) or inner)


def tidy(made: pa.Array | pa.ChunkedArray, said: str) -> pa.Array:
    """What the database has computed, in the types that columns have here: whole numbers of 64 bits, other numbers as
    floats, and missing what is no number."""
    array = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    kind = array.type
    if pa.types.is_decimal(kind):
        return array.cast(pa.float64())
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return array.cast(pa.int64())
    if pa.types.is_floating(kind):
        array = array.cast(pa.float64())
        return pc.if_else(pc.is_finite(array), array, pa.scalar(None, pa.float64()))
    if pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_duration(kind):
        raise QuestionError(f"{said} is of type {kind}. Fix: compute a number, a text, a date or a truth value.")
    return array
