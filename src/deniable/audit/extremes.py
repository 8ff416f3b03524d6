"""One cell as the attacker sees it: the largest and the smallest posterior of each of its values."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.channel import Channel
from deniable.core.exact import SCALE, Distinct, distinct

# The cell (None: not published) and the position of the published value; positions where it is a set of values; None
# where the row shows none, only its group.
View = tuple[int | None, int | tuple[int, ...] | None]


class Extremes(NamedTuple):
    """The largest and smallest posterior of one value inside one cell, and its share of the cell."""

    highest: Fraction
    most_telling: View
    lowest: Fraction
    least_telling: View
    cell_only: Fraction


@dataclass(frozen=True)
class CellRows:
    """One cell as the attacker models it: where its values stand, its channel, and (in proportion) its rows."""

    positions: tuple[int, ...]
    channel: Channel
    rows: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return sum(self.rows)

    @cached_property
    def keep(self) -> list[int]:
        return [int(k) for k in self.channel.keep]

    @cached_property
    def replace(self) -> list[int]:
        return [int(w) for w in self.channel.replace]

    @cached_property
    def replaced(self) -> int:
        """T = sum_k N_k (S - K_k), the rows that are redrawn, times S."""
        return sum(n * (SCALE - k) for n, k in zip(self.rows, self.keep, strict=True))

    def takes(self, position: int) -> bool:
        """Whether the cell holds rows of a value."""
        return position in self._taken

    @cached_property
    def _taken(self) -> frozenset[int]:
        return frozenset(place for place, rows in zip(self.positions, self.rows, strict=True) if rows)

    def joint(self, y: int, x: int) -> int:
        """N_x P[y][x] S^2, for places y and x inside the cell."""
        drawn = self.rows[x] * (SCALE - self.keep[x]) * self.replace[y]
        return drawn + (self.rows[x] * self.keep[x] * SCALE if x == y else 0)

    def seen(self, y: int) -> int:
        """The rows that show y, times S^2."""
        return self.rows[y] * self.keep[y] * SCALE + self.replace[y] * self.replaced

    def as_shown(self, position: int) -> tuple[Floats, float]:
        """How many rows of each value show the value at a position, and how many of its own: of all that a row can
        show, this is what rows of other values show least, next to its own. Where no row shows it, what any other
        replacement comes to."""
        x = self.positions.index(position)
        kept, drawn = self.rows[x] * self.channel.coins[x], self._drawn
        share = self.channel.replacing[x] if kept or self.replace[x] else 1.0
        return drawn * share, float(kept + drawn[x] * share)

    @cached_property
    def _drawn(self) -> Floats:
        return np.array(self.rows) * (1 - self.channel.coins)


Side = list[tuple[Fraction, int]]  # the two smallest, or the two largest N_y K_y / W_y, each with its y


class _Reached(NamedTuple):
    """Extremes of a value, and the places where they are reached; None: where the value itself is published."""

    high: Fraction
    high_at: int | None
    low: Fraction
    low_at: int | None
    share: Fraction


def cell_extremes(cell: CellRows, index: int | None) -> dict[int, Extremes]:
    """The largest and smallest posterior of each value inside one cell, O(m).

        Pr[x | y] = N_x (S - K_x) / (N_y K_y S / W_y + T)  for y != x

    so among y != x only the smallest and the largest N_y K_y / W_y matter; y = x is looked at by itself.
    """
    alike = distinct(np.array(cell.rows, dtype=np.int64), cell.channel.keep, cell.channel.replace)
    ends, certain = _ends(cell, alike)
    apart = {*certain, *(y for side in ends for _, y in side)}  # for all others the same y are the extremes
    known: dict[int, _Reached] = {}
    extremes = {}
    for x, (position, kind) in enumerate(zip(cell.positions, alike.of, strict=True)):
        if not cell.rows[x]:
            continue
        if x in apart:
            reached = _extremes_of(cell, x, ends, certain)
        else:
            if kind not in known:
                known[kind] = _extremes_of(cell, x, ends, certain)
            reached = known[kind]
        most, least = (position if y is None else cell.positions[y] for y in (reached.high_at, reached.low_at))
        extremes[position] = Extremes(reached.high, (index, most), reached.low, (index, least), reached.share)
    return extremes


def _ends(cell: CellRows, alike: Distinct) -> tuple[tuple[Side, Side], list[int]]:
    """The two smallest and the two largest N_y K_y / W_y, each with its y; and the first two y that are published and
    never a replacement: such a value rules all others out."""
    members: list[list[int]] = [[] for _ in alike.rows]
    for y, kind in enumerate(alike.of):
        members[kind].append(y)
    ratio: Side = []
    certain: list[int] = []
    for (n, k, w), ys in zip(alike.rows, members, strict=True):
        if w and (cell.replaced or n * k):
            own = Fraction(n * k * SCALE, w)
            ratio += [(own, y) for y in {*ys[:2], *ys[-2:]}]
        elif n * k:
            certain += ys[:2]
    return (heapq.nsmallest(2, ratio), heapq.nlargest(2, ratio)), sorted(certain)[:2]


def _extremes_of(cell: CellRows, x: int, ends: tuple[Side, Side], certain: Sequence[int]) -> _Reached:
    """The largest and the smallest posterior of a value, and where; None: where it is published itself."""
    drawn = cell.rows[x] * (SCALE - cell.keep[x])
    options: list[tuple[Fraction, int | None]] = []
    if cell.seen(x):
        options.append((Fraction(cell.joint(x, x), cell.seen(x)), None))
    for side in ends:
        other = next(((r, y) for r, y in side if y != x), None)
        if other is not None and other[0] + cell.replaced:
            options.append((Fraction(drawn) / (other[0] + cell.replaced), other[1]))
    options += [(Fraction(0), y) for y in certain if y != x][:1]
    high, high_y = max(options, key=lambda option: option[0])
    low, low_y = min(options, key=lambda option: option[0])
    return _Reached(high, high_y, low, low_y, Fraction(cell.rows[x], cell.size))
