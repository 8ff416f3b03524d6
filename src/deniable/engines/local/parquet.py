"""Parquet files as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.core.errors import TableError
from deniable.engines.local.frames import without_view
from deniable.engines.local.texts import require_utf8

BUFFER = 2**20
FOLDED_BYTES = 4  # a value, in a file that holds a column as a dictionary and not as the texts themselves
FOLDED_ROWS = 2**14  # a row group: batches of dictionaries end where it does


class ParquetPart:
    """One Parquet file: its schema and rows come from the footer, its batches are read as asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.schema: pa.Schema = _schema_of(file, path)
            self.rows: int = file.metadata.num_rows
            self._foldable = _foldable(file, self.schema)

    def batches(self, columns: Sequence[str], batch_rows: int, folded: bool = False) -> Iterator[pa.RecordBatch]:
        """The columns, in file order; only their bytes are read. Texts that the file holds as dictionaries are read so,
        which takes a third of the time, and stay so where they may be ``folded``."""
        foldable = [name for name in columns if name in self._foldable]
        before = 0
        with self._open(foldable) as file:
            try:
                # Parquet selects by dotted path, so "a" would also bring "a.b": select again by name.
                wanted = pa.schema([self._field(name, folded) for name in columns])
                for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
                    typed = batch.select(list(columns)).cast(wanted)
                    require_utf8([typed], f"The Parquet file '{self.path}'", before)
                    yield typed
                    before += typed.num_rows
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise _damaged(self.path) from None

    def _field(self, name: str, folded: bool) -> pa.Field:
        field = self.schema.field(name)
        return field.with_type(pa.dictionary(pa.int32(), field.type)) if folded and name in self._foldable else field

    def _open(self, folded: Sequence[str] = ()) -> Any:
        try:
            # Pre-buffering, the default, holds the whole file's bytes in memory while it is read.
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER, read_dictionary=list(folded))
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise _damaged(self.path) from None


def _foldable(file: Any, schema: pa.Schema) -> frozenset[str]:
    """The columns of texts that the file holds as dictionaries."""
    metadata = file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if not groups or metadata.num_rows < FOLDED_ROWS * len(groups):
        return frozenset()
    held = [[group.column(place) for group in groups] for place in range(metadata.num_columns)]
    short = {
        chunks[0].path_in_schema
        for chunks in held
        if all(
            one.has_dictionary_page and one.total_uncompressed_size <= FOLDED_BYTES * one.num_values for one in chunks
        )
    }
    return frozenset(field.name for field in schema if field.type == pa.string() and field.name in short)


def _schema_of(file: Any, path: Path) -> pa.Schema:
    try:
        return pa.schema([field.with_type(without_view(field.type)) for field in file.schema_arrow])
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _damaged(path) from None


def _damaged(path: Path) -> TableError:
    return TableError(
        f"The Parquet file '{path}' is damaged or cut short: its pages or its footer cannot be read. "
        "Fix: copy or write the file again."
    )
