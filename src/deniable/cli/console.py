"""What the commands share on the terminal: results on stdout, talk on stderr, one message per mistake."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deniable.cli.words import in_options

# Control characters but for tab and line feed, and the marks that turn the direction of text.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
Report = Callable[[int, int | None, str], None]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no hints; warnings and errors stay.")]


class BadNewsError(Exception):
    """A result that is bad news, with an exit code of its own."""

    def __init__(self, kind: str, message: str, code: int) -> None:
        super().__init__(message)
        self.kind = kind
        self.code = code


def visible(text: str) -> str:
    """Text that does nothing to a terminal: control characters and those that turn text round are shown, not sent.

    >>> visible("a\\x1b[2Jb\\nc")
    'a\\\\x1b[2Jb\\nc'
    """
    return _ACTIVE.sub(lambda match: repr(match[0])[1:-1], text)


def show(result: object = "") -> None:
    """A result for people, on stdout."""
    print(visible(str(result)))


def say(text: str = "") -> None:
    """Talk: for the person at the terminal, never part of the result."""
    print(visible(text), file=sys.stderr)


def warn(text: str) -> None:
    """A warning, which --quiet does not silence, in the words of the command line."""
    say(f"Warning: {in_options(text)}")


def red(text: str) -> str:
    """Visible text, in red where stdout is a terminal that may show colours (https://no-color.org)."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return f"\x1b[31m{visible(text)}\x1b[0m" if coloured else visible(text)


def show_alarm(text: str) -> None:
    """A result that must not be overlooked, on stdout and in red."""
    print(red(text))


def emit(result: Mapping[str, Any]) -> None:
    """A result for programs: one JSON object on stdout."""
    print(in_json(result, indent=2))


def in_json(result: Mapping[str, Any], indent: int | None = None) -> str:
    """JSON that does nothing to a terminal, and is read back as it was; what it has no number for becomes null."""
    text = json.dumps(_plain(result), indent=indent, ensure_ascii=False, default=str, allow_nan=False)
    return _ACTIVE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A result for people: an aligned table on stdout, never cut where it is piped into a file."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    filled = [[_cell(value) for value in row] for row in rows]
    for place, name in enumerate(columns):
        numbers = all(_is_number(row[place]) for row in filled)
        table.add_column(visible(name), justify="right" if numbers else "left", no_wrap=not sys.stdout.isatty())
    for row in filled:
        table.add_row(*row)
    Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 10_000).print(table)


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Report]:
    """A function (done, total, what) that draws on stderr; it draws nothing when stderr is not a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda done, total, what: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report(done: int, total: int | None, what: str) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield report


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value - value != 0:  # NaN and the infinities
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:,}"
    return visible(str(value)).replace("\n", "\\n")


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "") or 0)
    except ValueError:
        return False
    return True
