"""The content of rows as bytes: equal for equal rows, whatever chunks, dictionaries and buffers hold them.

Arrow leaves open what lies under a missing value and behind the last row, and writes it as it is, so equal arrays need
not be equal files. Here a column is its length, which of its rows are missing, and the values of the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

Bytes = bytes | memoryview
PIECE_ROWS = 2**18  # of a table whose digest is that of its pieces


def content_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in one layout: pandas and polars hand over texts in another one than files do."""
    return pa.schema([pa.field(field.name, _one_layout(field.type)) for field in schema])


def digest_of_piece(piece: pa.Table, first: bool) -> bytes:
    """SHA-256 of the rows of a piece; the first of a table says the columns too."""
    state = hashlib.sha256(str(piece.schema).encode() if first else b"")
    for batch in piece.to_batches():
        for values in content(batch):
            state.update(values)
    return state.digest()


def digest_of_pieces(digests: Iterable[bytes]) -> str:
    """The digest of a table: of the only piece, or of the digests of several, which any worker can compute."""
    known = list(digests)
    return known[0].hex() if len(known) == 1 else hashlib.sha256(b"".join(known)).hexdigest()


def content(batch: pa.RecordBatch) -> Iterator[Bytes]:
    """The rows of a batch, column by column; names and types are not in it."""
    for column in batch.columns:
        yield from _column(column)


def _column(array: pa.Array) -> Iterator[Bytes]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    yield len(array).to_bytes(8, "little")
    if pa.types.is_nested(array.type):
        yield repr(array.to_pylist()).encode()  # slow, exact and rare
        return
    yield np.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes()
    if pa.types.is_null(array.type):
        return
    if not _has_width(array.type):
        array = array.cast(pa.large_binary())
    yield from _values(array.drop_null() if array.null_count else array)


def _values(array: pa.Array) -> Iterator[Bytes]:
    """The values of rows that all have one."""
    start, rows = array.offset, len(array)
    if pa.types.is_boolean(array.type):
        yield np.packbits(array.to_numpy(zero_copy_only=False)).tobytes()
    elif rows and _has_width(array.type):
        width = array.type.bit_width // 8
        yield memoryview(array.buffers()[1])[start * width : (start + rows) * width]
    elif rows:
        ends = np.frombuffer(array.buffers()[1], np.int64)[start : start + rows + 1]
        yield np.diff(ends).tobytes()
        if ends[-1] > ends[0]:
            yield memoryview(array.buffers()[2])[int(ends[0]) : int(ends[-1])]


def _has_width(kind: pa.DataType) -> bool:
    """Whether every value takes as many bits: not so for text and bytes."""
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False


def _one_layout(kind: pa.DataType) -> pa.DataType:
    """The widest layout of texts and bytes, and the values of a dictionary."""
    if pa.types.is_dictionary(kind):
        return _one_layout(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) or pa.types.is_binary_view(kind) else kind
