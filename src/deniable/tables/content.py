"""The content of rows as bytes, and a keyed sketch of which rows a table has."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.core.errors import TableError
from deniable.core.values import Ints, Words
from deniable.tables.keys import Keystream

# -- The content of rows as bytes: equal for equal rows, whatever chunks, dictionaries and buffers hold them -----------
# Arrow leaves open what lies under a missing value and behind the last row, and writes it as it is, so equal arrays
# need not be equal files. Here a column is its length, which of its rows are missing, and the values of the others.


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


# -- Which rows a table has, in some thousand keyed words: enough to see whether two tables are about the same people.
# A row has a word, a keyed sum over its columns; rows whose word is below a limit are kept, so rows that are alike are
# kept or left out together. If two tables were independent samples of one population, of n and n' rows, the expected
# number of rows that each has once and both have is at most twice the number that one of them repeats, times n' / n:
#
#     sum_r (n p_r)(n' p_r) e^(-(n + n') p_r)  <=  (n' / n) sum_r (n p_r)^2 e^(-n p_r)
#
# as the sum on the right is twice the number of rows that one has exactly twice [good1953population]. More of them are
# no chance: they are the same people.


KEPT = 4096  # different rows at most
ALL = 2**64 - 1
CHANCE = 8  # rows that are never enough


@dataclass(frozen=True)
class Sketch:
    """Some rows of a table, as words.

    Attributes:
        once: of rows that no other row is like.
        repeated: of rows that others are like.
        limit: all rows with words up to it are here.
        rows: of the whole table.
        content: the sum of the words of all rows, in whatever order they stand.
    """

    once: Words
    repeated: Words
    limit: int
    rows: int
    content: int

    def same_people(self, other: Sketch) -> bool:
        """Whether two tables have the same rows, or more of them in common than chance makes of different people."""
        if not self.rows or not other.rows:
            return False
        limit = np.uint64(min(self.limit, other.limit))
        common = len(np.intersect1d(self.once[self.once <= limit], other.once[other.once <= limit]))
        chance = 2 * max(  # both bound it; few rows tell little of how many are repeated
            int((one.repeated <= limit).sum()) * two.rows / one.rows for one, two in ((self, other), (other, self))
        )
        same = self.rows > CHANCE and (self.rows, self.content) == (other.rows, other.content)
        return same or common > chance + 6 * math.sqrt(chance) + CHANCE


class Sketcher:
    """Sketches the rows that it is fed, in bounded memory, whatever their order and batches."""

    def __init__(self, keys: Keystream) -> None:
        self._keys = keys
        self._words, self._counts, self._limit = np.zeros(0, np.uint64), np.zeros(0, np.int64), ALL
        self._rows = self._content = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in some rows, with all columns of their table."""
        drawn = _words(self._keys, batch)
        self._take(drawn, np.ones(len(drawn), np.int64), len(drawn), int(drawn.sum(dtype=np.uint64)))

    def merge(self, other: Sketcher) -> None:
        """Take in the rows that another one was fed."""
        self._limit = min(self._limit, other._limit)
        self._take(other._words, other._counts, other._rows, other._content)

    def sketch(self) -> Sketch:
        """Of all rows so far."""
        once = self._counts == 1
        return Sketch(self._words[once], self._words[~once], self._limit, self._rows, self._content)

    def _take(self, words: Words, counts: Ints, rows: int, content: int) -> None:
        self._rows, self._content = self._rows + rows, (self._content + content) % 2**64
        both, places = np.unique(np.concatenate([self._words, words]), return_inverse=True)
        added = np.bincount(places, np.concatenate([self._counts, counts])).astype(np.int64)
        if (both <= self._limit).sum() > KEPT:
            self._limit = int(both[KEPT - 1])
        self._words, self._counts = both[both <= self._limit], added[both <= self._limit]


def _words(keys: Keystream, batch: pa.RecordBatch) -> Words:
    """A word for each row, whatever the order of the columns."""
    total = np.zeros(batch.num_rows, np.uint64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        total += _column_words(keys.subkey("column", name), column)
    return total


def _column_words(keys: Keystream, column: pa.Array) -> Words:
    """A word for each value, and 0 for a missing one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float64(column.type):  # by their bits: texts of them are slow
        column = pa.array(column.fill_null(math.nan).to_numpy(zero_copy_only=False).view(np.int64))
    known, values = column.is_valid().to_numpy(zero_copy_only=False), column.drop_null()
    words = np.zeros(len(column), np.uint64)
    if not len(values):
        return words
    if pa.types.is_integer(values.type):
        words[known] = keys.words_of(values)
        return words
    try:
        folded = values.dictionary_encode()  # a text is hashed once, however many rows have it
        drawn = keys.words_of(folded.dictionary)
    except (TableError, pa.ArrowNotImplementedError):  # lists, and other types that have no text
        folded = pa.array([repr(value) for value in values.to_pylist()]).dictionary_encode()
        drawn = keys.words_of(folded.dictionary)
    words[known] = drawn[folded.indices.to_numpy()]
    return words
