"""Published rows, made and counted by tasks."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deniable.extend import (
    ROW_GROUP,
    SORT_KEY,
    Block,
    CodeCounter,
    CodedRows,
    CodeMask,
    Derived,
    Floats,
    Ints,
    Job,
    Manifest,
    Moments,
    OutputError,
    Piece,
    QuestionError,
    StoredRows,
    Words,
    Worker,
    added,
    content,
    digest_of,
    digest_of_parts,
    local_counter,
    no_progress,
    order_of,
    part_name,
    rechunked,
    shuffled_in_memory,
)
from deniable.spark.tasks import Batches, Reading, changed, each_partition, large_batches, mapped, spark_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# -- Published rows, made by tasks: collected on this machine, or written as the parts of a table ----------------------
# A row's draw is a function of the key and of its number or its id (``batch.worker``). So that tasks can number their
# rows, each partition is looked at first: how many rows it has, how many of each value, and the digest of its content.
# A task that is run again, or twice at once, finds the same digest and makes the same rows, or fails.
#
#     survey:   partition -> rows, rows of each value, digest
#     perturb:  partition, number of its first row, rows of each value before it -> published rows with sort keys
#     shuffle:  part = the high bits of a sort key; rows travel as Arrow bytes
#     write:    part -> its rows in the order of their keys, in a file that appears whole under its name


PART_ROWS = 2**20  # of a part, about, where rows are shuffled; so the parts do not depend on the cluster
SENT = "part int, source int, place int, rows binary"
WRITTEN = "part int, digest string, rows long"
BLOB_BYTES = 8 * 2**20
MOST_BYTES = 64 * 2**20  # held by a task before it hands rows on
_SENT_SCHEMA = pa.schema([("part", pa.int32()), ("source", pa.int32()), ("place", pa.int32()), ("rows", pa.binary())])
_WRITTEN_SCHEMA = pa.schema([("part", pa.int32()), ("digest", pa.string()), ("rows", pa.int64())])


@dataclass(frozen=True)
class Survey:
    """What a partition holds, and after surveys were added up, what comes before it."""

    rows: int
    digest: bytes
    seen: Sequence[Ints | None]
    start: int = 0


class SparkRows:
    """The published rows of a job: iterated on this machine, or written by tasks."""

    def __init__(self, frame: DataFrame, reading: Reading, job: Job, schema: pa.Schema, spool: Path | None) -> None:
        self._frame, self._reading, self._schema, self._spool = frame, reading, schema, spool
        self._job = dataclasses.replace(job, progress=no_progress)
        self._progress = job.progress
        self._parts = max(1, -(-job.rows // PART_ROWS)) if job.shuffle else 1

    def __iter__(self) -> Iterator[pa.Table]:
        """All rows, on this machine."""
        keyed = _keyed(self._schema)
        with spark_problems(), large_batches(self._frame.sparkSession):
            sent = mapped(self._frame, self._scattering(parts=1), SENT)
            tables = (from_bytes(row.rows, keyed) for row in sent.toLocalIterator())
            pieces = (_unkeyed(table) for table in tables)
            if self._job.shuffle:
                made: Iterable[pa.Table] = shuffled_in_memory(
                    ((batch, words) for table, words in pieces for batch in [_one_batch(table)]), self._schema
                )
            else:
                made = (table for table, _ in pieces)
            yield from rechunked(made, self._schema, ROW_GROUP)
        self._progress(self._job.rows, self._job.rows, "perturbing")

    def write(self, folder: Path) -> str:
        """Write the parts of the table into a new folder, by tasks; returns their digest.

        A task writes to a file of its own and renames it when it is whole, so one that runs twice changes nothing.
        """
        assert self._spool is not None
        folder.mkdir()
        drafts = self._spool / "drafts"
        drafts.mkdir()
        try:
            with spark_problems(), large_batches(self._frame.sparkSession):
                written = self._written(str(folder.absolute()), str(drafts.absolute())).collect()
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
        digests = {part_name(row.part): row.digest for row in written if row.rows}
        if {path.name for path in folder.iterdir()} != set(digests):
            raise OutputError(
                f"What Spark's executors wrote did not arrive in {str(folder.parent.parent)!r}: they have another file "
                "system than this machine. Fix: an output folder that all of them share."
            )
        if sum(row.rows for row in written) != self._job.rows:
            raise changed()
        self._progress(self._job.rows, self._job.rows, "writing")
        return digest_of_parts(digests.items())

    def _written(self, folder: str, drafts: str) -> DataFrame:
        if not self._job.shuffle:
            return mapped(
                self._frame, partial(_write_in_order, self._perturbing(), self._schema, folder, drafts), WRITTEN
            )
        sent = mapped(self._frame, self._scattering(self._parts), SENT)
        placed = sent.repartition(self._parts, "part").sortWithinPartitions("part", "source", "place")
        return mapped(placed, partial(_write_shuffled, self._schema, folder, drafts), WRITTEN)

    def _scattering(self, parts: int) -> Any:
        return partial(_scattered, self._perturbing(), _keyed(self._schema), parts)

    def _perturbing(self) -> Any:
        """How a task makes the published rows of its partition."""
        job = self._job
        if job.row_id is not None and not job.by_value:  # nothing depends on where a row stands
            return partial(_perturbed_by_id, job, self._schema, self._reading)
        surveys = each_partition(self._frame, partial(_surveyed, job, self._schema, self._reading))
        self._progress(job.rows, job.rows, "dealing")
        worker = Worker(job, self._schema)
        before, start, seen = {}, 0, worker.nothing_seen()
        for partition, survey in surveys.items():
            before[partition] = Survey(survey.rows, survey.digest, seen, start)
            start += survey.rows
            seen = added(seen, survey.seen)
        worker.finish(seen)
        if start != job.rows:
            raise changed()
        return partial(_perturbed, job, self._schema, self._reading, before)


# -- what tasks do -----------------------------------------------------------------------------------------------------


def _surveyed(job: Job, schema: pa.Schema, reading: Reading, partition: int, batches: Batches) -> Survey:
    worker = Worker(job, schema)
    seen, rows, state = worker.nothing_seen(), 0, hashlib.sha256()
    for batch in reading.batches(partition, batches):
        seen = added(seen, [part.counts(batch) for part in worker.parts])
        rows += batch.num_rows
        for values in content(batch):
            state.update(values)
    return Survey(rows, state.digest(), seen)


def _perturbed(
    job: Job, schema: pa.Schema, reading: Reading, before: Mapping[int, Survey], partition: int, batches: Batches
) -> Iterator[Piece]:
    worker, survey = Worker(job, schema), before.get(partition)
    if survey is None:
        raise changed()
    start, seen, state = survey.start, survey.seen, hashlib.sha256()
    for batch in reading.batches(partition, batches):
        if start + batch.num_rows > survey.start + survey.rows:
            raise changed()
        coded = worker.coded(batch, seen)
        seen = added(seen, [mine.counts for mine in coded])
        for values in content(batch):
            state.update(values)
        yield worker.perturb(batch, coded, start)
        start += batch.num_rows
    if state.digest() != survey.digest:
        raise changed()


def _perturbed_by_id(
    job: Job, schema: pa.Schema, reading: Reading, partition: int, batches: Batches
) -> Iterator[Piece]:
    """Draws and places in the published order are functions of the row's id."""
    worker = Worker(job, schema)
    for batch in reading.batches(partition, batches):
        made, _ = worker.perturb(batch, worker.coded(batch, worker.nothing_seen()), 0)
        words = worker.order.words_of(batch.column(job.row_id)) if job.shuffle else np.zeros(0, np.uint64)
        yield made, words


def _scattered(
    perturbing: Any, keyed: pa.Schema, parts: int, partition: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Published rows with their sort keys, cut by the part that they go to."""
    waiting: list[pa.RecordBatch] = []
    held = place = 0
    for batch, words in perturbing(partition, batches):
        keys = words if len(words) else np.zeros(batch.num_rows, np.uint64)
        waiting.append(pa.RecordBatch.from_arrays([*batch.columns, pa.array(keys)], schema=keyed))
        held += waiting[-1].nbytes
        if held >= min(MOST_BYTES, BLOB_BYTES * parts):
            yield from _cut(waiting, keyed, parts, partition, place)
            waiting, held, place = [], 0, place + 1
    if waiting:
        yield from _cut(waiting, keyed, parts, partition, place)


def _cut(
    batches: list[pa.RecordBatch], keyed: pa.Schema, parts: int, partition: int, place: int
) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(batches, keyed).combine_chunks()
    if parts == 1:
        yield _sent(0, partition, place, table)
        return
    words = table.column(table.num_columns - 1).to_numpy()
    target = ((words >> np.uint64(32)) * np.uint64(parts) >> np.uint64(32)).astype(np.int64)  # monotone in the key
    order = np.argsort(target, kind="stable")
    arranged, ends = table.take(pa.array(order)), np.cumsum(np.bincount(target, minlength=parts))
    start = 0
    for part, end in enumerate(ends.tolist()):
        if end > start:
            yield _sent(part, partition, place, arranged.slice(start, end - start))
        start = end


def _sent(part: int, source: int, place: int, table: pa.Table) -> pa.RecordBatch:
    row = {"part": [part], "source": [source], "place": [place], "rows": [as_bytes(table)]}
    return pa.RecordBatch.from_pydict(row, schema=_SENT_SCHEMA)


def _write_shuffled(
    schema: pa.Schema, folder: str, drafts: str, partition: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The parts that come to this task, one after the other; rows with equal keys stay in the order of the input."""
    keyed = _keyed(schema)
    rows = ((row["part"], row["rows"]) for batch in batches for row in batch.to_pylist())
    for part, blobs in groupby(rows, key=lambda row: row[0]):
        table, words = _unkeyed(pa.concat_tables([from_bytes(blob, keyed) for _, blob in blobs]))
        yield _write_part(part, [table.take(pa.array(order_of(words)))], schema, folder, drafts)


def _write_in_order(
    perturbing: Any, schema: pa.Schema, folder: str, drafts: str, partition: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The rows of a partition are a part."""
    pieces = (pa.Table.from_batches([batch]) for batch, _ in perturbing(partition, batches))
    yield _write_part(partition, pieces, schema, folder, drafts)


def _write_part(part: int, pieces: Iterable[pa.Table], schema: pa.Schema, folder: str, drafts: str) -> pa.RecordBatch:
    draft, rows = Path(drafts) / f"{part_name(part)}.{secrets.token_hex(8)}", 0
    with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for piece in rechunked(pieces, schema, ROW_GROUP):
            writer.write_table(piece, ROW_GROUP)
            rows += piece.num_rows
    digest = digest_of(draft)
    if rows:
        os.replace(draft, Path(folder) / part_name(part))
    written = {"part": [part], "digest": [digest], "rows": [rows]}
    return pa.RecordBatch.from_pydict(written, schema=_WRITTEN_SCHEMA)


# -- rows as bytes -----------------------------------------------------------------------------------------------------


def as_bytes(table: pa.Table) -> bytes:
    """Rows as Arrow bytes, without their columns' names and types, which whoever reads them knows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _numbered(table.schema)) as writer:
        writer.write_table(pa.table(table.columns, schema=_numbered(table.schema)))
    return bytes(sink.getvalue())


def from_bytes(data: bytes, schema: pa.Schema) -> pa.Table:
    """What ``as_bytes`` made of rows of this schema."""
    return pa.table(pa.ipc.open_stream(data).read_all().columns, schema=schema)


def _numbered(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(str(number), field.type) for number, field in enumerate(schema)])


def _keyed(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(SORT_KEY, pa.uint64()))


def _unkeyed(table: pa.Table) -> tuple[pa.Table, Words]:
    last = table.num_columns - 1  # by place: a table may have a column of that name
    return table.remove_column(last), table.column(last).to_numpy()


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches()
    return batch


# -- Counting the rows of a release by tasks, each on some row groups of its files -------------------------------------
# A tally adds up: tasks count their own rows, coded by the values of the whole table, and their counts are summed.


TASK_ROWS = 2**20
MOST_ENTRIES = 2**28  # of a tally, on this machine


@dataclass(frozen=True)
class Counting:
    """What a task counts with.

    Attributes:
        pieces: the rows of each task.
        manifest: of the release.
        derived: columns that are computed from others.
        values: the distinct values of columns in the whole table.
    """

    pieces: tuple[StoredRows, ...]
    manifest: Manifest
    derived: tuple[Derived, ...]
    values: Mapping[str, pa.Array]

    def counter(self, task: int) -> CodeCounter:
        """A counter of a task's rows, by codes of the whole table where its values are known."""
        own = local_counter(self.pieces[task], self.manifest).with_columns(self.derived)
        return own.under(self.values)


class SparkCounter:
    """Counts rows that are in files which every executor can read."""

    def __init__(
        self, session: SparkSession, stored: StoredRows, manifest: Manifest, derived: tuple[Derived, ...] = ()
    ) -> None:
        self._session = session
        self._counting = Counting(tuple(stored.cut(TASK_ROWS)), manifest, derived, {})
        self._stored, self._values = stored, dict[str, pa.Array]()
        self.rows = stored.rows

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a column, without missing."""
        self._know([column])
        return self._values[column]

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
        columns = [*groups, *(column for column, _ in masks), *values]
        work = partial(_tallied, list(groups), list(masks), classes, list(values), states)
        yield _added(self._on_partitions(columns, work))

    def coded(self, columns: Sequence[str], masks: Sequence[CodeMask], *, states: bool = False) -> CodedRows:
        """Every row's codes, pattern and state, on this machine (see ``core.tally.Counter``)."""
        work = methodcaller("coded", list(columns), list(masks), states=states)
        made = self._on_partitions([*columns, *(column for column, _ in masks)], work)
        arrays = zip(*((one.keys, one.patterns, one.states) for one in made), strict=True)
        return CodedRows(*(np.concatenate(pieces) for pieces in arrays))

    def conjunctions(self, questions: Sequence[Sequence[CodeMask]]) -> Floats:
        """For each conjunction of masks, the rows that satisfy it, by state."""
        conditions = [list(masks) for masks in questions]
        columns = [column for masks in conditions for column, _ in masks]
        counts: Floats = sum(self._on_partitions(columns, methodcaller("conjunctions", conditions)))
        return counts

    def with_columns(self, derived: Sequence[Derived]) -> SparkCounter:
        """A counter that has some more columns."""
        more = SparkCounter(self._session, self._stored, self._counting.manifest, (*self._counting.derived, *derived))
        names = {column.name for column in derived}
        more._values.update({name: values for name, values in self._values.items() if name not in names})
        return more

    def _know(self, columns: Iterable[str]) -> None:
        """Find the distinct values of columns that are not known yet."""
        wanted = [name for name in dict.fromkeys(columns) if name not in self._values]
        if not wanted:
            return
        made = self._run(self._counting, partial(_distinct, wanted))
        for name, arrays in zip(wanted, zip(*made, strict=True), strict=True):
            self._values[name] = pc.unique(pa.chunked_array(arrays))

    def _on_partitions(self, columns: Sequence[str], work: Callable[[CodeCounter], Any]) -> list[Any]:
        self._know(columns)
        known = {name: self._values[name] for name in dict.fromkeys(columns)}
        return self._run(replace(self._counting, values=known), work)

    def _run(self, counting: Counting, work: Callable[[CodeCounter], Any]) -> list[Any]:
        tasks = len(counting.pieces)
        frame = self._session.range(0, tasks, 1, tasks)
        return list(each_partition(frame, partial(_counted, counting, work)).values())


def _counted(counting: Counting, work: Callable[[CodeCounter], Any], task: int, batches: Batches) -> Any:
    return work(counting.counter(task))


def _distinct(columns: list[str], counter: CodeCounter) -> list[pa.Array]:
    return [counter.distinct(column) for column in columns]


def _tallied(
    groups: list[str], masks: list[CodeMask], classes: Ints, values: list[str], states: bool, counter: CodeCounter
) -> list[Block]:
    return list(counter.tally(groups, masks, classes, values, states=states))


def _added(tallies: Sequence[Sequence[Block]]) -> Block:
    """Blocks of several tasks as one: groups that occur in several have the sums of their counts."""
    blocks = [block for blocks in tallies for block in blocks if len(block.keys)]
    if not blocks:
        return tallies[0][0]
    keys, place = np.unique(np.concatenate([block.keys for block in blocks]), axis=0, return_inverse=True)
    entries = len(keys) * blocks[0].counts[0].size
    if entries > MOST_ENTRIES:
        raise QuestionError(
            f"The question has {len(keys):,} groups of {blocks[0].counts[0].size:,} counts each, more than can be "
            "answered. Fix: group by fewer columns, or ask about a part of the rows."
        )
    place = place.reshape(-1)
    moments = {
        name: Moments(
            *(
                _summed([getattr(block.moments[name], field) for block in blocks], place, len(keys))
                for field in ("rows", "sums", "squares")
            )
        )
        for name in blocks[0].moments
    }
    return Block(keys, _summed([block.counts for block in blocks], place, len(keys)), moments)


def _summed(arrays: Sequence[Floats], place: Ints, groups: int) -> Floats:
    total = np.zeros((groups, *arrays[0].shape[1:]))
    start = 0
    for array in arrays:
        np.add.at(total, place[start : start + len(array)], array)
        start += len(array)
    return total
