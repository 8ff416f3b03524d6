"""The folder: every entry is one that the manifest names, every table is a regular file of a bounded size, and nothing
stands in a Parquet file beside its columns."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from deniable_verify.checks import Check
from deniable_verify.manifest import files_of
from deniable_verify.numbers import Json
from deniable_verify.reading import LARGEST_MANIFEST, DamagedError, NoReleaseError, content_of

MANIFEST, README, SIGNATURE = "manifest.json", "README.md", "signature.json"
PART = re.compile(r"part-\d{5,}\.parquet")
BATCH = 2**17  # rows that are read at a time
LARGEST_GROUP, LARGEST_LINE, LARGEST_README = 2**34, 2**28, 2**24  # bytes
SMALL = {"lineups": 2**26, "tables": 2**28, "weights": 2**26}  # rows of the tables beside the data
MADE_BY = re.compile(r"parquet-cpp(-arrow)? version [0-9.]+(-SNAPSHOT)?|parquet-mr version [0-9.]+ \(build [0-9a-f]*\)")
MISSING: dict[str, Any] = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}


@dataclass(frozen=True)
class Rows:
    """A published table: names and types of its columns, how many rows, and these some at a time."""

    schema: pa.Schema
    rows: int
    paths: tuple[Path, ...] = ()
    table: pa.Table | None = None
    types: Mapping[str, str] | None = None  # of a CSV file, whose types its manifest names

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
        """Some columns, a batch at a time."""
        if self.table is not None:
            for batch in self.table.select(list(names)).to_batches(max_chunksize=BATCH):
                yield {name: _plain(batch.column(place)) for place, name in enumerate(names)}
            return
        for path in self.paths:
            types = self.types
            pieces = (
                pq.ParquetFile(path).iter_batches(BATCH, columns=names) if types is None else _csv(path, types, names)
            )
            for batch in pieces:
                yield {name: _plain(batch.column(batch.schema.get_field_index(name))) for name in names}

    def whole(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        """The same at once, of a small table."""
        pieces = list(self.batches(names))
        return {name: pa.chunked_array([one[name] for one in pieces], self.schema.field(name).type) for name in names}


def flat(array: pa.Array | pa.ChunkedArray) -> Any:
    """Numbers, or truth values, of which none is missing, as NumPy has them: shared, so that Arrow need not look for
    pandas first, which takes as long as all else."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_boolean(whole.type):
        return whole.cast(pa.uint8()).to_numpy().astype(bool)
    return whole.to_numpy()


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


@dataclass(frozen=True)
class Folder:
    """A release folder, looked at without following links.

    Attributes:
        path: where it is.
        entries: name -> whether it is a plain file ("file"), a folder of parts of a table ("parts"), or neither ("").
    """

    path: Path
    entries: Mapping[str, str]

    @classmethod
    def at(cls, path: Path) -> Folder:
        """The folder; where there is no release at all, that is said."""
        try:
            names = sorted(os.listdir(path))
        except NotADirectoryError:
            raise NoReleaseError(f"{str(path)!r} is a file, and no folder of a release") from None
        except OSError as problem:
            raise NoReleaseError(f"{str(path)!r} is no folder that can be read ({problem.strerror})") from None
        if MANIFEST not in names:
            raise NoReleaseError(f"{str(path)!r} is no release: it has no manifest.json")
        return cls(path, {name: _kind(path / name) for name in names})

    def content(self, name: str, most: int = LARGEST_MANIFEST) -> bytes:
        """Of a plain file of bounded size."""
        return content_of(self.path / name, most)

    def paths(self, name: str) -> tuple[Path, ...]:
        """The files of a table: itself, or its parts in the order of their names."""
        at = self.path / name
        if self.entries.get(name) == "parts":
            return tuple(at / part for part in sorted(os.listdir(at)))
        if self.entries.get(name) != "file":
            raise DamagedError(f"{name} is missing, or is no plain file")
        return (at,)

    def digest(self, name: str) -> str | None:
        """The SHA-256 of an entry; of parts that of what ``sha256sum *`` prints in their folder."""
        if not self.entries.get(name):
            return None
        digests = [(path.name, _sha256(path)) for path in self.paths(name)]
        if self.entries[name] == "file":
            return digests[0][1]
        return hashlib.sha256("".join(f"{digest}  {part}\n" for part, digest in digests).encode()).hexdigest()

    def digests(self) -> dict[str, str | None]:
        """Of every entry but the signature."""
        return {name: self.digest(name) for name in self.entries if name != SIGNATURE}


def _kind(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode):
        return "file"
    if not stat.S_ISDIR(mode):
        return ""
    parts = list(os.scandir(path))
    plain = all(PART.fullmatch(part.name) and part.is_file(follow_symlinks=False) for part in parts)
    return "parts" if parts and plain else ""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entries_check(folder: Folder, raw: Json) -> list[Check]:
    """Every entry of the folder is one that a release has."""
    named = {file["file"] for file in files_of(raw).values()}
    known = named | {MANIFEST, README, SIGNATURE}
    strange = [name for name, kind in folder.entries.items() if name not in known or not kind]
    strange += [name for name in (MANIFEST, README, SIGNATURE) if folder.entries.get(name) == "parts"]
    if strange:
        what = "which its manifest does not name" if strange[0] not in known else "which is no plain file"
        return [Check("folder", False, f"it holds {strange[0][:80]!r}, {what} ({len(strange)} in all)")]
    return [Check("folder", True, f"{len(folder.entries)} entries, all of them of the release")]


def digest_check(folder: Folder, name: str, file: Json) -> list[Check]:
    """A file is the one that the manifest speaks of."""
    digest = folder.digest(file["file"])
    if digest is None:
        return [Check(name, False, f"{file['file']} is missing, or no plain file")]
    same = digest == file["sha256"]
    return [Check(name, same, "SHA-256 as in the manifest" if same else f"{file['file']} was changed: other SHA-256")]


def parquet_check(folder: Folder, name: str, file: Json) -> list[Check]:
    """Nothing stands in a Parquet file but columns: its bytes are those of column chunks and of the footer, and the
    footer's entries are the schema."""
    if file["format"] != "parquet":
        return []
    for path in folder.paths(file["file"]):
        problem = _beside_columns(path)
        if problem is not None:
            return [Check("metadata", False, f"{path.name} {problem}")]
    return [Check("metadata", True, f"{file['file']} holds columns and their schema, and nothing else")]


def _beside_columns(path: Path) -> str | None:
    opened = pq.ParquetFile(path)
    about, schema = opened.metadata, opened.schema_arrow
    entries = about.metadata or {}
    strange = sorted(set(entries) - {b"ARROW:schema"})
    if strange or schema.metadata:
        return f"has metadata beside its schema: {(strange or sorted(schema.metadata))[0][:40]!r}"
    for field in schema:
        if set(field.metadata or {}) - {b"PARQUET:field_id"}:
            return f"has metadata of the column {field.name[:40]!r}"
    if not MADE_BY.fullmatch(about.created_by or ""):
        return f"says that it was made by {(about.created_by or 'nobody')[:40]!r}"
    if len(entries.get(b"ARROW:schema", b"")) > 4096 + 4 * schema.serialize().size:
        return "has a schema that is larger than its columns"
    return _unaccounted(path, about)


def _unaccounted(path: Path, about: Any) -> str | None:
    """Column chunks lie one after the other from the first byte to the footer."""
    chunks = []
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        if group.total_byte_size > LARGEST_GROUP:
            return "has a group of rows that is too large to be read"
        for place in range(group.num_columns):
            chunk = group.column(place)
            starts = [chunk.data_page_offset, chunk.dictionary_page_offset]
            chunks.append((min(start for start in starts if start), chunk.total_compressed_size))
    at = 4
    for start, size in sorted(chunks):
        if start != at:
            return f"has {start - at:,} bytes that belong to no column"
        at += size
    beyond = path.stat().st_size - at - about.serialized_size - 8
    return f"has {beyond:,} bytes that belong to no column" if beyond else None


# -- Tables ------------------------------------------------------------------------------------------------------------


def table_of(folder: Folder, name: str, file: Json, types: Mapping[str, str]) -> Rows:
    """A published table, of which no row has been read yet; of parts, all alike."""
    paths = folder.paths(file["file"])
    if file["format"] == "csv":
        schema = pa.schema([(column, type_of(kind)) for column, kind in types.items()])
        if _header(paths[0]) != list(types):
            raise DamagedError(f"{file['file']} has other columns than {', '.join(types)[:200]}")
        first = next((column for column, kind in types.items() if not kind.startswith("list<")), next(iter(types)))
        rows = Rows(schema, 0, paths, types=types)
        return replace(rows, rows=sum(len(batch[first]) for batch in rows.batches([first])))
    opened = [pq.ParquetFile(path) for path in paths]
    schema, count = opened[0].schema_arrow, sum(one.metadata.num_rows for one in opened)
    if any(one.schema_arrow != schema for one in opened):
        raise DamagedError(f"the parts of {file['file']} do not have the same columns")
    if count > SMALL.get(name, 2**48):
        raise DamagedError(f"{file['file']} has more rows than such a table can have")
    return Rows(schema, count, paths)


def _header(path: Path) -> list[str]:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])


def _csv(path: Path, types: Mapping[str, str], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns: nothing at all is missing, and nothing else; line-ups are JSON."""
    lists = {name: type_of(types[name]) for name in names if types[name].startswith("list<")}
    named = {name: pa.string() if name in lists else type_of(kind) for name, kind in types.items()}
    size = min(path.stat().st_size + 1, LARGEST_LINE)
    pieces = pc_csv.open_csv(
        path,
        read_options=pc_csv.ReadOptions(block_size=size),
        convert_options=pc_csv.ConvertOptions(column_types=named, include_columns=list(names), **MISSING),
        parse_options=pc_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
    )
    for batch in pieces:
        for name, kind in lists.items():
            place = batch.schema.get_field_index(name)
            read = [None if text is None else json.loads(text) for text in batch.column(place).to_pylist()]
            batch = batch.set_column(place, pa.field(name, kind), array_of(read, kind))
        yield batch


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of JSON as an array: what JSON writes as text is read by its type."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_temporal(inner) or pa.types.is_decimal(inner):
        flat = [item for one in values for item in (one or ())] if inner is not kind else values
        read = pc.cast(pa.array(flat, pa.string()), inner)
        if inner is kind:
            return read
        ends = pa.array([None if one is None else len(one) for one in values], pa.int32())
        sizes = [0, *(size or 0 for size in ends.to_pylist())]
        offsets = [sum(sizes[: place + 1]) for place in range(len(sizes))]
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), read, type=kind)
    return pa.array(values, kind)


def type_of(kind: str) -> pa.DataType:
    """The Arrow type of a name."""
    if match := re.fullmatch(r"list<(\w+): (.*)>", kind):
        return pa.list_(pa.field(match[1], type_of(match[2])))
    if match := re.fullmatch(r"(decimal(?:32|64|128|256))\((\d+), (-?\d+)\)", kind):
        return getattr(pa, match[1])(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", kind):
        return pa.timestamp(match[1], match[2])
    return pa.type_for_alias(kind)
