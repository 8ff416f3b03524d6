"""The Spark session that work runs in, and tables as Spark reads them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.core.errors import ColumnError, ExtraMissingError, OptionError, TableError, extra_missing
from deniable.engines.spark.tasks import spark_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    from deniable.engines.local.frames import to_table

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

    from deniable.engines.batch.values import plain_type

    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])
