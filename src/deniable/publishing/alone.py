"""One publication at a time: a series and the ledger of a key are read, published by and written back. Two runs that do
so at once would each forget what the other published."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from deniable.core.errors import OutputError

P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """A function that holds the files that its ``series`` and ``key_file`` name for as long as it runs."""

    @functools.wraps(function)
    def alone(*args: P.args, **options: P.kwargs) -> R:
        named: list[Any] = [options.get("series"), options.get("key_file")]
        with contextlib.ExitStack() as held:
            for path in named:
                if path is not None:
                    held.enter_context(holding(Path(path)))
            return function(*args, **options)

    return alone


@contextlib.contextmanager
def holding(path: Path) -> Iterator[None]:
    """Refuse to go on while another run holds the same file; whoever dies lets go of it."""
    real = path.resolve()
    lock = real.parent / f".{real.name}.lock"
    file = _locked(lock, path)
    if file is None:
        yield
        return
    _swept(real)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(file)


def _swept(book: Path) -> None:
    """Remove what a run that was killed while it wrote a series or a ledger has left: it holds a key, or people."""
    # As ``write_file`` calls what is not whole yet.
    left = re.compile(rf"\.{re.escape(book.name)}(\.ledger)?\.[0-9a-f]{{16}}")
    with contextlib.suppress(PermissionError):  # a folder that may be written to, and not listed
        for file in book.parent.iterdir():
            if left.fullmatch(file.name):
                file.unlink(missing_ok=True)


def _locked(lock: Path, path: Path) -> int | None:
    """A lock on the file of this name; none where nothing can be written there, so that nothing can be forgotten."""
    while True:
        try:
            file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(lock)):
                return file
        except FileNotFoundError:
            pass  # its holder has just removed it: a lock that nobody else would find is none
        except OSError:
            os.close(file)
            raise OutputError(
                f"Another run is publishing with {str(path)!r} at this moment. Fix: wait until it is done, and "
                "then run this again."
            ) from None
        os.close(file)
