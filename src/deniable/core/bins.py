"""Bins: intervals that turn a sensitive number into a category, so that every mechanism applies to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from deniable.core.arrays import Floats, Ints
from deniable.core.errors import OptionError, shortened
from deniable.core.numbers import as_printed

MOST = 10_000
# Rows for each bin and each edge, where edges are drawn: the noise of a rank is then a tenth of a bin, and numbers far
# from all rows, of which there are many, are drawn less than once in a million times.
FEWEST_ROWS = 50
EDGES_EPSILON = 1.0  # of all edges of a column together


@dataclass(frozen=True)
class Bins:
    """Half-open intervals [e_0, e_1), [e_1, e_2), ...; the last one is closed.

    Attributes:
        edges: e_0, e_1, .. in rising order.
        open_ends: whether the first and the last interval hold everything beyond, too.

    >>> import deniable as dn
    >>> dn.Bins((0, 10, 20)).labels
    ('[0, 10)', '[10, 20]')
    >>> dn.Bins.equal_width(0, 1, 4).edges
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """

    edges: tuple[float, ...]
    open_ends: bool = False

    def __post_init__(self) -> None:
        if not 3 <= len(self.edges) <= MOST + 1:
            raise OptionError(
                f"bins need 3 to {MOST + 1:,} edges (2 bins or more); got {len(self.edges)}. Fix: 0, 10, 20."
            )
        if not all(math.isfinite(edge) for edge in self.edges):
            raise OptionError("bins: every edge must be a finite number.")
        edges = tuple(as_printed(edge) for edge in self.edges)
        wrong = next((i for i in range(1, len(edges)) if edges[i] <= edges[i - 1]), None)
        if wrong is not None:
            raise OptionError(
                f"bins overlap: edge {edges[wrong]:g} follows {edges[wrong - 1]:g}. Fix: give edges in rising order."
            )
        object.__setattr__(self, "edges", edges)

    @classmethod
    def equal_width(cls, low: float, high: float, count: int) -> Bins:
        """``count`` bins of equal width from ``low`` to ``high``; they depend on no row of the table."""
        if count < 2 or not low < high:
            raise OptionError(
                f"bins: equal from {low:g} to {high:g}, {count} of them, are none. Fix: a lower end below the upper "
                "one, and 2 bins or more."
            )
        return cls(tuple(float(edge) for edge in np.linspace(low, high, count + 1)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins as text, in order."""
        text = [f"{edge:.15g}" for edge in self.edges]
        last = len(text) - 2
        if self.open_ends:
            inner = [f"[{low}, {high})" for low, high in pairwise(text[1:-1])]
            return (f"below {text[1]}", *inner, f"{text[-2]} and above")
        return tuple(f"[{text[i]}, {text[i + 1]}{']' if i == last else ')'}" for i in range(last + 1))

    def places(self, numbers: Floats) -> Ints:
        """The bin of each of the ``numbers``; -1 where it lies outside all of them."""
        edges = np.array(self.edges, dtype=np.float64)
        if self.open_ends:
            inner = np.searchsorted(edges[1:-1], numbers, side="right")
            return np.where(np.isnan(numbers), -1, inner).astype(np.int64)
        places = np.searchsorted(edges, numbers, side="right") - 1
        places[numbers == edges[-1]] = len(edges) - 2
        places[(numbers < edges[0]) | (numbers > edges[-1]) | np.isnan(numbers)] = -1
        return places.astype(np.int64)


@dataclass(frozen=True)
class Quantiles:
    """Bins of about equally many rows, whose edges do not depend on single rows.

    Each edge is drawn among round numbers (three digits), which depend on no row, by the exponential mechanism:

        Pr[e]  ~  exp( -epsilon' |rows below e - q n| / 2 ),    epsilon' = 1 / (number of edges)

    One row more, less or other changes a rank by at most 1, so it changes the chance of any set of edges by at most a
    factor of e: epsilon 1 for all edges together. The first and the last bin are open, since their ends would be the
    table's extremes.

    Attributes:
        count: how many bins, 2 to 1000.

    >>> import numpy as np
    >>> import deniable as dn
    >>> ages = np.arange(1000) % 100
    >>> len(dn.Quantiles(4).bins(ages.astype(float), np.array([0.3, 0.5, 0.7]), whole=True).labels)
    4
    """

    count: int

    def __post_init__(self) -> None:
        if not 2 <= self.count <= 1000:
            raise OptionError(f"bins: quantiles, {self.count} of them, are not allowed. Fix: 2 to 1000 of them.")

    def bins(self, numbers: Floats, chance: Floats, *, whole: bool = False) -> Bins:
        """Edges near the quantiles.

        Args:
            numbers: the column; missing ones are not a number.
            chance: a number from [0, 1) for each of the ``count - 1`` edges, secret and used once.
            whole: whether the column holds whole numbers only, and so edges are whole.
        """
        known = np.sort(numbers[np.isfinite(numbers)])
        if len(known) < self.fewest:
            raise OptionError(
                f"Quantiles(count={self.count}) needs {self.fewest:,} numbers: with fewer the noise that keeps single "
                "rows out of the edges is too large. Fix: ask for fewer bins, or give edges yourself."
            )
        grid = round_numbers(whole)
        shares = np.arange(1, self.count) / self.count
        chances = (edge_chances(known, grid, share, self.epsilon) for share in shares)
        drawn = {float(grid[_drawn(edge, number)]) for edge, number in zip(chances, chance, strict=True)}
        edges = sorted(drawn)
        bins = Bins((edges[0] - 1, *edges, edges[-1] + 1), open_ends=True)
        if len(np.unique(bins.places(known))) <= len(edges):  # a bin without rows: many rows hold the same number
            raise OptionError(
                "The column takes too few different numbers for so many quantile bins. "
                "Fix: ask for fewer bins, or give edges yourself."
            )
        return bins

    @property
    def fewest(self) -> int:
        """How many numbers it takes."""
        return FEWEST_ROWS * self.count * (self.count - 1)

    @property
    def epsilon(self) -> float:
        """Of one edge."""
        return EDGES_EPSILON / (self.count - 1)


@cache
def round_numbers(whole: bool) -> Floats:
    """All numbers of three digits from 1e-6 to 1e15, their negatives, and 0, in order."""
    positive = np.array([float(f"{digits}e{power}") for power in range(-8, 13) for digits in range(100, 1000)])
    grid = np.concatenate([-positive[::-1], [0.0], positive])
    return grid[grid == np.floor(grid)] if whole else grid


def edge_chances(known: Floats, grid: Floats, share: float, epsilon: float) -> Floats:
    """The probability of each round number to become the edge at a share of the (sorted) numbers."""
    off = np.abs(np.searchsorted(known, grid, side="left") - share * len(known))
    weights = np.exp(-epsilon / 2 * (off - off.min()))
    chances: Floats = weights / weights.sum()
    return chances


def _drawn(chances: Floats, number: float) -> int:
    return min(int(np.searchsorted(np.cumsum(chances), number, side="right")), len(chances) - 1)


BinsLike = Bins | Quantiles | Sequence[float]


def as_bins(given: BinsLike) -> Bins | Quantiles:
    """Bins from a list of edges, or as they are."""
    if isinstance(given, Bins | Quantiles):
        return given
    try:
        return Bins(tuple(float(edge) for edge in given))
    except (TypeError, ValueError):
        raise OptionError(
            f"bins = {shortened(given)} is not understood. Fix: a list of edges, Bins.equal_width(low, high, count), "
            "or Quantiles(count)."
        ) from None


def require_fixed(bins: Mapping[str, BinsLike], what: str) -> None:
    """Refuse quantiles where something else must know the same edges: they are drawn anew for every release."""
    drawn = [column for column, given in bins.items() if isinstance(given, Quantiles)]
    if drawn:
        raise OptionError(
            f"bins of {drawn[0]!r} are quantiles, drawn anew for every release, and {what} needs to know them before. "
            "Fix: give edges."
        )
