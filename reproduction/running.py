"""The items of papers, made by several processes: a step is what makes one or some of them, and shares nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass

from deniable.engines.base import Progress, no_progress
from reproduction.items import Item, Reproduction


@dataclass(frozen=True)
class Step:
    """What makes some items of a paper.

    Attributes:
        make: makes them; it must not rely on what another step has done.
        seconds: about how long it takes on one core, so that the longest are begun first.
    """

    make: Callable[[], Item | list[Item]]
    seconds: float = 1.0

    def items(self) -> list[Item]:
        made = self.make()
        return made if isinstance(made, list) else [made]


@dataclass(frozen=True)
class Paper:
    """What is to be repeated of one paper, in the order of its items."""

    name: str
    title: str
    steps: tuple[Step, ...]


def repeated(papers: Sequence[Paper], *, workers: int = 1, progress: Progress = no_progress) -> list[Reproduction]:
    """All items of all papers. Steps of different papers run side by side; the items are in their order."""
    steps = [step for paper in papers for step in paper.steps]
    made: dict[int, list[Item]] = {}
    with closing(_executed(steps, workers)) as executed:
        for number, items in executed:
            made[number] = items
            progress(len(made), len(steps), "tables and figures")
    results, first = [], 0
    for paper in papers:
        places = range(first, first := first + len(paper.steps))
        own = tuple(item for place in places for item in made[place])
        results.append(Reproduction(paper.name, paper.title, own))
    return results


_inherited: list[Sequence[Step]] = []  # what forked processes find when they start: closures cannot be sent to them


def _executed(steps: Sequence[Step], workers: int) -> Generator[tuple[int, list[Item]]]:
    order = sorted(range(len(steps)), key=lambda number: -steps[number].seconds)
    if workers <= 1 or len(steps) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from ((number, steps[number].items()) for number in order)
        return
    _inherited.append(steps)
    processes = ProcessPoolExecutor(
        min(workers, len(steps)), multiprocessing.get_context("fork"), initializer=_alone_on_its_core
    )
    try:
        futures = {processes.submit(_made, number): number for number in order}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        processes.shutdown(cancel_futures=True)
        _inherited.pop()


def _made(number: int) -> list[Item]:
    return _inherited[-1][number].items()


def _alone_on_its_core() -> None:
    """Every process has its own core: threads of linear algebra would only be in each other's way."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return
    threadpool_limits(1)
