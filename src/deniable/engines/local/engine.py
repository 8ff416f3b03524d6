"""The local engine: one machine, one streaming pass to count and one to publish."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.errors import ColumnError, TableError
from deniable.core.histogram import Histogram
from deniable.engines.base import Job, PartJob, Progress, Scan, no_progress
from deniable.engines.batch.dealing import Dealer
from deniable.engines.batch.kernel import Kernel
from deniable.engines.local.binning import BinnedSource
from deniable.engines.local.encoding import Encoder, scan_domain
from deniable.engines.local.inspection import OrderWatch, identifier_warnings
from deniable.engines.local.leaving import WithoutRows
from deniable.engines.local.ranges import RangeEncoder, RangeKernel
from deniable.engines.local.shuffling import (
    Words,
    bucket_count,
    rechunked,
    shuffled_in_memory,
    shuffled_through_files,
)
from deniable.engines.local.sources import Source
from deniable.engines.local.strata import StrataDealer
from deniable.engines.randomness import Keystream

CELL = "cell"
ROW_GROUP = 2**18
Piece = tuple[pa.RecordBatch, Words]
Codes = npt.NDArray[np.unsignedinteger]
Coded = tuple[Codes, npt.NDArray[np.int32] | None]


class LocalEngine:
    """Executes plans over one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._orders = source.orders if isinstance(source, BinnedSource) else {}

    def scan(
        self,
        sensitive: tuple[str, ...],
        missing: str,
        domain: Sequence[Hashable] | None = None,
        progress: Progress = no_progress,
    ) -> Scan:
        """Count the sensitive column: the first pass."""
        found = scan_domain(self.source, list(sensitive), missing, domain, orders=self._orders, progress=progress)
        return Scan(Histogram(tuple(found.domain), found.counts), found.exempt_rows, (), found.encoder)

    def leave_out(self, rows: npt.NDArray[np.int64]) -> None:
        """Read the source without these rows from now on."""
        self.source = WithoutRows(self.source, rows)

    def warnings(self, public: Sequence[str]) -> list[str]:
        """What the owner should know about the columns that are to be published as they are."""
        return [warning.message for warning in identifier_warnings(self.source, list(public))]

    def schema(self, job: Job) -> pa.Schema:
        """The published table's schema, without any metadata of the input."""
        fields = [pa.field(name, plain_type(self.source.schema.field(name).type)) for name in job.public]
        for part in job.parts:
            fields += [pa.field(name, kind) for name, kind in zip(part.columns, part.encoding.types, strict=True)]
        return pa.schema([*fields, *([pa.field(CELL, pa.int32())] if job.cells_published else [])])

    def execute(self, job: Job, spool: Path | None = None) -> Iterator[pa.Table]:
        """The published rows in pieces of a fixed size; ``spool`` is a private folder for tables larger than memory."""
        schema = self.schema(job)
        pieces = self._perturbed(job, schema)
        if not job.shuffle:
            tables: Iterator[pa.Table] = (pa.Table.from_batches([batch]) for batch, _ in pieces)
        elif spool is None or self.source.in_memory:
            tables = shuffled_in_memory(pieces, schema)
        else:
            buckets = bucket_count(self._bytes(job, schema))
            tables = shuffled_through_files(pieces, schema, spool, buckets, job.threads)
        yield from rechunked(tables, schema, ROW_GROUP)

    def _bytes(self, job: Job, schema: pa.Schema) -> int:
        """A guess of the published table's size in memory, from its first rows."""
        first = next(iter(self.source.batches(list(job.public), job.batch_rows)), None) if job.public else None
        wide = 16 if first is None or not first.num_rows else first.nbytes / first.num_rows + 16
        return int(job.rows * (wide + 8 * (len(job.sensitive) - 1)))

    def _perturbed(self, job: Job, schema: pa.Schema) -> Iterator[Piece]:
        """Batches of perturbed rows with their sort keys, in the order of the input.

        Dealing rows to cells needs that order, so it happens here; the rest of a batch is a pure function of its
        position and is done by any thread.
        """
        worker = _Worker(job, schema)
        for part in worker.parts:
            if part.part.swapped:
                part.swap(self.source, job)
        wanted = [*job.public, *job.sensitive, *([job.row_id] if job.row_id else [])]
        waiting: deque[Future[Piece]] = deque()
        start = 0
        with ThreadPoolExecutor(job.threads) as pool:
            try:
                for batch in self.source.batches(wanted, job.batch_rows):
                    coded = [part.coded(batch) for part in worker.parts]
                    waiting.append(pool.submit(worker.perturb, batch, coded, start))
                    start += batch.num_rows
                    job.progress(start, job.rows, "perturbing")
                    if len(waiting) > 2 * job.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
        for part in worker.parts:
            part.finish()
        if start != job.rows:
            raise TableError(
                "The table changed while it was being read. Fix: publish from a copy that nobody writes to."
            )


class _PartWorker:
    """Perturbs the columns of one part, under a keystream of its own."""

    def __init__(self, job: Job, part: PartJob) -> None:
        self.part = part
        self.encoder: Encoder | RangeEncoder = part.encoding
        self.keys = Keystream(job.secret, "release", job.name, *part.columns)
        self.draws = self.keys.subkey("draws")
        self.dealer: Dealer | StrataDealer | None = None
        self.kernel: Kernel | RangeKernel
        self.swapped: Codes | None = None
        if part.plan is None:
            assert part.range is not None
            self.kernel = RangeKernel(part.range)
            return
        channels = [cell.channel for cell in part.plan.cells]
        self.kernel = Kernel(channels, [part.plan.positions(cell) for cell in part.plan.cells])
        if part.strata is not None:
            self.dealer = StrataDealer(part.strata)
        elif len(channels) > 1:
            self.dealer = Dealer(part.plan, self.keys.subkey("dealing"))

    def coded(self, batch: pa.RecordBatch) -> Coded:
        """The code of each row, and the cell that it is dealt to; called in the order of the rows."""
        codes = self.encoder.encode(batch)
        if isinstance(self.dealer, StrataDealer):
            return codes, self.dealer.deal(batch, codes)
        return codes, None if self.dealer is None else _dealt(self.dealer, codes, self.encoder.exempt_mask(codes))

    def words(self, job: Job, batch: pa.RecordBatch, start: int) -> Words:
        """The draw of each row."""
        if job.row_id is None:
            return self.draws.words(start, batch.num_rows)
        return self.draws.words_of(batch.column(job.row_id))

    def perturb(self, job: Job, batch: pa.RecordBatch, coded: Coded, start: int) -> list[pa.Array]:
        """The published columns of this part, and the cell where it is published."""
        codes, cells = coded
        exempt = self.encoder.exempt_mask(codes)
        if self.swapped is not None:
            published = self.swapped[start : start + len(codes)]
        elif exempt is None:
            published = self.kernel.perturb(codes, self.words(job, batch, start), cells)
        else:
            published = codes.copy()
            some = ~exempt
            draws = self.words(job, batch, start)[some]
            published[some] = self.kernel.perturb(codes[some], draws, None if cells is None else cells[some])
        arrays = self.encoder.decode(published)
        if self.part.cells_published:
            dealt = np.zeros(len(codes), np.int32) if cells is None else cells.astype(np.int32)
            arrays.append(pa.array(dealt, mask=exempt))
        return arrays

    def swap(self, source: Source, job: Job) -> None:
        """Permute the values that no coin keeps among themselves. Takes the whole column's codes in memory."""
        wanted = [*self.part.columns, *([job.row_id] if job.row_id else [])]
        keep = np.uint64(self.part.thresholds[0])
        all_codes, replaced, start = [], [], 0
        for batch in source.batches(wanted, job.batch_rows):
            codes = self.encoder.encode(batch)
            exempt = self.encoder.exempt_mask(codes)
            gone = self.words(job, batch, start) >> np.uint64(32) >= keep
            replaced.append(gone if exempt is None else gone & ~exempt)
            all_codes.append(codes)
            start += len(codes)
        swapped = np.concatenate(all_codes)
        rows = np.flatnonzero(np.concatenate(replaced))
        order = np.argsort(self.keys.subkey("swapping").words(0, len(rows)), kind="stable")
        swapped[rows] = swapped[rows[order]]
        self.swapped = swapped

    def finish(self) -> None:
        if self.dealer is not None:
            self.dealer.finish()


class _Worker:
    """Turns one batch of original rows into published rows."""

    def __init__(self, job: Job, schema: pa.Schema) -> None:
        self.job = job
        self.schema = schema
        self.parts = [_PartWorker(job, part) for part in job.parts]
        keys = Keystream(job.secret, "release", job.name, *job.sensitive)
        # The order also depends on the channels: another plan under the same key is another permutation.
        self.order = keys.subkey("order", *(str(hash_of(part.thresholds)) for part in job.parts))

    def perturb(self, batch: pa.RecordBatch, coded: Sequence[Coded], start: int) -> Piece:
        arrays = [decoded(batch.column(name)) for name in self.job.public]
        for part, mine in zip(self.parts, coded, strict=True):
            arrays += part.perturb(self.job, batch, mine, start)
        words = self.order.words(start, batch.num_rows) if self.job.shuffle else np.zeros(0, np.uint64)
        published = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return published, words


def _dealt(dealer: Dealer, codes: Codes, exempt: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int32]:
    """The cell of each row; exempt rows belong to none and take no part in the dealing."""
    cells = np.zeros(len(codes), dtype=np.int32)
    some = slice(None) if exempt is None else ~exempt
    cells[some] = dealer.deal(codes[some])
    return cells


def require_distinct(source: Source, row_id: str, keys: Keystream) -> None:
    """Refuse a row id that names two rows: their draws would be the same. Takes eight bytes a row."""
    words = [keys.words_of(batch.column(row_id)) for batch in source.batches([row_id])]
    joined = np.sort(np.concatenate(words)) if words else np.zeros(0, np.uint64)
    if (joined[1:] == joined[:-1]).any():
        raise ColumnError(
            f"row_id = {row_id!r} does not name rows: a value of it occurs more than once, and equal ids get equal "
            "draws. Fix: choose a column without repetitions, or leave row_id out."
        )


def watch_order(source: Source, part: PartJob) -> list[str]:
    """Whether the order of the rows predicts the sensitive value; asked when rows are not shuffled."""
    watch = OrderWatch(part.encoding.m)
    for batch in source.batches(list(part.columns)):
        watch.update(part.encoding.encode(batch))
    return [warning.message for warning in watch.warnings(", ".join(part.columns))]


def hash_of(array: npt.NDArray[np.int64]) -> int:
    """A stable fingerprint of an array of integers."""
    return int.from_bytes(hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()[:8], "big")


def plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
