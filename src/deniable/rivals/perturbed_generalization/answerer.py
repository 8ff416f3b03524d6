"""Counts from one perturbed row of each box: the boxes are those of generalization."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from deniable.core.arrays import Bools, Floats
from deniable.core.errors import ManifestError
from deniable.engines.base import CELL
from deniable.rivals.base import places_in
from deniable.rivals.generalize.answerer import InBoxes
from deniable.rivals.generalize.boxes import ROWS
from deniable.rivals.perturbed_generalization.estimate import BoxSample


class SamplesAnswerer(InBoxes):
    """Answers from a perturbed row of each box, and the boxes.

    The standard error covers perturbation and sample, and where rows lie in their boxes if they lie evenly.
    """

    method = "one row of each box"

    def counted(self, share: Floats, wanted: Bools) -> tuple[float, float, float]:
        most = float((self._sample.rows * (share > 0)).sum())
        return *self._sample.count(share, wanted), most

    @cached_property
    def _sample(self) -> BoxSample:
        part, cells = self.manifest.parts[0], self._table[CELL].to_numpy().astype(np.int64)
        rows = self._groups[ROWS].to_numpy().astype(np.int64)
        if len(part.channels) != 1 or not np.array_equal(np.sort(cells), np.arange(len(rows))):
            raise ManifestError("The release does not show one perturbed row of each of its boxes.")
        shown = np.empty(len(rows), np.int64)
        shown[cells] = places_in(part, self._table)
        return BoxSample(part.channels[0], shown, rows)
