"""What the public columns of a release give away: the joiner of table, release and the audit's findings about them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.shown import ChannelRows, LineUpRows, Shown
from deniable.audit.audit import Audit
from deniable.audit.dependence import Dependence, dependence
from deniable.audit.findings import Finding
from deniable.audit.giveaways import about_dependence
from deniable.audit.heaping import about_heap
from deniable.audit.part import PartAudit
from deniable.audit.posteriors import Posteriors
from deniable.core.manifest import Manifest
from deniable.engines.base import Dataset
from deniable.engines.batch.columns import encode
from deniable.engines.batch.ranges import RangeEncoder
from deniable.owner.beside import Beside
from deniable.owner.looking import Looked
from deniable.owner.scanning import Scanned
from deniable.planning.informed import classes_of
from deniable.publishing.giveaways import fix
from deniable.publishing.warned import heaped

ENTRIES = 2**22  # beliefs at once: people x values


def giveaways(
    beside: Beside, looked: Looked, schema: pa.Schema, figures: Audit
) -> tuple[tuple[Dependence, ...], list[Finding]]:
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


def heaps(source: Dataset, manifest: Manifest, figures: Audit) -> list[Finding]:
    """Findings about numbers that pile up, at the points of their grids: intervals would hide them."""
    parts = {part.columns: part for part in figures.parts}
    findings = []
    for part in manifest.parts:
        if part.range is None:
            continue
        (column,) = part.columns
        encoder = RangeEncoder(column, source.schema.field(column).type, part.range, exempt=part.missing == "exempt")
        audited = parts.get(part.columns)
        rho2 = None if audited is None or audited.rho2 is None else float(audited.rho2)
        findings += about_heap(heaped(source, column, encoder, part.range), rho2)
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
