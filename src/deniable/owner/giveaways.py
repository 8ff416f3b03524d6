"""What the public columns of a release give away: the joiner of table, release and the audit's findings about them.

Rows are read in batches; beside groups of true values, and beside items of lists, they are audited in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.shown import ChannelRows, LineUpRows, Shown
from deniable.audit.audit import Audit
from deniable.audit.dependence import Dependence, dependence
from deniable.audit.findings import Finding
from deniable.audit.functional import functions_of
from deniable.audit.giveaways import about_dependence
from deniable.audit.heaping import about_heap, heap_of
from deniable.audit.numbers import about_numbers, surest_numbers
from deniable.audit.part import PartAudit
from deniable.audit.posteriors import Posteriors
from deniable.core.arrays import Codes, Floats, Ints
from deniable.core.manifest import Manifest
from deniable.core.promise import OneOfItems
from deniable.engines.base import Dataset
from deniable.engines.batch.columns import Encoded, encode
from deniable.engines.batch.ranges import RangeEncoder
from deniable.owner.advice import ROWS, fix, rows_of_points
from deniable.owner.beside import Beside
from deniable.owner.looking import Looked
from deniable.owner.scanning import Scanned
from deniable.planning.informed import classes_of

ENTRIES = 2**22  # beliefs at once: people x values
LISTED = 3  # items that have a finding of their own

Results = tuple[tuple[Dependence, ...], list[Finding]]


def giveaways(beside: Beside, looked: Looked, schema: pa.Schema, figures: Audit) -> Results:
    """What public columns say about each sensitive column, and the findings about it."""
    parts = {part.columns: part for part in figures.parts}
    fixes = {name: fix(name, schema.field(name).type) for name in beside.numberings}
    results, findings = [], []
    for place, scan in enumerate(beside.scans):
        part = parts[scan.part.columns]
        rho2 = None if part.rho2 is None else float(part.rho2)
        one = _dependence(beside, looked, place, part, rho2)
        if one is not None:
            results.append(one)
            findings += about_dependence(one, rho2, fixes)
    return tuple(results), findings


def single_numbers(source: Dataset, manifest: Manifest, figures: Audit) -> list[Finding]:
    """Findings about numbers that pile up, and about each of them, at the points of their grids: intervals would hide
    them."""
    parts = {part.columns: part for part in figures.parts}
    findings = []
    for part in manifest.parts:
        if part.range is None:
            continue
        (column,) = part.columns
        encoder = RangeEncoder(column, source.schema.field(column).type, part.range, exempt=part.missing == "exempt")
        audited = parts.get(part.columns)
        rho2 = None if audited is None or audited.rho2 is None else float(audited.rho2)
        counts = rows_of_points(source, column, encoder, part.range)
        findings += about_heap(heap_of(column, counts[: part.range.grid], part.range), rho2)
        if len(part.domain) < part.range.points:
            findings += about_numbers(column, surest_numbers(counts, part.range, part.requirement))
    return findings


def _dependence(beside: Beside, looked: Looked, place: int, part: PartAudit, rho2: float | None) -> Dependence | None:
    scan, people = beside.scans[place], looked.telling[place]
    encoded = {name: encode(one.known.take(pa.array(people.public[name]))) for name, one in beside.numberings.items()}
    shown, hidden = _shown(scan, part)
    return dependence(
        ", ".join(scan.part.columns),
        people.public,
        people.values[place].astype(np.int64),
        len(scan.part.domain),
        shown,
        rho2,
        functions=looked.functions[place],
        classes=classes_of(encoded),
        of=int(scan.counts.sum()),
        entries=max(ENTRIES // hidden, 2**16),
    )


def _shown(scan: Scanned, part: PartAudit) -> tuple[Shown, int]:
    """What a row shows of a part, and how many cells it may come from without saying so."""
    if scan.part.lineups is not None:
        return LineUpRows(scan.part.lineups), 1
    posteriors = part.posteriors
    assert isinstance(posteriors, Posteriors)
    cells = posteriors.cells
    shown = ChannelRows.of(
        len(part.domain),
        [cell.channel for cell in cells],
        [np.array(cell.positions) for cell in cells],
        [np.maximum(np.array(cell.rows, dtype=np.float64), 1e-9) for cell in cells],
        cells_shown=posteriors.shows_cell,
    )
    return shown, 1 if posteriors.shows_cell else len(cells)


def giveaways_beside_items(original: pa.Table, manifest: Manifest, schema: pa.Schema) -> Results:
    """The same for each item of lists; of many that are given away the first few are spelt out."""
    promise = manifest.parts[0].promise
    assert isinstance(promise, OneOfItems)
    rho2 = None if promise.rho2 is None else float(promise.rho2)
    beside = _InMemory.of(original, manifest, schema)
    dependences: list[Dependence] = []
    findings: list[Finding] = []
    for part in manifest.parts:
        (column,) = part.columns
        held = original.column(column).to_numpy().astype(np.int64)
        counts = np.maximum(np.bincount(held, minlength=2), 1e-9)
        shown = ChannelRows.of(2, part.channels, [np.arange(2)], [counts], cells_shown=False)
        of_item, about_item = beside.results(column, held, 2, shown, rho2)
        dependences += of_item
        findings += about_item
    serious = [finding for finding in findings if finding.grade == "serious"]
    if len(serious) <= LISTED:
        return tuple(dependences), findings
    others = Finding(
        "serious",
        serious[LISTED].what,
        f"{len(serious) - LISTED:,} more items are given away like these.",
        "Look at the dependence of each item (--json), and drop the columns that are named there.",
    )
    return tuple(dependences), [finding for finding in findings if finding not in serious[LISTED:]] + [others]


@dataclass(frozen=True, eq=False)
class _InMemory:
    """The public columns of all rows, and of those that are looked at: every so many."""

    public: Mapping[str, Codes]
    some: Ints
    telling: Mapping[str, Encoded]
    fixes: Mapping[str, str]

    @classmethod
    def of(cls, original: pa.Table, manifest: Manifest, schema: pa.Schema) -> _InMemory:
        names = manifest.public_columns
        some = np.arange(0, original.num_rows, max(1, -(-original.num_rows // ROWS)))
        return cls(
            {name: encode(original[name]).codes for name in names},
            some,
            {name: encode(original[name].take(pa.array(some))) for name in names},
            {name: fix(name, schema.field(name).type) for name in names},
        )

    def results(
        self, name: str, values: Ints, m: int, shown: Shown, rho2: float | None, prior: Floats | None = None
    ) -> Results:
        """What the columns say about a sensitive one, and the finding about it."""
        one = dependence(
            name,
            {public: column.codes for public, column in self.telling.items()},
            values[self.some],
            m,
            shown,
            rho2,
            functions=functions_of(self.public, values),
            classes=classes_of(self.telling),
            of=len(values),
            entries=ENTRIES,
            prior=prior,
        )
        return () if one is None else (one,), about_dependence(one, rho2, self.fixes)
