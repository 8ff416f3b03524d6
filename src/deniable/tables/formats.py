"""What a file, a data frame or a text is, decided by what it holds and not by its name."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import pyarrow as pa

from deniable.core.errors import ColumnError, TableError, is_unicode
from deniable.tables.encoding import decoded, plain_type

# -- Texts that are none: bytes that are no UTF-8, which Arrow takes from a Parquet file as they are -------------------


def likely_encoding(text: bytes) -> str:
    """What a text that is not UTF-8 was written in: Windows has letters where Latin 1 has control characters."""
    return "cp1252" if any(0x80 <= byte <= 0x9F for byte in text) else "latin1"


def require_utf8(batches: Iterable[pa.RecordBatch], what: str, before: int = 0) -> None:
    """Refuse batches with a text that is not UTF-8; ``before`` rows come before them. No value is named."""
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not pa.types.is_string(plain_type(column.type)) and not pa.types.is_large_string(column.type):
                continue
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                row, text = _first(column)
                raise TableError(
                    f"{what}: the column {name!r} holds text that is not UTF-8, in row {before + row + 1:,} for the "
                    f"first time; most likely it is {likely_encoding(text)}. Fix: write that column again as UTF-8, or "
                    "leave it out."
                ) from None
        before += batch.num_rows


def _first(column: pa.Array) -> tuple[int, bytes]:
    """The first text that is not UTF-8, and its row."""
    for row, text in enumerate(decoded(column).cast(pa.large_binary()).to_pylist()):
        try:
            (text or b"").decode()
        except UnicodeDecodeError:
            return row, text
    return 0, b""  # a dictionary may hold texts that no row has


# -- What a file is, decided by its first bytes and not by its name ----------------------------------------------------


HEAD_BYTES = 1 << 20

_FOREIGN = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook that is damaged"),
    (b"\xd0\xcf\x11\xe0", "an Excel or Word file that is old or has a password"),
    (b"SQLite format 3", "an SQLite database"),
    (b"ARROW1", "an Arrow IPC (Feather) file"),
    (b"ORC", "an ORC file"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
)

Kind = Literal["csv", "parquet", "excel", "spss", "stata", "sas", "xport"]
_SAS = bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00\x09\xc7\x31\x8c\x18\x1f\x10\x11"
_STATISTICAL: tuple[tuple[bytes, Kind], ...] = (
    (b"$FL2", "spss"),
    (b"$FL3", "spss"),
    (b"<stata_dta>", "stata"),
    (_SAS, "sas"),
    (b"HEADER RECORD*******LIB", "xport"),
)
_OLD_STATA = range(104, 116)  # the first byte, the format's version, of Stata 4 to 12


@dataclass(frozen=True)
class FileFormat:
    """How to read one file; ``head`` is the start of its (unpacked) text, ``sheet`` the one to take of a workbook."""

    path: Path
    kind: Kind
    gzipped: bool
    head: bytes
    sheet: str | None = None


def recognise(path: Path) -> FileFormat:
    """Look at the first bytes of a file, or say why it cannot be a table."""
    if not is_unicode(str(path)):
        raise TableError(f"The name {str(path)!r} is no valid Unicode, so it cannot be read. Fix: rename the file.")
    path, sheet = file_and_sheet(path)
    head = _first_bytes(path)
    if not head:
        raise TableError(f"The file '{path}' is empty. Fix: give a CSV file with a header line, or a Parquet file.")
    if head[:4] == b"PAR1":
        return FileFormat(path, "parquet", gzipped=False, head=b"")
    if head[:4] == b"PK\x03\x04" and _is_workbook(path):
        return FileFormat(path, "excel", gzipped=False, head=b"", sheet=sheet)
    statistical = next((kind for magic, kind in _STATISTICAL if head.startswith(magic)), None)
    if statistical is None and len(head) > 3 and head[0] in _OLD_STATA and head[1] in (1, 2) and head[2] == 1:
        statistical = "stata"
    if statistical is not None:
        return FileFormat(path, statistical, gzipped=False, head=b"")
    gzipped = head[:2] == b"\x1f\x8b"
    if gzipped:
        head = _first_unpacked_bytes(path)
        if not head:
            raise TableError(f"The file '{path}' is empty once unpacked. Fix: give a CSV file with a header line.")
    _refuse_binary(path, head)
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise TableError(f"The file '{path}' holds only blank lines. Fix: give a CSV file with a header line.")
    return FileFormat(path, "csv", gzipped, head)


def file_and_sheet(path: Path) -> tuple[Path, str | None]:
    """A workbook's name, and the sheet that is written after it: ``survey.xlsx#Sheet2``."""
    file, mark, sheet = path.name.partition("#")
    if not mark or path.exists() or not file.lower().endswith((".xlsx", ".xlsm")):
        return path, None
    return path.with_name(file), sheet


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _first_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise TableError(
            f"'{path}' is a folder, not a file. Fix: name the files in it, for example '{path / '*.parquet'}'."
        )
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TableError(
                f"'{path}' is a pipe or a device, and a table is read more than once. "
                "Fix: save it as a file first, for example: cat > table.csv."
            )
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise TableError(f"There is no file '{path}'. Fix: check the name; the folder is '{os.getcwd()}'.") from None
    except PermissionError:
        raise TableError(f"The file '{path}' may not be read (no permission). Fix: chmod u+r '{path}'.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "not a valid file name"
        raise TableError(f"The file '{path}' cannot be read: {reason}. Fix: check the name and the disk.") from None


def _first_unpacked_bytes(path: Path) -> bytes:
    try:
        with gzip.open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        raise damaged_gzip(path) from None


def damaged_gzip(path: Path) -> TableError:
    """The error for a gzip file that breaks off or does not unpack."""
    return TableError(
        f"The gzip file '{path}' is damaged or cut short. Fix: copy or write it again (gzip -t tests it)."
    )


def _refuse_binary(path: Path, head: bytes) -> None:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(
            f"The file '{path}' is UTF-16 text; CSV must be UTF-8. Fix: iconv -f utf16 -t utf8 '{path}' > fixed.csv"
        )
    what = next((name for magic, name in _FOREIGN if head.startswith(magic) and _is_foreign(magic, head)), None)
    if what is None and (b"\0" in head or head[:4] == b"PAR1"):
        what = "a binary file"
    if what is not None:
        raise TableError(
            f"The file '{path}' is neither CSV nor Parquet, nor a file of Excel, SPSS, Stata or SAS; it looks like "
            f"{what}. Fix: export the table as CSV or Parquet."
        )


def _is_foreign(magic: bytes, head: bytes) -> bool:
    """Letters alone prove nothing: a CSV header may begin with ORC or BZh, so those need a byte that no text holds."""
    return not magic.isalnum() or any(byte < 9 for byte in head[:4096])


# -- Data frames of any library as one Arrow table ---------------------------------------------------------------------


_VIEWS = ((pa.string_view(), pa.large_string()), (pa.binary_view(), pa.large_binary()))


def to_table(value: Any) -> pa.Table:
    """Materialise a data frame, relation or reader once."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return _from_pandas(value)
    if isinstance(value, pa.Table):
        table = value
    elif hasattr(value, "__arrow_c_stream__"):
        try:
            table = pa.RecordBatchReader.from_stream(value).read_all()
        except Exception:
            raise _unsupported(value) from None
    else:
        table = _from_narwhals(value)
    return _without_views(table)


def _from_pandas(frame: Any) -> pa.Table:
    """The columns without the index: row labels of a filtered frame would publish where each row came from."""
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(
            f"The table has the column {twice[0]!r} {names.count(twice[0])} times. "
            "Fix: give each column a name of its own."
        )
    arrays = []
    for position, name in enumerate(names):
        try:
            arrays.append(pa.Array.from_pandas(frame.iloc[:, position]))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise ColumnError(
                f"The column {name!r} holds values of different kinds, or of a kind that Arrow does not know. "
                f"Fix: convert it first, for example table[{name!r}] = table[{name!r}].astype('string')."
            ) from None
    return _without_views(pa.table(arrays, names=names))


def _from_narwhals(value: Any) -> pa.Table:
    try:
        frame = nw.from_native(value)
        collected = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        return collected.to_arrow()
    except Exception:
        raise _unsupported(value) from None


def _without_views(table: pa.Table) -> pa.Table:
    """Replace types for which Arrow has few functions, and drop notes that other libraries left."""
    plain = pa.schema([pa.field(field.name, without_view(field.type)) for field in table.schema])
    return table.cast(plain)


def without_view(dtype: pa.DataType) -> pa.DataType:
    """The type that holds the same values as a view or a short decimal, for which Arrow has few functions."""
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, without_view(dtype.value_type), dtype.ordered)
    if pa.types.is_decimal(dtype) and dtype.bit_width < 128:
        return pa.decimal128(dtype.precision, dtype.scale)
    return next((wide for view, wide in _VIEWS if dtype == view), dtype)  # not every type can be looked up by its hash


def _unsupported(value: Any) -> TableError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return TableError(
        f"A {kind} is not a table. Fix: give a path to a file, a list of paths, or a data frame "
        "(pandas, polars, pyarrow, duckdb, or anything with the Arrow C stream interface)."
    )
