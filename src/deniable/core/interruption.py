"""Ctrl-C and signals that end a run: never between two steps that belong together, and what was done is said.

Only the standard library is imported here: whoever interrupts a run that has only begun waits for nothing.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_in_place: list[Path] = []  # releases that this process has put where they belong, in their order


@contextlib.contextmanager
def held_off() -> Iterator[None]:
    """Signals that end a run wait until the block is done, well or not, and then do what they would have done."""
    if threading.current_thread() is not threading.main_thread():  # where Python handles no signal
        yield
        return
    waiting: list[int] = []

    def wait(number: int, _: FrameType | None) -> None:
        waiting.append(number)

    listening = {number: signal.getsignal(number) for number in ENDING}
    # What nobody listens to ends the run as well; None is the handler of a program around Python.
    held = {number: handler for number, handler in listening.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in held:
            signal.signal(number, wait)
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for number in waiting:
            signal.raise_signal(number)


def begin() -> None:
    """A run begins: what others in this process have done is no matter of its own."""
    _in_place.clear()


def put_in_place(release: Path) -> None:
    """Remember that a release is where it belongs, whatever happens to the run after that."""
    _in_place.append(release)


def what_stays() -> str:
    """The end of the sentence that a run did not end well: what it has done is not undone."""
    return "".join(f" {str(release)!r} had been written by then, and is whole." for release in _in_place)
