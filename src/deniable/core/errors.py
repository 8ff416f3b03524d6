"""What can go wrong, in words: every message names the thing, its value, what would be right, and the nearest fix."""

from __future__ import annotations

import datetime
import difflib
import functools
import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_heard: ContextVar[dict[str, None] | None] = ContextVar("heard", default=None)


class DeniableError(Exception):
    """A mistake that the caller can mend. The message is complete: print it and nothing else.

    >>> import deniable as dn
    >>> try:
    ...     dn.Privacy(rho1="1/6", rho2="1/13")
    ... except dn.DeniableError as mistake:
    ...     print(str(mistake).partition(":")[0])
    rho1 = 1/6 must be smaller than rho2 = 1/13
    """


class RequirementError(DeniableError):
    """A privacy requirement that is malformed, or that this table cannot meet."""


class TableError(DeniableError):
    """The input table cannot be read, or cannot be published as asked."""


class ColumnError(TableError):
    """A column that is not there, is there twice, or has a type or name that cannot be used."""


class OptionError(DeniableError):
    """An option with a value that is not allowed, or options that contradict each other."""


class OutputError(DeniableError):
    """The release cannot be written where it was asked to be."""


class SecretError(DeniableError):
    """A key that is unreadable, malformed or not kept secret."""


class QuestionError(DeniableError):
    """A question that a release cannot answer."""


class ManifestError(DeniableError):
    """A release whose manifest is damaged, or was written by a newer version."""


class VerificationError(DeniableError):
    """A release that does not hold what it promises. The message names each promise that fails.

    >>> import pyarrow as pa, tempfile
    >>> from pathlib import Path
    >>> import deniable as dn
    >>> table = pa.table({"disease": ["flu", "cold", "hiv"] * 100})
    >>> with tempfile.TemporaryDirectory() as home:
    ...     folder = Path(home, "release")
    ...     _ = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="1/2"), out=folder)
    ...     _ = Path(folder, "data.parquet").write_bytes(b"other rows")
    ...     try:
    ...         dn.verify(folder)
    ...     except dn.VerificationError as mistake:
    ...         print(str(mistake).splitlines()[1])
    - data: data.parquet was changed: other SHA-256

    Attributes:
        certificate: all checks, with those that hold and those that could not be made; None where none was made.
    """

    def __init__(self, message: str, certificate: Any = None) -> None:
        super().__init__(message)
        self.certificate = certificate


class ExtraMissingError(DeniableError):
    """A part of deniable that needs an optional dependency."""


class InternalError(Exception):
    """A bug in deniable, not a mistake of the caller."""


def extra_missing(package: str, extra: str) -> ExtraMissingError:
    """The error for an optional dependency that is not installed."""
    return ExtraMissingError(
        f"This needs the package {package!r}, which is not installed. Fix: pip install 'deniable[{extra}]'"
    )


def table_changed(how: str = "") -> TableError:
    """The error for a table that is not the same when it is read again."""
    return TableError(
        f"The table changed while it was being read{how and ': '}{how}. Fix: publish from a copy that nobody writes to."
    )


def warn_caller(words: str, kind: type[Warning]) -> None:
    """A warning about what was asked of the package: it points to the line that asked, not to one of ours."""
    heard = _heard.get()
    if heard is not None:
        heard[words] = None
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, functools.__file__)):
        level, frame = level + 1, frame.f_back
    warnings.warn(words, kind, stacklevel=level)


@contextmanager
def warnings_heard() -> Iterator[dict[str, None]]:
    """What ``warn_caller`` says in this thread, once each, instead of to Python's warnings, which all threads share.

    >>> with warnings_heard() as heard:
    ...     warn_caller("much noise", UserWarning)
    >>> list(heard)
    ['much noise']
    """
    heard: dict[str, None] = {}
    before = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(before)


_terminal: list[bool] = []  # of the whole process: threads that work for a command speak as it does
_AT_A_TERMINAL = {"privacy": "rho2", "theta": "tolerance"}  # options that have another name there


@contextmanager
def at_a_terminal() -> Iterator[None]:
    """Texts that are made from here to the end name options as the command line has them, not as Python does."""
    _terminal.append(True)
    try:
        yield
    finally:
        _terminal.pop()


def worded(python: str, terminal: str) -> str:
    """Words for whoever calls from Python, or those for whoever is at a terminal."""
    return terminal if _terminal else python


def option(name: str, value: object = None, written: str | None = None) -> str:
    """An option, with its value, as whoever reads the text would give it. No text of a release has one.

    Args:
        name: as Python has it.
        value: left out: the name alone; "" where whoever reads it knows the value. Words in capitals stand for a value.
        written: the value at a terminal, where it is written in another way; ``value`` is then Python as it stands.

    >>> def options():
    ...     print(option("row_id"), option("row_id", "COLUMN"), option("mechanism", "uniform"))
    ...     print(option("drop", ["a", "b c"]), option("shuffle", False), option("exempt", ""))
    ...     print(option("domain", "[..]", "COLUMN=FILE"))
    >>> options()
    row_id row_id=COLUMN mechanism='uniform'
    drop=['a', 'b c'] shuffle=False exempt=
    domain=[..]
    >>> with at_a_terminal():
    ...     options()
    --row-id --row-id COLUMN --mechanism uniform
    --drop a --drop 'b c' --no-shuffle --exempt
    --domain COLUMN=FILE
    """
    flag = _AT_A_TERMINAL.get(name, name).replace("_", "-")
    if value is None:
        return worded(name, f"--{flag}")
    if isinstance(value, bool):
        return worded(f"{name}={value}", f"--{flag}" if value else f"--no-{flag}")
    if written is not None:
        return worded(f"{name}={value}", f"--{flag} {written}")
    if isinstance(value, list):
        return worded(f"{name}={value!r}", " ".join(f"--{flag} {shlex.quote(str(one))}" for one in value))
    stands = not isinstance(value, str) or not value or value.isupper()
    return worded(
        f"{name}={value if stands else repr(value)}", f"--{flag} {shlex.quote(str(value)) if value else ''}".rstrip()
    )


SHORTEST_PART = 3  # letters of a word that are taken for the whole of it
MOST_COLUMNS = 20  # named in a message


def did_you_mean(wrong: object, known: Iterable[object]) -> str:
    """A hint that names the nearest known words, or an empty string.

    >>> did_you_mean("diseas", ["disease", "age"])
    " Did you mean 'disease'?"
    >>> did_you_mean("Nurse", ["Registered nurse", "Cook"])
    " Did you mean 'Registered nurse'?"
    """
    words, written = {str(word): word for word in known}, str(wrong).lower()
    near = difflib.get_close_matches(str(wrong), list(words), n=2, cutoff=0.6)
    if not near:
        near = [word for word in words if word.lower() == written]
    if not near and len(written) >= SHORTEST_PART:
        near = [word for word in words if written in word.lower()][:2]
    return f" Did you mean {' or '.join(repr(words[word]) for word in near)}?" if near else ""


def listing(items: Sequence[object], most: int = 8) -> str:
    """A short list for a message: the first few, then how many more.

    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(shortened(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def no_column(role: str, name: object, known: Sequence[str], hint: str = "") -> str:
    """The message for a column that an option names and a table does not have: what was meant, and what there is.

    >>> no_column("drop", "nam", ["name", "age"])
    "drop names the column 'nam', which the table does not have. Did you mean 'name'? Its columns: 'name', 'age'."
    """
    near = hint or did_you_mean(name, known) or " Fix: name one of its columns."
    return (
        f"{option(role)} names the column {shortened(name)}, which the table does not have.{near} Its columns: "
        f"{listing(known, MOST_COLUMNS)}."
    )


def counted(number: int, thing: str) -> str:
    """A number and what it counts.

    >>> counted(1, "row"), counted(2000, "row"), counted(1, "degree of freedom"), counted(2, "degree of freedom")
    ('1 row', '2,000 rows', '1 degree of freedom', '2 degrees of freedom')
    """
    first, space, rest = thing.partition(" ")
    return f"{number:,} {first}{'s' * (number != 1)}{space}{rest}"


def is_unicode(text: str) -> bool:
    """Whether a text is one: what a shell hands over that is not UTF-8 arrives as lone surrogates.

    >>> is_unicode("né"), is_unicode("n\\udce9")
    (True, False)
    """
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def shortened(value: object, most: int = 60) -> str:
    """``repr`` cut to a length that fits into a message; a table may hold strings of megabytes.

    Dates are written as one writes them.

    >>> import datetime
    >>> shortened("flu"), shortened(datetime.date(2024, 12, 31))
    ("'flu'", '2024-12-31')
    """
    if isinstance(value, datetime.date):
        return str(value)
    text = repr(value[: most + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= most + 2 else text[:most] + "..'"
