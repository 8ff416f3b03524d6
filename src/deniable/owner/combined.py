"""What rows say together, and all columns of a row: findings from the original table and the published rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from deniable.audit.audit import Audit
from deniable.audit.columns import of_column
from deniable.audit.findings import Finding, namer
from deniable.audit.joint import about_joint, joint_beliefs
from deniable.audit.posteriors import Posteriors
from deniable.audit.together import about_rows_together, surest
from deniable.core.arrays import Counts, Ints
from deniable.core.plan import Plan
from deniable.engines.batch.tallies import Tally
from deniable.owner.beside import Beside, Look
from deniable.owner.looking import Looked
from deniable.owner.numbering import combination_keys
from deniable.owner.scanning import Scanned

MOST_ROWS = 10**6  # of a table whose rows are weighed against each other
TOO_MANY = Finding(
    "info",
    "rows together",
    f"what someone concludes who knows every count and weighs all rows against each other is computed for up to "
    f"{MOST_ROWS:,} rows; it was not looked at here.",
    "Audit a release of a part of the table to see it.",
)
BY_PERSON = Finding(
    "info",
    "rows together",
    "what someone concludes who knows every count and weighs all rows against each other was not looked at: rows of "
    "one name are published alike, so that there are fewer draws than rows, and the release does not say how many.",
    "Audit a release of one row per person to see it.",
)


def combined_findings(beside: Beside, looked: Looked, plans: Sequence[Plan | None], figures: Audit) -> list[Finding]:
    """Findings about those who weigh rows against each other, and about those who combine columns.

    ``plans`` are those of the parts that have channels, which come first.
    """
    known = {part.columns: part for part in figures.parts}
    findings = []
    for scan, plan, shown in zip(beside.scans, plans, looked.shown, strict=False):
        part = scan.part
        if part.range is not None or part.swapped is not None or part.groups is not None:
            continue
        left_out = BY_PERSON if beside.by_person else TOO_MANY if beside.rows > MOST_ROWS else None
        if left_out is not None:
            findings.append(of_column(left_out, part) if len(plans) > 1 else left_out)
            continue
        cells = _counted(scan, plan, shown[:, :-1])
        if cells is None:
            continue
        said = about_rows_together(surest(part, known[part.columns].limits, cells), namer(part.domain))
        findings += [of_column(finding, part) for finding in said] if len(plans) > 1 else said
    return findings + _of_columns(beside, figures)


def _counted(scan: Scanned, plan: Plan | None, shown: Counts) -> list[tuple[Counts, Counts]] | None:
    """How many rows of each cell hold, and show, each of its values; None where only an estimate is known."""
    if len(scan.part.channels) == 1:
        return [(scan.counts, shown.sum(0))] if len(scan.part.cell_positions[0]) == scan.part.m else None
    if plan is None or not scan.part.cells_published:
        return None
    places = scan.part.cell_positions
    return [(cell.rows.counts, seen[at]) for cell, seen, at in zip(plan.cells, shown, places, strict=True)]


def _of_columns(beside: Beside, figures: Audit) -> list[Finding]:
    """Columns that are perturbed independently of each other, and whose rows show no cell."""
    several = [place for place, scan in enumerate(beside.scans) if scan.part.channels and not scan.part.cells_published]
    parts = [beside.scans[place].part for place in several]
    sizes = [part.m for part in parts]
    if len(several) < 2:
        return []
    known = {part.columns: part for part in figures.parts}
    held, shown = (_different(looks, several, sizes) for looks in (beside.original(), beside.published()))
    if not len(held[0]) or not len(shown[0]):
        return []
    alone = [np.zeros(part.m) for part in parts]
    for highest, part in zip(alone, parts, strict=True):
        for belief in known[part.columns].beliefs:
            highest[belief.position] = float(belief.highest)
    limits = [known[part.columns].limits for part in parts]
    channels = [posteriors for part in parts if isinstance(posteriors := known[part.columns].posteriors, Posteriors)]
    beliefs = joint_beliefs(channels, held, shown[0], limits, alone)
    return about_joint(beliefs, [part.columns[0] for part in parts], [namer(part.domain) for part in parts])


def _different(looks: Iterable[Look], places: Sequence[int], sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """The different combinations of some parts' values, [combinations, parts], and the rows of each; not those with a
    value that is exempt."""
    names = [f"low{place}" for place in places]
    tally = Tally({"rows": "u4", **dict.fromkeys(names, "u4")})  # all rows of a combination have the same codes
    for look in looks:
        columns = [look.values[place] for place in places]
        there = np.logical_and.reduce([codes < size for codes, size in zip(columns, sizes, strict=True)])
        own = dict(zip(names, (codes[there] for codes in columns), strict=True))
        tally.add(combination_keys(list(own.values()), int(there.sum())), rows=1, **own)
    pieces = [*tally.ranges()]
    codes = np.stack([np.concatenate([records[name] for records in pieces]) for name in names], axis=1).astype(np.int64)
    order = np.lexsort(codes.T[::-1])
    return codes[order], np.concatenate([records["rows"] for records in pieces])[order].astype(np.int64)
