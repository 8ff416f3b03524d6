"""Where the program `deniable` begins: it listens to signals and looks at its streams before anything heavy is loaded.

Importing the command line takes a while, and Ctrl-C in that while must end as quietly as later: only the standard
library is imported here. Signals that end a run let it say so, like Ctrl-C, and take away what it has begun.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130  # what a shell reports after Ctrl-C
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
NO_STDOUT = "Error: stdout is closed, so the result has nowhere to go. Fix: > FILE, or > /dev/null."


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl-C asked this run to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number  # what a shell reports for it


def listen() -> None:
    """From now on these signals raise ``Stopped``; one that is ignored (``nohup``) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, _: FrameType | None) -> None:
    raise Stopped(number)


def main() -> None:
    """The entry point of the program `deniable`."""
    try:
        listen()
        _require_streams()
        from deniable.cli.main import app
        from deniable.core import memory

        memory.keep_to_the_machine()
        app(prog_name="deniable")
    except Stopped as stop:
        _leave(f"Stopped by the system.{_what_stays()}", stop.code)
    except KeyboardInterrupt:
        _leave(f"Interrupted.{_what_stays()}", INTERRUPTED)


def _require_streams() -> None:
    """Refuse a closed stdout, and fill the places of closed streams: the next file opened would take theirs."""
    closed = sys.stdout is None
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number, which is this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if closed:
        _leave(NO_STDOUT, 2)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal has no letter for is escaped, and JSON can read it back
            stream.reconfigure(errors="backslashreplace")


def _what_stays() -> str:
    from deniable.core.interruption import what_stays

    return what_stays()


def _leave(words: str, code: int) -> None:
    print(words, file=sys.stderr)
    sys.exit(code)
