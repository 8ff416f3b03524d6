"""What a shell completes beyond options: columns of the table or release on the command line, and words of a question.

Nothing is printed and nothing fails: what cannot be read has no completions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST = 200  # completions of one word
WORDS = ("SELECT", "COUNT(*)", "AVG", "SUM", "MEDIAN", "FROM release", "WHERE", "GROUP BY", "ORDER BY", "LIMIT")
LISTED = r"\bIN\s*\((?:\s*'[^']*'\s*,)*"
VALUE = re.compile(rf"([^\W\d]\w*)\s*(?:<>|!=|=|{LISTED}|\bNOT\s+{LISTED})\s*'([^']*)$", re.IGNORECASE)
WORD = re.compile(r"\w*$")


@dataclass(frozen=True)
class Completion:
    """A completed word, as shells ask for it."""

    value: str
    type: str = "plain"
    help: str | None = None


def with_completions(command: Any) -> Any:
    """The command, whose columns and questions a shell can complete."""
    for parameter in command.params:
        metavar = parameter.metavar or ""
        if metavar.startswith("COLUMN"):
            parameter.shell_complete = _completed(_columns, "=" if metavar.startswith("COLUMN=") else "")
        elif metavar == "SQL":
            parameter.shell_complete = _completed(_question, "")
    return command


def _completed(words: Callable[[str], Iterable[str]], after: str) -> Callable[[Any, str], list[Completion]]:
    def complete(ctx: Any, incomplete: str) -> list[Completion]:
        completions: list[Completion] = []
        with suppress(Exception):
            for word in words(incomplete):
                if word.startswith(incomplete) and len(completions) < MOST:
                    completions.append(Completion(word + after))
        return completions

    return complete


def _columns(incomplete: str) -> Iterator[str]:
    """The columns of what stands before: of COLUMNS several, with commas between them."""
    before = incomplete.rpartition(",")[0]
    taken = before.split(",") if before else []
    for place in _places():
        for name in _names(place):
            if name not in taken:
                yield ",".join([*taken, name])


def _question(incomplete: str) -> Iterator[str]:
    """A question with its last word completed: a value within quotes, else a column or a word of SQL."""
    (place,) = _places()[:1]
    value = VALUE.search(incomplete)
    if value:
        begun = incomplete[: len(incomplete) - len(value[2])]
        yield from (f"{begun}{text.replace(chr(39), chr(39) * 2)}'" for text in _values(place, value[1]))
        return
    begun = WORD.sub("", incomplete)
    last = incomplete[len(begun) :]
    yield from (begun + name for name in _names(place) if name.isidentifier())  # a quote would end the shell's word
    yield from (begun + word for word in WORDS if last and word.startswith(last.upper()))


def _places() -> list[str]:
    """The tables and releases that stand on the command line, which shells hand over as it is."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return [word for word in line.split() if Path(word).exists()]


def _names(place: str) -> Sequence[str]:
    if Path(place).is_dir():
        from deniable.release.release import open_release

        manifest = open_release(place).manifest
        return [column.name for column in manifest.columns]
    from deniable.tables import engine_named

    names: list[str] = engine_named("local").open([place]).schema.names
    return names


def _values(place: str, column: str) -> Iterator[str]:
    """Values of a column that are texts: of a perturbed one those of its domain, of another those that occur."""
    from deniable.release.release import open_release

    release = open_release(place)
    part = release.manifest.part_of(column)
    if part is not None:
        known: Iterable[Any] = part.domain if len(part.columns) == 1 else ()
    else:
        known = release.table[column].unique().to_pylist()
    yield from sorted(value for value in known if isinstance(value, str))
