"""A plan: how a table becomes a release. It depends on the data only through the histogram."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from deniable.core.channel import Channel
from deniable.core.errors import InternalError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts, Histogram
from deniable.core.privacy import Privacy
from deniable.core.probability import percent


@dataclass(frozen=True)
class Cell:
    """A sub-table with its own sub-domain and channel.

    Attributes:
        rows: how many rows of each value this cell takes; its keys are the sub-domain, in the channel's order.
        channel: how a value of this cell is perturbed.
    """

    rows: Histogram
    channel: Channel

    def __post_init__(self) -> None:
        if self.rows.domain != self.channel.values:
            raise InternalError("a cell's rows and its channel name different values")

    @property
    def size(self) -> int:
        return self.rows.rows


@dataclass(frozen=True)
class Plan:
    """Cells, whether a row's cell is published, and what that guarantees.

    Attributes:
        mechanism: the mechanism's name.
        histogram: the table's histogram that was planned for.
        cells: they take every row of the histogram exactly once.
        cells_published: whether the release says which cell each row fell into.
        privacy: what was required; None for mechanisms that are only compared with.
        guarantee: what is promised.
        options: the mechanism's options, for the manifest.
    """

    mechanism: str
    histogram: Histogram
    cells: tuple[Cell, ...]
    cells_published: bool
    privacy: Privacy | None
    guarantee: Guarantee
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = np.zeros(self.histogram.m, dtype=np.int64)
        for cell in self.cells:
            np.add.at(taken, self.positions(cell), cell.rows.counts)
        if not np.array_equal(taken, self.histogram.counts):
            raise InternalError("the cells of a plan do not take every row exactly once")

    def positions(self, cell: Cell) -> Counts:
        """Where a cell's values stand in the domain of the table."""
        return np.array([self.histogram.position(value) for value in cell.rows.domain], dtype=np.int64)

    @cached_property
    def average_coin(self) -> float:
        """The share of rows that their coin keeps."""
        kept = sum(float((cell.rows.counts * cell.channel.coins).sum()) for cell in self.cells)
        return kept / max(self.histogram.rows, 1)

    @cached_property
    def record_utility(self) -> float:
        """The share of rows published as they are (SPEC 5): kept by the coin or redrawn by chance."""
        same = sum(float((cell.rows.counts * cell.channel.diagonal).sum()) for cell in self.cells)
        return same / max(self.histogram.rows, 1)

    def explain(self) -> str:
        """The plan for its owner, as text: what it promises, and its cells as a table. It holds shares of the rows."""
        seen = "published" if self.cells_published else "not published"
        lines = [
            f"{self.mechanism}: {len(self.cells):,} cell{'s' * (len(self.cells) != 1)} ({seen}) of "
            f"{self.histogram.m:,} values; coins keep {percent(self.average_coin)} of the rows.",
            str(self.guarantee),
            "",
            f"{'cell':>6}{'values':>8}{'rows':>9}  {'coins':<19}{'gamma':>8}  first values",
        ]
        for number, cell in enumerate(self.cells):
            coins = cell.channel.coins
            kept = percent(coins.min())
            if coins.max() > coins.min():
                kept += f" to {percent(coins.max())}"
            share = percent(cell.size / max(self.histogram.rows, 1))
            names = ", ".join(str(value)[:16] for value in cell.channel.values[:4])
            lines.append(f"{number:>6}{cell.channel.m:>8,}{share:>9}  {kept:<19}{cell.channel.gamma:>8.3g}  {names}")
        return "\n".join(lines)

    def value_cells(self) -> dict[Hashable, list[tuple[int, int]]]:
        """For each value the (cell, rows) it is dealt to, cells in order, none with zero rows."""
        dealt: dict[Hashable, list[tuple[int, int]]] = {value: [] for value in self.histogram.domain}
        for index, cell in enumerate(self.cells):
            for value, rows in cell.rows.items():
                if rows:
                    dealt[value].append((index, rows))
        return dealt
