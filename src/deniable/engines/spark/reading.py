"""The rows of a partition, as a task reads them: in batches of one size, some left out, numbers as intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Ints
from deniable.core.bins import Bins
from deniable.core.errors import TableError, option
from deniable.engines.base import BATCH_ROWS
from deniable.engines.batch import binning, recoding
from deniable.engines.batch.shuffling import rechunked
from deniable.engines.batch.values import without_rows
from deniable.engines.spark.tasks import Batches

NO_ROWS: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Reading:
    """How a task reads its partition.

    Attributes:
        schema: of the columns, as the data frame has them.
        bins: of the columns that are read as intervals.
        plans: of the columns that are read coarser.
        gone: the numbers of rows that are left out, of the whole table, sorted.
        starts: the number of the first row of each partition, where rows are left out.
    """

    schema: pa.Schema
    bins: Mapping[str, Bins] = field(default_factory=dict)
    gone: Ints = field(default_factory=lambda: NO_ROWS)
    starts: Mapping[int, int] = field(default_factory=dict)
    plans: recoding.Plans = field(default_factory=dict)

    @property
    def read(self) -> pa.Schema:
        """What the columns are once they are read."""
        return binning.binned_schema(recoding.recoded_schema(self.schema, self.plans), self.bins)

    def batches(self, partition: int, batches: Batches, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """What comes from Spark, in batches of ``rows`` rows whatever Spark's have."""
        start = self.starts.get(partition, 0)
        tables = (pa.Table.from_batches([batch]).cast(self.schema) for batch in batches)
        for table in rechunked(tables, self.schema, rows):
            for batch in table.to_batches():
                kept = without_rows(batch, self.gone, start)
                start += batch.num_rows
                coarse = recoding.recoded(kept, self.plans) if self.plans else kept
                yield binning.binned(coarse, self.bins) if self.bins else coarse


def fed(scanner: Any, reading: Reading, partition: int, batches: Batches) -> Any:
    """A scanner that has seen the rows of a partition."""
    for batch in reading.batches(partition, batches):
        scanner.update(batch)
    return scanner


def merged(scanners: Mapping[int, Any]) -> Any:
    """One scanner that has seen the rows of all partitions."""
    first, *others = scanners.values()
    for other in others:
        first.merge(other)
    return first


def starts_of(rows: Mapping[int, int]) -> dict[int, int]:
    """The number of the first row of each partition, from how many rows each has."""
    starts, start = {}, 0
    for partition in sorted(rows):
        starts[partition] = start
        start += rows[partition]
    return starts


def changed() -> TableError:
    """The error for a table that is not the same twice."""
    return TableError(
        "The rows came in another order, or were others, when they were read again, so they cannot be numbered. Fix: "
        "publish from files that nobody writes to (write the data frame as Parquet first), or name the rows by a "
        f"column: {option('row_id', '')}."
    )
