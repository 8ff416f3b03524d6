"""Audit a release of items against the lists that it was made from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deniable.audit.audit import Audit
from deniable.audit.findings import Finding, about_randomness, by_grade
from deniable.audit.lists import ROWS, ListAudit, item_beliefs
from deniable.core.arrays import Bools
from deniable.core.items import ListItem, Unfolding
from deniable.core.manifest import Manifest
from deniable.core.promise import OneOfItems
from deniable.engines.base import Dataset, Progress, Unfolds
from deniable.owner.giveaways import giveaways_beside_items
from deniable.owner.scanning import require_original
from deniable.release.release import Release

SEED = 2010  # which rows are looked at; the same audit gives the same figures
NOT_PLAYED_ON_LISTS = Finding(
    "caution",
    "attacks",
    "none was played: attackers guess one value of a person, and a list has several.",
    "Read what a row says of each item, which is what the best of them could use.",
)


def audit_of_lists(
    table: Dataset, source: Dataset, release: Release, item: ListItem, attacks: bool, progress: Progress
) -> Audit:
    """What someone becomes sure of who knows how often every list occurs, and sees a row; ``source`` is the table as it
    was published."""
    manifest = release.manifest
    columns, promise = list(manifest.sensitive_columns), manifest.parts[0].promise
    assert isinstance(promise, OneOfItems)
    original = _original(source, manifest, progress)
    held, shown = _truths(original, columns), _truths(release.table, columns)
    rows = np.random.default_rng(SEED).permutation(len(shown))[:ROWS]
    channel = manifest.parts[0].channels[0].matrix()
    limits = None if promise.rho1 is None or promise.rho2 is None else (promise.rho1, promise.rho2)
    names = [part.item.item for part in manifest.parts if part.item is not None]
    chances = channel[1, 1], channel[1, 0]
    different, beliefs = item_beliefs(held, shown[rows], names, chances, limits, _whole(table, item, names, columns))
    audited = ListAudit(item.list, item.most, different, len(rows), promise.gamma, beliefs)
    given_away, about_columns = giveaways_beside_items(original, manifest, source.schema)
    findings = [
        *about_randomness(manifest.randomness.source, manifest.randomness.seed),
        *audited.findings(),
        *about_columns,
        *([NOT_PLAYED_ON_LISTS] if attacks else []),
    ]
    return Audit(manifest.name, manifest.mechanism, (), None, by_grade(findings), lists=audited, dependence=given_away)


def _whole(table: Dataset, item: ListItem, items: list[str], columns: list[str]) -> Bools | None:
    """Which people have which items, of lists that are longer than what counts; None where all of a list counts, or
    the table has no lists any more."""
    if item.beyond != "first" or item.list not in table.names or not isinstance(table, Unfolds):
        return None
    every = table.unfolded(item.list, Unfolding(separator=item.separator), items)
    return _truths(pa.Table.from_batches(every.batches(columns)), columns)


def _truths(table: pa.Table, columns: list[str]) -> Bools:
    return np.column_stack([table.column(name).to_numpy().astype(bool) for name in columns])


def _original(source: Dataset, manifest: Manifest, progress: Progress) -> pa.Table:
    """The columns of the table that the release speaks of."""
    sensitive = [name for part in manifest.parts for name in part.columns]
    needed = list(dict.fromkeys([*manifest.public_columns, *sensitive]))
    require_original(needed, source)
    batches, done = [], 0
    for batch in source.batches(needed):
        batches.append(batch)
        done += batch.num_rows
        progress(done, source.rows, "reading the table")
    return pa.Table.from_batches(batches, schema=pa.schema([source.schema.field(name) for name in needed]))
