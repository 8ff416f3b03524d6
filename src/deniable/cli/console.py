"""What the commands share on the terminal: results on stdout, talk on stderr, one message per mistake."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

# Control characters but for tab and line feed, and the marks that turn the direction of text.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NAMES = 0.6  # of a terminal's width, that columns which name a row may take where they are repeated
GAP, NARROWED = 2, 30  # between columns of a table; the width that a column of words keeps in a narrow terminal
Report = Callable[[int, int | None, str], None]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no hints; warnings and errors stay.")]


class Group(TyperGroup):
    """Commands of one name, such as `collect`, listed with the first paragraph of their help, which is never cut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            listed = ((name, inspect.cleandoc(command.help or "")) for name, command in self.commands.items())
            formatter.write_dl([(name, text.partition("\n\n")[0]) for name, text in listed])


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
    """A warning, which --quiet does not silence."""
    say(f"Warning: {text}")


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
    """A result for people: an aligned table on stdout, never cut; a narrow terminal shows it in several."""
    filled = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        _print_table(columns, filled, range(len(columns)), width=10_000)
        return
    widths = [
        max(map(cell_len, (visible(name), *(row[place] for row in filled)))) for place, name in enumerate(columns)
    ]
    words = [not all(_is_number(row[place]) for row in filled) for place in range(len(columns))]
    for number, places in enumerate(_side_by_side(widths, words, Console().width)):
        if number:
            print()
        _print_table(columns, filled, places)


def _side_by_side(widths: Sequence[int], words: Sequence[bool], room: int) -> list[list[int]]:
    """The columns of each table that fits into a terminal; the first ones of words, which name a row, are in all.

    >>> _side_by_side([10, 4, 4, 4], [True, False, False, False], room=25)
    [[0, 1, 2], [0, 3]]
    """
    needed = [min(width, NARROWED) if text else width for width, text in zip(widths, words, strict=True)]
    names = 1
    while names < len(needed) and words[names] and sum(widths[: names + 1]) + GAP * names <= room * NAMES:
        names += 1
    tables = [list(range(names))]
    for place in range(names, len(needed)):
        wide = sum(needed[one] + GAP for one in tables[-1]) + needed[place]
        if wide > room and len(tables[-1]) > names:
            tables.append(list(range(names)))
        tables[-1].append(place)
    return tables


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], places: Sequence[int], width: int | None = None
) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place in places:
        texts = [row[place] for row in rows]
        whole = width is not None or max(map(cell_len, (columns[place], *texts))) <= NARROWED
        side: Literal["left", "right"] = "right" if all(map(_is_number, texts)) else "left"
        table.add_column(visible(columns[place]), justify=side, no_wrap=whole, overflow="fold")
    for row in rows:
        table.add_row(*(row[place] for place in places))
    Console(markup=False, highlight=False, width=width).print(table)


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
