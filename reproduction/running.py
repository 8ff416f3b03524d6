"""The items of papers, made by several processes: a step is what makes one or some of them, and shares nothing.

A step that takes long is divided into parts, which run side by side too; what they give is joined when all are there.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from deniable.tables.base import Progress, no_progress
from reproduction.items import Item, Reproduction


@dataclass(frozen=True)
class Part:
    """What one process does without a pause.

    Attributes:
        make: does it; it must not rely on what another part has done, and gives what can be sent to another process.
        seconds: about how long it takes on one core, so that the longest are begun first.
    """

    make: Callable[[], Any]
    seconds: float = 1.0


@dataclass(frozen=True)
class Step:
    """What makes some items of a paper.

    Attributes:
        make: makes them; where there are parts, from the list of what these gave, which takes no time to speak of.
        seconds: about how long it takes, where there are no parts.
        parts: what it is divided into.
    """

    make: Callable[..., Item | list[Item]]
    seconds: float = 1.0
    parts: tuple[Part, ...] = ()

    @property
    def work(self) -> tuple[Part, ...]:
        """All that takes time."""
        return self.parts or (Part(self.make, self.seconds),)

    def items(self, made: Sequence[Any]) -> list[Item]:
        """The items, from what its work gave."""
        items = self.make(list(made)) if self.parts else made[0]
        return items if isinstance(items, list) else [items]


@dataclass(frozen=True)
class Paper:
    """What is to be repeated of one paper, in the order of its items."""

    name: str
    title: str
    steps: tuple[Step, ...]


def repeated(papers: Sequence[Paper], *, workers: int = 1, progress: Progress = no_progress) -> list[Reproduction]:
    """All items of all papers. Parts of different papers run side by side; the items are in their order."""
    parts = [part for paper in papers for step in paper.steps for part in step.work]
    made: dict[int, Any] = {}
    with closing(_executed(parts, workers)) as executed:
        for number, given in executed:
            made[number] = given
            progress(len(made), len(parts), "parts of tables and figures")
    left = iter(range(len(parts)))
    return [
        Reproduction(
            paper.name,
            paper.title,
            tuple(item for step in paper.steps for item in step.items([made[next(left)] for _ in step.work])),
        )
        for paper in papers
    ]


_inherited: list[Sequence[Part]] = []  # what forked processes find when they start: closures cannot be sent to them


def _executed(parts: Sequence[Part], workers: int) -> Generator[tuple[int, Any]]:
    order = sorted(range(len(parts)), key=lambda number: -parts[number].seconds)
    if workers <= 1 or len(parts) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from ((number, parts[number].make()) for number in order)
        return
    _inherited.append(parts)
    processes = ProcessPoolExecutor(
        min(workers, len(parts)), multiprocessing.get_context("fork"), initializer=_alone_on_its_core
    )
    try:
        futures = {processes.submit(_made, number): number for number in order}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        processes.shutdown(cancel_futures=True)
        _inherited.pop()


def _made(number: int) -> Any:
    return _inherited[-1][number].make()


def _alone_on_its_core() -> None:
    """Every process has its own core: threads of linear algebra would only be in each other's way."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return
    threadpool_limits(1)
