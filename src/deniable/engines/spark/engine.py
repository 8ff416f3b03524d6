"""The Spark engine: tables on a cluster, published and counted by its tasks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.core.manifest import DataFile, Manifest
from deniable.core.tally import Counter
from deniable.engines.local.counter import local_counter
from deniable.engines.local.engine import LocalEngine
from deniable.engines.local.stored import StoredRows
from deniable.engines.spark.counter import SparkCounter
from deniable.engines.spark.dataset import SparkDataset
from deniable.engines.spark.rows import SparkRows
from deniable.engines.spark.session import frame_of, session_of


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
