"""A table on a cluster: scanned, digested and perturbed by tasks, each on the rows of its partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Ints
from deniable.core.bins import Bins, BinsLike, as_bins
from deniable.core.errors import OptionError, TableError, option
from deniable.core.labels import Labels
from deniable.core.recode import Steps
from deniable.core.replace import Replace
from deniable.engines.base import BATCH_ROWS, Domain, Job, PartJob, Progress, RangeScan, Scan, no_progress, repeated
from deniable.engines.batch import binning, recoding
from deniable.engines.batch.encoding import DomainScanner
from deniable.engines.batch.ranges import RangeScanner
from deniable.engines.batch.sketch import Sketch, Sketcher
from deniable.engines.batch.values import require_columns
from deniable.engines.batch.worker import published_schema
from deniable.engines.local.inspection import OrderWatch, identifier_warnings
from deniable.engines.randomness import Keystream
from deniable.engines.spark.digest import digest_of_frame
from deniable.engines.spark.reading import NO_ROWS, Reading, fed, merged, starts_of
from deniable.engines.spark.rows import SparkRows, as_bytes, from_bytes
from deniable.engines.spark.session import quoted, require_names
from deniable.engines.spark.tasks import Batches, each_partition, large_batches, mapped, spark_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        plans: recoding.Plans | None = None,
    ) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        require_names(frame.columns)
        self._frame = frame
        self._gone = gone
        self._rows = rows
        self._raw: pa.Schema = to_arrow_schema(frame.schema)
        self._plans: recoding.Plans = plans or {}
        self.recodes: Steps = recodes or {}
        self.said: tuple[str, ...] = recoding.said_of(self.recodes)
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
        binning.require_numbers(list(bins), self.schema)
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

        def counted(column: str, taken: tuple[recoding.Resolved, ...]) -> Scan:
            return SparkDataset(self._frame, plans={column: taken}).scan((column,))

        plans = recoding.resolved(recodes, self._raw, counted)
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
