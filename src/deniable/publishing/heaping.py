"""Numbers that pile up on round ones, before they are published: a warning with the grid that helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable.audit.heaping import Heap, about_heap, heap_of
from deniable.core.replace import NumberRange
from deniable.engines.base import Dataset, PartJob


def heaping_warnings(dataset: Dataset, jobs: Sequence[PartJob]) -> list[str]:
    """One warning for each column whose heaps give values away."""
    warnings = []
    for job in jobs:
        if job.part.grid is None:
            continue
        rho2 = None if job.part.requirement is None else float(job.part.requirement.rho2)
        heap = heaped(dataset, job.part.columns[0], job.encoder, job.part.grid)
        warnings += [
            f"Heaped numbers: {finding.detail} Fix: {finding.advice}"
            for finding in about_heap(heap, rho2)
            if finding.grade == "serious"
        ]
    return warnings


def heaped(dataset: Dataset, column: str, encoder: Any, grid: NumberRange) -> Heap | None:
    """The heaps of a column, counted in one pass: eight bytes for each point of its grid."""
    counts = np.zeros(grid.grid + 2, np.int64)  # missing, and exempt, come after all points
    for batch in dataset.batches([column]):
        counts += np.bincount(encoder.encode(batch), minlength=len(counts))
    return heap_of(column, counts[: grid.grid], grid)
