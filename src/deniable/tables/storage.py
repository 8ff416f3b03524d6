"""Published tables as files, and read back: Parquet, whole or in parts, or CSV with types that its manifest names."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from deniable.core.errors import ManifestError, OptionError, OutputError, option
from deniable.core.learned import NUMBERS, Learned
from deniable.core.manifest import DataFile
from deniable.core.part import Part
from deniable.tables.base import ROW_GROUP
from deniable.tables.encoding import LIST, arrow_type, plain_type, require_readable_csv
from deniable.tables.lineups import from_json, to_json

# -- A published table in parts: a folder of Parquet files that are read in the order of their names -------------------
# Its digest is the SHA-256 of what `sha256sum` prints for the parts, so that anyone can compute it without reading them
# in one go: `cd data.parquet && sha256sum * | sha256sum`.


NAME = re.compile(r"part-\d{5,}\.parquet")


def part_name(number: int) -> str:
    """Names sort as their numbers do.

    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"


def parts_of(path: Path) -> list[Path]:
    """The files of a published table: itself, or the parts in it; refused where a folder holds anything else."""
    if not path.is_dir():
        return [path]
    parts = sorted(path.iterdir())
    strange = [part for part in parts if part.is_symlink() or not part.is_file() or not NAME.fullmatch(part.name)]
    if strange or not parts:
        what = f"{strange[0].name!r}, which is no part of it" if strange else "no part"
        raise ManifestError(f"{path.name} of the release holds {what}: a table in parts has files like {part_name(0)}.")
    return parts


def digest_of(path: Path) -> str:
    """The SHA-256 of a file; of a table in parts the one of their listing."""
    if path.is_dir():
        return digest_of_parts((part.name, digest_of(part)) for part in parts_of(path))
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_parts(digests: Iterable[tuple[str, str]]) -> str:
    """The digest of a table in parts, from the name and the digest of each."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests))
    return hashlib.sha256(listing.encode()).hexdigest()


# -- The noisy tables of a learned release and the parameters of its model, in a file of their own ---------------------


def model_table(learned: Learned) -> pa.Table:
    """The table ``tables``: a row for every level and value."""
    return pa.table({name: pa.array(numbers) for name, numbers in learned.numbers().items()})


def read_model(path: Path, file: DataFile, part: Part) -> Part:
    """A learned part with the counts and parameters of its file."""
    assert part.learned is not None
    read = read_table(path, file.format, dict.fromkeys(NUMBERS, "int64"))
    if tuple(read.column_names) != NUMBERS:
        raise ManifestError(f"{path.name} of the release has other columns than {', '.join(NUMBERS)}.")
    if any(column.null_count or not pa.types.is_integer(column.type) for column in read.columns):
        raise ManifestError(f"{path.name} of the release holds something that is no whole number.")
    numbers = {name: read[name].to_numpy().astype("int64") for name in NUMBERS}
    return replace(part, learned=part.learned.with_numbers(numbers, part.m))


# -- Published rows in Parquet files, a column at a time: a file, the parts of a table, or some row groups of either.


TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
DICTIONARY_BYTES = 2**30  # a dictionary's places are 32 bits


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a Parquet file, and how many rows they have."""

    path: Path
    groups: tuple[int, ...]
    rows: int

    def column(self, name: str) -> pa.ChunkedArray:
        """A column. Texts come as the dictionaries that the file holds, instead of being looked up row by row; where a
        row group has more than one dictionary can, they come as they are."""
        # Not pq.read_table, which would take dots and brackets in a name for a path.
        with pq.ParquetFile(self.path) as file:
            kind = file.schema_arrow.field(name).type
            groups = (file.metadata.row_group(group) for group in self.groups)
            if kind not in TEXTS or any(_bytes(group, name) > DICTIONARY_BYTES for group in groups):
                return file.read_row_groups(self.groups, columns=[name])[name]
        with pq.ParquetFile(self.path, read_dictionary=[name]) as file:
            read = file.read_row_groups(self.groups, columns=[name])[name]
        chunks = [pa.DictionaryArray.from_arrays(one.indices, one.dictionary.cast(kind)) for one in read.chunks]
        return pa.chunked_array(chunks, pa.dictionary(pa.int32(), kind))


@dataclass(frozen=True)
class StoredRows:
    """Published rows, in order."""

    pieces: tuple[RowGroups, ...]

    @classmethod
    def at(cls, path: Path) -> StoredRows:
        """All rows of a published table."""
        return cls(tuple(_whole(part) for part in parts_of(path)))

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all rows."""
        columns = [piece.column(name) for piece in self.pieces]
        if len(columns) == 1:
            return columns[0]
        if len({column.type for column in columns}) > 1:  # a part whose texts are too large for a dictionary
            columns = [column.cast(plain_type(column.type)) for column in columns]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)

    def cut(self, rows: int) -> list[StoredRows]:
        """In pieces of whole row groups, each of about so many rows."""
        cuts: list[StoredRows] = []
        for piece in self.pieces:
            with pq.ParquetFile(piece.path) as file:
                sizes = {group: file.metadata.row_group(group).num_rows for group in piece.groups}
            waiting: list[int] = []
            for group in piece.groups:
                waiting.append(group)
                if sum(sizes[one] for one in waiting) >= rows or group == piece.groups[-1]:
                    count = sum(sizes[one] for one in waiting)
                    cuts.append(StoredRows((RowGroups(piece.path, tuple(waiting), count),)))
                    waiting = []
        return cuts


def _whole(path: Path) -> RowGroups:
    with pq.ParquetFile(path) as file:
        return RowGroups(path, tuple(range(file.metadata.num_row_groups)), int(file.metadata.num_rows))


def _bytes(group: Any, column: str) -> int:
    """What the values of a column take in a row group, before compression."""
    columns = (group.column(place) for place in range(group.num_columns))
    return next(int(one.total_uncompressed_size) for one in columns if one.path_in_schema == column)


# -- Published tables as files: Parquet, or CSV with types that its manifest names -------------------------------------


def write_table(pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, form: str) -> str:
    """Write pieces of a table as one Parquet or CSV file, in which dictionaries are texts; returns its SHA-256."""
    if form == "csv":
        require_readable_csv(schema)
        pieces = (_as_text(_with_short_years(piece.cast(schema))) for piece in pieces)
        writer: pq.ParquetWriter | pa.csv.CSVWriter = pa.csv.CSVWriter(str(path), _as_text(schema.empty_table()).schema)
    else:
        some = (_without_null_entries(piece, schema) for piece in pieces)
        first = next(some, schema.empty_table())
        pieces, writer = chain([first], some), _parquet_writer(path, schema, first.schema)
    with writer:
        for piece in pieces:
            try:
                writer.write_table(piece, ROW_GROUP)
            except pa.ArrowInvalid:  # whose words name a value
                raise OutputError(
                    f"{path.name} cannot be written: a column has a value that {form} cannot hold, such as a time "
                    "300 million years away. Fix: replace such values by missing ones, or drop the column."
                ) from None
    return digest_of(path)


def _with_short_years(piece: pa.Table) -> pa.Table:
    """A piece whose dates and times come back from CSV, where a year has four digits."""
    for field in piece.schema:
        if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
            years = pc.min_max(pc.year(piece[field.name])).as_py()
            if years["min"] is not None and not 0 <= years["min"] <= years["max"] <= 9999:
                raise OptionError(
                    f"format = 'csv' cannot hold the column {field.name!r}, which has dates before the year 0 or after "
                    f"9999. Fix: {option('format', 'parquet')}, or drop the column."
                )
    return piece


def _without_null_entries(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    """Dictionaries that hold null are texts here: Parquet has null beside a dictionary, and not in it."""
    chunks = (chunk for column in piece.columns if pa.types.is_dictionary(column.type) for chunk in column.chunks)
    return piece.cast(schema) if any(chunk.dictionary.null_count for chunk in chunks) else piece


def _parquet_writer(path: Path, schema: pa.Schema, given: pa.Schema) -> pq.ParquetWriter:
    """Parquet holds texts as dictionaries, and need not look for them where they are given as such. Whoever reads the
    file sees texts: Arrow takes types from the schema that it finds in a file's metadata, so that is the plain one."""
    if given == schema:
        return pq.ParquetWriter(path, schema, compression="zstd")
    writer = pq.ParquetWriter(path, given, compression="zstd", store_schema=False)
    writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes()).decode()})
    return writer


def read_table(path: Path, form: str, types: Mapping[str, str]) -> pa.Table:
    """The published table; a CSV file with the types that its manifest names."""
    try:
        if form == "parquet":
            return _read_parquet(path)
        lists = {name: arrow_type(kind) for name, kind in types.items() if kind.startswith(LIST)}
        named = {name: pa.string() if name in lists else arrow_type(kind) for name, kind in types.items()}
        # Nothing at all is missing, and nothing else: NaN is a number, and an empty line a row of the only column.
        missing = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
        convert = pa.csv.ConvertOptions(column_types=named, **missing)
        parse = pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        # One block as large as the file: a value may be of any length, and the table is held in memory anyway.
        read = pa.csv.ReadOptions(block_size=min(path.stat().st_size + 1, 2**31 - 1))
        table = pa.csv.read_csv(path, read_options=read, convert_options=convert, parse_options=parse)
        for name, kind in lists.items():
            place = table.column_names.index(name)
            table = table.set_column(place, pa.field(name, kind), from_json(table[name].to_pylist(), kind))
        return table
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise ManifestError(f"{path.name} is damaged, it cannot be read: {str(error).splitlines()[0]}") from None


def _as_text(table: pa.Table) -> pa.Table:
    """Line-ups as JSON text, which CSV can hold."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(place, field.name, to_json(table[field.name]))
    return table


def describe(path: Path, form: str, types: Mapping[str, str]) -> tuple[list[str], int]:
    """The columns that a file really has, and its rows."""
    if form == "csv":
        table = read_table(path, form, types)
        return list(table.column_names), table.num_rows
    try:
        described = [pq.read_metadata(part) for part in parts_of(path)]
    except (pa.ArrowInvalid, OSError) as error:
        raise ManifestError(f"{path.name} is damaged, it cannot be read: {str(error).splitlines()[0]}") from None
    names = [list(metadata.schema.to_arrow_schema().names) for metadata in described]
    _require_alike(path, names)
    return names[0], sum(int(metadata.num_rows) for metadata in described)


def _read_parquet(path: Path) -> pa.Table:
    """A file, or all parts of a folder in the order of their names."""
    if not path.is_dir():
        return pq.read_table(path)
    tables = [pq.ParquetFile(part).read() for part in parts_of(path)]
    _require_alike(path, [table.schema for table in tables])
    return pa.concat_tables(tables)


def _require_alike(path: Path, schemas: list[Any]) -> None:
    if any(schema != schemas[0] for schema in schemas):
        raise ManifestError(f"{path.name} is damaged: its parts do not have the same columns.")
