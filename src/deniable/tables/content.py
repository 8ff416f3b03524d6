"""The content of rows as bytes, and a keyed sketch by which a table is known again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


# -- By what a table is known again, although columns were renamed, recoded, added or left out and rows came and went:
# some thousand keyed words. A value has a word, whatever its column is called, and a row has one for every choice of
# columns: the sum over all of them, over all but one, over one alone. Of every choice, rows whose word is below a limit
# are kept, so rows that are alike are kept or left out together. If two tables were independent samples of one
# population, of n and n' rows, the expected number of rows that each has once and both have is at most twice the number
# that one of them repeats, times n' / n:
#
#     sum_r (n p_r)(n' p_r) e^(-(n + n') p_r)  <=  (n' / n) sum_r (n p_r)^2 e^(-n p_r)
#
# as the sum on the right is twice the number of rows that one has exactly twice [good1953population]. More of them are
# no chance: they are the same people. And where as many rows have exactly the same counts of all values, in half of the
# columns, as no other table by chance, they are, too.


KEPT, OF_COLUMNS = 4096, 256  # different rows at most: of all columns, of a choice of them
MOST_COLUMNS = 40  # of a table whose columns are left out one by one
ALL = 2**64 - 1
CHANCE = 8  # rows that are never enough
NO_WORDS = np.zeros(0, np.uint64)
BITS = 30  # of chance against the same counts of other people's values: one in 10^9


@dataclass(frozen=True)
class Sample:
    """The rows of a table by some of its columns.

    Attributes:
        columns: how many there are: all, all but one, or one.
        numbered: whether one of them may be a row number: rows 1, 2, 3 of two tables are not the same people.
        once: words of rows that no other row is like.
        repeated: of rows that others are like.
        limit: all rows with words up to it are here.
        total: equal where all rows are alike, in whatever order they stand.
        bits: how surprising as many rows of every kind would be in another table.
    """

    columns: int
    numbered: bool
    once: Words
    repeated: Words
    limit: int
    total: int
    bits: float

    def shared(self, other: Sample, sizes: tuple[int, int]) -> bool:
        """Whether more rows are in both tables than chance makes of different people."""
        limit = np.uint64(min(self.limit, other.limit))
        common = len(np.intersect1d(self.once[self.once <= limit], other.once[other.once <= limit]))
        if common <= CHANCE:
            return False
        chance = 2 * max(  # both bound it; few rows tell little of how many are repeated
            int((one.repeated <= limit).sum()) * two / own for one, own, two in ((self, *sizes), (other, *sizes[::-1]))
        )
        return common > chance + 6 * math.sqrt(chance) + CHANCE


@dataclass(frozen=True)
class Sketch:
    """By what a table is known again.

    Attributes:
        rows: how many it has.
        samples: of all columns, of all but one, and of one.
    """

    rows: int
    samples: tuple[Sample, ...]

    def same_people(self, other: Sketch, numbers: bool = True) -> bool:
        """Whether two tables are about the same people, but by chance.

        Args:
            other: sketched under the same key.
            numbers: whether row numbers may be what names people.
        """
        if min(self.rows, other.rows) <= CHANCE:
            return False
        mine, theirs = ([one for one in table.samples if numbers or not one.numbered] for table in (self, other))
        if self.rows == other.rows and _same_counts(mine, theirs):
            return True
        sizes = (self.rows, other.rows)
        all_mine, all_theirs = (np.concatenate([NO_WORDS, *(one.once for one in its)]) for its in (mine, theirs))
        common = np.intersect1d(all_mine, all_theirs)
        mine, theirs = ([one for one in its if np.isin(common, one.once).sum() > CHANCE] for its in (mine, theirs))
        return any(one.shared(two, sizes) for one in mine for two in theirs)


def _same_counts(mine: list[Sample], theirs: list[Sample]) -> bool:
    known = {one.total for one in theirs}
    same = [one for one in mine if one.total in known]
    if any(one.bits >= BITS and one.columns == max(other.columns for other in mine) for one in same):
        return True
    alone = [sum(one.columns == 1 and one.bits > 0 for one in its) for its in (mine, theirs)]
    matched = [one for one in same if one.columns == 1 and one.bits > 0]
    return 2 * len(matched) >= min(alone) and any(one.bits >= BITS for one in matched)


class _Sampler:
    """Keeps some rows of one choice of columns."""

    def __init__(self, columns: int, kept: int) -> None:
        self.columns, self.kept, self.limit, self.total = columns, kept, ALL, 0
        self.words, self.counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def update(self, words: Words) -> None:
        """Take in rows. Sums of squares tell which rows there are: sums alone would tell which values there are."""
        self.total = (self.total + int(np.dot(words, words))) % 2**64
        first = 4 * self.kept if self.limit == ALL else 0  # by them most of the others need not be looked at
        for some in (words[:first], words[first:]):
            tallied = pa.array(some[some <= np.uint64(self.limit)]).value_counts()  # by hashing: most may be alike
            self.add(*(tallied.field(i).to_numpy() for i in range(2)))

    def add(self, words: Words, counts: Ints) -> None:
        """Keep the rows with the smallest words."""
        both, places = np.unique(np.concatenate([self.words, words]), return_inverse=True)
        added = np.bincount(places, np.concatenate([self.counts, counts])).astype(np.int64)
        if (both <= np.uint64(self.limit)).sum() > self.kept:
            self.limit = int(both[self.kept - 1])
        kept = both <= np.uint64(self.limit)
        self.words, self.counts = both[kept], added[kept]

    def merge(self, other: _Sampler) -> None:
        self.limit, self.total = min(self.limit, other.limit), (self.total + other.total) % 2**64
        self.add(other.words, other.counts)

    def sample(self, rows: int, numbered: bool) -> Sample:
        once = self.counts == 1
        return Sample(
            self.columns,
            numbered,
            self.words[once],
            self.words[~once],
            self.limit,
            self.total,
            _surprise(self.counts, rows),
        )


def _surprise(counts: Ints, rows: int) -> float:
    """Bits of chance against exactly these counts, about binomial ones; none where a design makes them all alike."""
    if not len(counts) or counts.max() - counts.min() <= 1 < counts.max():
        return 0.0
    likely = 2 * math.pi * counts * (1 - counts / max(rows, 1))
    return float(np.log2(np.maximum(likely, 1.0)).sum() - np.log2(max(likely.max(), 1.0))) / 2


class Sketcher:
    """Sketches the rows that it is fed, in bounded memory, whatever their order and batches."""

    def __init__(self, keys: Keystream) -> None:
        self._keys = keys.subkey("values")
        self._rows, self._samplers = 0, list[_Sampler]()
        self._ends: dict[int, tuple[int, int]] = {}  # of columns of whole numbers

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in some rows, with all columns of their table."""
        number = batch.num_columns
        if not self._samplers and number:
            several = number if 2 < number <= MOST_COLUMNS else 0
            kinds = [(number, KEPT), *[(number - 1, OF_COLUMNS)] * several, *[(1, OF_COLUMNS)] * number]
            self._samplers = [_Sampler(*kind) for kind in kinds]
        self._rows += batch.num_rows
        if not batch.num_rows or not number:
            return
        whole, *rest = self._samplers
        left_out, alone = rest[:-number], rest[-number:]
        columns, total = list[Words](), np.zeros(batch.num_rows, np.uint64)
        for at, (sampler, column) in enumerate(zip(alone, batch.columns, strict=True)):
            words = self._words(column)
            sampler.update(words)
            self._see(at, column)
            total += words
            columns += [words] * bool(left_out)
        whole.update(total)
        for sampler, own in zip(left_out, columns, strict=False):
            sampler.update(total - own)

    def _see(self, at: int, column: pa.Array) -> None:
        if pa.types.is_integer(column.type) and column.null_count < len(column):
            low, high = (value.as_py() for value in pc.min_max(column).values())
            known = self._ends.get(at, (low, high))
            self._ends[at] = min(low, known[0]), max(high, known[1])

    def merge(self, other: Sketcher) -> None:
        """Take in the rows that another one was fed."""
        if not self._samplers:
            self._samplers = other._samplers
        elif other._samplers:
            for mine, theirs in zip(self._samplers, other._samplers, strict=True):
                mine.merge(theirs)
        for at, (low, high) in other._ends.items():
            known = self._ends.get(at, (low, high))
            self._ends[at] = min(low, known[0]), max(high, known[1])
        self._rows += other._rows

    def sketch(self) -> Sketch:
        """Of all rows so far."""
        number = sum(one.columns == 1 for one in self._samplers)
        alone = self._samplers[-number:] if number else []
        # a column of whole numbers in which almost no number is missing, and none is there twice
        numbers = {at for at, ends in self._ends.items() if self._numbers(alone[at], ends)}
        samples = []
        for place, sampler in enumerate(self._samplers):
            at = place - (len(self._samplers) - number)  # of a column that stands alone
            left_out = place - 1 if 0 < place <= len(self._samplers) - 1 - number else None
            own = {at} if at >= 0 else set(range(number)) - {left_out}
            samples.append(sampler.sample(self._rows, bool(own & numbers)))
        return Sketch(self._rows, tuple(samples))

    def _numbers(self, alone: _Sampler, ends: tuple[int, int]) -> bool:
        return ends[1] - ends[0] < 2 * self._rows and bool((alone.counts == 1).all()) and self._rows > CHANCE

    def _words(self, column: pa.Array) -> Words:
        """A word for each value, and 0 for a missing one."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_float64(column.type):
            column = pa.array(column.fill_null(math.nan).to_numpy(zero_copy_only=False).view(np.int64))
        known, values = column.is_valid().to_numpy(zero_copy_only=False), column.drop_null()
        words = np.zeros(len(column), np.uint64)
        if not len(values):
            return words
        if pa.types.is_integer(values.type):
            words[known] = self._keys.words_of(values)
            return words
        try:
            folded = values.dictionary_encode()  # a text is hashed once, however many rows have it
            drawn = self._keys.words_of(folded.dictionary)
        except (TableError, pa.ArrowNotImplementedError):  # lists, and other types that have no text
            folded = pa.array([repr(value) for value in values.to_pylist()]).dictionary_encode()
            drawn = self._keys.words_of(folded.dictionary)
        words[known] = drawn[folded.indices.to_numpy()]
        return words
