"""What a worker does with a batch of original rows: encode, deal to cells, perturb. Pure, and any process can do it.

A batch is a function of its rows, the number of its first row, and how many rows of each value came before it; so the
same release comes from one thread or many processes, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Bools, Cells, Codes, Ints, Words
from deniable.engines.base import CELL, Job, PartJob
from deniable.engines.batch.dealing import Dealer, DrawnCells, require_all_dealt
from deniable.engines.batch.encoding import Encoder
from deniable.engines.batch.kernel import Kernel
from deniable.engines.batch.lineup_columns import Publisher, column_type
from deniable.engines.batch.lineups import LineUpKernel
from deniable.engines.batch.ranges import RangeEncoder, RangeKernel
from deniable.engines.batch.values import decoded, plain_type

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
        self.dealer: Dealer | None = None
        self.drawn: DrawnCells | None = None
        self.kernel: Kernel
        self.lineups: LineUpKernel | None = None
        self.shown: Publisher | None = None
        self.swapped: Codes | None = None
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
        codes = self.encoder.encode(batch)
        if self.dealer is None or seen is None:
            return Coded(codes, None, None)
        # Exempt rows belong to no cell and take no part in the dealing.
        exempt = self.encoder.exempt_mask(codes)
        some = slice(None) if exempt is None else ~exempt
        cells = np.zeros(len(codes), dtype=np.int32)
        cells[some] = self.dealer.deal(codes[some], seen)
        return Coded(codes, cells, self.dealer.counts(codes[some]))

    def counts(self, batch: pa.RecordBatch) -> Ints | None:
        """How many rows of each value a batch adds to what is seen."""
        if self.dealer is None:
            return None
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
        if self.swapped is not None:
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
