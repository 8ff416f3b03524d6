"""A release's files as they are read: only what its manifest speaks of, and not changed since."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from deniable.core.errors import ManifestError
from deniable.core.manifest import DataFile, Manifest
from deniable.release.signature import SIGNATURE


def file_path(folder: Path, file: DataFile | None) -> Path:
    """A published file; a manifest may only name a file of its own folder."""
    if file is None:
        raise ManifestError("manifest.json names no data file.")
    if Path(file.file).name != file.file:
        raise ManifestError("manifest.json names a data file outside the release.")
    return folder / file.file


def unchanged_file(folder: Path, file: DataFile | None) -> Path:
    """A published file that has the digest in its manifest, which is computed once for each state of the file."""
    path = file_path(folder, file)
    assert file is not None
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise ManifestError(f"{path.name} of the release is no file.")
        found = _digest(path.absolute(), about.st_ino, about.st_size, about.st_mtime_ns)
    except OSError as problem:
        raise ManifestError(f"{path.name} of the release cannot be read: {problem.strerror}.") from None
    if found != file.sha256:
        raise ManifestError(
            f"{path.name} was changed since it was published (its SHA-256 differs from the one in manifest.json), so "
            "answers from it would mean nothing. Fix: get the release again; `deniable verify` says what else differs."
        )
    return path


def require_shape(names: Sequence[str], rows: int, manifest: Manifest) -> None:
    """Refuse a table that has other columns or rows than its manifest says."""
    if list(names) != [column.name for column in manifest.columns]:
        raise ManifestError("manifest.json is damaged: it names other columns than the release's table has.")
    if rows != manifest.rows:
        raise ManifestError(f"manifest.json is damaged: it speaks of {manifest.rows:,} rows, and there are {rows:,}.")


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=256)
def _digest(path: Path, *_: int) -> str:
    return digest(path)


def digests(folder: Path) -> dict[str, str | None]:
    """The SHA-256 of everything in a folder but its signature; None for what is no file of its own."""
    entries = [path for path in folder.iterdir() if path.name != SIGNATURE]
    return {path.name: digest(path) if path.is_file() and not path.is_symlink() else None for path in entries}
