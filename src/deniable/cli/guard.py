"""One guard around every command: whatever goes wrong is one message, an exit code and, with --json, one object.

A traceback is for whoever mends deniable, and may show values of the table: it is printed only where the environment
variable DENIABLE_TRACEBACK asks for it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import typer

from deniable.cli import console
from deniable.cli.entry import INTERRUPTED, Stopped
from deniable.core import memory
from deniable.core.errors import DeniableError, OptionError, at_a_terminal, is_unicode, shortened
from deniable.core.interruption import begin, what_stays

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
    if isinstance(problem, console.BadNewsError):
        return Outcome(problem.kind, str(problem), problem.code)
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
            console.emit({"error": {"type": end.kind, "message": end.message + stays}})
        sys.stdout.flush()
    except OSError:  # stdout is full or closed: stderr still says why
        _discard_stdout()
    console.say((f"Error: {end.message}" if end.talk is None else end.talk) + stays)
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
    console.warn(str(message))
