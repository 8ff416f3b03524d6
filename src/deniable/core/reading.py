"""Small files that people write: read whole, and refused where they have no end."""

from __future__ import annotations

from pathlib import Path

from deniable.core.errors import OptionError

LARGEST = 2**26  # bytes: a list of a million values takes less


def small_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a file of at most so many bytes; a device that never ends is refused, too."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OptionError(
            f"{str(path)!r} holds more than {most >> 20:,} MB, which is more than such a file can need. "
            "Fix: name the right file."
        )
    return content


def small_text(path: Path) -> str:
    """The same as text; a byte order mark is no part of it."""
    return small_bytes(path).decode("utf-8-sig")
