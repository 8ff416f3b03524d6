"""What the published cells reveal by themselves, before any value is seen (mathematics 4, last point;
mathematics 11.5)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from deniable.audit.extremes import CellRows


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
