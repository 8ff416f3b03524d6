"""A client of OpenML, as small as fetching one table needs: a description in JSON, then a file in ARFF."""

from __future__ import annotations

import csv
import hashlib
import http.client
import io
import json
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.core.errors import DeniableError, OptionError

ADULT = 1590
WAIT_SECONDS = 60
LARGEST_FILE = 200_000_000


class DownloadError(DeniableError):
    """A table that could not be fetched."""


def address() -> str:
    """Where OpenML is; the environment variable DENIABLE_OPENML names a mirror."""
    base = os.environ.get("DENIABLE_OPENML", "https://www.openml.org").rstrip("/")
    if not base.startswith(("https://", "http://")):
        raise OptionError(f"DENIABLE_OPENML = {base!r} is not an address. Fix: give one that starts with https://.")
    return base


def fetch(number: int, path: Path) -> None:
    """Fetch data set ``number`` into a Parquet file: the whole file appears, or none."""
    about = _describe(number)
    content = _download(_same_safety(str(about["url"])))
    expected = about.get("md5_checksum")
    if expected and hashlib.md5(content, usedforsecurity=False).hexdigest() != expected:
        raise DownloadError("What arrived from OpenML is not what it describes (checksums differ). Fix: try again.")
    table = read_arff(content.decode("utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".fetching-", suffix=".parquet")
    os.close(handle)
    try:
        pq.write_table(table, name, compression="zstd")
        Path(name).chmod(0o644)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def read_arff(text: str) -> pa.Table:
    """A table in ARFF: `@attribute name type` lines, `@data`, then comma-separated rows; ? is missing.

    >>> read_arff("@attribute 'marital-status' {a,b}\\n@attribute age numeric\\n@data\\nb,3\\n?,4").to_pylist()
    [{'marital_status': 'b', 'age': 3}, {'marital_status': None, 'age': 4}]
    """
    names: list[str] = []
    numeric: list[bool] = []
    lines = io.StringIO(text)
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word.lower() == "@attribute":
            name, kind = _attribute(rest.strip())
            names.append(name)
            numeric.append(kind.lower() in {"numeric", "real", "integer"})
        elif word.lower() == "@data":
            break
    rows = [
        row
        for row in csv.reader(lines, quotechar="'", skipinitialspace=True, escapechar="\\")
        if row and not row[0].startswith("%")
    ]
    if not names or not rows or any(len(row) != len(names) for row in rows):
        raise DownloadError("What arrived from OpenML is not a table in ARFF. Fix: try again later.")
    columns = zip(*rows, strict=True)
    arrays = [
        _column([cell.strip() for cell in column], number) for column, number in zip(columns, numeric, strict=True)
    ]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _attribute(text: str) -> tuple[str, str]:
    """The name, in the manner of Python, and the type of an attribute whose name may be quoted."""
    if text[:1] in {"'", '"'}:
        name, _, kind = text[1:].partition(text[0])
    else:
        name, _, kind = text.replace("\t", " ").partition(" ")
    return name.replace("-", "_"), kind.strip()


def _column(cells: list[str], number: bool) -> pa.Array:
    known = [None if cell == "?" else cell for cell in cells]
    if not number:
        return pa.array(known, pa.string())
    floats = [None if cell is None else float(cell) for cell in known]
    whole = all(cell is None or cell.is_integer() for cell in floats)
    return pa.array(floats, pa.float64()).cast(pa.int64()) if whole else pa.array(floats, pa.float64())


def _describe(number: int) -> dict[str, Any]:
    answer = _download(f"{address()}/api/v1/json/data/{number}")
    try:
        description: dict[str, Any] = json.loads(answer)["data_set_description"]
        description["url"]
    except (ValueError, KeyError, TypeError):
        raise DownloadError(f"{address()} does not answer like OpenML. Fix: check DENIABLE_OPENML.") from None
    return description


def _same_safety(url: str) -> str:
    """A description fetched over HTTPS may not lead to a file over anything less."""
    secure = address().startswith("https://")
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme == "https" or (scheme == "http" and not secure):
        return url
    if scheme == "http":
        return "https" + url.removeprefix("http")
    raise DownloadError(f"OpenML names a file at {url[:80]!r}, which is not a web address. Fix: try again later.")


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=WAIT_SECONDS) as answer:
            content: bytes = answer.read(LARGEST_FILE + 1)
            announced = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as problem:
        raise DownloadError(f"{url} answers {problem.code} {problem.reason}. Fix: try again later.") from None
    except (OSError, http.client.HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise DownloadError(
            f"{url} cannot be reached: {reason}. Fix: connect to the internet, or name a mirror in DENIABLE_OPENML."
        ) from None
    if len(content) > LARGEST_FILE or (announced and int(announced) != len(content)):
        raise DownloadError(f"{url} broke off or is too large ({len(content):,} bytes arrived). Fix: try again.")
    return content
