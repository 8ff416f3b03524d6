"""Strata: rows that share the values of some public columns are a cell of the plan, whatever their sensitive value.

A row's cell is a function of its public columns alone, so batches and threads cannot change it. Cells are numbered in
the order of the columns' sorted values, the first column slowest; missing is a value like any other, and the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.errors import TableError
from deniable.core.histogram import Histogram
from deniable.engines.base import Progress, no_progress
from deniable.engines.local.encoding import MOST_VALUES, Encoder, scan_domain
from deniable.engines.local.sources import Source

Codes = npt.NDArray[Any]
Cells = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]


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
    counts: Integers

    def cells(self, batch: pa.RecordBatch) -> Cells:
        """The stratum of each row."""
        cells: Cells = self.cell_of[self.encoder.encode(batch)]
        if (cells < 0).any():
            raise _changed()
        return cells

    def histograms(self, domain: Sequence[Any]) -> list[Histogram]:
        """The histogram of each stratum, over the values that occur in it, in the order of the domain."""
        found = []
        for counts in self.counts:
            places = np.flatnonzero(counts)
            found.append(Histogram(tuple(domain[place] for place in places.tolist()), counts[places]))
        return found


def scan_strata(source: Source, columns: Sequence[str], sensitive: Encoder, progress: Progress = no_progress) -> Strata:
    """Find the strata and count the sensitive values in each: a pass over ``columns``, and one over both."""
    found = scan_domain(source, columns, "value", progress=progress)
    used = np.flatnonzero(found.counts)
    if len(used) * (sensitive.m + 1) > MOST_VALUES:
        raise TableError(
            f"{len(used):,} strata of {sensitive.m:,} sensitive values each are too many. "
            "Fix: coarser strata (fewer columns, or wider classes)."
        )
    cell_of = np.full(len(found.counts), -1, dtype=np.int32)
    cell_of[used] = np.arange(len(used))
    strata = Strata(found.encoder, cell_of, np.zeros((len(used), sensitive.m), np.int64))
    tally = Tally(strata, sensitive.m)
    done = 0
    for batch in source.batches([*columns, *sensitive.columns]):
        tally.add(strata.cells(batch), sensitive.encode(batch))
        done += batch.num_rows
        progress(done, source.rows, "counting strata")
    return Strata(found.encoder, cell_of, tally.counts)


class Tally:
    """Rows by [stratum, sensitive value]; exempt rows, whose code is m, are not counted."""

    def __init__(self, strata: Strata, m: int) -> None:
        self._shape = (len(strata.counts), m + 1)
        self._counts = np.zeros(self._shape, dtype=np.int64)

    def add(self, cells: Cells, codes: Codes) -> None:
        key = cells.astype(np.int64) * self._shape[1] + codes
        self._counts += np.bincount(key, minlength=self._counts.size).reshape(self._shape)

    @property
    def counts(self) -> Integers:
        return self._counts[:, :-1].copy()


class StrataDealer:
    """Gives each row the cell of its stratum, and checks that the rows are those that were counted."""

    def __init__(self, strata: Strata) -> None:
        self._strata = strata
        self._tally = Tally(strata, strata.counts.shape[1])
        self._known = np.pad(strata.counts > 0, ((0, 0), (0, 1)), constant_values=True)  # the last: exempt

    def deal(self, batch: pa.RecordBatch, codes: Codes) -> Cells:
        """The cell of each row of a batch; an exempt row gets one too, which nobody sees."""
        cells = self._strata.cells(batch)
        if not self._known[cells, codes].all():
            raise _changed()
        self._tally.add(cells, codes)
        return cells

    def finish(self) -> None:
        """Check that every row that was counted has come."""
        if not np.array_equal(self._tally.counts, self._strata.counts):
            raise _changed()


def _changed() -> TableError:
    return TableError("The table changed while it was being read. Fix: publish from a copy that nobody writes to.")
