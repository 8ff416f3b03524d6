"""Published rows in Parquet files, a column at a time: a file, the parts of a table, or some row groups of either."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.batch.parts import parts_of
from deniable.engines.batch.values import plain_type

TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
DICTIONARY_BYTES = 2**30  # a dictionary's places are 32 bits


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a Parquet file, and how many rows they have."""

    path: Path
    groups: tuple[int, ...]
    rows: int

    def column(self, name: str) -> pa.ChunkedArray:
        """A column. Texts come as the dictionaries that the file holds, instead of being looked up row by row; where a
        row group has more than one dictionary can, they come as they are."""
        # Not pq.read_table, which would take dots and brackets in a name for a path.
        with pq.ParquetFile(self.path) as file:
            kind = file.schema_arrow.field(name).type
            groups = (file.metadata.row_group(group) for group in self.groups)
            if kind not in TEXTS or any(_bytes(group, name) > DICTIONARY_BYTES for group in groups):
                return file.read_row_groups(self.groups, columns=[name])[name]
        with pq.ParquetFile(self.path, read_dictionary=[name]) as file:
            read = file.read_row_groups(self.groups, columns=[name])[name]
        chunks = [pa.DictionaryArray.from_arrays(one.indices, one.dictionary.cast(kind)) for one in read.chunks]
        return pa.chunked_array(chunks, pa.dictionary(pa.int32(), kind))


@dataclass(frozen=True)
class StoredRows:
    """Published rows, in order."""

    pieces: tuple[RowGroups, ...]

    @classmethod
    def at(cls, path: Path) -> StoredRows:
        """All rows of a published table."""
        return cls(tuple(_whole(part) for part in parts_of(path)))

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all rows."""
        columns = [piece.column(name) for piece in self.pieces]
        if len(columns) == 1:
            return columns[0]
        if len({column.type for column in columns}) > 1:  # a part whose texts are too large for a dictionary
            columns = [column.cast(plain_type(column.type)) for column in columns]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)

    def cut(self, rows: int) -> list[StoredRows]:
        """In pieces of whole row groups, each of about so many rows."""
        cuts: list[StoredRows] = []
        for piece in self.pieces:
            with pq.ParquetFile(piece.path) as file:
                sizes = {group: file.metadata.row_group(group).num_rows for group in piece.groups}
            waiting: list[int] = []
            for group in piece.groups:
                waiting.append(group)
                if sum(sizes[one] for one in waiting) >= rows or group == piece.groups[-1]:
                    count = sum(sizes[one] for one in waiting)
                    cuts.append(StoredRows((RowGroups(piece.path, tuple(waiting), count),)))
                    waiting = []
        return cuts


def _whole(path: Path) -> RowGroups:
    with pq.ParquetFile(path) as file:
        return RowGroups(path, tuple(range(file.metadata.num_row_groups)), int(file.metadata.num_rows))


def _bytes(group: Any, column: str) -> int:
    """What the values of a column take in a row group, before compression."""
    columns = (group.column(place) for place in range(group.num_columns))
    return next(int(one.total_uncompressed_size) for one in columns if one.path_in_schema == column)
