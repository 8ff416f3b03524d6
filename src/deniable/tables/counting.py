"""Counting the rows of a release: dictionary codes, mixed-radix keys, cubes, in bounded memory; never a loop over
rows."""

from __future__ import annotations

import math
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import ManifestError, QuestionError
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.tally import Block, CodedRows, CodeMask, Derived, Moments
from deniable.core.values import Bools, Codes, Floats, Ints, Words
from deniable.tables.base import CELL
from deniable.tables.encoding import Encoded, arrow_type, derived_column, encode, joined, mixed, plain, smallest
from deniable.tables.lineups import states_shown
from deniable.tables.storage import StoredRows

# -- Counting by key in bounded memory, however many keys there are: what does not fit waits in a file, sorted by key.
# Keys are 64-bit numbers that are spread evenly (``spread`` makes them so), which is what cuts them into ranges of
# about the same size: each range is then added up by itself. The file has no name, so nothing of it is left after a
# crash.


RANGES = 1024  # of keys, by their first bits
HELD = 2**20  # records in memory, of one tally
Records = npt.NDArray[Any]


def spread(words: Words) -> Words:
    """64-bit numbers one to one to others that look like chance: Stafford's mix."""
    mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def pair_keys(first: Codes, second: Codes) -> Words:
    """A key for each pair of codes below 2^32; pairs with one ``first`` stand together, ``second`` is its low half."""
    odd = first.astype(np.uint32) * np.uint32(0x9E3779B1)  # times an odd number: one to one, and spread evenly
    keys: Words = (odd.astype(np.uint64) << np.uint64(32)) | second.astype(np.uint64)
    return keys


class Tally:
    """Records by key: those of one key are one, their numbers added up.

    Of fields whose names begin with ``low`` or ``high`` the least or the most is kept instead.

    Args:
        fields: the numbers of a record, by name, with their types.
        held: how many records may be in memory; left out, a million.

    >>> tally = Tally({"rows": "u4"})
    >>> tally.add(np.array([7, 3, 7], np.uint64), rows=np.ones(3, np.uint32))
    >>> [(int(one["key"]), int(one["rows"])) for records in tally.ranges() for one in records]
    [(3, 1), (7, 2)]
    """

    def __init__(self, fields: Mapping[str, str], held: int | None = None) -> None:
        self._type = np.dtype([("key", "<u8"), *fields.items()])
        self._held, self._waiting, self._pieces = HELD if held is None else held, 0, list[Records]()
        self._file: IO[bytes] | None = None
        self._runs: list[Ints] = []  # where each range of each sorted run begins, in records

    def add(self, keys: Words, **numbers: Codes | int) -> None:
        """One record for each key, with its own numbers or the same ones."""
        records = np.empty(len(keys), self._type)
        records["key"] = keys
        for name, column in numbers.items():
            records[name] = column
        self._pieces.append(_added_up(records))
        self._waiting += len(self._pieces[-1])
        if self._waiting > self._held:
            self._settle()
            if self._waiting > self._held // 2:
                self._write()

    def ranges(self) -> Iterator[Records]:
        """All records, one for each key, in the order of keys; as many at a time as may be in memory."""
        self._settle()
        if self._file is None:
            yield from self._pieces
            return
        self._write()
        sizes = np.sum([np.diff(run) for run in self._runs], axis=0)
        first = 0
        while first < RANGES:
            within = np.cumsum(sizes[first:]) <= self._held
            last = first + max(1, int(within.sum()))
            yield _added_up(np.concatenate([self._read(run[first], run[last]) for run in self._runs]))
            first = last

    def _settle(self) -> None:
        if len(self._pieces) > 1:
            self._pieces = [_added_up(np.concatenate(self._pieces))]
        self._waiting = sum(map(len, self._pieces))

    def _write(self) -> None:
        if not self._waiting:
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="deniable-")  # noqa: SIM115  (closed with the tally)
        (records,) = self._pieces
        begin = self._runs[-1][-1] if self._runs else 0
        edges = np.arange(1, RANGES, dtype=np.uint64) << np.uint64(64 - RANGES.bit_length() + 1)
        places = np.searchsorted(records["key"], edges)
        self._runs.append(begin + np.concatenate([[0], places, [len(records)]]))
        self._file.seek(int(begin) * self._type.itemsize)
        self._file.write(records.tobytes())
        self._pieces, self._waiting = [], 0

    def _read(self, start: int, end: int) -> Records:
        assert self._file is not None
        size = self._type.itemsize
        self._file.seek(int(start) * size)
        return np.frombuffer(self._file.read(int(end - start) * size), self._type)


def _added_up(records: Records) -> Records:
    """One record for each key, sorted by it."""
    keys = records["key"]
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    if len(starts) == len(keys):
        return records[order]
    added = np.empty(len(starts), records.dtype)
    added["key"] = keys[starts]
    for name in records.dtype.names[1:]:  # type: ignore[index]
        adding = np.minimum if name.startswith("low") else np.maximum if name.startswith("high") else np.add
        added[name] = adding.reduceat(records[name][order], starts)
    return added


# -- Cubes: rows by the codes of a few columns and the state, from which any conjunction on these columns is a slice.


Cube = npt.NDArray[Any]

CACHE_BYTES = 256 * 2**20


class Cubes:
    """The most recently used cubes, up to a limit of memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Cube] = OrderedDict()
        self._questions: Counter[tuple[str, ...]] = Counter()

    def pays(self, columns: tuple[str, ...], shape: tuple[int, ...], questions: int, rows: int) -> bool:
        """Whether questions on these columns, with all that came before, have looked at more rows one by one than the
        cube has entries: then counting it has paid."""
        self._questions[columns] += questions
        return columns in self._kept or math.prod(shape) <= rows * self._questions[columns] or not columns

    def get(
        self,
        columns: tuple[str, ...],
        shape: tuple[int, ...],
        count: Callable[[tuple[str, ...], tuple[int, ...]], Cube],
    ) -> Cube:
        """The cube of some columns, counted if it is not kept."""
        if columns not in self._kept:
            self._kept[columns] = count(columns, shape)
        self._kept.move_to_end(columns)
        cube = self._kept[columns]
        while len(self._kept) > 1 and sum(kept.nbytes for kept in self._kept.values()) > CACHE_BYTES:
            self._kept.popitem(last=False)
        return cube


def slice_cube(cube: npt.NDArray[Any], columns: tuple[str, ...], question: Sequence[CodeMask]) -> Floats:
    """Rows by state of a conjunction: index the axes with one value, sum over the others."""
    for mask in _masks_by_column(columns, question):
        places = np.flatnonzero(mask)
        cube = cube[places[0]] if len(places) == 1 else cube[places].sum(axis=0, dtype=np.int64)
        # the axis is gone, so the next column is the first again
    return cube.astype(np.float64)


def combinations_of(columns: tuple[str, ...], question: Sequence[CodeMask]) -> Bools:
    """Which combinations of the columns' codes satisfy a conjunction, as one flat array."""
    combined = np.ones(1, bool)
    for mask in _masks_by_column(columns, question):
        combined = np.logical_and.outer(combined, mask).ravel()
    return combined


def _masks_by_column(columns: tuple[str, ...], question: Sequence[CodeMask]) -> list[Bools]:
    masks: dict[str, Bools] = {}
    for column, mask in question:
        masks[column] = masks[column] & mask if column in masks else mask
    return [masks[column] for column in columns]


# -- Counting the rows of a release: dictionary codes, mixed-radix keys, ``bincount``; never a loop over rows ----------
# A row's *state* is its cell and its published value, as one number: cell i's values take the numbers from
# m_0 + .. + m_{i-1}. A tally counts rows by (group, class, state); when that array would be too large to hold, keys are
# sorted instead, and the tally is handed out a few groups at a time.


DENSE_ENTRIES = 2**24  # of a tally or a cube held in one piece
BLOCK_ENTRIES = 2**22  # of one block of a tally that is handed out in pieces
ALL_ENTRIES = 2**35  # of a whole tally; beyond it a question is refused
CHUNK_ROWS = 2**18
RADIX_LIMIT = 2**62


class CodeCounter:
    """Counts rows whose columns are codes.

    Args:
        encoded: a column as codes; asked for when a question first needs it.
        states: the state of every row, made when first needed; None where there are none to tell apart.
        state_count: how many states there are.
        rows: how many rows.
    """

    def __init__(
        self, encoded: Callable[[str], Encoded], states: Callable[[], Codes] | None, state_count: int, rows: int
    ) -> None:
        self._encode = encoded
        self._make_states = states
        self._columns: dict[str, Encoded] = {}
        self._numbers: dict[str, Floats] = {}
        self._cubes = Cubes()
        self.state_count = state_count
        self.rows = rows

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a column, without missing."""
        return self._encoded(column).values

    def _encoded(self, column: str) -> Encoded:
        if column not in self._columns:
            self._columns[column] = self._encode(column)
        return self._columns[column]

    def with_columns(self, derived: Sequence[Derived]) -> CodeCounter:
        """A counter that has some more columns, computed where a question first needs them."""
        more = {column.name: column for column in derived}

        def encoded(name: str) -> Encoded:
            if name not in more:
                return self._encoded(name)
            return derived_column(more[name], [counter._encoded(source) for source in more[name].sources])

        counter = CodeCounter(encoded, lambda: self._states, self.state_count, self.rows)
        return counter

    def under(self, values: Mapping[str, pa.Array]) -> CodeCounter:
        """A counter of the same rows whose codes are places in given values: those of a table that these rows are a
        part of. Columns without given values keep their own."""

        def encoded(name: str) -> Encoded:
            own = self._encoded(name)
            if name not in values:
                return own
            places = pc.index_in(own.values, value_set=values[name]).to_numpy(zero_copy_only=False)
            whole = np.append(places, len(values[name])).astype(np.int64)
            return Encoded(values[name], smallest(whole[own.codes], len(values[name]) + 1))

        return CodeCounter(encoded, lambda: self._states, self.state_count, self.rows)

    def _number(self, column: str) -> Floats:
        """A numeric column as floats, missing as NaN, looked up through its codes so that nothing large is kept."""
        if column not in self._numbers:
            values = pc.cast(self._encoded(column).values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            self._numbers[column] = np.append(values, np.nan)
        return self._numbers[column]

    @cached_property
    def _states(self) -> Codes:
        return np.zeros(self.rows, np.uint8) if self._make_states is None else self._make_states()

    # -- tallies ---------------------------------------------------------------------------------------------------

    def tally(
        self,
        groups: Sequence[str],
        masks: Sequence[CodeMask],
        classes: Ints,
        values: Sequence[str] = (),
        *,
        states: bool = False,
    ) -> Iterator[Block]:
        """Rows by group, class and state (see ``core.tally.Counter``)."""
        sizes = [self._encoded(name).size for name in groups]
        rows = _Rows(self, masks, classes, states)
        if math.prod(sizes) * rows.width <= DENSE_ENTRIES:
            yield self._dense(groups, sizes, rows, values)
        else:
            yield from self._sparse(groups, rows, values)

    def coded(self, columns: Sequence[str], masks: Sequence[CodeMask], *, states: bool = False) -> CodedRows:
        """Every row's codes, pattern and state (see ``core.tally.Counter``)."""
        keys = np.empty((self.rows, len(columns)), np.int64)
        for place, name in enumerate(columns):
            keys[:, place] = self._encoded(name).codes
        own = self._states if states else np.zeros(self.rows, np.uint8)
        return CodedRows(keys, self._patterns(masks, slice(0, self.rows)), own.astype(np.int64))

    def _patterns(self, masks: Sequence[CodeMask], part: slice) -> Ints:
        pattern = np.zeros(part.stop - part.start, np.int64)
        for bit, (column, mask) in enumerate(masks):
            pattern |= mask[self._encoded(column).codes[part]].astype(np.int64) << bit
        return pattern

    def _chunks(self, entries: int) -> Iterator[slice]:
        step = int(min(max(CHUNK_ROWS, entries), 2**22))
        return (slice(start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def _dense(self, groups: Sequence[str], sizes: list[int], rows: _Rows, values: Sequence[str]) -> Block:
        shape = (math.prod(sizes), *rows.shape)
        total = math.prod(shape)
        counts = np.zeros(total)
        moments = {name: _no_moments(total) for name in values}
        for part in self._chunks(total):
            kept, key = rows.keys(part)
            if groups:
                codes = [self._encoded(name).codes[part] for name in groups]
                key += mixed([c if kept is None else c[kept] for c in codes], sizes) * rows.width
            counts += np.bincount(key, minlength=total)
            for name, moment in moments.items():
                number = self._number(name)[self._encoded(name).codes[part]]
                _add_moments(moment, key, number if kept is None else number[kept])
        counts = counts.reshape(shape)
        filled = np.flatnonzero(counts.any(axis=(1, 2))) if groups else np.arange(1)
        keys = np.stack(np.unravel_index(filled, sizes), axis=1) if groups else np.zeros((1, 0), np.int64)
        pick = slice(None) if len(filled) == shape[0] else filled
        shaped = {name: _shaped(moment, shape, pick) for name, moment in moments.items()}
        return Block(keys.astype(np.int64), counts[pick], shaped)

    def _sparse(self, groups: Sequence[str], rows: _Rows, values: Sequence[str]) -> Iterator[Block]:
        kept, key = rows.keys(slice(0, self.rows))
        group = self._group_numbers(groups, kept)
        names, first, group = np.unique(group, return_index=True, return_inverse=True)
        if len(names) * rows.width > ALL_ENTRIES:
            raise QuestionError(
                f"The question has {len(names):,} groups of {rows.width:,} counts each, more than can be answered. "
                "Fix: group by fewer columns, or ask about a part of the rows."
            )
        heads = first if kept is None else kept[first]
        keys = np.stack([self._encoded(name).codes[heads].astype(np.int64) for name in groups], axis=1)
        order = np.argsort(group, kind="stable")
        edges = np.searchsorted(group[order], np.arange(len(names) + 1))
        step = max(1, BLOCK_ENTRIES // rows.width)
        for start in range(0, max(len(names), 1), step):
            stop = min(start + step, len(names))
            chosen = order[edges[start] : edges[stop]]
            flat = (group[chosen] - start) * rows.width + key[chosen]
            total, shape = (stop - start) * rows.width, (stop - start, *rows.shape)
            moments = {}
            for name in values:
                moment = _no_moments(total)
                original = chosen if kept is None else kept[chosen]
                _add_moments(moment, flat, self._number(name)[self._encoded(name).codes[original]])
                moments[name] = _shaped(moment, shape, slice(None))
            counts = np.bincount(flat, minlength=total).astype(np.float64).reshape(shape)
            yield Block(keys[start:stop], counts, moments)

    def _group_numbers(self, groups: Sequence[str], kept: Ints | None) -> Ints:
        """One number per row that tells its group, compressed whenever the radix would grow too large."""
        number, radix = np.zeros(self.rows if kept is None else len(kept), np.int64), 1
        for name in groups:
            column = self._encoded(name)
            if radix * column.size > RADIX_LIMIT:
                used, number = np.unique(number, return_inverse=True)
                radix = len(used)
            number = number * column.size + (column.codes if kept is None else column.codes[kept])
            radix *= column.size
        return number

    # -- many conjunctions ---------------------------------------------------------------------------------------------

    def conjunctions(self, questions: Sequence[Sequence[CodeMask]]) -> Floats:
        """For each conjunction of masks, the rows that satisfy it, by state: by one cube for each set of columns where
        so many questions share it that it pays, else row by row."""
        counts = np.zeros((len(questions), self.state_count))
        by_columns: dict[tuple[str, ...], list[int]] = {}
        for i, masks in enumerate(questions):
            by_columns.setdefault(tuple(sorted({column for column, _ in masks})), []).append(i)
        for columns, members in by_columns.items():
            sizes = [self._encoded(name).size for name in columns]
            shape = (*sizes, self.state_count)
            if math.prod(sizes) > DENSE_ENTRIES:
                for i in members:
                    classes = np.full(2 ** len(questions[i]), -1)
                    classes[-1] = 0
                    counts[i] = next(self.tally((), questions[i], classes, states=True)).counts[0, 0]
            elif math.prod(shape) <= DENSE_ENTRIES and self._cubes.pays(columns, shape, len(members), self.rows):
                cube = self._cubes.get(columns, shape, self._count_cube)
                for i in members:
                    counts[i] = slice_cube(cube, columns, questions[i])
            else:
                counts[members] = self._picked(columns, sizes, [questions[i] for i in members])
        return counts

    def _picked(
        self, columns: tuple[str, ...], sizes: Sequence[int], questions: Sequence[Sequence[CodeMask]]
    ) -> Floats:
        """Rows by state of conjunctions on the same columns: combinations of codes that are meant, looked up."""
        counts = np.zeros((len(questions), self.state_count))
        for part in self._chunks(0):
            key = mixed([self._encoded(name).codes[part] for name in columns], sizes)
            states = self._states[part]
            for own, question in zip(counts, questions, strict=True):
                taken = states[np.flatnonzero(combinations_of(columns, question).take(key))]
                own += np.bincount(taken, minlength=self.state_count)
        return counts

    def _count_cube(self, columns: tuple[str, ...], shape: tuple[int, ...]) -> Cube:
        """Rows by the codes of some columns and the state."""
        total = math.prod(shape)
        cube = np.zeros(total, np.uint32 if self.rows < 2**32 else np.int64)
        for part in self._chunks(total):
            codes = [self._encoded(name).codes[part] for name in columns]
            counted = np.bincount(mixed([*codes, self._states[part]], shape), minlength=total)
            np.add(cube, counted, out=cube, casting="unsafe")
        return cube.reshape(shape)


class _Rows:
    """The class and state of rows as one number, for one tally."""

    def __init__(self, counter: CodeCounter, masks: Sequence[CodeMask], classes: Ints, states: bool) -> None:
        self._counter, self._masks, self._classes, self._with_states = counter, masks, classes, states
        self.shape = (int(classes.max(initial=0)) + 1, counter.state_count if states else 1)
        self.width = self.shape[0] * self.shape[1]

    def keys(self, part: slice) -> tuple[Ints | None, Ints]:
        """Which rows of a chunk count (None: all), and their class and state as one number."""
        counter, number = self._counter, part.stop - part.start
        states = counter._states[part].astype(np.int64) if self._with_states else np.zeros(number, np.int64)
        if not self._masks and self._classes[0] == 0:
            return None, states
        own: Ints = self._classes[counter._patterns(self._masks, part)]
        kept = np.flatnonzero(own >= 0)
        return kept, own[kept] * self.shape[1] + states[kept]


def _no_moments(total: int) -> Moments:
    return Moments(np.zeros(total), np.zeros(total), np.zeros(total))


def _shaped(moment: Moments, shape: tuple[int, ...], pick: slice | Ints) -> Moments:
    return Moments(*(array.reshape(shape)[pick] for array in (moment.rows, moment.sums, moment.squares)))


def _add_moments(moment: Moments, key: Ints, number: Floats) -> None:
    """Add rows, sums and sums of squares of the numbers that are not missing."""
    there = ~np.isnan(number)
    if not there.all():
        key, number = key[there], number[there]
    total = len(moment.rows)
    moment.rows[:] += np.bincount(key, minlength=total)
    moment.sums[:] += np.bincount(key, weights=number, minlength=total)
    moment.squares[:] += np.bincount(key, weights=number * number, minlength=total)


# -- Counting the rows of a published table: in memory, or in Parquet files, of which only the columns in question are
# read.
#
# A row's *state* is its cell and its published value, as one number: cell i's values take the numbers from
# m_0 + .. + m_{i-1}. Missing values that are exempt are a state of their own, the last.


PIECE_ROWS = 2**21  # of a file, that are read at once: what is kept of a row is a byte or two for each column
DENSE_RADIX = 2**20
Rows: TypeAlias = pa.Table | StoredRows


def local_counter(source: Rows | Path, manifest: Manifest) -> CodeCounter:
    """A counter of a published table."""
    table = StoredRows.at(source) if isinstance(source, Path) else source
    rows = int(table.num_rows if isinstance(table, pa.Table) else table.rows)
    only = manifest.parts[0] if len(manifest.parts) == 1 and manifest.parts[0].range is None else None
    pieces = table.cut(PIECE_ROWS) if isinstance(table, StoredRows) and rows > PIECE_ROWS else [table]
    states = None if only is None else partial(_all_states, pieces, only)
    count = 1 if only is None else _count(only)
    return CodeCounter(lambda column: _whole_column(pieces, column, manifest.part_of(column)), states, count, rows)


def _whole_column(pieces: Sequence[Rows], column: str, part: Part | None) -> Encoded:
    """A column of all pieces as codes."""
    coded = [_encoded(piece, column, part) for piece in pieces]
    if part is not None and part.lineups is not None:  # the number of a set is its code, in any piece
        return Encoded(coded[0].values, np.concatenate([piece.codes for piece in coded]))
    return joined(coded, coded[0].values.type)


def _all_states(pieces: Sequence[Rows], part: Part) -> Codes:
    """The state of every row of all pieces."""
    places = _places(part)
    states = [
        _states(piece, part, places, piece.num_rows if isinstance(piece, pa.Table) else piece.rows) for piece in pieces
    ]
    return states[0] if len(states) == 1 else np.concatenate(states)


def _encoded(table: Rows, column: str, part: Part | None) -> Encoded:
    """A column as codes; of line-ups a code is the number of the set, and so is its value."""
    if part is None or part.lineups is None:
        return encode(_read(table, column))
    numbers, count = _sets(table, part), len(part.lineups.sets.lengths)
    return Encoded(pa.array(np.arange(count)), smallest(np.where(numbers < 0, count, numbers), count + 1))


def _sets(table: Rows, part: Part) -> Ints:
    """The number of the set that each row shows; -1 where it is missing, and may be."""
    assert part.lineups is not None
    known = pa.array(list(part.domain), arrow_type(part.types[0]))
    numbers = states_shown(pa.chunked_array(_read(table, part.columns[0])), part.lineups, known)
    if (numbers < 0).any() and not part.beside_domain:
        raise ManifestError("The release's rows hold no line-up where its manifest says that they do.")
    return numbers


def _read(table: Rows, column: str) -> pa.ChunkedArray:
    return table[column] if isinstance(table, pa.Table) else table.column(column)


def _count(part: Part) -> int:
    """How many states there are; of line-ups each set is one."""
    own = sum(len(cell) for cell in _cells(part)) if part.lineups is None else len(part.lineups.sets.lengths)
    return own + int(part.beside_domain)


def _cells(part: Part) -> tuple[Ints, ...]:
    published = part.cells_published or len(part.cell_positions) == 1
    return part.cell_positions if published else (np.arange(part.m),)


def _states(table: Rows, part: Part, places: Mapping[tuple[object, ...], int], rows: int) -> Codes:
    """The state of every row."""
    cells, m, count = _cells(part), part.m, _count(part)
    if part.lineups is not None:
        numbers = _sets(table, part)
        return smallest(np.where(numbers < 0, count - 1, numbers), count)
    positions = _positions(table, part, places)
    if len(cells) == 1 and np.array_equal(cells[0], np.arange(m)):
        return smallest(positions, count)
    cell = np.zeros(rows, np.int64)
    if len(cells) > 1:
        cell = _read(table, CELL).fill_null(0).to_numpy().astype(np.int64)
        cell[positions == m] = 0
        if rows and not 0 <= cell.min() <= cell.max() < len(cells):
            raise ManifestError("The release's rows name a cell that its manifest does not have.")
    inside = np.concatenate([c * m + np.asarray(p, np.int64) for c, p in enumerate(cells)])
    order = np.argsort(inside, kind="stable")
    key = cell * m + positions
    place = np.minimum(np.searchsorted(inside[order], key), len(inside) - 1)
    states = order[place]
    missing = positions == m
    if not ((inside[states] == key) | missing).all():
        raise ManifestError("The release's rows hold a value that their cell does not have.")
    return smallest(np.where(missing, count - 1, states), count)


def _places(part: Part) -> dict[tuple[object, ...], int]:
    """Where each value, as the values of its columns, stands in the domain."""
    domain = [value if len(part.columns) > 1 else (value,) for value in part.domain]
    return {tuple(plain(item) for item in value): i for i, value in enumerate(domain)}  # type: ignore[attr-defined]


def _positions(table: Rows, part: Part, places: Mapping[tuple[object, ...], int]) -> Ints:
    """Where every row's published value stands in the domain; after its end where missing values are exempt."""
    columns = [encode(_read(table, name)) for name in part.columns]
    radix = math.prod(column.size for column in columns)
    if radix > RADIX_LIMIT:
        raise QuestionError("The sensitive columns together have too many values to be counted.")
    key = mixed([column.codes for column in columns], [column.size for column in columns])
    used, inverse = (np.arange(radix), key) if radix <= DENSE_RADIX else np.unique(key, return_inverse=True)
    lists = [[plain(value) for value in [*column.values.to_pylist(), None]] for column in columns]
    digits = np.unravel_index(used, [column.size for column in columns])
    shown = zip(
        *([own[digit] for digit in place.tolist()] for own, place in zip(lists, digits, strict=True)), strict=True
    )
    after = part.m if part.beside_domain else -1
    lookup = np.fromiter((places.get(value, after if None in value else -1) for value in shown), np.int64, len(used))
    positions: Ints = lookup[inverse]
    if (positions < 0).any():
        raise ManifestError("The release's rows hold a sensitive value that its manifest does not list.")
    return positions
