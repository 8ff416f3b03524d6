"""A published table in parts: a folder of Parquet files that are read in the order of their names.

Its digest is the SHA-256 of what `sha256sum` prints for the parts, so that anyone can compute it without reading them
in one go: `cd data.parquet && sha256sum * | sha256sum`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from deniable.core.errors import ManifestError

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
