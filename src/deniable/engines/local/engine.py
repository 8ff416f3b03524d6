"""The local engine: one machine, tables in memory or in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.core.manifest import DataFile, Manifest
from deniable.core.tally import Counter
from deniable.engines.local import storage
from deniable.engines.local.counter import local_counter
from deniable.engines.local.dataset import LocalDataset
from deniable.engines.local.files import open_source


class LocalEngine:
    """Reads CSV, Parquet and any data frame; threads, and files for what does not fit into memory."""

    name = "local"

    def open(self, table: Any) -> LocalDataset:
        return LocalDataset(open_source(table))

    def write(self, pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, form: str) -> DataFile:
        return DataFile(path.name, form, storage.write_table(pieces, schema, path, form))

    def read(self, path: Path, file: DataFile, types: Mapping[str, str]) -> pa.Table:
        return storage.read_table(path, file.format, types)

    def describe(self, path: Path, file: DataFile, types: Mapping[str, str]) -> tuple[list[str], int]:
        return storage.describe(path, file.format, types)

    def counter(self, table: pa.Table | Path, manifest: Manifest) -> Counter:
        return local_counter(table, manifest)
