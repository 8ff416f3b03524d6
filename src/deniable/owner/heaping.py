"""Heaped numbers: people say 50,000 and not 49,873, and replacements are drawn from all points of the grid alike.

With a share h of the rows on multiples of u, which are a share e of the points, and a coin p, a published multiple of u
was kept with the probability

    Pr[kept | y is a multiple of u] = p h / (p h + (1 - p) e)

which is close to 1 where h is far above e, whatever the coin. Whoever knows that people round needs to know nothing
else. On a grid of multiples of u no number stands out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deniable.core.channels import NumberRange
from deniable.core.errors import option, shortened
from deniable.core.values import Bools, Ints, percent
from deniable.owner.findings import Finding
from deniable.planning.informed import NEARLY

ROUND = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 5) if digit * 10**power >= 5)
LEAST_SHARE = 0.05  # of the rows: fewer on heaps are not worth a word
TIMES = 3.0  # as many rows on heaps as even numbers would have
ALARM = 6.0  # standard errors
EPOCH = np.datetime64("0001-01-01", "D").astype(np.int64) - 1  # days before ordinal 1


@dataclass(frozen=True)
class Heap:
    """Where the numbers of a column pile up.

    Attributes:
        column: its name.
        what: the heaped values, in words.
        step: a grid on which nothing is heaped; None where there is none (dates).
        share, expected: of the rows that are heaped, and of the points.
        coin: the probability that a number is kept.
    """

    column: str
    what: str
    step: float | None
    share: float
    expected: float
    coin: float

    @property
    def posterior(self) -> float:
        """How likely a published number on a heap is the true one."""
        kept = self.coin * self.share
        return kept / (kept + (1 - self.coin) * self.expected)


def heap_of(column: str, counts: Ints, grid: NumberRange) -> Heap | None:
    """The heaps that say most about a column; None where its numbers do not pile up.

    Args:
        column: its name.
        counts: the rows at each point of the grid.
        grid: the range that its numbers are replaced within.
    """
    rows = int(counts.sum())
    best, most = None, 0.0
    for what, step, heaped in _candidates(grid):
        share, expected = float(counts[heaped].sum()) / max(rows, 1), float(heaped.mean())
        by_chance = expected + ALARM * np.sqrt(expected * (1 - expected) / max(rows, 1))
        if not 0 < expected < 1 or share < max(LEAST_SHARE, TIMES * expected, by_chance):
            continue
        information = share * np.log(share / expected)
        if information > most:
            best, most = Heap(column, what, step, share, expected, grid.keep / 2**32), information
    return best


def about_heap(heap: Heap | None, rho2: float | None) -> list[Finding]:
    """At most one finding: serious where most of what is published on a heap is true beyond doubt."""
    if heap is None or heap.coin >= 1:
        return []
    limit = NEARLY if rho2 is None else rho2
    serious = heap.posterior > limit and heap.coin * heap.share >= LEAST_SHARE
    return [Finding("serious" if serious else "caution", "heaped numbers", told_of(heap), fix_of(heap))]


def told_of(heap: Heap) -> str:
    """The heaps and what they give away, in two sentences."""
    return (
        f"{percent(heap.share)} of the numbers in {shortened(heap.column)} are {heap.what}, and so are "
        f"{percent(heap.expected)} of the points. A published one of these is the true number in "
        f"{percent(heap.posterior)} of the rows, although the coin keeps {percent(heap.coin)}."
    )


def fix_of(heap: Heap) -> str:
    """What to do about it."""
    if heap.step is None:
        coarser = option("recode", f"{{{heap.column!r}: dn.month}}", f"{heap.column}=month")
        return f"Publish months or years: {coarser} makes categories of them."
    return (
        f"Round the numbers to that grid before they are perturbed: Replace(.., step={heap.step:g}), or /{heap.step:g} "
        "after the range on the command line."
    )


def _candidates(grid: NumberRange) -> Iterator[tuple[str, float | None, Bools]]:
    """Sets of points that people round to: their name, the step of a grid of them, and which points they are."""
    if grid.kind == "date":
        days = grid.numbers(np.arange(grid.grid)).astype(np.int64) + EPOCH
        dates = days.astype("datetime64[D]")
        first = dates == dates.astype("datetime64[M]")
        yield "the first of a month", None, first
        yield "1 January", None, first & (dates.astype("datetime64[M]") == dates.astype("datetime64[Y]"))
        return
    start = float(grid.low) / grid.step  # type: ignore[arg-type]
    if abs(start - round(start)) > 1e-6:
        return
    points = np.arange(grid.grid, dtype=np.int64) + round(start)
    for unit in ROUND:
        if 2 * unit <= grid.grid:
            yield f"multiples of {unit * grid.step:,.10g}", unit * grid.step, points % unit == 0
