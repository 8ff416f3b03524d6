"""What an owner should know before anyone sees the release: identifiers, order, columns that tell, heaped numbers, and
rows of a small table that, weighed against each other, say more than each of them (mathematics 13.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deniable.audit.columns import limits_of_part
from deniable.audit.findings import namer
from deniable.audit.heaping import about_heap, heap_of
from deniable.audit.together import surest
from deniable.core.arrays import Counts, Ints
from deniable.core.choice import Choice
from deniable.core.errors import option, shortened
from deniable.core.part import Part
from deniable.core.probability import percent
from deniable.core.promise import Groups
from deniable.core.replace import NumberRange
from deniable.engines.base import CELL, Dataset, PartJob, Scan
from deniable.engines.request import Request
from deniable.planning.informed import frequencies_of, shown_by_groups, surest_of_groups
from deniable.publishing.giveaways import Sensitive, giveaway_warnings, sensitive_of
from deniable.publishing.parts import Prepared
from deniable.release.release import Release

SHOWN = 3  # pairs of values
SMALL_TABLE = 20_000  # rows
RARE = 100  # rows of a value; of more, counts do not tell a tenth more than a row
HOPELESS = 1.0  # an expected relative error
FEWEST_ROWS, DISTINCT_SHARE = 50, 0.9  # of a column that looks like an identifier


def spelling_warnings(domains: Iterable[tuple[Sequence[str], Sequence[Any]]]) -> list[str]:
    """Sensitive values that differ in case or surrounding blanks only: most often one value, written in two ways."""
    warnings = []
    for columns, domain in domains:
        for place, column in enumerate(columns):
            several = len(columns) > 1
            values = {value[place] if several and isinstance(value, tuple) else value for value in domain}
            alike: dict[str, list[str]] = {}
            for value in sorted(value for value in values if isinstance(value, str)):
                alike.setdefault(" ".join(value.casefold().split()), []).append(value)
            twins = [pair for pair in alike.values() if len(pair) > 1]
            if twins:
                warnings.append(
                    f"Values of {column!r} differ in case or blanks only, and are different values to the release: "
                    f"{'; '.join(' and '.join(map(shortened, pair)) for pair in twins[:SHOWN])}"
                    f"{f' and {len(twins) - SHOWN:,} more' if len(twins) > SHOWN else ''}. Fix: write them in one way."
                )
    return warnings


def distinct_warnings(parts: Iterable[tuple[Sequence[str], Counts]]) -> list[str]:
    """Sensitive columns in which nearly every row has a value of its own: a number of a patient, an exact amount.

    Nothing can be counted of them, and their values are listed in the release, all of them.
    """
    warnings = []
    for columns, counts in parts:
        rows, values = int(counts.sum()), int((counts > 0).sum())
        if len(columns) == 1 and rows >= FEWEST_ROWS and values >= DISTINCT_SHARE * rows:
            warnings.append(
                f"The sensitive column {columns[0]!r} has about as many values as rows, like an identifier or an exact "
                "measurement: all of them are listed in the release, and hardly anything can be counted. Fix: drop it "
                f"and name another column as sensitive; or, if it holds numbers, {option('bins', '')}."
            )
    return warnings


def row_label_warnings(unnamed: Sequence[str]) -> list[str]:
    """Columns that were left out because they tell where each row stood in the original."""
    return [
        f"The column {name!r} is left out: pandas calls labels of rows so, which tell where each row stood in the "
        f"original. Fix: {option('drop', name)} if that is right; to publish it, give it a name of its own."
        for name in unnamed
    ]


def warned(ready: Prepared, request: Request) -> list[str]:
    """The warnings about a table that is about to be published."""
    dataset, jobs = ready.dataset, ready.jobs
    domains = ((job.part.columns, job.part.histogram.domain) for job in jobs if job.part.histogram is not None)
    return [
        *row_label_warnings(request.unnamed),
        *spelling_warnings(domains),
        *distinct_warnings(
            (job.part.columns, job.part.histogram.counts) for job in jobs if job.part.histogram is not None
        ),
        *dataset.said_of_reading([*request.public, *(column for job in jobs for column in job.part.columns)]),
        *dataset.inspect(request.public, () if request.shuffle else jobs),
        *giveaway_warnings(dataset, sensitive_of(jobs, request.privacy), request),
        *heaping_warnings(dataset, jobs),
    ]


def warned_of_groups(scan: Scan | None, part: Part, request: Request) -> list[str]:
    """The same for a release of groups or answers; public columns are published as they are where there is a
    ``scan``."""
    dataset = request.dataset
    said = [
        *row_label_warnings(request.unnamed),
        *spelling_warnings([(part.columns, part.domain)]),
        *dataset.said_of_reading([*request.public, *request.sensitive]),
    ]
    if scan is None:
        return said
    assert isinstance(part.promise, Groups)
    said += distinct_warnings([(part.columns, scan.histogram.counts)])
    counts, l = scan.histogram.counts, part.promise.l
    shown, prior = shown_by_groups(counts, l), frequencies_of(counts)
    sensitive = Sensitive(scan.encoder, scan.histogram.m, scan.rows, shown, surest_of_groups(l), prior=prior)
    return [*said, *dataset.inspect(request.public), *giveaway_warnings(dataset, [sensitive], request)]


def heaping_warnings(dataset: Dataset, jobs: Sequence[PartJob]) -> list[str]:
    """One warning for each column whose heaps give values away."""
    warnings = []
    for job in jobs:
        if job.part.grid is None:
            continue
        rho2 = None if job.part.requirement is None else float(job.part.requirement.rho2)
        column, grid = job.part.columns[0], job.part.grid
        heap = heap_of(column, rows_of_points(dataset, column, job.encoder, grid)[: grid.grid], grid)
        warnings += [
            f"Heaped numbers: {finding.detail} Fix: {finding.advice}"
            for finding in about_heap(heap, rho2)
            if finding.grade == "serious"
        ]
    return warnings


def rows_of_points(dataset: Dataset, column: str, encoder: Any, grid: NumberRange) -> Ints:
    """How many rows are at each point of a range, counted in one pass: eight bytes for each."""
    counts = np.zeros(grid.grid + 2, np.int64)  # missing, and exempt, come after all points
    for batch in dataset.batches([column]):
        counts += np.bincount(encoder.encode(batch), minlength=len(counts))
    return counts[: grid.points]


def hopeless_warnings(choice: Choice) -> list[str]:
    """Where even counts of a tenth of the rows are expected to be off by as much as they are, nothing can be learnt."""
    share, error = max(choice.expected.items(), default=(0.0, 0.0))
    if error < HOPELESS:
        return []
    return [
        f"Next to nothing can be learnt from this release: even a count of {share * choice.rows:,.0f} people "
        f"({percent(share)} of the rows) is expected to be off by {percent(error, 2)}. Fix: a larger rho2, fewer "
        "values (rare ones joined), or more rows."
    ]


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
