"""Counts from one perturbed row of each box: the boxes are those of generalization."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from deniable.core.errors import ManifestError
from deniable.core.manifest import Manifest
from deniable.engines.base import CELL
from deniable.estimation.estimate import Estimate
from deniable.estimation.question import Question, SingleAnswer
from deniable.rivals.base import NO_KEYS, CountsOnly, places_in
from deniable.rivals.generalize.answerer import share_of
from deniable.rivals.generalize.boxes import ROWS
from deniable.rivals.perturbed_generalization.estimate import BoxSample


class SamplesAnswerer(CountsOnly):
    """Answers from a perturbed row of each box, and the boxes.

    The standard error covers perturbation and sample, and where rows lie in their boxes if they lie evenly; where they
    do not, the estimate is biased, and nothing in the release says by how much.
    """

    def __init__(self, manifest: Manifest, table: pa.Table, groups: pa.Table) -> None:
        super().__init__(manifest)
        self._table, self._groups = table, groups

    def answer(self, question: Question) -> SingleAnswer:
        leaves, wanted = self.split(question)
        share = np.ones(self._groups.num_rows)
        for leaf in leaves:
            share *= share_of(self._groups, leaf)
        value, variance = self._sample.count(share, wanted)
        most = float((self._sample.rows * (share > 0)).sum())
        error = float(np.sqrt(variance))
        made = Estimate(value, error, question.options.confidence, 0.0, most, "one row of each box")
        return SingleAnswer(question, NO_KEYS, ((),), {}, made)

    @cached_property
    def _sample(self) -> BoxSample:
        part, cells = self.manifest.parts[0], self._table[CELL].to_numpy().astype(np.int64)
        rows = self._groups[ROWS].to_numpy().astype(np.int64)
        if len(part.channels) != 1 or not np.array_equal(np.sort(cells), np.arange(len(rows))):
            raise ManifestError("The release does not show one perturbed row of each of its boxes.")
        shown = np.empty(len(rows), np.int64)
        shown[cells] = places_in(part, self._table)
        return BoxSample(part.channels[0], shown, rows)
