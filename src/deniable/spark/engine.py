"""The Spark engine: tables on a cluster, scanned, digested, published and counted by tasks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deniable.extend import (
    BATCH_ROWS,
    PIECE_ROWS,
    Bins,
    BinsLike,
    Counter,
    DataFile,
    Domain,
    DomainScanner,
    Ints,
    Job,
    Keystream,
    Labels,
    LocalEngine,
    Manifest,
    OptionError,
    OrderWatch,
    PartJob,
    Plans,
    Progress,
    RangeScan,
    RangeScanner,
    Replace,
    Resolved,
    Scan,
    Sketch,
    Sketcher,
    Steps,
    StoredRows,
    TableError,
    as_bins,
    content_schema,
    digest_of_piece,
    digest_of_pieces,
    identifier_warnings,
    local_counter,
    no_progress,
    option,
    published_schema,
    rare_note,
    repeated,
    require_columns,
    require_numbers,
    resolved,
)
from deniable.spark.rows import SparkCounter, SparkRows, as_bytes, from_bytes
from deniable.spark.tasks import (
    NO_ROWS,
    Batches,
    Reading,
    carried_errors,
    changed,
    each_partition,
    fed,
    frame_of,
    large_batches,
    mapped,
    merged,
    quoted,
    require_names,
    session_of,
    spark_problems,
    starts_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# -- The digest of a table whose rows are on many machines: the same as on one -----------------------------------------
# A digest is that of pieces of 2^18 rows (``batch.content``). A task hashes the pieces that lie wholly in its
# partition; what straddles two partitions is sent to one task as Arrow bytes, and hashed there.


FRAGMENTS = "piece long, first long, digest binary, rows binary"
_SCHEMA = pa.schema(
    [
        pa.field("piece", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("digest", pa.binary()),
        pa.field("rows", pa.binary()),
    ]
)


def digest_of_frame(frame: DataFrame, reading: Reading, rows: Mapping[int, int]) -> str:
    """The digest of the rows in the order of the partitions; ``rows`` says how many each has."""
    total = sum(rows.values())
    work = partial(_fragments, reading, starts_of(rows), dict(rows), total)
    with spark_problems(), large_batches(frame.sparkSession):
        fragments = mapped(frame, work, FRAGMENTS)
        join = _grouped(partial(_joined, total))
        joined = fragments.groupBy("piece").applyInArrow(join, "piece long, digest binary").collect()
    digests = {row.piece: bytes(row.digest) for row in joined}
    if not digests:
        return digest_of_pieces([digest_of_piece(content_schema(reading.read).empty_table(), True)])
    return digest_of_pieces(digests[number] for number in range(len(digests)))


def _grouped(join: Any) -> Any:
    def task(table: pa.Table) -> pa.Table:
        with carried_errors():
            return join(table)

    return task


def _fragments(
    reading: Reading,
    starts: Mapping[int, int],
    counted: Mapping[int, int],
    total: int,
    partition: int,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """The digests of the pieces in a partition, and the rows of those that are in others too."""
    place = start = starts.get(partition, 0)
    waiting: list[pa.RecordBatch] = []
    for batch in reading.batches(partition, batches):
        while batch.num_rows:
            room = PIECE_ROWS - place % PIECE_ROWS
            waiting.append(batch.slice(0, room))
            place += waiting[-1].num_rows
            batch = batch.slice(room)
            if place % PIECE_ROWS == 0:
                yield _fragment(waiting, place, total)
                waiting = []
    if waiting:
        yield _fragment(waiting, place, total)
    if place - start != counted.get(partition, 0):
        raise changed()


def _fragment(batches: list[pa.RecordBatch], end: int, total: int) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    first = end - table.num_rows
    piece = first // PIECE_ROWS
    whole = first == piece * PIECE_ROWS and end == min(first + PIECE_ROWS, total)
    digest = _digest(table, piece) if whole else b""
    return pa.RecordBatch.from_pydict(
        {"piece": [piece], "first": [first], "digest": [digest], "rows": [b"" if whole else _as_bytes(table)]},
        schema=_SCHEMA,
    )


def _joined(total: int, fragments: pa.Table) -> pa.Table:
    """The digest of one piece."""
    held = sorted(fragments.to_pylist(), key=lambda fragment: fragment["first"])
    piece = held[0]["piece"]
    digest = held[0]["digest"]
    if not digest:
        table = pa.concat_tables([pa.ipc.open_stream(fragment["rows"]).read_all() for fragment in held])
        if table.num_rows != min(PIECE_ROWS, total - piece * PIECE_ROWS):
            raise changed()
        digest = _digest(table, piece)
    return pa.table({"piece": pa.array([piece], pa.int64()), "digest": pa.array([digest], pa.binary())})


def _digest(table: pa.Table, piece: int) -> bytes:
    return digest_of_piece(table.cast(content_schema(table.schema)).combine_chunks(), piece == 0)


def _as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


# -- A table on a cluster: scanned, digested and perturbed by tasks, each on the rows of its partition -----------------


NUMBER = "deniable row number"


class SparkDataset:
    """A Spark data frame, with some columns recoded, some numbers read as bins, and without some rows. Rows are in the
    order of the partitions, and of the rows in each; a task that finds them otherwise than they were counted fails."""

    def __init__(
        self,
        frame: DataFrame,
        bins: Mapping[str, Bins] | None = None,
        gone: Ints = NO_ROWS,
        rows: int | None = None,
        recodes: Steps | None = None,
        plans: Plans | None = None,
    ) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        require_names(frame.columns)
        self._frame = frame
        self._gone = gone
        self._rows = rows
        self._raw: pa.Schema = to_arrow_schema(frame.schema)
        self._plans: Plans = plans or {}
        self.recodes: Steps = recodes or {}
        self.said: tuple[str, ...] = rare_note(self.recodes)
        self.labels: Mapping[str, Labels] = {}  # no table that Spark reads has some
        self.bins: Mapping[str, Bins] = bins or {}
        self.schema: pa.Schema = Reading(self._raw, self.bins, plans=self._plans).read
        self.names: list[str] = list(frame.columns)

    @property
    def rows(self) -> int | None:
        """How many there are, once they were counted."""
        return self._rows

    # -- the rows of tasks ---------------------------------------------------------------------------------------------

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, Reading]:
        """Some columns, and how tasks read them."""
        require_columns(columns, self.names)
        with spark_problems():
            frame = self._frame.select(*map(quoted, columns))
        schema = pa.schema([self._raw.field(name) for name in columns])
        bins = {name: bins for name, bins in self.bins.items() if name in columns}
        plans = {name: plan for name, plan in self._plans.items() if name in columns}
        starts = starts_of(_rows_of(frame, Reading(schema))) if len(self._gone) else {}
        return frame, Reading(schema, bins, self._gone, starts, plans)

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The columns, in row order, on this machine: a partition at a time comes from the cluster."""
        frame, reading = self.selected(columns)
        schema = reading.read
        sent = mapped(frame, partial(_sent, reading, batch_rows), "rows binary")
        with spark_problems(), large_batches(frame.sparkSession):
            for row in sent.toLocalIterator():
                yield from from_bytes(row.rows, schema).to_batches()

    def digest(self, columns: Sequence[str] | None = None, by: str | None = None) -> str:
        """The same as of the same rows in one file; with ``by``, the rows are sorted by that column first."""
        wanted = list(self.names if columns is None else columns)
        if by is None:
            frame, reading = self.selected(wanted)
            return digest_of_frame(frame, reading, _rows_of(frame, reading))
        return self._sorted_digest(wanted, by)

    def _sorted_digest(self, columns: list[str], by: str) -> str:
        """Rows with equal ids stay in their order. Where Spark cuts what it sorts is not the same twice, so the sorted
        rows are kept until they are hashed."""
        from pyspark.sql.pandas.types import from_arrow_schema

        frame, reading = self.selected(columns)
        schema = reading.read
        work = partial(_numbered, reading, starts_of(_rows_of(frame, reading)))
        with spark_problems(), large_batches(frame.sparkSession):
            numbered = mapped(frame, work, from_arrow_schema(schema.append(pa.field(NUMBER, pa.int64()))))
            arranged = numbered.sort(quoted(by), quoted(NUMBER)).drop(NUMBER).persist()
            try:
                return digest_of_frame(arranged, Reading(schema), _rows_of(arranged, Reading(schema)))
            finally:
                arranged.unpersist()

    # -- other datasets ------------------------------------------------------------------------------------------------

    def binned(self, bins: Mapping[str, BinsLike], keys: Keystream | None = None) -> SparkDataset:
        """With numbers read as intervals, whose edges are given."""
        if not bins:
            return self
        require_numbers(list(bins), self.schema)
        edges: dict[str, Bins] = {}
        for column, given in bins.items():
            wanted = as_bins(given)
            if not isinstance(wanted, Bins):
                edges_of = option("bins", f"{{{column!r}: [0, 10, 20]}}", f"{column}=0,10,20")
                raise OptionError(
                    f"bins of {column!r} as quantiles need all its numbers in one place. Fix: give edges, for example "
                    f"{edges_of}, or publish with {option('engine', 'local')}."
                )
            edges[column] = wanted
        return SparkDataset(self._frame, {**self.bins, **edges}, self._gone, self._rows, self.recodes, self._plans)

    def recoded(self, recodes: Steps) -> SparkDataset:
        """With columns read coarser. What is rare is counted here, in a pass over each such column."""
        if not recodes:
            return self
        if self.recodes or self.bins or len(self._gone):
            raise TableError("This table was recoded, binned or shortened before; recode it first, and once.")

        def counted(column: str, taken: tuple[Resolved, ...]) -> Scan:
            return SparkDataset(self._frame, plans={column: taken}).scan((column,))

        plans = resolved(recodes, self._raw, counted)
        return SparkDataset(self._frame, rows=self._rows, recodes=recodes, plans=plans)

    def without(self, rows: Ints) -> SparkDataset:
        """Without the rows that have these numbers; they are never counted, dealt or perturbed."""
        if len(self._gone):
            raise TableError("Rows were left out of this table before; leave out all of them at once.")
        left = None if self._rows is None else self._rows - len(rows)
        return SparkDataset(self._frame, self.bins, np.sort(rows), left, self.recodes, self._plans)

    # -- scans ---------------------------------------------------------------------------------------------------------

    def scan(
        self, columns: tuple[str, ...], missing: str = "value", domain: Domain = None, progress: Progress = no_progress
    ) -> Scan:
        """Count the values of some columns together."""
        orders = {column: tuple(bins.labels) for column, bins in self.bins.items()}
        scanned: Scan = self._fed(DomainScanner(columns, self.schema, orders), columns).scan(missing, domain)
        self._rows = scanned.rows
        progress(scanned.rows, scanned.rows, "counting")
        return scanned

    def scan_range(self, column: str, replace: Replace, missing: str, progress: Progress = no_progress) -> RangeScan:
        """Check that a column's values lie in the declared range, and find its grid."""
        scanner = RangeScanner(column, self.schema.field(column).type, replace)
        scanned: RangeScan = self._fed(scanner, [column]).scan(missing)
        self._rows = scanned.rows
        progress(scanned.rows, scanned.rows, "counting")
        return scanned

    def _fed(self, scanner: Any, columns: Sequence[str]) -> Any:
        frame, reading = self.selected(columns)
        return merged(each_partition(frame, partial(fed, scanner, reading)))

    def require_distinct(self, row_id: str, keys: Keystream) -> None:
        """Refuse a row id that names two rows: their draws would be the same."""
        frame, reading = self.selected([row_id])
        with spark_problems(), large_batches(frame.sparkSession):
            words = mapped(frame, partial(_words, reading, row_id, keys), "word long")
            twice = words.groupBy("word").count().where("count > 1").head(1)
        if twice:
            raise repeated(row_id)

    def sketch(self, keys: Keystream) -> Sketch:
        sketch: Sketch = self._fed(Sketcher(keys), self.names).sketch()
        return sketch

    def said_of_reading(self, columns: Sequence[str]) -> list[str]:
        """Nothing: what Spark hands over is read as it is."""
        return []

    def inspect(self, public: Sequence[str], parts: Sequence[PartJob] = ()) -> list[str]:
        """Public columns that look like identifiers; parts whose values the order of the rows predicts."""
        warned = identifier_warnings(self, list(public))
        for work in parts:
            frame, reading = self.selected(list(work.part.columns))
            watch = merged(each_partition(frame, partial(_watched, work.encoder, reading)))
            warned += watch.warnings(", ".join(work.part.columns))
        return warned

    # -- execution -----------------------------------------------------------------------------------------------------

    def published_schema(self, job: Job) -> pa.Schema:
        return published_schema(self.schema, job)

    def execute(self, job: Job, spool: Path | None = None) -> SparkRows:
        """The published rows, made where they are wanted: on this machine, or in files that tasks write."""
        if any(work.part.swapped for work in job.parts):
            raise OptionError(
                "replacing='swapping' exchanges values between any two rows of the table, which are on different "
                f"machines here. Fix: another replacing=, or publish with {option('engine', 'local')}."
            )
        frame, reading = self.selected(job.columns)
        return SparkRows(frame, reading, job, self.published_schema(job), spool)


def _rows_of(frame: DataFrame, reading: Reading) -> dict[int, int]:
    """How many rows each partition has, counted in the columns that are read next: Spark may cut others elsewhere."""
    return each_partition(frame, partial(_counted, reading))


def _counted(reading: Reading, partition: int, batches: Batches) -> int:
    return sum(batch.num_rows for batch in reading.batches(partition, batches))


def _sent(reading: Reading, batch_rows: int, partition: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in reading.batches(partition, batches, batch_rows):
        yield pa.RecordBatch.from_pydict({"rows": [as_bytes(pa.Table.from_batches([batch]))]})


def _numbered(
    reading: Reading, starts: Mapping[int, int], partition: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    start = starts.get(partition, 0)
    for batch in reading.batches(partition, batches):
        numbers = pa.array(np.arange(start, start + batch.num_rows))
        start += batch.num_rows
        yield batch.append_column(NUMBER, numbers)


def _words(
    reading: Reading, row_id: str, keys: Keystream, partition: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    for batch in reading.batches(partition, batches):
        words = keys.words_of(batch.column(row_id)).view(np.int64)
        yield pa.RecordBatch.from_pydict({"word": words})


def _watched(encoder: Any, reading: Reading, partition: int, batches: Batches) -> OrderWatch:
    watch = OrderWatch(encoder.m)
    for batch in reading.batches(partition, batches):
        watch.update(encoder.encode(batch))
    return watch


# -- The Spark engine: tables on a cluster, published and counted by its tasks -----------------------------------------


class SparkEngine:
    """Reads whatever Spark reads, and runs in the active Spark session, or in a new one.

    Args:
        master: where a new session runs, for example ``"local[4]"`` or ``"yarn"``; Spark's own setting if left out.
    """

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        self._master = master
        self._local = LocalEngine()
        # Said at every call where pandas is newer than Spark; no frame of pandas is made here.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

    def open(self, table: Any) -> SparkDataset:
        return SparkDataset(frame_of(table, self._master))

    def write(self, pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, form: str) -> DataFile:
        if isinstance(pieces, SparkRows) and form == "parquet":
            return DataFile(path.name, form, pieces.write(path))
        return self._local.write(pieces, schema, path, form)

    def read(self, path: Path, file: DataFile, types: Mapping[str, str]) -> pa.Table:
        return self._local.read(path, file, types)

    def describe(self, path: Path, file: DataFile, types: Mapping[str, str]) -> tuple[list[str], int]:
        return self._local.describe(path, file, types)

    def counter(self, table: pa.Table | Path, manifest: Manifest) -> Counter:
        if isinstance(table, pa.Table):
            return local_counter(table, manifest)
        return SparkCounter(session_of(self._master), StoredRows.at(table.absolute()), manifest)
