"""Release folders: written whole or not at all, and read back."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from deniable.core.errors import DeniableError, ManifestError, OptionError, OutputError
from deniable.core.manifest import Manifest

MANIFEST = "manifest.json"
README = "README.md"


@contextlib.contextmanager
def new_folder(out: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes ``out`` when the block succeeds, and vanishes when it does not."""
    out = Path(os.path.abspath(out))
    if out.exists() and not overwrite:
        raise OutputError(f"The output {str(out)!r} exists already. Fix: choose another folder, or --overwrite it.")
    if out.exists() and not (out.is_dir() and ((out / MANIFEST).exists() or not any(out.iterdir()))):
        raise OutputError(f"{str(out)!r} is not a release, so it is not overwritten. Fix: choose another folder.")
    _remove_abandoned(out)
    partial = out.parent / f".{out.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(mode=0o700)
        try:
            yield partial
            partial.chmod(0o777 & ~_umask())
            _put_in_place(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise cannot_write(out, error) from None


def cannot_write(out: Path, error: OSError) -> DeniableError:
    """An operating system's refusal to write, in words."""
    if isinstance(error, DeniableError):
        return error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"The disk is full: {str(out)!r} was not written. Fix: free space, or use another disk.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"No permission to write {str(out)!r}. Fix: choose a folder that you may write to.")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return OutputError(f"{str(out)!r} cannot be a folder: a part of that path is a file. Fix: choose another path.")
    return OutputError(f"{str(out)!r} cannot be written: {error.strerror or error}.")


def _put_in_place(partial: Path, out: Path) -> None:
    if out.exists():
        old = out.parent / f".{out.name}.replaced-{secrets.token_hex(4)}"
        out.rename(old)
        partial.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.rename(out)


def _remove_abandoned(out: Path) -> None:
    """Clear away what a killed run left behind: partial folders whose process is gone."""
    for folder in out.parent.glob(f".{out.name}.partial-*") if out.parent.is_dir() else ():
        owner = folder.name.rsplit(".partial-", 1)[1].split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_data(pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, form: str) -> str:
    """Write pieces of a table as one Parquet or CSV file; returns its SHA-256."""
    if form == "parquet":
        writer: pq.ParquetWriter | pa.csv.CSVWriter = pq.ParquetWriter(path, schema, compression="zstd")
    else:
        writer = pa.csv.CSVWriter(str(path), schema)
    with writer:
        for piece in pieces:
            writer.write_table(piece)
    return digest(path)


def read_data(folder: Path, manifest: Manifest) -> pa.Table:
    """The published table, with the types that the manifest names."""
    if manifest.data is None:
        raise ManifestError("manifest.json names no data file.")
    path = data_path(folder, manifest)
    try:
        if manifest.data.format == "parquet":
            return pq.read_table(path)
        types = {column.name: arrow_type(column.type) for column in manifest.columns}
        convert = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
        parse = pa.csv.ParseOptions(newlines_in_values=True)
        # One block as large as the file: a value may be of any length, and the table is held in memory anyway.
        read = pa.csv.ReadOptions(block_size=min(path.stat().st_size + 1, 2**31 - 1))
        return pa.csv.read_csv(path, read_options=read, convert_options=convert, parse_options=parse)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise ManifestError(f"{path.name} is damaged, it cannot be read: {str(error).splitlines()[0]}") from None


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type that prints as ``name``, for the types a CSV release can hold."""
    if name.startswith("decimal128("):
        precision, scale = (int(part) for part in name[len("decimal128(") : -1].split(","))
        return pa.decimal128(precision, scale)
    return pa.type_for_alias(name)


def data_path(folder: Path, manifest: Manifest) -> Path:
    """The data file; a manifest may only name a file of its own folder."""
    if manifest.data is None or Path(manifest.data.file).name != manifest.data.file:
        raise ManifestError("manifest.json names a data file outside the release.")
    return folder / manifest.data.file


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release folder."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        what = "has no manifest.json" if folder.is_dir() else "does not exist"
        raise ManifestError(f"{str(folder)!r} is not a release: it {what}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"The manifest of {str(folder)!r} cannot be read: {error}.") from None
    return Manifest.from_json(text)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def column_names(folder: Path, manifest: Manifest) -> list[str]:
    """The names of the columns that the data file really has."""
    path = data_path(folder, manifest)
    if path.suffix == ".parquet":
        return list(pq.read_schema(path).names)
    return list(read_data(folder, manifest).column_names)


def read_groups(path: Path) -> pa.Table:
    """The second table of an Anatomy release."""
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ManifestError(f"{path.name} cannot be read, so the release is damaged: {error}") from None


def row_count(folder: Path, manifest: Manifest) -> int:
    """How many rows the data file really has."""
    path = data_path(folder, manifest)
    return int(pq.read_metadata(path).num_rows) if path.suffix == ".parquet" else read_data(folder, manifest).num_rows


def require_readable_csv(schema: pa.Schema) -> None:
    """Refuse columns whose type would not come back from CSV."""
    for field in schema:
        try:
            known = arrow_type(str(field.type)) == field.type and not pa.types.is_binary(field.type)
        except ValueError:
            known = False
        if not known:
            raise OptionError(
                f"format = 'csv' cannot hold the column {field.name!r} of type {field.type}. "
                "Fix: format='parquet', or drop the column."
            )
