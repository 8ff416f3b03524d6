"""A table as codes, made once: what planning for questions, and experiments, need of the original."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Ints
from deniable.core.channel import Channel
from deniable.core.errors import ColumnError, TableError, no_column, option
from deniable.core.histogram import Histogram
from deniable.engines.base import Dataset, Progress, no_progress, row_labels
from deniable.engines.batch.columns import Encoded, coded_columns, encode, smallest

PIECE = 2**20


@dataclass(frozen=True, eq=False)
class CodedTable:
    """An original table: public columns and one sensitive column, as codes.

    It can be asked like a release (its public parameters have no channels), which is how conditions are read.

    Attributes:
        columns: the public columns; the last code of each means missing.
        sensitive: the sensitive column's name.
        histogram: how many rows hold each of its values.
        codes: where every row's value stands in the histogram's domain.
    """

    columns: Mapping[str, Encoded]
    sensitive: str
    histogram: Histogram
    codes: Codes
    channels: tuple[Channel, ...] = field(default=(), init=False)
    cell_positions: tuple[Ints, ...] = field(default=(), init=False)
    cells_published: bool = field(default=False, init=False)
    marginal: None = field(default=None, init=False)

    @classmethod
    def of(cls, table: pa.Table, sensitive: str, *, drop: Sequence[str] = ()) -> CodedTable:
        """A table as codes. Values are sorted, missing is a value like any other and comes last."""
        kept = _kept(table.column_names, sensitive, drop)
        return cls.of_columns({name: encode(table[name]) for name in kept}, sensitive)

    @classmethod
    def read(
        cls, dataset: Dataset, sensitive: str, *, drop: Sequence[str] = (), progress: Progress = no_progress
    ) -> CodedTable:
        """The same of a table that is read in batches: what is held is a code a row and column, and distinct values."""
        return cls.of_columns(coded_columns(dataset, _kept(dataset.names, sensitive, drop), progress), sensitive)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Encoded], sensitive: str) -> CodedTable:
        """From columns as ``encode`` has them, the sensitive one among them."""
        unsorted = columns[sensitive]
        if not len(unsorted.codes):
            raise TableError(
                "The table has no rows: there is nothing to evaluate. Fix: a file with rows below its header."
            )
        values: list[Any] = unsorted.values.to_pylist()
        order = sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place]))
        missing = bool((unsorted.codes == len(values)).any())
        domain: list[Hashable] = [values[place] for place in order] + ([None] if missing else [])
        rank = np.empty(len(values) + 1, np.int64)
        rank[order] = np.arange(len(values))
        rank[len(values)] = len(values)
        codes = smallest(rank, len(domain))[unsorted.codes]
        counts = _counts(codes, len(domain))
        public = {name: column for name, column in columns.items() if name != sensitive}
        return cls(public, sensitive, Histogram(tuple(domain), counts), codes)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def m(self) -> int:
        return self.histogram.m

    @property
    def domain(self) -> tuple[Hashable, ...]:
        return self.histogram.domain

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        return (self.sensitive,)

    @property
    def public_columns(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a public column, without missing."""
        return self.columns[column].values


def _counts(codes: Codes, size: int) -> Ints:
    """The rows of each code, a piece at a time: NumPy counts numbers of 64 bits, and would make them of all rows."""
    counts = np.zeros(size, np.int64)
    for start in range(0, len(codes), PIECE):
        counts += np.bincount(codes[start : start + PIECE], minlength=size)
    return counts


def _kept(names: Sequence[str], sensitive: str, drop: Sequence[str]) -> list[str]:
    """The columns that stay; refused where one is named that is not there, or the sensitive one is dropped."""
    for role, name in (("sensitive", sensitive), *(("drop", name) for name in drop)):
        if name not in names:
            raise ColumnError(no_column(role, name, names))
    if sensitive in drop:
        raise ColumnError(
            f"The column {sensitive!r} is named by {option('sensitive', '')} and by {option('drop', '')}: a column has "
            "one role. Fix: name it once."
        )
    left_out = {*drop, *row_labels(names, (sensitive,))}
    return [name for name in names if name not in left_out]
