"""Strata: rows that share the values of some public columns are a cell of the plan, whatever their sensitive value.

A row's cell is a function of its public columns alone, so batches and threads cannot change it. Cells are numbered in
the order of the columns' sorted values, the first column slowest; missing is a value like any other, and the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Cells, Codes, Ints
from deniable.core.errors import TableError, table_changed
from deniable.core.histogram import Histogram
from deniable.engines.base import Scan
from deniable.engines.batch.encoding import MOST_VALUES, Encoder


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of a table.

    Attributes:
        encoder: turns the public columns of a row into one code.
        cell_of: the stratum of each code, -1 where no row has it.
        counts: rows by [stratum, sensitive value].
    """

    encoder: Encoder
    cell_of: Cells
    counts: Ints

    def cells(self, batch: pa.RecordBatch) -> Cells:
        """The stratum of each row."""
        cells: Cells = self.cell_of[self.encoder.encode(batch)]
        if (cells < 0).any():
            raise table_changed()
        return cells

    def histograms(self, domain: Sequence[Any]) -> list[Histogram]:
        """The histogram of each stratum, over the values that occur in it, in the order of the domain."""
        histograms = []
        for counts in self.counts:
            places = np.flatnonzero(counts)
            histograms.append(Histogram(tuple(domain[place] for place in places.tolist()), counts[places]))
        return histograms


def strata_of(scan: Scan, sensitive: Encoder) -> Strata:
    """The strata that a scan of public columns found; their rows are still to be counted."""
    used = np.flatnonzero(scan.histogram.counts)
    if len(used) * (sensitive.m + 1) > MOST_VALUES:
        raise TableError(
            f"{len(used):,} strata of {sensitive.m:,} sensitive values each are too many. "
            "Fix: coarser strata (fewer columns, or wider classes)."
        )
    cell_of = np.full(scan.histogram.m, -1, dtype=np.int32)
    cell_of[used] = np.arange(len(used))
    return Strata(scan.encoder, cell_of, np.zeros((len(used), sensitive.m), np.int64))


class StrataScanner:
    """Counts the sensitive values in each stratum, batch by batch; exempt rows, whose code is m, are not counted."""

    def __init__(self, strata: Strata, sensitive: Encoder) -> None:
        self._strata, self._sensitive = strata, sensitive
        self._counts = np.zeros((len(strata.counts), sensitive.m + 1), dtype=np.int64)

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        self._counts += tallied(self._strata.cells(batch), self._sensitive.encode(batch), self._counts.shape)

    def merge(self, other: StrataScanner) -> None:
        """Take in the rows that another scanner has seen."""
        self._counts += other._counts

    def scan(self) -> Strata:
        """The strata with their rows."""
        return replace(self._strata, counts=self._counts[:, :-1].copy())


def tallied(cells: Cells, codes: Codes, shape: tuple[int, int]) -> Ints:
    """Rows by [stratum, sensitive value]."""
    key = cells.astype(np.int64) * shape[1] + codes
    return np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape)


class StrataDealer:
    """Gives each row the cell of its stratum, and checks that the rows can be those that were counted."""

    def __init__(self, strata: Strata) -> None:
        self._strata = strata
        self.planned = np.pad(strata.counts, ((0, 0), (0, 1)))  # the last: exempt rows, which are not counted
        self._known = np.pad(strata.counts > 0, ((0, 0), (0, 1)), constant_values=True)

    def deal(self, batch: pa.RecordBatch, codes: Codes) -> Cells:
        """The cell of each row of a batch; an exempt row gets one too, which nobody sees."""
        cells = self._strata.cells(batch)
        if not self._known[cells, codes].all():
            raise table_changed()
        return cells

    def counts(self, cells: Cells, codes: Codes) -> Ints:
        """How many rows of each stratum and value a batch has."""
        counts = tallied(cells, codes, self.planned.shape)
        counts[:, -1] = 0
        return counts
