"""A second engine: two partitions, worked on in other processes, the last one first.

It stands on ``engines.batch`` alone for what happens to rows, and shows that the protocol is one: what passes here can
run wherever batches can be sent. Published tables are kept and counted as the local engine does it.
"""

from __future__ import annotations

import atexit
import dataclasses
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.transforms import as_bins
from deniable.tables import engine_named
from deniable.tables import transforms as binning
from deniable.tables import transforms as recoding
from deniable.tables.base import BATCH_ROWS, Job, no_progress
from deniable.tables.content import Sketcher
from deniable.tables.encoding import DomainScanner
from deniable.tables.ranges import RangeScanner
from deniable.tables.shuffling import order_of
from deniable.tables.worker import Worker, added, published_schema


@cache
def processes() -> ProcessPoolExecutor:
    made = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    atexit.register(made.shutdown, wait=False, cancel_futures=True)
    return made


def fed(scanner: Any, columns: Sequence[str], table: pa.Table) -> Any:
    for batch in table.select(list(columns)).to_batches(max_chunksize=997):
        scanner.update(batch)
    return scanner


def counted(job: Job, schema: pa.Schema, table: pa.Table) -> list[Any]:
    worker = Worker(job, schema)
    seen = worker.nothing_seen()
    for batch in table.select(worker.job.columns).to_batches(max_chunksize=991):
        seen = added(seen, [part.counts(batch) for part in worker.parts])
    return seen


def replaced(job: Job, schema: pa.Schema, table: pa.Table, start: int) -> list[Any]:
    worker = Worker(job, schema)
    batch = table.select(worker.job.columns).combine_chunks().to_batches()[0]
    return [part.replaced(job, batch, start) for part in worker.swaps]


def perturbed(
    job: Job, schema: pa.Schema, table: pa.Table, start: int, seen: Sequence[Any], pieces: Sequence[Any]
) -> tuple[pa.Table, np.ndarray]:
    worker = Worker(job, schema)
    for part, piece in zip(worker.swaps, pieces, strict=True):
        part.swap(piece)
    batches, words = [], [np.zeros(0, np.uint64)]
    for batch in table.select(worker.job.columns).to_batches(max_chunksize=983):
        coded = worker.coded(batch, seen)
        seen = added(seen, [mine.counts for mine in coded])
        made, keys = worker.perturb(batch, coded, start)
        start += batch.num_rows
        batches.append(made)
        words.append(keys)
    return pa.Table.from_batches(batches, schema), np.concatenate(words)


class PartitionedDataset:
    """Rows in two partitions."""

    def __init__(
        self,
        table: pa.Table,
        bins: Mapping[str, Any] | None = None,
        said: Any = (),
        warned: Any = (),
        recodes: Any = None,
    ) -> None:
        self._table, self._warned = table, warned
        self.recodes = recodes or {}
        self.bins, self.said = bins or {}, tuple(said)
        self.labels: Mapping[str, Any] = {}
        self.schema, self.names, self.rows = table.schema, list(table.column_names), table.num_rows

    @property
    def _partitions(self) -> list[tuple[int, pa.Table]]:
        half = self._table.num_rows // 2
        return [(0, self._table.slice(0, half)), (half, self._table.slice(half))]

    def _each(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Done for both partitions, the last one first; results in row order."""
        waiting = [processes().submit(work, *arguments, table) for _, table in reversed(self._partitions)]
        return [future.result() for future in waiting][::-1]

    def _scanned(self, scanner: Any, columns: Sequence[str]) -> Any:
        first, second = self._each(fed, scanner, list(columns))
        second.merge(first)
        return second

    def digest(self, columns: Sequence[str] | None = None, by: str | None = None) -> str:
        return engine_named("local").open(self._table).digest(columns, by)

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        yield from self._table.select(list(columns)).to_batches(max_chunksize=batch_rows)

    def scan(self, columns: Any, missing: str = "value", domain: Any = None, progress: Any = no_progress) -> Any:
        orders = {column: tuple(bins.labels) for column, bins in self.bins.items()}
        return self._scanned(DomainScanner(columns, self.schema, orders), columns).scan(missing, domain)

    def scan_range(self, column: str, replace: Any, missing: str, progress: Any = no_progress) -> Any:
        return self._scanned(RangeScanner(column, self.schema.field(column).type, replace), [column]).scan(missing)

    def sketch(self, keys: Any) -> Any:
        return self._scanned(Sketcher(keys), self.names).sketch()

    def binned(self, bins: Mapping[str, Any], keys: Any = None) -> PartitionedDataset:
        if not bins:
            return self
        assert all(not hasattr(given, "count") for given in map(as_bins, bins.values())), "edges only"
        edges = {column: as_bins(given) for column, given in bins.items()}
        made = [binning.binned(batch, edges) for batch in self._table.to_batches()]
        return PartitionedDataset(pa.Table.from_batches(made), edges, self.said, self._warned, self.recodes)

    def recoded(self, recodes: Any) -> PartitionedDataset:
        def counted(column: str, taken: Any) -> Any:
            table = pa.Table.from_batches(
                [recoding.recoded(batch, {column: taken}) for batch in self._table.select([column]).to_batches()]
            )
            return PartitionedDataset(table).scan((column,))

        plans = recoding.resolved(recodes, self.schema, counted)
        made = [recoding.recoded(batch, plans) for batch in self._table.to_batches()]
        said = (*self.said, *recoding.said_of(recodes))
        return PartitionedDataset(pa.Table.from_batches(made), self.bins, said, self._warned, recodes)

    def without(self, rows: Any) -> PartitionedDataset:
        kept = np.ones(self.rows, bool)
        kept[rows] = False
        return PartitionedDataset(self._table.filter(pa.array(kept)), self.bins, self.said, self._warned, self.recodes)

    def require_distinct(self, row_id: str, keys: Any) -> None:
        engine_named("local").open(self._table).require_distinct(row_id, keys)

    def inspect(self, public: Sequence[str], parts: Any = ()) -> list[str]:
        return engine_named("local").open(self._table).inspect(public, parts)

    def said_of_reading(self, columns: Sequence[str]) -> list[str]:
        return []

    def published_schema(self, job: Job) -> pa.Schema:
        return published_schema(self.schema, job)

    def execute(self, job: Job, spool: Any = None) -> Iterator[pa.Table]:
        plain = dataclasses.replace(job, progress=no_progress)
        schema = self.published_schema(job)
        before, rest = self._each(counted, plain, schema)
        nothing = Worker(plain, schema).nothing_seen()
        Worker(plain, schema).finish(added(before, rest))
        pieces: list[Any] = []
        if Worker(plain, schema).swaps:
            futures = [processes().submit(replaced, plain, schema, table, start) for start, table in self._partitions]
            pieces = [list(both) for both in zip(*(future.result() for future in futures), strict=True)]
        waiting = [
            processes().submit(perturbed, plain, schema, table, start, seen, pieces)
            for (start, table), seen in reversed(list(zip(self._partitions, (nothing, before), strict=True)))
        ]
        made = [future.result() for future in waiting][::-1]
        table = pa.concat_tables([rows for rows, _ in made]).combine_chunks()
        if job.shuffle:
            table = table.take(pa.array(order_of(np.concatenate([words for _, words in made]))))
        yield table.combine_chunks()


class PartitionedEngine:
    """Reads and keeps tables as the local engine does, and works on them in two processes."""

    name = "partitioned"

    def __init__(self) -> None:
        self._local = engine_named("local")
        self.write, self.read = self._local.write, self._local.read
        self.describe, self.counter = self._local.describe, self._local.counter

    def open(self, table: Any) -> PartitionedDataset:
        opened = self._local.open(table)
        return PartitionedDataset(pa.Table.from_batches(opened.batches(opened.names), schema=opened.schema))
