"""A warning where rows of a small table, weighed against each other, say more than each of them (mathematics 13.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.audit.columns import limits_of_part
from deniable.audit.findings import namer
from deniable.audit.together import surest
from deniable.core.histogram import Counts
from deniable.core.part import Part
from deniable.engines.base import CELL, PartJob
from deniable.release.release import Release

SMALL_TABLE = 20_000  # rows
RARE = 100  # rows of a value; of more, counts do not tell a tenth more than a row


def warnings_about_counts(jobs: Sequence[PartJob], release: Release) -> list[str]:
    """What whoever knows the exact counts of the table becomes sure of, where that is a tenth more than promised.

    Like all warnings it is for the owner, and no part of the release.
    """
    if release.manifest.rows > SMALL_TABLE:
        return []
    warnings = []
    for job, part in zip(jobs, release.manifest.parts, strict=True):
        histogram, known = job.part.histogram, part.channels and part.swapped is None and part.groups is None
        if histogram is None or not known or int(histogram.counts.min()) > RARE:
            continue
        limits = limits_of_part(release.manifest, part, histogram)
        worst = surest(part, limits, _counted(job, part, release), RARE)
        if worst is not None and worst.beyond:
            warnings.append(
                f"Rows together: {worst.in_words(namer(part.domain))} Fix: a lower rho2, or rare values joined, if "
                "someone may know the exact counts."
            )
    return warnings


def _counted(job: PartJob, part: Part, release: Release) -> list[tuple[Counts, Counts]]:
    """How many rows of each cell hold, and show, each of its values."""
    table = release.table
    batches = table.select(list(part.columns)).combine_chunks().to_batches()
    # Arrow has no batches of a table without rows.
    codes = np.concatenate([np.zeros(0, np.int64), *(job.encoder.encode(batch).astype(np.int64) for batch in batches)])
    there = codes < part.m
    dealt = np.asarray(table.column(CELL).fill_null(0)) if part.cells_published else np.zeros(len(codes), np.int64)
    return [
        (cell.rows.counts, np.bincount(codes[there & (dealt == number)], minlength=part.m)[places])
        for number, (cell, places) in enumerate(zip(job.part.cells, part.cell_positions, strict=True))
    ]
