"""Bins: intervals that turn a sensitive number into a category, so that every mechanism applies to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deniable.core.errors import OptionError, shortened

MOST = 10_000
FEWEST_ROWS = 30  # for each bin, where edges come from the table


@dataclass(frozen=True)
class Bins:
    """Half-open intervals [e_0, e_1), [e_1, e_2), ...; the last one is closed.

    With ``open_ends`` the first and the last interval hold everything beyond, too.

    >>> Bins((0, 10, 20)).labels
    ('[0, 10)', '[10, 20]')
    >>> Bins.equal_width(0, 1, 4).edges
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """

    edges: tuple[float, ...]
    open_ends: bool = False

    def __post_init__(self) -> None:
        edges = tuple(self.edges)
        if len(edges) < 3 or len(edges) > MOST + 1:
            raise OptionError(f"bins need 3 to {MOST + 1:,} edges (2 bins or more); got {len(edges)}.")
        if not all(math.isfinite(edge) for edge in edges):
            raise OptionError("bins: every edge must be a finite number.")
        wrong = next((i for i in range(1, len(edges)) if edges[i] <= edges[i - 1]), None)
        if wrong is not None:
            raise OptionError(
                f"bins overlap: edge {edges[wrong]:g} follows {edges[wrong - 1]:g}. Fix: give edges in rising order."
            )
        object.__setattr__(self, "edges", edges)

    @classmethod
    def equal_width(cls, low: float, high: float, count: int) -> Bins:
        """``count`` bins of equal width; they depend on no row of the table."""
        if count < 2 or not low < high:
            raise OptionError(f"equal_width needs low < high and 2 bins or more; got {low:g}, {high:g}, {count}.")
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

    def places(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The bin of each number; -1 where it lies outside all of them."""
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
    """Bins of about equally many rows, at least 30 in each. Their edges come from the table, rounded.

    Edges are round numbers, and the ends are open. One row more or less moves an edge to the next round number only
    where its quantile lies just between two, which is rare in large tables.
    """

    count: int

    def __post_init__(self) -> None:
        if not 2 <= self.count <= 1000:
            raise OptionError(f"Quantiles(count={self.count}): the number of bins must lie between 2 and 1000.")

    def bins(self, numbers: npt.NDArray[np.float64]) -> Bins:
        """Edges at the quantiles, rounded to a twentieth or less of the middle range."""
        known = numbers[np.isfinite(numbers)]
        if len(known) < FEWEST_ROWS * self.count:
            raise OptionError(
                f"Quantiles(count={self.count}) needs {FEWEST_ROWS} numbers for each bin: of fewer, single rows would "
                "decide the edges, which are published. Fix: ask for fewer bins, or give edges yourself."
            )
        inner = np.quantile(known, np.linspace(0, 1, self.count + 1)[1:-1])
        spread = float(np.quantile(known, 0.9) - np.quantile(known, 0.1)) or float(np.ptp(known)) or 1.0
        step = 10.0 ** math.floor(math.log10(spread / 20))
        edges = sorted({round(float(edge) / step) * step for edge in inner})
        # The first and the last bin are open: their ends would be the table's extremes, which are single rows.
        ends = [edges[0] - step, *edges, edges[-1] + step]
        bins = Bins(tuple(float(f"{edge:.12g}") for edge in ends), open_ends=True)
        if len(np.unique(bins.places(known))) < 2:
            raise OptionError("The column takes too few different numbers for quantile bins. Fix: give edges yourself.")
        return bins


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
