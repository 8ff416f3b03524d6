"""One thread that writes: requests that come together are committed together, and answered when that is on disk."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress

from deniable.collection.store.base import Entry, Outcome, Store

MOST_AT_ONCE = 2000  # responses in one transaction
Waiting = tuple[Sequence[Entry], asyncio.AbstractEventLoop, "asyncio.Future[list[Outcome]]"]


class Writer:
    """Takes entries from any number of requests, and writes them in few transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="deniable-writer", daemon=True)
        self._thread.start()

    async def add(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Store entries; returns when they are durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Outcome]] = loop.create_future()
        self._queue.put((entries, loop, future))
        return await future

    def close(self) -> None:
        """Write what is waiting, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            waiting, last = self._next()
            if waiting:
                self._write(waiting)
            if last:
                return

    def _next(self) -> tuple[list[Waiting], bool]:
        """All that waits, up to a limit; and whether the writer is to stop."""
        item = self._queue.get()
        waiting: list[Waiting] = []
        total = 0
        while item is not None:
            waiting.append(item)
            total += len(item[0])
            if total >= MOST_AT_ONCE:
                return waiting, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return waiting, False
        return waiting, True

    def _write(self, waiting: Sequence[Waiting]) -> None:
        try:
            outcomes = self._store.add([entry for entries, _, _ in waiting for entry in entries])
        except Exception as problem:  # whoever waits is told, and the next ones may fare better
            for _, loop, future in waiting:
                _tell(loop, future, problem)
            return
        start = 0
        for entries, loop, future in waiting:
            _tell(loop, future, outcomes[start : start + len(entries)])
            start += len(entries)


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[list[Outcome]], result: object) -> None:
    def settle() -> None:
        if future.done():  # its request was given up
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    with suppress(RuntimeError):  # the loop is gone: nobody waits any more
        loop.call_soon_threadsafe(settle)
