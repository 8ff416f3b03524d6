"""Finished draws of an experiment in a file of JSON lines, so that a stopped one goes on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from deniable.core.errors import OptionError, OutputError

BEGINNING = '{"experiment": '  # of every line


def _for_the_owner(path: str, flags: int) -> int:
    """A new file is its owner's alone: clouds hold exact counts of the original."""
    return os.open(path, flags, 0o600)


class Log:
    """Finished units in a file of JSON lines; a last line that was cut off is ignored and done again.

    Attributes:
        done: setting and number of a draw -> its lines.
    """

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self._file: Any = None
        self.done: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def __enter__(self) -> Log:
        if self.path is not None:
            try:
                text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
                kept = text[: text.rfind("\n") + 1]
                self.done = self._read(kept.splitlines(), text[len(kept) :])
                if kept != text:
                    os.truncate(self.path, len(kept.encode()))  # what is whole stays, even on a full disk
                self._file = open(self.path, "a", encoding="utf-8", opener=_for_the_owner)
            except OSError as problem:
                raise OutputError(
                    f"{str(self.path)!r} cannot be used: {problem.strerror}. Fix: a file in a folder that is there."
                ) from None
            except UnicodeDecodeError:
                raise OptionError(
                    f"{self.path} is not text, so it holds no finished draws. Fix: give another file."
                ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, whole: list[str], rest: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """What the lines of a file hold. Nothing is cut off a file before all of it is known to be of this kind: it may
        be anything that was named by mistake."""
        done: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for number, text in enumerate(whole, start=1):
            try:
                unit = json.loads(text)
                same, lines = unit["experiment"] == self.fingerprint, unit["lines"]
            except (ValueError, KeyError, TypeError):
                raise OptionError(
                    f"{self.path}, line {number}, is not a finished draw. Fix: give another file."
                ) from None
            if not same:
                raise OptionError(
                    f"{self.path} belongs to another experiment (other table, questions, seed or settings). "
                    "Fix: give another file, or delete this one."
                )
            done[lines[0]["setting"], lines[0]["draw"]] = lines
        if rest[: len(BEGINNING)] != BEGINNING[: len(rest)]:
            raise OptionError(f"{self.path}, line {len(whole) + 1}, is not a finished draw. Fix: give another file.")
        return done

    def write(self, lines: list[dict[str, Any]]) -> None:
        if self._file is not None:
            self._file.write(json.dumps({"experiment": self.fingerprint, "lines": lines}) + "\n")
            self._file.flush()
