"""Any table as a stream of record batches: the same rows in the same order each time it is read."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.core.errors import ColumnError, TableError, listing
from deniable.core.values import Labels
from deniable.tables.base import BATCH_ROWS
from deniable.tables.csv import CsvPart, TypeInference
from deniable.tables.encoding import require_columns
from deniable.tables.formats import FileFormat, recognise, require_utf8, to_table, without_view

# -- Parquet files as a stream of record batches -----------------------------------------------------------------------


BUFFER = 2**20
FOLDED_BYTES = 4  # a value, in a file that holds a column as a dictionary and not as the texts themselves
FOLDED_ROWS = 2**14  # a row group: batches of dictionaries end where it does


class ParquetPart:
    """One Parquet file: its schema and rows come from the footer, its batches are read as asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.schema: pa.Schema = _schema_of(file, path)
            self.rows: int = file.metadata.num_rows
            self._foldable = _foldable(file, self.schema)
        self.labels: Mapping[str, Labels] = {}
        self.warned: Mapping[str, Sequence[str]] = {}

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns, in file order; only their bytes are read. Texts that the file holds as dictionaries are read so,
        which takes a third of the time, and stay so where they may be ``folded``."""
        foldable = [name for name in columns if name in self._foldable]
        before = 0
        with self._open(foldable) as file:
            try:
                # Parquet selects by dotted path, so "a" would also bring "a.b": select again by name.
                wanted = pa.schema([self._field(name, folded) for name in columns])
                for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns)):
                    typed = batch.select(list(columns)).cast(wanted)
                    require_utf8([typed], f"The Parquet file '{self.path}'", before)
                    yield typed
                    before += typed.num_rows
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise _damaged(self.path) from None

    def _field(self, name: str, folded: bool) -> pa.Field:
        field = self.schema.field(name)
        return field.with_type(pa.dictionary(pa.int32(), field.type)) if folded and name in self._foldable else field

    def _open(self, folded: Sequence[str] = ()) -> Any:
        try:
            # Pre-buffering, the default, holds the whole file's bytes in memory while it is read.
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER, read_dictionary=list(folded))
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise _damaged(self.path) from None


def _foldable(file: Any, schema: pa.Schema) -> frozenset[str]:
    """The columns of texts that the file holds as dictionaries."""
    metadata = file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if not groups or metadata.num_rows < FOLDED_ROWS * len(groups):
        return frozenset()
    held = [[group.column(place) for group in groups] for place in range(metadata.num_columns)]
    short = {
        chunks[0].path_in_schema
        for chunks in held
        if all(
            one.has_dictionary_page and one.total_uncompressed_size <= FOLDED_BYTES * one.num_values for one in chunks
        )
    }
    return frozenset(field.name for field in schema if field.type == pa.string() and field.name in short)


def _schema_of(file: Any, path: Path) -> pa.Schema:
    try:
        return pa.schema([field.with_type(without_view(field.type)) for field in file.schema_arrow])
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _damaged(path) from None


def _damaged(path: Path) -> TableError:
    return TableError(
        f"The Parquet file '{path}' is damaged or cut short: its pages or its footer cannot be read. "
        "Fix: copy or write the file again."
    )


# -- Any table as a stream of record batches: the same rows in the same order each time it is read ---------------------


# The readers of other programs' files stand in a house of their own, which is imported when such a file is opened.
READERS = {"excel": "deniable.files.workbook:SheetPart"}
OTHER_PROGRAMS = "deniable.files.statistical:CodedPart"


class FilePart(Protocol):
    """One file of a table."""

    path: Path
    schema: pa.Schema
    rows: int
    labels: Mapping[str, Labels]
    warned: Mapping[str, Sequence[str]]

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """As those of a source; a file without dictionaries of its own passes over ``folded``."""
        ...


class Source(Protocol):
    """A table that can be read again and again."""

    @property
    def names(self) -> list[str]:
        """The column names, in order."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def rows(self) -> int | None:
        """The number of rows, if known without another pass."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are held in memory already."""

    @property
    def labels(self) -> Mapping[str, Labels]:
        """What the codes of a column stand for, where the table says it."""

    @property
    def warned(self) -> Mapping[str, Sequence[str]]:
        """What an owner should know about how a column was read."""

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns in the order asked for, at most ``batch_rows`` rows at a time, in row order; texts may be
        dictionaries where they may be ``folded``."""


def open_source(table: Any) -> Source:
    """A path, glob pattern, list of paths, or any data frame, as a source."""
    if isinstance(table, str | os.PathLike):
        return FileSource(_expand(table))
    if isinstance(table, list | tuple) and all(isinstance(path, str | os.PathLike) for path in table):
        if not table:
            raise TableError("The list of paths is empty. Fix: give at least one file.")
        return FileSource([path for pattern in table for path in _expand(pattern)])
    return TableSource(to_table(table))


class TableSource:
    """A table in memory."""

    in_memory = True

    def __init__(self, table: pa.Table) -> None:
        _refuse_duplicates(table.schema.names, "The table")
        require_utf8(table.to_batches(), "The table")
        self.labels: Mapping[str, Labels] = {}
        self.warned: Mapping[str, Sequence[str]] = {}
        self._table = table
        self.schema: pa.Schema = table.schema
        self.names: list[str] = list(table.schema.names)
        self.rows: int = table.num_rows

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns in the order asked for, in row order."""
        require_columns(columns, self.names)
        yield from self._table.select(list(columns)).to_batches(max_chunksize=batch_rows)


class FileSource:
    """One or several files with the same columns, read in the order given, a bounded part at a time."""

    in_memory = False

    def __init__(self, paths: Sequence[Path]) -> None:
        forms = [recognise(path) for path in paths]
        self._stamps = [_stamp(form.path) for form in forms]
        self._parts: list[FilePart] = [_part(form) for form in forms]
        for part in self._parts:
            _refuse_duplicates(part.schema.names, f"The file '{part.path}'")
        self._refuse_different_names()
        self._infer_csv_types()
        self._refuse_different_types()
        self.labels: Mapping[str, Labels] = self._common_labels()
        self.warned: Mapping[str, Sequence[str]] = self._said_of_columns()
        self.schema: pa.Schema = self._parts[0].schema
        self.names: list[str] = list(self.schema.names)
        self.rows: int = sum(part.rows for part in self._parts)

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns in the order asked for, in row order, file after file."""
        require_columns(columns, self.names)
        for part, stamp in zip(self._parts, self._stamps, strict=True):
            # Two passes over different rows would perturb with a plan for another table.
            if _stamp(part.path) != stamp:
                raise TableError(f"The file '{part.path}' changed while it was read. Fix: publish from a copy of it.")
            yield from part.batches(columns, batch_rows, folded)

    def _infer_csv_types(self) -> None:
        files = [part for part in self._parts if isinstance(part, CsvPart)]
        if not files:
            return
        inference = TypeInference(files[0].names)
        for part in files:
            part.scan(inference)
        for part in files:
            part.set_types(inference.types())
            part.warned = inference.said()

    def _common_labels(self) -> dict[str, Labels]:
        """Labels that all files agree on: one code must not stand for two answers."""
        first = self._parts[0].labels.items()
        return {name: own for name, own in first if all(part.labels.get(name) == own for part in self._parts)}

    def _said_of_columns(self) -> dict[str, list[str]]:
        said: dict[str, list[str]] = {}
        for part in self._parts:
            for name, warnings in part.warned.items():
                said.setdefault(name, []).extend(words for words in warnings if words not in said.get(name, ()))
        return said

    def _refuse_different_names(self) -> None:
        first = self._parts[0]
        for part in self._parts[1:]:
            odd = sorted(set(part.schema.names) ^ set(first.schema.names))
            if odd:
                raise ColumnError(
                    f"The files '{first.path}' and '{part.path}' have different columns: {listing(odd)} "
                    f"{'is' if len(odd) == 1 else 'are'} in one only. Fix: give all files the same columns."
                )

    def _refuse_different_types(self) -> None:
        first = self._parts[0]
        for part in self._parts[1:]:
            for field in first.schema:
                other = part.schema.field(field.name).type
                if other != field.type:
                    raise ColumnError(
                        f"The column {field.name!r} is {field.type} in '{first.path}' and {other} in '{part.path}'. "
                        "Fix: give it the same type in all files."
                    )


def _part(form: FileFormat) -> FilePart:
    if form.kind == "csv":
        return CsvPart(form)
    if form.kind == "parquet":
        return ParquetPart(form.path)
    module, _, kind = READERS.get(form.kind, OTHER_PROGRAMS).partition(":")
    part: FilePart = getattr(import_module(module), kind)(form)
    return part


def _refuse_duplicates(names: Sequence[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(
            f"{what} has the column {twice[0]!r} {names.count(twice[0])} times. "
            "Fix: give each column a name of its own."
        )


def _expand(pattern: str | os.PathLike[str]) -> list[Path]:
    """The file itself, or the files that match a pattern, sorted by name."""
    text = os.fspath(pattern)
    if os.path.exists(text) or not glob.has_magic(text):
        return [Path(text)]
    paths = sorted(path for path in glob.glob(text, recursive=True) if not os.path.isdir(path))
    if not paths:
        raise TableError(f"No file matches '{text}'. Fix: check the pattern; the folder is '{os.getcwd()}'.")
    return [Path(path) for path in paths]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        raise TableError(f"The file '{path}' is no longer there. Fix: publish from a copy of it.") from None
    return status.st_size, status.st_mtime_ns
