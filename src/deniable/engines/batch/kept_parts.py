"""Parts of perturbed rows that outlive a run that is killed, so that the next one goes on after the last of them.

A folder holds ``part-00000``, ``part-00001``, .., each with a file for every bucket of the shuffle, and a journal: a
line that says which publication it is of, and one for each finished part, with the rows that came before its end and
the SHA-256 of its files. A part is finished when its files are on the disk and its line is. Which publication it is, is
said by numbers drawn from the key: they tell nothing about the key, the table or any value to whoever has no key.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

JOURNAL = "journal"
OTHER_KEY = "it was begun with another key"
OTHER_TABLE = "it was begun with another table, or with other options"


class KeptParts:
    """The finished parts of one publication.

    Args:
        folder: where they are; made if it is not there.
        identity: numbers that name the key (``key``) and the publication (``job``).

    Attributes:
        said: what the owner should know of what was there.
        rows: of the table, that are in finished parts.
        buckets: how many files a part has; None before it is known.
    """

    def __init__(self, folder: Path, identity: Mapping[str, str]) -> None:
        self._folder, self._identity = folder, dict(identity)
        self._parts: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.buckets: int | None = None
        folder.mkdir(mode=0o700, exist_ok=True)
        self._read()
        self._clear()
        self.rows = int(self._parts[-1]["rows"]) if self._parts else 0
        if self._parts:
            parts = f"{len(self._parts):,} part{'s' * (len(self._parts) != 1)}"
            self.said.append(f"Going on after row {self.rows:,}, with {parts} of an earlier run.")

    def begin(self, buckets: int) -> None:
        """Fix the number of buckets, and begin the journal."""
        if self.buckets is None:
            self.buckets = buckets
            self._note({**self._identity, "buckets": buckets})

    def add(self, write: Callable[[Path], int]) -> None:
        """Another part: ``write`` makes its files in a folder, and says how many rows they have."""
        path = self._path(len(self._parts))
        path.mkdir(mode=0o700)
        rows = self.rows + write(path)
        digests = {file.name: _digest(file, flush=True) for file in sorted(path.iterdir())}
        for folder in (path, self._folder):  # the names of files are on the disk when their folder is
            _flush(folder)
        self._parts.append({"rows": rows, "files": digests})
        self._note(self._parts[-1])
        self.rows = rows

    def files(self, name: str) -> list[Path]:
        """The file of this name of each part, in the order of the table's rows."""
        return [self._path(number) / name for number in range(len(self._parts))]

    def _path(self, number: int) -> Path:
        return self._folder / f"part-{number:05d}"

    def _note(self, line: Mapping[str, Any]) -> None:
        with open(self._folder / JOURNAL, "a", encoding="utf-8") as journal:
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            os.fsync(journal.fileno())

    def _read(self) -> None:
        """The journal, as far as it is whole and its parts are as they were."""
        try:
            lines = [json.loads(line) for line in _whole_lines(self._folder / JOURNAL)]
            begun = lines[0] if lines else None
            for place in ("key", "job"):
                if begun is not None and begun[place] != self._identity[place]:
                    self._start_anew(OTHER_KEY if place == "key" else OTHER_TABLE)
                    return
            self.buckets = None if begun is None else int(begun["buckets"])
            for number, line in enumerate(lines[1:]):
                path = self._path(number)
                if any(_digest(path / name) != digest for name, digest in line["files"].items()):
                    self.said.append(f"Part {number + 1:,} of the earlier run is damaged: it is made again.")
                    return
                self._parts.append({"rows": int(line["rows"]), "files": dict(line["files"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            self._parts, self.buckets = [], None
            self._start_anew("its journal is damaged")

    def _start_anew(self, why: str) -> None:
        self.said.append(f"What an earlier run left cannot be gone on with: {why}. Publishing starts anew.")

    def _clear(self) -> None:
        """Remove whatever is not finished, and write the journal of what is."""
        kept = {self._path(number).name for number in range(len(self._parts))}
        for entry in self._folder.iterdir():
            if entry.name not in kept:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        if self.buckets is not None:
            self._note({**self._identity, "buckets": self.buckets})
        for part in self._parts:
            self._note(part)


def _whole_lines(journal: Path) -> list[str]:
    """Lines that end: the last one may have been cut off."""
    try:
        text = journal.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return text.split("\n")[:-1]


def _digest(path: Path, *, flush: bool = False) -> str:
    try:
        with path.open("rb") as file:
            if flush:
                os.fsync(file.fileno())
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
