"""What public columns give away beside groups of true values, and beside items of lists: both are audited in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.shown import ChannelRows, Shown
from deniable.audit.dependence import Dependence, dependence
from deniable.audit.findings import Finding
from deniable.audit.functions import functions_of
from deniable.audit.giveaways import about_dependence
from deniable.core.arrays import Codes, Floats, Ints
from deniable.core.manifest import Manifest
from deniable.core.promise import Groups, OneOfItems
from deniable.engines.batch.columns import Encoded, encode
from deniable.owner.giveaways import ENTRIES
from deniable.owner.scanning import Scanned
from deniable.planning.informed import classes_of, frequencies_of, shown_by_groups, surest_of_groups
from deniable.publishing.giveaways import ROWS, fix

LISTED = 3  # items that have a finding of their own

Results = tuple[tuple[Dependence, ...], list[Finding]]


def giveaways_beside_groups(original: pa.Table, scan: Scanned, manifest: Manifest, schema: pa.Schema) -> Results:
    """Where groups of true values stand beside public columns as they are, how sure someone becomes who knows both."""
    promise = scan.part.promise
    if not isinstance(promise, Groups) or manifest.form != "buckets":
        return (), []
    codes, m = scan.codes(original).astype(np.int64), len(scan.part.domain)
    there = np.flatnonzero(codes < m)
    beside = _Beside.of(original.take(pa.array(there)), manifest, schema)
    shown = shown_by_groups(scan.counts, promise.l)
    name, rho2 = ", ".join(scan.part.columns), surest_of_groups(promise.l)
    return beside.results(name, codes[there], m, shown, rho2, frequencies_of(scan.counts))


def giveaways_beside_items(original: pa.Table, manifest: Manifest, schema: pa.Schema) -> Results:
    """The same for each item of lists; of many that are given away the first few are spelt out."""
    promise = manifest.parts[0].promise
    assert isinstance(promise, OneOfItems)
    rho2 = None if promise.rho2 is None else float(promise.rho2)
    beside = _Beside.of(original, manifest, schema)
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
class _Beside:
    """The public columns of all rows, and of those that are looked at: every so many."""

    public: Mapping[str, Codes]
    some: Ints
    telling: Mapping[str, Encoded]
    fixes: Mapping[str, str]

    @classmethod
    def of(cls, original: pa.Table, manifest: Manifest, schema: pa.Schema) -> _Beside:
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
