"""What rows say together, and all columns of a row: findings from the original table and the published rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.audit.audit import Audit
from deniable.audit.columns import as_channel, of_column
from deniable.audit.findings import Finding, namer
from deniable.audit.joint import about_joint, joint_beliefs
from deniable.audit.together import about_rows_together, surest
from deniable.core.histogram import Counts
from deniable.core.plan import Plan
from deniable.owner.matching import Scanned

Codes = npt.NDArray[np.int64]
MOST_ROWS = 10**6  # of a table whose rows are weighed against each other


def combined_findings(
    original: pa.Table,
    scans: Sequence[Scanned],
    plans: Sequence[Plan | None],
    published: Sequence[Codes],
    observed: Sequence[Sequence[Counts] | None],
    figures: Audit,
) -> list[Finding]:
    """Findings about those who weigh rows against each other, and about those who combine columns."""
    known = {part.columns: part for part in figures.parts}
    findings = []
    for scan, plan, codes, shown in zip(scans, plans, published, observed, strict=True):
        part = scan.part
        if part.range is not None or part.swapped is not None or part.groups is not None or len(codes) > MOST_ROWS:
            continue
        cells = _counted(scan, plan, codes, shown)
        if cells is None:
            continue
        said = about_rows_together(surest(part, known[part.columns].limits, cells), namer(part.domain))
        findings += [of_column(finding, part) for finding in said] if len(scans) > 1 else said
    return findings + _of_columns(original, scans, published, figures)


def _counted(
    scan: Scanned, plan: Plan | None, codes: Codes, shown: Sequence[Counts] | None
) -> list[tuple[Counts, Counts]] | None:
    """How many rows of each cell hold, and show, each of its values; None where only an estimate is known."""
    if len(scan.part.channels) == 1:
        seen = np.bincount(codes[codes < scan.part.m], minlength=scan.part.m)
        return [(scan.counts, seen)] if len(scan.part.cell_positions[0]) == scan.part.m else None
    if plan is None or shown is None:
        return None
    places = scan.part.cell_positions
    return [(cell.rows.counts, seen[at]) for cell, seen, at in zip(plan.cells, shown, places, strict=True)]


def _of_columns(
    original: pa.Table, scans: Sequence[Scanned], published: Sequence[Codes], figures: Audit
) -> list[Finding]:
    """Columns with one channel each, perturbed independently of each other."""
    several = [(scan, codes) for scan, codes in zip(scans, published, strict=True) if len(scan.part.channels) == 1]
    if len(several) < 2:
        return []
    known = {part.columns: part for part in figures.parts}
    parts = [scan.part for scan, _ in several]
    held = np.stack([scan.codes(original) for scan, _ in several], axis=1)
    shown = np.stack([codes for _, codes in several], axis=1)
    sizes = np.array([part.m for part in parts])
    held, shown = (codes[(codes < sizes).all(axis=1)] for codes in (held, shown))  # not those that are exempt
    if not len(held) or not len(shown):
        return []
    channels = [part.channels[0] if part.swapped is None else as_channel(part) for part in parts]
    alone = [np.zeros(part.m) for part in parts]
    for highest, part in zip(alone, parts, strict=True):
        for belief in known[part.columns].beliefs:
            highest[belief.position] = float(belief.highest)
    limits = [known[part.columns].limits for part in parts]
    beliefs = joint_beliefs(channels, held, shown, limits, alone)
    return about_joint(beliefs, [part.columns[0] for part in parts], [namer(part.domain) for part in parts])
