"""What the commands share on the terminal: results on stdout, talk on stderr, one message per mistake and one guard
around every command.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

from deniable.cli.entry import INTERRUPTED, Stopped
from deniable.core import memory
from deniable.core.errors import DeniableError, OptionError, at_a_terminal, is_unicode, shortened
from deniable.core.interruption import begin, what_stays

# -- What the commands share on the terminal: results on stdout, talk on stderr, one message per mistake ---------------


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

    def __init__(self, kind: str, message: str, code: int, result: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.code = code
        self.result = result or {}  # what JSON holds beside the error


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


# -- One guard around every command: whatever goes wrong is one message, an exit code and, with --json, one object -----
# A traceback is for whoever mends deniable, and may show values of the table: it is printed only where the environment
# variable DENIABLE_TRACEBACK asks for it.


MISTAKE = 2  # bad input, or a machine that is too small: the user can mend it
INTERNAL = 70  # a bug of deniable
TAKEN_BY_TYPER = (KeyboardInterrupt, EOFError, OSError)  # it has its own idea of what they mean
# Typer has a copy of Click inside, or uses the one that is installed, depending on its version.
ClickException: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
NOTHING = " Nothing was published by this run."
HOME = Path(__file__).resolve().parents[1]


class PassedError(Exception):
    """A problem on its way past Typer."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class Outcome:
    """How a run ended that did not end well."""

    kind: str
    message: str
    code: int
    talk: str | None = None  # what stderr says instead of the message
    result: Mapping[str, Any] = field(default_factory=dict)  # what JSON holds beside the error


def run(command: Callable[[], Any], words: Sequence[str]) -> NoReturn:
    """Run a command and leave; ``words`` are its arguments, which say whether the result is wanted as JSON."""
    as_json = wants_json(words)
    begin()
    with warnings.catch_warnings(), at_a_terminal():
        warnings.showwarning = _show_warning
        try:
            _require_unicode(words)
            with _held_back() if as_json else contextlib.nullcontext() as held:
                returned = command()
            if held is not None:
                sys.stdout.write(held.getvalue())
            sys.stdout.flush()
            code = returned if isinstance(returned, int) else 0
        except SystemExit as left:  # Typer's own way to leave, when it has told a shell what completes a word
            code = left.code if isinstance(left.code, int) else 0
        except BaseException as problem:  # nothing may pass
            code = _ended(problem.problem if isinstance(problem, PassedError) else problem, as_json=as_json)
    sys.exit(code)


def _ended(problem: BaseException, *, as_json: bool) -> int:
    if os.environ.get("DENIABLE_TRACEBACK"):
        traceback.print_exception(problem)
    if isinstance(problem, BrokenPipeError):  # `deniable query ... | head` is no mistake
        _discard_stdout()
        return 0
    return _reported(outcome(problem), as_json=as_json)


def _require_unicode(words: Sequence[str]) -> None:
    """Refuse what a shell handed over that is no text: neither Arrow nor a manifest could hold it."""
    for word in words:
        if not is_unicode(word):
            raise OptionError(f"{shortened(word)} is not UTF-8. Fix: rename the file, or use a UTF-8 terminal.")


def wants_json(words: Sequence[str]) -> bool:
    """Whether these arguments ask for JSON, even if nothing else of them is understood."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def outcome(problem: BaseException) -> Outcome:
    """What a problem is to the person at the terminal."""
    kind = type(problem).__name__
    if isinstance(problem, BadNewsError):
        return Outcome(problem.kind, str(problem), problem.code, result=problem.result)
    if isinstance(problem, DeniableError):
        return Outcome(kind, str(problem), MISTAKE)
    if isinstance(problem, ClickException):
        named = _with_value(problem)
        return Outcome("UsageError", named.format_message(), MISTAKE, _usage(named))
    if isinstance(problem, Stopped):
        return Outcome("Terminated", "Stopped by the system.", problem.code, "Stopped by the system.")
    if isinstance(problem, KeyboardInterrupt | EOFError | typer.Abort):
        return Outcome("Interrupted", "Interrupted.", INTERRUPTED, "Interrupted.")
    if isinstance(problem, MemoryError):
        return Outcome("MemoryError", _too_much(problem), MISTAKE)
    if isinstance(problem, RecursionError):
        return Outcome("RecursionError", "The input is nested too deeply to be read.", MISTAKE)
    if isinstance(problem, OSError):
        return Outcome("OSError", _in_words(problem), MISTAKE)
    message = (
        f"{kind} at {_place(problem)}: a bug of deniable, not a mistake of yours. Fix: report this line; "
        "DENIABLE_TRACEBACK=1 shows more, which may hold values of the table."
    )
    return Outcome("InternalError", message, INTERNAL)


def _reported(end: Outcome, *, as_json: bool) -> int:
    stays = what_stays() or (NOTHING if end.code == INTERNAL else "")
    try:
        if as_json:
            emit({**end.result, "error": {"type": end.kind, "message": end.message + stays}})
        sys.stdout.flush()
    except OSError:  # stdout is full or closed: stderr still says why
        _discard_stdout()
    say((f"Error: {end.message}" if end.talk is None else end.talk) + stays)
    return end.code


@contextlib.contextmanager
def _held_back() -> Iterator[io.StringIO]:
    """What a command prints, kept until it has succeeded: one document on stdout, never two."""
    held = io.StringIO()
    with contextlib.redirect_stdout(held):
        yield held


def _with_value(problem: Any) -> Any:
    """The same, naming what was typed, where a Typer that asks Pydantic says only what it should have been."""
    typed: Sequence[Any] = getattr(problem.__cause__, "errors", list)()
    if typed and "input" in typed[0]:
        problem.message = f"{shortened(typed[0]['input'])}: {problem.message}"
    return problem


def _usage(problem: Any) -> str:
    shown = io.StringIO()
    problem.show(shown)
    return shown.getvalue().rstrip()


def _too_much(problem: MemoryError) -> str:
    """What did not fit, in the words of whoever asked for it (NumPy and Arrow name the size)."""
    size = str(problem).splitlines()[0][:120] if str(problem) else "no size was named"
    whole = memory.in_words(memory.of_the_machine())
    return (
        f"This takes more memory than it may ({size}). Fix: fewer groups or columns in one question, fewer rows, or a "
        f"larger machine; this one has {whole}."
    )


def _place(problem: BaseException) -> str:
    """The innermost line of this package that the problem passed through."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(HOME)]
    innermost = (ours or frames)[-1:]
    return f"{Path(innermost[0].filename).name}:{innermost[0].lineno}" if innermost else "an unknown place"


def _in_words(problem: OSError) -> str:
    where = "" if problem.filename is None else f"{os.fsdecode(problem.filename)}: "
    return f"{where}{problem.strerror or problem}."


def _discard_stdout() -> None:
    """What is still to be printed when Python leaves goes nowhere, and fails nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    warn(str(message))
