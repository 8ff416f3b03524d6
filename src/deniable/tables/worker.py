"""What a worker does with a batch of original rows: encode, deal to cells, perturb. Pure, and any process can do it."""

from __future__ import annotations

import math
import operator
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.channels import Channel, NumberRange
from deniable.core.designs import codes, is_coded
from deniable.core.errors import ColumnError, TableError, table_changed
from deniable.core.exact import SCALE
from deniable.core.learned import Coding
from deniable.core.lineups import LineUpDesign
from deniable.core.part import Part
from deniable.core.plan import PlannedPart
from deniable.core.values import Bools, Cells, Codes, Ints, Words
from deniable.learned.dealing import Deal
from deniable.learned.levels import keys_of
from deniable.tables.base import CELL, Job, PartJob
from deniable.tables.crossing import levels_of
from deniable.tables.encoding import Encoder, arrow_type, decoded, plain_type
from deniable.tables.keys import Keystream
from deniable.tables.lineups import LineUpKernel, Publisher, column_type
from deniable.tables.ranges import RangeEncoder, RangeKernel, numbers_of, require_inside
from deniable.tables.sampler import Kernel, alias_table

# -- Dealing: which rows of a value go to which cell of a plan (mathematics 1) -----------------------------------------
# The t-th row of value x goes to the cell that owns place pi_x(t), where pi_x is a secret permutation of 0..f_x-1:
# cells get exactly the rows that were planned, every way to choose them is equally likely, and batches do not matter.
#
#     f_x <= 4096:  pi_x sorts f_x random words
#     f_x >  4096:  pi_x is a Feistel network of 8 rounds over Z_a x Z_b, a b >= f_x, walked until it lands below f_x;
#                   its round functions are tables of random words, so memory grows with the root of f_x only


EXPLICIT = 4096  # rows of a value up to which its permutation is a list
ROUNDS = 8
_BLOCK_ROWS = 2**18  # explicit permutations are made for this many rows at a time


class Dealer:
    """Deals the rows of a table to the cells of a planned part. A row's cell depends on how many rows of its value came
    before it, which is an argument: any part of a table can deal its own rows."""

    def __init__(self, part: PlannedPart, keystream: Keystream) -> None:
        dealt = list(part.value_cells().values())
        self.planned = self._planned = part.values.counts
        self._only = np.array([cells[0][0] if len(cells) == 1 else -1 for cells in dealt], dtype=np.int32)
        self._only[self._planned == 0] = 0  # no row will ask
        split = self._only < 0
        self._small = split & (self._planned <= EXPLICIT)
        large = split & ~self._small
        self._lists = _Explicit(np.flatnonzero(self._small), self._planned, dealt, keystream.subkey("dealing", "lists"))
        self._networks = _Feistel(np.flatnonzero(large), self._planned, dealt, keystream.subkey("dealing", "networks"))
        self._any_split = bool(split.any())

    def deal(self, codes: Codes, seen: Ints) -> Cells:
        """The cell of each row of a batch; codes are positions in the table's domain.

        ``seen`` says how many rows of each value come before this batch.
        """
        counts = self.counts(codes)
        if len(counts) > len(seen) or (seen + counts > self._planned).any():
            raise table_changed("more rows of a value came than were counted")
        cells: Cells = self._only[codes]
        if self._any_split:
            rows = np.flatnonzero(cells < 0)
            values, order, ranks = _ranked(codes[rows], counts, seen)
            small = self._small[values]
            dealt = np.empty(len(rows), dtype=np.int32)
            dealt[small] = self._lists.cells(values[small], ranks[small])
            dealt[~small] = self._networks.cells(values[~small], ranks[~small])
            cells[rows[order]] = dealt
        return cells

    def counts(self, codes: Codes) -> Ints:
        """How many rows of each value a batch has."""
        return np.bincount(codes, minlength=len(self._planned))


class CombinationDealer:
    """Numbers the rows of each public combination of a learned release, in the order of the table.

    Args:
        codings: how public columns are read.
        keys: of the combinations, rising.
        planned: how many rows each has.
    """

    def __init__(self, codings: Sequence[Coding], keys: Words, planned: Ints) -> None:
        self.codings, self.keys, self.planned = codings, keys, planned
        self._sizes = [coding.size for coding in codings]

    def combinations(self, batch: pa.RecordBatch, some: slice | Bools) -> Ints:
        """The combination of each of some rows."""
        keys = keys_of(levels_of(batch, self.codings)[some], self._sizes)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        if (self.keys[places] != keys).any():
            raise table_changed("rows came with other public columns than were counted")
        return places

    def counts(self, combinations: Ints) -> Ints:
        """How many rows of each combination a batch has."""
        return np.bincount(combinations, minlength=len(self.keys))

    def ranks(self, combinations: Ints, counts: Ints, seen: Ints) -> Ints:
        """The number of each row among those of its combination."""
        if (seen + counts > self.planned).any():
            raise table_changed("more rows of a combination came than were counted")
        order = np.argsort(combinations, kind="stable")
        sorted_ = combinations[order]
        heads = np.flatnonzero(np.diff(sorted_, prepend=-1))
        lengths = np.diff(heads, append=len(sorted_))
        ranks = np.empty(len(sorted_), dtype=np.int64)
        ranks[order] = np.arange(len(sorted_)) - np.repeat(heads, lengths) + seen[sorted_]
        return ranks


class DrawnCells:
    """Cells that rows draw for themselves, each value's in the planned proportion: no row's cell depends on another's.

    A value owns 2^32 numbers, its cells stretches of them as long as their share of its rows.
    """

    def __init__(self, part: PlannedPart) -> None:
        ends, cells = [], []
        for code, dealt in enumerate(part.value_cells().values()):
            pairs = dealt or [(0, 1)]  # no row asks, unless it is the first of a value that had none
            rows = np.cumsum([n for _, n in pairs], dtype=np.float64)
            stretch = np.floor(rows / rows[-1] * 2**32).astype(np.int64)
            ends.append((code << 32) + stretch)
            cells += [cell for cell, _ in pairs]
        self._ends = np.concatenate(ends)
        self._cells = np.array(cells, dtype=np.int32)

    def cells(self, codes: Codes, words: Words) -> Cells:
        """The cell of each row, from its code and a random word of its own."""
        places = (codes.astype(np.int64) << 32) + (words >> np.uint64(32)).astype(np.int64)
        drawn: Cells = self._cells[np.searchsorted(self._ends, places, side="right")]
        return drawn


def require_all_dealt(seen: Ints, planned: Ints) -> None:
    """Check, when all batches were dealt, that every planned row has come."""
    if not np.array_equal(seen, planned):
        raise table_changed("fewer rows of a value came than were counted")


def _ranked(codes: Codes, counts: Ints, seen: Ints) -> tuple[Ints, npt.NDArray[np.intp], Ints]:
    """Rows sorted by value: the values, the order that sorts them, and each row's rank among its value's rows."""
    narrow = codes.astype(np.uint16) if len(counts) <= 2**16 else codes  # 16-bit keys are sorted by radix
    order = np.argsort(narrow, kind="stable")
    values = codes[order].astype(np.int64)
    heads = np.flatnonzero(np.diff(values, prepend=-1))
    lengths = np.diff(heads, append=len(values))
    ranks = np.arange(len(values)) - np.repeat(heads, lengths) + seen[values]
    return values, order, ranks


class _Explicit:
    """The shuffled cells of rare values, as one list; a block of it is made when a row first asks for it."""

    def __init__(self, values: Ints, planned: Ints, dealt: list[list[tuple[int, int]]], keystream: Keystream) -> None:
        self._keystream = keystream
        rows = planned[values]
        self._first = np.zeros(len(planned), dtype=np.int64)
        self._first[values] = np.cumsum(rows) - rows
        self._block = np.zeros(len(planned), dtype=np.int64)
        self._block[values] = self._first[values] // _BLOCK_ROWS
        self._values = values
        self._rows = rows
        pairs = [pair for value in values for pair in dealt[value]]
        self._cell = np.repeat(
            np.array([cell for cell, _ in pairs], dtype=np.int32), np.array([n for _, n in pairs], dtype=np.int64)
        )
        self._made = np.zeros(int(rows.sum()) // _BLOCK_ROWS + 1, dtype=bool)

    def cells(self, values: Ints, ranks: Ints) -> Cells:
        blocks = np.flatnonzero(np.bincount(self._block[values], minlength=len(self._made)) * ~self._made)
        for block in blocks:
            self._make(int(block))
        dealt: Cells = self._cell[self._first[values] + ranks]
        return dealt

    def _make(self, block: int) -> None:
        """Shuffle the cells of each value of a block: sort by value, then by a random word."""
        inside = self._block[self._values] == block
        rows = self._rows[inside]
        first, total = int(self._first[self._values[inside][0]]), int(rows.sum())
        words = self._keystream.words(first, total)
        order = np.lexsort((words, np.repeat(np.arange(len(rows)), rows)))
        self._cell[first : first + total] = self._cell[first : first + total][order]
        self._made[block] = True


class _Feistel:
    """A permutation of 0..f-1 for each frequent value, computed row by row.

    A place is l b + r with l < a, r < b; even rounds do l += T(r) mod a, odd rounds r += T(l) mod b.
    """

    def __init__(self, values: Ints, planned: Ints, dealt: list[list[tuple[int, int]]], keystream: Keystream) -> None:
        index = np.zeros(len(planned), dtype=np.int64)
        index[values] = np.arange(len(values))
        self._index = index
        self._f = planned[values]
        self._a = np.array([math.isqrt(int(f) - 1) + 1 for f in self._f], dtype=np.int64)
        self._b = -(-self._f // np.maximum(self._a, 1))
        sizes = ROUNDS * self._a  # every round gets a entries, b of which are used by even rounds
        self._table_first = np.cumsum(sizes) - sizes
        self._table = np.empty(int(sizes.sum()), dtype=np.uint32)
        for a, b, first in zip(self._a.tolist(), self._b.tolist(), self._table_first.tolist(), strict=True):
            words = keystream.words(first, ROUNDS * a).reshape(ROUNDS, a)
            moduli = np.array([a, b] * (ROUNDS // 2), dtype=np.uint64)[:, None]
            self._table[first : first + ROUNDS * a] = (words % moduli).ravel()
        self._place_first = np.cumsum(self._f) - self._f
        pairs = [pair for value in values for pair in dealt[value]]
        self._ends = np.cumsum([n for _, n in pairs], dtype=np.int64)
        self._cells = np.array([cell for cell, _ in pairs], dtype=np.int32)

    def cells(self, values: Ints, ranks: Ints) -> Cells:
        if not len(values):
            return np.empty(0, dtype=np.int32)
        index = self._index[values]
        places = self._permuted(index, ranks)
        outside = np.flatnonzero(places >= self._f[index])
        while len(outside):  # a cycle that starts below f comes back below f
            places[outside] = self._permuted(index[outside], places[outside])
            outside = outside[places[outside] >= self._f[index[outside]]]
        dealt: Cells = self._cells[np.searchsorted(self._ends, self._place_first[index] + places, side="right")]
        return dealt

    def _permuted(self, index: Ints, places: Ints) -> Ints:
        a, b, first = self._a[index], self._b[index], self._table_first[index]
        left, right = np.divmod(places, b)
        for turn in range(ROUNDS):
            if turn % 2 == 0:
                left += self._table[first + right]
                left -= a * (left >= a)
            else:
                right += self._table[first + left]
                right -= b * (right >= b)
            first += a
        result: Ints = left * b + right
        return result


# -- What a worker does with a batch of original rows: encode, deal to cells, perturb. Pure, and any process can do it.
# A batch is a function of its rows, the number of its first row, and how many rows of each value came before it; so the
# same release comes from one thread or many processes, in any order.


Piece = tuple[pa.RecordBatch, Words]  # published rows, and the sort key of each


@dataclass(frozen=True)
class Coded:
    """A batch of one part: the code of each row, its cell where there are several, and the rows of each value."""

    codes: Codes
    cells: Cells | None
    counts: Ints | None


class PartWorker:
    """Perturbs the columns of one part, under a keystream of its own."""

    def __init__(self, job: Job, work: PartJob, *, folds: bool = False) -> None:
        self.part = work.part
        self.folds = folds
        self.encoder: Encoder | RangeEncoder = work.encoder
        self.keys = job.keys.subkey("part", *work.part.columns)
        self.draws = self.keys.subkey("draws")
        self.dealer: Dealer | CombinationDealer | None = None
        self.values: Deal | None = None
        self.drawn: DrawnCells | None = None
        self.kernel: Kernel
        self.lineups: LineUpKernel | None = None
        self.shown: Publisher | None = None
        self.swapped: Codes | None = None
        if work.part.learned is not None and work.part.dealt is not None:
            self.values = Deal(work.part.dealt, self.keys.subkey("dealing"))
            self.dealer = CombinationDealer(work.part.learned.codings, work.part.dealt.keys, self.values.rows)
            return
        if work.part.lineups is not None:
            self.lineups = LineUpKernel(work.part.lineups)
            self.shown = Publisher(self.lineups, work.encoder.values[0])
            return
        if work.part.grid is not None:
            self.kernel = RangeKernel(work.part.grid)
            return
        channels = [cell.channel for cell in work.part.cells]
        self.kernel = Kernel(channels, [work.part.positions(cell) for cell in work.part.cells])
        if len(channels) > 1 and job.by_value:
            self.drawn = DrawnCells(work.part if work.drawn_as is None else work.drawn_as)
        elif len(channels) > 1:
            self.dealer = Dealer(work.part, self.keys.subkey("dealing"))

    @property
    def nothing_seen(self) -> Ints | None:
        return None if self.dealer is None else np.zeros_like(self.dealer.planned)

    def coded(self, batch: pa.RecordBatch, seen: Ints | None) -> Coded:
        """The code of each row, and the cell that it is dealt to after the rows that were ``seen`` before."""
        if isinstance(self.dealer, CombinationDealer):
            return self._combined(self.dealer, batch, seen)
        codes = self.encoder.encode(batch)
        if self.dealer is None or seen is None:
            return Coded(codes, None, None)
        # Exempt rows belong to no cell and take no part in the dealing.
        exempt = self.encoder.exempt_mask(codes)
        some = slice(None) if exempt is None else ~exempt
        cells = np.zeros(len(codes), dtype=np.int32)
        cells[some] = self.dealer.deal(codes[some], seen)
        return Coded(codes, cells, self.dealer.counts(codes[some]))

    def _combined(self, dealer: CombinationDealer, batch: pa.RecordBatch, seen: Ints | None) -> Coded:
        """The value that each row is dealt, by its public combination and its rank within it."""
        assert self.values is not None
        assert seen is not None
        some = self._dealt_rows(batch)
        combinations = dealer.combinations(batch, some)
        counts = dealer.counts(combinations)
        codes = np.full(batch.num_rows, self.encoder.m, dtype=self.encoder.dtype)
        codes[some] = self.values.values(combinations, dealer.ranks(combinations, counts, seen))
        return Coded(codes, None, counts)

    def _dealt_rows(self, batch: pa.RecordBatch) -> slice | Bools:
        """The rows that are dealt a value; exempt ones, whose value is missing, are not."""
        gone = self.encoder.missing(batch) if isinstance(self.encoder, Encoder) else None
        return slice(None) if gone is None else ~gone

    def counts(self, batch: pa.RecordBatch) -> Ints | None:
        """How many rows of each value, or of each public combination, a batch adds to what is seen."""
        if self.dealer is None:
            return None
        if isinstance(self.dealer, CombinationDealer):
            return self.dealer.counts(self.dealer.combinations(batch, self._dealt_rows(batch)))
        codes = self.encoder.encode(batch)
        exempt = self.encoder.exempt_mask(codes)
        return self.dealer.counts(codes if exempt is None else codes[~exempt])

    def words(self, job: Job, batch: pa.RecordBatch, start: int, codes: Codes) -> Words:
        """The draw of each row."""
        if job.row_id is None:
            return self.draws.words(start, batch.num_rows)
        words = self.draws.words_of(batch.column(job.row_id))
        return self.draws.words_for(words, codes) if job.by_value else words

    def cells(self, job: Job, batch: pa.RecordBatch, codes: Codes, exempt: Bools | None) -> Cells | None:
        """The cell of each row where it is drawn and not dealt: a function of the person and the value."""
        if self.drawn is None or job.row_id is None:
            return None
        keys = self.keys.subkey("cells")
        known = codes if exempt is None else np.where(exempt, 0, codes)
        return self.drawn.cells(known, keys.words_for(keys.words_of(batch.column(job.row_id)), known))

    def perturb(self, job: Job, batch: pa.RecordBatch, coded: Coded, start: int) -> list[pa.Array]:
        """The published columns of this part, and the cell where it is published."""
        codes = coded.codes
        exempt = self.encoder.exempt_mask(codes)
        cells = self.cells(job, batch, codes, exempt) if self.drawn is not None else coded.cells
        if self.lineups is not None:
            return [self._line_ups(self.lineups, codes, self.words(job, batch, start, codes), exempt)]
        if self.values is not None:
            published = codes
        elif self.swapped is not None:
            published = self.swapped[start : start + len(codes)]
        elif exempt is None:
            published = self.kernel.perturb(codes, self.words(job, batch, start, codes), cells)
        else:
            published = codes.copy()
            some = ~exempt
            draws = self.words(job, batch, start, codes)[some]
            published[some] = self.kernel.perturb(codes[some], draws, None if cells is None else cells[some])
        if self.folds and isinstance(self.encoder, Encoder):
            arrays = self.encoder.folded(published)
        else:
            arrays = self.encoder.decode(published)
        if self.part.cells_published:
            dealt = np.zeros(len(codes), np.int32) if cells is None else cells.astype(np.int32)
            arrays.append(pa.array(dealt, mask=exempt))
        return arrays

    def _line_ups(self, kernel: LineUpKernel, codes: Codes, words: Words, exempt: Bools | None) -> pa.Array:
        """The published line-ups; missing where a row is exempt."""
        assert self.shown is not None
        some = slice(None) if exempt is None else ~exempt
        states = np.full(len(codes), -1, dtype=np.int64)
        states[some] = kernel.perturb(codes[some], words[some])
        return self.shown.column(states)

    def replaced(self, job: Job, batch: pa.RecordBatch, start: int) -> tuple[Codes, Bools]:
        """For swapping: the codes of a batch, and which of its rows no coin keeps."""
        codes = self.encoder.encode(batch)
        exempt = self.encoder.exempt_mask(codes)
        gone: Bools = self.words(job, batch, start, codes) >> np.uint64(32) >= np.uint64(self.part.keep[0])
        return codes, gone if exempt is None else gone & ~exempt

    def swap(self, pieces: Sequence[tuple[Codes, Bools]]) -> None:
        """Permute the values that no coin keeps among themselves, from all batches in row order."""
        swapped = np.concatenate([codes for codes, _ in pieces])
        rows = np.flatnonzero(np.concatenate([replaced for _, replaced in pieces]))
        order = np.argsort(self.keys.subkey("swapping").words(0, len(rows)), kind="stable")
        swapped[rows] = swapped[rows[order]]
        self.swapped = swapped


class Worker:
    """Turns batches of original rows into published rows; where it ``folds``, sensitive texts may be dictionaries."""

    def __init__(self, job: Job, schema: pa.Schema, *, folds: bool = False) -> None:
        self.job = job
        self.schema = schema
        self.folds = folds
        self.parts = [PartWorker(job, work, folds=folds) for work in job.parts]
        self.order = job.keys.subkey("order") if job.order is None else job.order

    @property
    def swaps(self) -> list[PartWorker]:
        """The parts that need all rows at once before any is published."""
        return [part for part in self.parts if part.part.swapped]

    def nothing_seen(self) -> list[Ints | None]:
        """What is seen before the first row."""
        return [part.nothing_seen for part in self.parts]

    def coded(self, batch: pa.RecordBatch, seen: Sequence[Ints | None]) -> list[Coded]:
        """Codes and cells of a batch."""
        return [part.coded(batch, rows) for part, rows in zip(self.parts, seen, strict=True)]

    def perturb(self, batch: pa.RecordBatch, coded: Sequence[Coded], start: int) -> Piece:
        """Published rows with their sort keys; ``start`` is the number of the first one."""
        arrays = [decoded(batch.column(name)) for name in self.job.public]
        for part, mine in zip(self.parts, coded, strict=True):
            arrays += part.perturb(self.job, batch, mine, start)
        words = self.order.words(start, batch.num_rows) if self.job.shuffle else np.zeros(0, np.uint64)
        if self.folds:
            return pa.RecordBatch.from_arrays(arrays, names=self.schema.names), words
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), words

    def finish(self, seen: Sequence[Ints | None]) -> None:
        """Check that every row that was planned for has come."""
        for part, rows in zip(self.parts, seen, strict=True):
            if part.dealer is not None and rows is not None:
                require_all_dealt(rows, part.dealer.planned)


def added(seen: Sequence[Ints | None], more: Sequence[Ints | None]) -> list[Ints | None]:
    """What is seen after some more rows."""
    return [None if before is None or now is None else before + now for before, now in zip(seen, more, strict=True)]


def published_schema(schema: pa.Schema, job: Job) -> pa.Schema:
    """The published table's schema, without any metadata of the input."""
    fields = [pa.field(name, plain_type(schema.field(name).type)) for name in job.public]
    for work in job.parts:
        design, types = work.part.lineups, work.encoder.types
        types = types if design is None else [column_type(design, kind) for kind in types]
        fields += [pa.field(name, kind) for name, kind in zip(work.part.columns, types, strict=True)]
    return pa.schema([*fields, *([pa.field(CELL, pa.int32())] if job.cells_published else [])])


# -- The engine's perturbation for a single row, where it was collected: the same thresholds, one 64-bit word a column.
# Whoever measures how long a respondent takes must not learn the value. So nothing here branches on it: a value is
# compared with every value of its domain, a replacement is drawn whether or not the coin keeps, and arithmetic chooses.


Draw = Callable[[], int]
EXEMPT = -1  # the code of a missing value that is published as it is
_KINDS = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}


def respond(row: Mapping[str, Any], parts: Sequence[Part], draw: Draw | None = None) -> dict[str, Any]:
    """Perturb one row as the engine would, where it was collected: the other columns stay.

    Args:
        row: column -> value, holding every column of the parts.
        parts: of a manifest, with one column each.
        draw: a source of 64-bit numbers; by default the operating system's.
    """
    draw = draw or (lambda: secrets.randbits(64))
    answer = dict(row)
    for part in parts:
        answer[part.columns[0]] = value_of(part, perturbed(part, encoded(row, part), draw()))
    return answer


def encoded(row: Mapping[str, Any], part: Part) -> int:
    """The code of a row's value: its place in the domain, or its point of the range. No error names the value."""
    (column,) = part.columns
    if column not in row:
        raise ColumnError(f"The row has no value for {column!r}. Fix: give None where it is missing.")
    value = row[column]
    if part.exempt and value is None:
        return EXEMPT
    if part.range is not None:
        return _point(column, value, part.range)
    try:
        hits = np.fromiter((entry == value for entry in part.domain), np.int64, part.m)
    except (TypeError, ValueError):  # an array, say, which is neither equal to a value nor different from it
        hits = np.zeros(part.m, np.int64)
    if hits.sum() != 1:
        raise TableError(
            f"What the row holds is not in the domain of the column {column!r}. Fix: one of the values that the "
            "release lists."
        )
    return int(hits @ np.arange(part.m))


def _point(column: str, value: Any, grid: NumberRange) -> int:
    kind, low = _KINDS[grid.kind], grid.low
    try:
        gone = (value is None) | bool(operator.ne(value, value))  # missing, or not a number
        shown: Any = (value, low)[gone]
        if grid.kind == "number":
            shown = (operator.pos, float)[isinstance(shown, Decimal)](shown)
        array = pa.array([shown], kind)
    except (TypeError, ValueError, ArithmeticError):  # Arrow's own errors are of the first two kinds, and name values
        array = None
    if array is None:
        raise TableError(f"What the row holds for {column!r} is no {grid.kind}. Fix: give one, such as {grid.low}.")
    numbers, missing = numbers_of(column, array, grid.kind)
    require_inside(column, numbers, missing, grid)
    if gone > grid.missing:
        raise TableError(f"The column {column!r} has no missing values. Fix: a {grid.kind} of its range.")
    return int(grid.position(numbers)[0]) * (1 - gone) + grid.grid * gone


def perturbed(part: Part, code: int, word: int) -> int:
    """The code that is published for a code and a random word of 64 bits; of line-ups the number of the set.

    How long the search for a set takes depends on its point. Of the points that stand for a set none is likelier for
    one value than for another that may publish it, so the time tells nothing that the set does not.
    """
    if code == EXEMPT:
        return EXEMPT
    if part.lineups is not None:
        return int(_kernel(part.lineups).perturb(np.array([code]), np.array([word], np.uint64))[0])
    low = word & 0xFFFFFFFF
    if part.range is not None:
        keep, drawn = part.range.keep, low * part.range.points >> 32
    else:
        channel = part.channels[0]
        keep, drawn = int(channel.keep[code]), _replacement(channel, low)
    return drawn + (code - drawn) * (word >> 32 < keep)


@lru_cache(maxsize=8)
def _kernel(design: LineUpDesign) -> LineUpKernel:
    return LineUpKernel(design)


@lru_cache(maxsize=8)
def _codes(design: LineUpDesign) -> Ints:
    return codes(design)


def _replacement(channel: Channel, low: int) -> int:
    if channel.is_uniform:
        return low * channel.m >> 32
    threshold, choice = alias_table(channel.replace)
    capacity = SCALE // len(threshold)
    bucket, offset = divmod(low, capacity)
    return int(choice[bucket][int(offset >= threshold[bucket])])


def value_of(part: Part, code: int) -> Any:
    """The value of a code, in the column's own type, whatever type the row had it in; of line-ups the list of values,
    or the code of a set that is too large for one."""
    if code == EXEMPT:
        return None
    if part.lineups is not None:
        if is_coded(part.lineups):
            return int(_codes(part.lineups)[code])
        return [part.domain[place] for place in part.lineups.sets.members[code].tolist()]
    if part.range is None:
        return part.domain[code]
    encoder = RangeEncoder(part.columns[0], arrow_type(part.types[0]), part.range)
    return encoder.decode(np.array([code], encoder.dtype))[0][0].as_py()
