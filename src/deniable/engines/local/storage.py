"""Published tables as files: Parquet, or CSV with types that its manifest names."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from deniable.core.errors import ManifestError, OptionError, OutputError, option
from deniable.engines.base import ROW_GROUP
from deniable.engines.batch import lineups
from deniable.engines.batch.parts import digest_of, parts_of
from deniable.engines.batch.values import LIST, arrow_type, require_readable_csv


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
            table = table.set_column(place, pa.field(name, kind), lineups.from_json(table[name].to_pylist(), kind))
        return table
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise ManifestError(f"{path.name} is damaged, it cannot be read: {str(error).splitlines()[0]}") from None


def _as_text(table: pa.Table) -> pa.Table:
    """Line-ups as JSON text, which CSV can hold."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(place, field.name, lineups.to_json(table[field.name]))
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
