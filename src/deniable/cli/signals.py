"""Signals that end a run: like Ctrl-C, they let it say so and take away what it has begun.

Only the standard library is imported here: whoever listens first must not have to wait for anything.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

INTERRUPTED = 130  # what a shell reports after Ctrl-C
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


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
