"""The ledger of a learned release: exact counts, which are only told with noise, and what telling them has cost.

Every number that depends on the sensitive column leaves through here. Two tables are neighbours when one value of one
row differs; costs add up, and their sum is what the release promises (mathematics 14.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from deniable.core.errors import InternalError
from deniable.core.learned import Spent
from deniable.core.transforms import round_numbers
from deniable.core.values import Counts, Floats, Ints
from deniable.learned.levels import Crossed
from deniable.learned.measuring import Levels, Source, choose, discrete_laplace, least_listed, noisy


class Purpose(Source, Protocol):
    """A keystream that others are derived from."""

    def subkey(self, *purpose: str) -> Purpose:
        """The keystream of a purpose."""
        ...


class Ledger:
    """Noise for exact counts, and the lines of what it cost.

    Args:
        source: the keys of all noise: no two lines draw the same.
    """

    def __init__(self, source: Purpose) -> None:
        self._source = source
        self.spent: list[Spent] = []

    def _paid(self, line: Spent) -> Purpose:
        self.spent.append(line)
        return self._source.subkey("noise", str(len(self.spent)), line.what, line.name)

    @property
    def epsilon(self) -> Fraction:
        """What everything has cost."""
        return sum((line.epsilon for line in self.spent), start=Fraction(0))

    def largest(self, counts: Counts, cost: Fraction) -> int:
        """The count of the most frequent value with noise: one changed value moves it by one at the most."""
        source = self._paid(Spent("largest", "", cost))
        return int(counts.max(initial=0)) + int(discrete_laplace(source, 1, cost)[0])

    def edges(self, name: str, numbers: Floats, count: int, cost: Fraction, *, whole: bool) -> list[float]:
        """Round numbers near the quantiles of a column, count - 1 at the most.

        An edge is chosen by the score -|count b - k n|, b the numbers below it, n those that are not missing: one
        changed value, made missing or not, moves it by ``count`` at the most.
        """
        source = self._paid(Spent("edges", name, cost))
        known, grid = np.sort(numbers[np.isfinite(numbers)]), round_numbers(whole)
        below = np.searchsorted(known, grid, side="left") * count
        scores = ((-np.abs(below - k * len(known))).tolist() for k in range(1, count))
        chosen = (choose(source.subkey(str(k)), q, cost / (count - 1), count) for k, q in enumerate(scores))
        return sorted({float(grid[place]) for place in chosen})

    def listed(self, name: str, counts: Counts, cost: Fraction, delta: Fraction, together: int = 1) -> Ints:
        """The values whose noisy counts exceed what a value of ``together`` rows reaches with probability delta."""
        source = self._paid(Spent("list", name, cost, delta))
        least = least_listed(cost / 2, delta) + together - 1
        return np.flatnonzero(noisy(source, counts, cost) > least)

    def table(self, crossed: Crossed, levels: Levels, cost: Fraction) -> Ints:
        """A table of counts with noise."""
        source = self._paid(Spent("table", levels.name, cost))
        return noisy(source, crossed.of(levels.codes, levels.size), cost)

    def choice(self, name: str, scores: Sequence[int], cost: Fraction, sensitivity: int) -> int:
        """The place of one of some candidates, the higher its score the likelier."""
        return choose(self._paid(Spent("choice", name, cost)), scores, cost, sensitivity)


def require_within(ledger: Ledger, budget: Fraction) -> None:
    """More than a budget is never spent, whatever was planned."""
    if ledger.epsilon > budget:
        raise InternalError(f"epsilon {float(ledger.epsilon):.6g} was spent of {float(budget):.6g}")
