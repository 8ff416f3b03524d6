"""Parquet files as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.core.errors import TableError
from deniable.engines.local.frames import without_view

BUFFER = 2**20


class ParquetPart:
    """One Parquet file: its schema and rows come from the footer, its batches are read as asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.schema: pa.Schema = _schema_of(file, path)
            self.rows: int = file.metadata.num_rows

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The columns, in file order; only their bytes are read."""
        with self._open() as file:
            try:
                # Parquet selects by dotted path, so "a" would also bring "a.b": select again by name.
                wanted = pa.schema([self.schema.field(name) for name in columns])
                for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
                    yield batch.select(list(columns)).cast(wanted)
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise _damaged(self.path) from None

    def _open(self) -> Any:
        try:
            # Pre-buffering, the default, holds the whole file's bytes in memory while it is read.
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise _damaged(self.path) from None


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
