"""A matrix in whole numbers out of 2^32, M[y][x], as cells that nobody sees, and what it says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from deniable.core.arrays import Counts, Floats
from deniable.core.channel import SCALE, Channel, weights_of
from deniable.core.histogram import Histogram
from deniable.core.part import Mixture
from deniable.core.plan import Cell

Exact = list[list[int]]


def in_whole_numbers(matrix: Floats) -> Exact:
    """The nearest matrix whose columns add up to 2^32."""
    columns = [weights_of(np.maximum(column, 0.0)) for column in matrix.T]
    exact: Exact = np.stack(columns, axis=1).tolist()
    return exact


def surest(matrix: Exact, counts: Counts, spare: int) -> list[Fraction]:
    """At least max_y Pr[x | y] of each x, for counts that exceed the true ones by ``spare`` rows in all; with none,
    exactly that."""
    rows: list[int] = counts.tolist()
    worst = [Fraction(0)] * len(rows)
    for entries in matrix:
        seen = sum(n * entry for n, entry in zip(rows, entries, strict=True)) - spare * max(entries)
        for x, (n, entry) in enumerate(zip(rows, entries, strict=True)):
            if n * entry:
                worst[x] = max(worst[x], min(Fraction(n * entry, seen), Fraction(1)) if seen > 0 else Fraction(1))
    return worst


def cells_of(matrix: Exact, histogram: Histogram) -> tuple[Cell, ...]:
    """A cell for each value, which takes all of its rows and replaces them by its column of the matrix."""
    cells = []
    for place, rows in enumerate(histogram.counts.tolist()):
        own = np.zeros(histogram.m, np.int64)
        own[place] = rows
        column = np.array([entries[place] for entries in matrix], dtype=np.int64)
        channel = Channel(histogram.domain, np.zeros(histogram.m, np.int64), column)
        cells.append(Cell(Histogram(histogram.domain, own), channel))
    return tuple(cells)


def as_mixture(matrix: Exact) -> Mixture:
    """The matrix as a manifest has it: floating-point numbers hold multiples of 2^-32 exactly."""
    return tuple(tuple(entry / SCALE for entry in entries) for entries in matrix)


def of_mixture(mixture: Mixture) -> Exact:
    """The whole numbers of a published matrix."""
    return [[round(entry * SCALE) for entry in entries] for entries in mixture]
