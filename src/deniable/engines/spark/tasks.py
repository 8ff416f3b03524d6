"""Work on the partitions of a Spark data frame: what tasks are given and return, and how their errors come back."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deniable.core import errors
from deniable.core.errors import DeniableError, TableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
RECORDS_AT_ONCE = 2**16
RESULT = "partition int, result binary"
Batches = Iterable[pa.RecordBatch]
Work = Callable[[int, Batches], Any]
_MARK = "deniable says "
_RESULT_SCHEMA = pa.schema([pa.field("partition", pa.int32()), pa.field("result", pa.binary())])


def each_partition(frame: DataFrame, work: Work) -> dict[int, Any]:
    """What ``work(partition, batches)`` returns for each partition, in their order."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        with carried_errors():
            partition = partition_number()
            result = pickle.dumps(work(partition, batches))
        yield pa.RecordBatch.from_pydict({"partition": [partition], "result": [result]}, schema=_RESULT_SCHEMA)

    with spark_problems(), large_batches(frame.sparkSession):
        done = frame.mapInArrow(task, RESULT).collect()
    return {row.partition: pickle.loads(row.result) for row in sorted(done, key=lambda row: row.partition)}


def mapped(frame: DataFrame, work: Callable[[int, Batches], Iterator[pa.RecordBatch]], schema: Any) -> DataFrame:
    """The batches that ``work(partition, batches)`` makes, as another data frame."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        with carried_errors():
            yield from work(partition_number(), batches)

    return frame.mapInArrow(task, schema)


@contextlib.contextmanager
def large_batches(session: SparkSession) -> Iterator[None]:
    """While a job runs, Spark hands more rows to Python at once than its 10,000: half the time goes into handing over.
    Spark bounds their bytes by itself."""
    before = session.conf.get(RECORDS)
    session.conf.set(RECORDS, str(RECORDS_AT_ONCE))
    try:
        yield
    finally:
        session.conf.set(RECORDS, str(before))


def partition_number() -> int:
    """Which partition a task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


@contextlib.contextmanager
def carried_errors() -> Iterator[None]:
    """In a task: an error that is meant for the user, in words that survive the way through the cluster."""
    try:
        yield
    except DeniableError as problem:
        raise RuntimeError(f"{_MARK}{json.dumps([type(problem).__name__, str(problem)])}") from None


@contextlib.contextmanager
def spark_problems() -> Iterator[None]:
    """In the driver: errors of tasks as they were meant, and Spark's own in one line that holds no value of a row."""
    try:
        yield
    except DeniableError:
        raise
    except Exception as problem:
        said = re.search(re.escape(_MARK) + r"(\[\".*\"\])", str(problem))
        if said is not None:
            kind, words = json.loads(said.group(1))
            raise getattr(errors, kind, TableError)(words) from None
        if type(problem).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise TableError(f"Spark could not do this: {_in_one_line(problem)}") from None


def _in_one_line(problem: Any) -> str:
    """What Spark found wrong with names and paths; of anything that happened among the rows, only what kind it was."""
    kind = type(problem).__name__
    if kind in ("AnalysisException", "ParseException"):
        return str(problem).strip().splitlines()[0][:300]
    condition = getattr(problem, "getCondition", lambda: None)()
    return f"{kind}{f' ({condition})' if condition else ''}. Fix: see Spark's log, which may hold values of the table."
