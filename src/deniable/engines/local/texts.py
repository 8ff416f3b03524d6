"""Texts that are none: bytes that are no UTF-8, which Arrow takes from a Parquet file as they are."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from deniable.core.errors import TableError
from deniable.engines.batch.values import decoded, plain_type


def likely_encoding(text: bytes) -> str:
    """What a text that is not UTF-8 was written in: Windows has letters where Latin 1 has control characters."""
    return "cp1252" if any(0x80 <= byte <= 0x9F for byte in text) else "latin1"


def require_utf8(batches: Iterable[pa.RecordBatch], what: str, before: int = 0) -> None:
    """Refuse batches with a text that is not UTF-8; ``before`` rows come before them. No value is named."""
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not pa.types.is_string(plain_type(column.type)) and not pa.types.is_large_string(column.type):
                continue
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                row, text = _first(column)
                raise TableError(
                    f"{what}: the column {name!r} holds text that is not UTF-8, in row {before + row + 1:,} for the "
                    f"first time; most likely it is {likely_encoding(text)}. Fix: write that column again as UTF-8, or "
                    "leave it out."
                ) from None
        before += batch.num_rows


def _first(column: pa.Array) -> tuple[int, bytes]:
    """The first text that is not UTF-8, and its row."""
    for row, text in enumerate(decoded(column).cast(pa.large_binary()).to_pylist()):
        try:
            (text or b"").decode()
        except UnicodeDecodeError:
            return row, text
    return 0, b""  # a dictionary may hold texts that no row has
