"""Work on the partitions of a Spark data frame: the session it runs in, what tasks read, are given and return."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deniable.extend import (
    BATCH_ROWS,
    Bins,
    ColumnError,
    DeniableError,
    ExtraMissingError,
    Ints,
    OptionError,
    Plans,
    TableError,
    binned,
    binned_schema,
    extra_missing,
    option,
    rechunked,
    recoded,
    recoded_schema,
    require_short,
    without_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# -- Work on the partitions of a Spark data frame: what tasks are given and return, and how their errors come back -----


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


_KINDS: dict[str, type[DeniableError]] = {kind.__name__: kind for kind in DeniableError.__subclasses__()}
_KINDS[ColumnError.__name__] = ColumnError  # a kind of TableError


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
            raise _KINDS.get(kind, TableError)(words) from None
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


# -- The Spark session that work runs in, and tables as Spark reads them -----------------------------------------------


OLDEST_JAVA = 17
_ANSWER_SECONDS = 7  # with four programs that hang, less than half a minute
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
FORMATS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}
CSV = {"header": True, "inferSchema": True, "enforceSchema": False}
OTHERS = {".sav", ".zsav", ".dta", ".sas7bdat", ".xpt", ".xlsx", ".xlsm", ".xls"}


def java_version() -> int | None:
    """The Java that Spark would start, by its first number; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java is None:
        return None
    try:
        done = subprocess.run([java, "-version"], capture_output=True, timeout=_ANSWER_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(?:1\.)?(\d{1,9})', done.stderr.decode(errors="replace"))
    return None if version is None else int(version.group(1))


def session_of(master: str | None = None) -> SparkSession:
    """The session that is active, or a new one; ``master`` is where a new one runs (Spark's own setting if left out).

    Python workers use this interpreter, unless PYSPARK_PYTHON says otherwise.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise extra_missing("pyspark", "spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        if master is not None and active.conf.get("spark.master") != master:
            raise OptionError(
                f"master = {master!r}: a Spark session is running already, on {active.conf.get('spark.master')!r}. "
                "Fix: leave master out, or stop that session."
            )
        return active
    version = java_version()
    if version is None or version < OLDEST_JAVA:
        what = "there is none" if version is None else f"this is Java {version}"
        raise ExtraMissingError(
            f"Spark needs Java {OLDEST_JAVA} or newer; {what}. Fix: install it (Debian: openjdk-17-jre-headless), or "
            "set JAVA_HOME to where it is."
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("deniable").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR")
    if master is not None:
        builder = builder.master(master)
    with spark_problems():
        return builder.getOrCreate()


def frame_of(table: Any, master: str | None) -> DataFrame:
    """A Spark data frame as it is; a path, several, or a table's name as Spark reads it; anything else copied in."""
    if any(kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame" for kind in type(table).mro()):
        return table
    session = session_of(master)
    if isinstance(table, str | os.PathLike):
        return _read(session, [os.fspath(table)])
    if isinstance(table, list | tuple) and table and all(isinstance(path, str | os.PathLike) for path in table):
        return _read(session, [os.fspath(path) for path in table])
    from deniable.extend import to_table

    plain = to_table(table)
    with spark_problems():
        return session.createDataFrame(plain.cast(_without_dictionaries(plain.schema)))


def require_names(names: list[str]) -> None:
    """Refuse names that Spark would confuse: it does not tell capital letters from small ones."""
    lowered = [name.lower() for name in names]
    twice = [name for name in names if lowered.count(name.lower()) > 1]
    if twice:
        raise ColumnError(
            f"The table has the column {twice[0]!r} more than once (Spark reads capital and small letters alike). "
            "Fix: give each column a name of its own."
        )


def quoted(name: str) -> str:
    """A column's name as Spark's expressions have it."""
    return "`" + name.replace("`", "``") + "`"


def _read(session: SparkSession, paths: list[str]) -> DataFrame:
    first = paths[0]
    suffix = Path(first.rstrip("/")).suffix.lower()
    suffix = Path(first).with_suffix("").suffix.lower() if suffix == ".gz" else suffix
    if suffix in OTHERS:
        raise TableError(f"Spark does not read {suffix} files. Fix: leave --engine spark out, or write it as Parquet.")
    a_path = suffix in FORMATS or "/" in first or SCHEME.match(first) is not None or os.path.exists(first)
    with spark_problems():
        if not a_path:
            if len(paths) > 1:
                raise TableError("Of tables by name there can be one only. Fix: give one name, or paths.")
            return session.table(first)
        form = FORMATS.get(suffix, "parquet")
        options = {**CSV, **({"sep": "\t"} if suffix == ".tsv" else {})} if form == "csv" else {}
        return session.read.format(form).options(**options).load(paths)


def _without_dictionaries(schema: Any) -> Any:
    import pyarrow as pa

    from deniable.extend import plain_type

    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


# -- The rows of a partition, as a task reads them: in batches of one size, some left out, numbers as intervals --------


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
    plans: Plans = field(default_factory=dict)

    @property
    def read(self) -> pa.Schema:
        """What the columns are once they are read."""
        return binned_schema(recoded_schema(self.schema, self.plans), self.bins)

    def batches(self, partition: int, batches: Batches, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """What comes from Spark, in batches of ``rows`` rows whatever Spark's have."""
        start = self.starts.get(partition, 0)
        tables = (pa.Table.from_batches([batch]).cast(self.schema) for batch in batches)
        for table in rechunked(tables, self.schema, rows):
            for batch in table.to_batches():
                kept = without_rows(require_short(batch, start), self.gone, start)
                start += batch.num_rows
                coarse = recoded(kept, self.plans) if self.plans else kept
                yield binned(coarse, self.bins) if self.bins else coarse


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
