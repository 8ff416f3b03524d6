"""Estimates from Anatomy's two tables (mathematics 9): sum over groups of (matching rows) * (count of s) / |group|."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class AnatomyTables:
    """What Anatomy publishes, as arrays.

    Attributes:
        cell: the group of each row of the first table.
        groups, values, rows: the second table: group, position of a value in the domain, number of rows.
        m: the size of the domain.
    """

    cell: Ints
    groups: Ints
    values: Ints
    rows: Ints
    m: int

    @classmethod
    def of_codes(cls, codes: npt.ArrayLike, cell: npt.ArrayLike, m: int) -> AnatomyTables:
        """Both tables from original codes and each row's group; rows without a group (-1) are left out.

        >>> AnatomyTables.of_codes([0, 1, 1, 2], [0, 0, 1, 1], 3).counts([[True, False, True, False]]).tolist()
        [[0.5, 1.0, 0.5]]
        """
        all_codes, all_cells = np.asarray(codes, np.int64), np.asarray(cell, np.int64)
        kept = all_cells >= 0
        chosen = all_cells[kept]
        pairs, rows = np.unique(chosen * m + all_codes[kept], return_counts=True)
        return cls(chosen, pairs // m, pairs % m, rows.astype(np.int64), m)

    def counts(self, matching: npt.ArrayLike) -> Floats:
        """Estimated counts [questions, m] of every value, among the rows that match each question [questions, rows].

        A value's share of its group is spread evenly over the group's rows, whichever match.
        """
        return self.counts_of([np.flatnonzero(rows) for rows in np.asarray(matching, dtype=bool)])

    def counts_of(self, rows: Sequence[npt.NDArray[np.integer]]) -> Floats:
        """The same, for the places of the rows that match each question: what they count for is added up."""
        ends = np.cumsum([0, *map(len, rows)])
        cell = self.cell[np.concatenate([np.zeros(0, np.int64), *rows])]
        hits = sparse.csr_array((np.ones(len(cell)), cell, ends), shape=(len(rows), self._shares.shape[0]))
        estimates: Floats = (hits @ self._shares).toarray()
        return estimates

    @cached_property
    def _shares(self) -> sparse.csr_array:
        """Of each group, each value's share of its rows."""
        sizes = np.maximum(np.bincount(self.groups, weights=self.rows), 1.0)
        share = self.rows / sizes[self.groups]
        return sparse.csr_array((share, (self.groups, self.values)), shape=(len(sizes), self.m))
