"""The cells of a release: how many rows of each value each of them took, and what they reveal by themselves, before any
value is seen (mathematics 4, last point; mathematics 11.5)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.audit.extremes import CellRows
from deniable.core.arrays import Counts, Floats
from deniable.core.channel import Channel

ROUNDS = 300
FINE = 2**16  # expected rows are fractions; kept as whole numbers of 1/65536 of a row


@dataclass(frozen=True)
class CellReport:
    """The cells of a release, as an attacker uses them.

    Attributes:
        count: how many there are.
        entropy: bits of uncertainty about a row's value before anything is seen.
        revealed: bits of it that the cell takes away, I(value; cell).
        smallest_domain: the fewest values that any cell holds.
        smallest_rows: the fewest rows that any cell holds.
        fewest_categories: the fewest categories that any cell holds, where categories were given.
        alike: rows in cells whose rows all have one value: the cell says it.
    """

    count: int
    entropy: float
    revealed: float
    smallest_domain: int
    smallest_rows: int
    fewest_categories: int | None
    alike: int = 0

    @property
    def share_revealed(self) -> float:
        return self.revealed / self.entropy if self.entropy else 0.0


def cell_report(
    cells: Sequence[CellRows],
    unit: int,
    domain: Sequence[Hashable],
    categories: Mapping[Hashable, Hashable] | None,
) -> CellReport:
    """Entropies of the cells; ``unit`` is how many units of ``CellRows.rows`` make a row."""
    used = [cell for cell in cells if cell.size]
    if not used:  # a table without rows
        return CellReport(0, 0.0, 0.0, 0, 0, None)
    totals: dict[int, int] = {}
    for cell in used:
        for place, rows in zip(cell.positions, cell.rows, strict=True):
            totals[place] = totals.get(place, 0) + rows
    n = sum(totals.values())
    entropy = _entropy(list(totals.values()))
    remaining = sum(cell.size / n * _entropy(list(cell.rows)) for cell in used)
    fewest = None
    if categories is not None:
        fewest = min(
            len({categories.get(domain[place], domain[place]) for place in cell.positions if cell.takes(place)})
            for cell in used
        )
    return CellReport(
        count=len(used),
        entropy=entropy,
        revealed=max(entropy - remaining, 0.0),
        smallest_domain=min(sum(1 for rows in cell.rows if rows) for cell in used),
        smallest_rows=min(cell.size for cell in used) // unit,
        fewest_categories=fewest,
        alike=sum(cell.size for cell in used if sum(1 for rows in cell.rows if rows) == 1) // unit,
    )


def _entropy(weights: Sequence[int]) -> float:
    total = sum(weights)
    return -sum(w / total * math.log2(w / total) for w in weights if w) if total else 0.0


def expected_rows(
    counts: Counts, channels: Sequence[Channel], positions: Sequence[Counts], observed: Sequence[Counts] | None
) -> list[Counts]:
    """The most likely rows of each value in each cell, in units of 1/65536 of a row: from the release and the table's
    histogram alone.

    Maximum likelihood given what each cell shows (the iterative Bayesian rule, mathematics 8), raked after every step
    so that the cells together hold the table's histogram. Without ``observed`` (cells not published) each value is
    spread over its cells as evenly as the histogram allows.

    Args:
        counts: the table's histogram.
        channels, positions: the cells, as in the manifest.
        observed: for each cell, how many rows show each value of the table's domain.
    """
    if len(channels) == 1:
        return [counts[positions[0]] * FINE]
    dealt = np.zeros((len(channels), len(counts)))
    for cell, place in enumerate(positions):
        dealt[cell, place] = 1.0
    if observed is not None:
        dealt *= np.array([shown.sum() for shown in observed], dtype=np.float64)[:, None]
    dealt = _raked(dealt, counts)
    for _ in range(0 if observed is None else ROUNDS):
        for cell, (channel, place) in enumerate(zip(channels, positions, strict=True)):
            assert observed is not None
            dealt[cell, place] = _bayesian_step(channel, dealt[cell, place], observed[cell][place])
        dealt = _raked(dealt, counts)
    return [np.rint(dealt[cell, place] * FINE).astype(np.int64) for cell, place in enumerate(positions)]


def _bayesian_step(channel: Channel, rows: Floats, shown: Counts) -> Floats:
    """x <- x * P^T (o / P x), in O(m): P^T v = p v + (1 - p) (r . v)."""
    expected = channel.apply(rows)
    share = np.divide(shown, expected, out=np.zeros_like(expected), where=expected > 0)
    result: Floats = rows * (channel.coins * share + (1 - channel.coins) * (channel.replacing @ share))
    return result


def _raked(dealt: Floats, counts: Counts) -> Floats:
    """Columns scaled so that the cells together hold every row of the histogram once."""
    totals = dealt.sum(0)
    scale = np.divide(counts, totals, out=np.zeros_like(totals), where=totals > 0)
    result: Floats = dealt * scale
    return result
