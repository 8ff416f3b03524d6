"""Long work of the desk: one piece at a time in a thread, with its progress, and a button that stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from deniable.core.errors import DeniableError
from deniable.desk.texts import Words
from deniable.tables.base import Progress

OUR_BUG = "Something went wrong inside: {kind}. Please report it; nothing was published."


class StoppedError(Exception):
    """Someone pressed the button."""


@dataclass
class Work:
    """A piece of work.

    Attributes:
        name: what it is for.
        key: what it was asked with: the same needs no second run.
        done, total, what: how far it is; the total is None where it is not known.
        state: ``running``, ``done``, ``failed`` or ``stopped``.
        problem: why it failed, as a message for people.
        result: what it made.
    """

    name: str
    key: Hashable
    done: int = 0
    total: int | None = None
    what: str = ""
    state: str = "running"
    problem: str = ""
    result: Any = None

    @property
    def share(self) -> float | None:
        """How much of this stage is done; None where that is not known."""
        return None if not self.total else min(self.done / self.total, 1.0)


class Bench:
    """Where work is done. Results stay until the same work is asked for with something else."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopping: set[int] = set()

    def get(self, name: str) -> Work | None:
        """The last work of this name."""
        return self._works.get(name)

    def start(self, name: str, key: Hashable, run: Callable[[Progress], Any]) -> Work:
        """The work of this name with this key: begun, unless it was before. Other work of the name stops."""
        with self._lock:
            known = self._works.get(name)
            if known is not None and known.key == key:
                return known
            if known is not None:
                self._stopping.add(id(known))
            work = Work(name, key)
            self._works[name] = work
            thread = threading.Thread(target=self._run, args=(work, run), name=f"desk-{name}", daemon=True)
            self._threads[name] = thread
            thread.start()
            return work

    def wait(self, work: Work, seconds: float) -> None:
        """Wait for work that may be done soon."""
        thread = self._threads.get(work.name)
        if work.state == "running" and thread is not None:
            thread.join(seconds)

    def stop(self, name: str) -> None:
        """Ask the work of this name to stop: it does at its next step."""
        work = self._works.get(name)
        if work is not None and work.state == "running":
            self._stopping.add(id(work))

    def forget_ended(self) -> None:
        """Drop all work that failed or was stopped: whoever asks for it begins it again."""
        with self._lock:
            self._works = {name: work for name, work in self._works.items() if work.state in ("running", "done")}

    def forget(self, name: str) -> None:
        """Stop the work of this name, and drop what it made."""
        self.stop(name)
        with self._lock:
            self._works.pop(name, None)

    def close(self, patience: float = 10.0) -> None:
        """Stop everything, and wait for it: what was begun is taken away."""
        for name in list(self._works):
            self.stop(name)
        for thread in list(self._threads.values()):
            thread.join(patience)

    def _run(self, work: Work, run: Callable[[Progress], Any]) -> None:
        def progress(done: int, total: int | None, what: str) -> None:
            if id(work) in self._stopping:
                raise StoppedError
            work.done, work.total, work.what = done, total, what

        try:
            work.result = run(progress)
            work.state = "done"
        except StoppedError:
            work.state = "stopped"
        except DeniableError as problem:
            work.problem, work.state = str(problem), "failed"
        except Exception as problem:  # its words might hold values of the table
            work.problem, work.state = OUR_BUG.format(kind=type(problem).__name__), "failed"
        finally:
            self._stopping.discard(id(work))


def shown_work(words: Words, work: Work | None) -> dict[str, Any] | None:
    """Work that is not done, as a page shows it."""
    if work is None or work.state == "done":
        return None
    return {
        "name": work.name,
        "state": work.state,
        "share": work.share,
        "what": said_of(words, work),
        "problem": work.problem,
    }


def said_of(words: Words, work: Work) -> str:
    """How far work is, in words."""
    key = f"work.{work.what.replace(' ', '_')}"
    what = words(key) if words.has(key) else work.what
    if work.total and work.total > 1:
        return words("work.of", what=what, done=words.count(work.done), total=words.count(work.total))
    return what or words("work.begun")
