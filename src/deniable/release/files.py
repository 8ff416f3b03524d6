"""A release's files as they are read: only what its manifest speaks of, and not changed since."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from deniable.core.errors import ManifestError
from deniable.core.manifest import DataFile, Manifest
from deniable.engines.batch.parts import digest_of, digest_of_parts, parts_of
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
        parts = [(part.absolute(), part.stat()) for part in parts_of(path)]
        if not all(stat.S_ISREG(about.st_mode) for _, about in parts):
            raise ManifestError(f"{path.name} of the release is no file.")
        digests = [_digest(part, about.st_ino, about.st_size, about.st_mtime_ns) for part, about in parts]
        names = [part.name for part, _ in parts]
        present = digest_of_parts(zip(names, digests, strict=True)) if path.is_dir() else digests[0]
    except OSError as problem:
        raise ManifestError(
            f"{path.name} of the release cannot be read: {problem.strerror}. Fix: get the release again."
        ) from None
    if present != file.sha256:
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


@lru_cache(maxsize=4096)
def _digest(path: Path, *_: int) -> str:
    return digest_of(path)


def digests(folder: Path) -> dict[str, str | None]:
    """The SHA-256 of everything in a folder but its signature; None for what is neither a file nor a table in parts."""
    return {path.name: _own_digest(path) for path in folder.iterdir() if path.name != SIGNATURE}


def _own_digest(path: Path) -> str | None:
    try:
        return None if path.is_symlink() or not (path.is_file() or path.is_dir()) else digest_of(path)
    except ManifestError:
        return None
