"""Counts from Anatomy's two tables: a group's values are spread evenly over its rows (mathematics 9)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from deniable.core.manifest import Manifest
from deniable.engines.base import CELL
from deniable.estimation.estimate import Estimate
from deniable.estimation.question import Question
from deniable.rivals.anatomy.estimate import AnatomyTables
from deniable.rivals.base import CountsOnly, matching_rows, places_in


class BucketsAnswerer(CountsOnly):
    """Answers from rows with their group, and groups with their values.

    The standard error holds if public columns tell nothing about the value within a group; where they do, the estimate
    is biased, and nothing in the release says by how much.
    """

    def __init__(self, manifest: Manifest, table: pa.Table, groups: pa.Table) -> None:
        super().__init__(manifest)
        self._table, self._groups = table, groups

    @cached_property
    def _tables(self) -> AnatomyTables:
        part = self.manifest.parts[0]
        values = places_in(part, self._groups)
        cell = self._table[CELL].to_numpy().astype(np.int64)
        return AnatomyTables(cell, self._groups[CELL].to_numpy(), values, self._groups["rows"].to_numpy(), part.m)

    def estimate(self, question: Question) -> Estimate:
        leaves, wanted = self.split(question)
        matching = matching_rows(leaves, self._table)
        tables = self._tables
        sizes = np.maximum(np.bincount(tables.groups, weights=tables.rows), 1.0)
        hits = np.bincount(tables.cell[matching], minlength=len(sizes))
        chosen = np.bincount(tables.groups, weights=tables.rows * wanted[tables.values], minlength=len(sizes))
        share = hits / sizes
        # Drawing `chosen` of a group's rows without replacement: hypergeometric.
        spread = chosen * share * (1 - share) * (sizes - chosen) / np.maximum(sizes - 1, 1)
        error, most = float(np.sqrt(spread.sum())), float(matching.sum())
        confidence = question.options.confidence
        return Estimate(float((chosen * share).sum()), error, confidence, 0.0, most, "anatomy")
