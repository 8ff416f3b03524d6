"""Attacks on a release of groups that hold true values: the joiner of release, table and the attackers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.attacks.de_finetti import Buckets, de_finetti, foreground
from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.informed import in_classes
from deniable.audit.attacks.repeated import repeated
from deniable.audit.attacks.result import AttackResult
from deniable.audit.attacks.scene import RELEASES, GroupScene, Scene, played_on_groups
from deniable.audit.grouped import GroupRows
from deniable.core.arrays import Codes, Floats, Ints
from deniable.core.histogram import Histogram
from deniable.core.promise import Groups
from deniable.engines.base import CELL
from deniable.engines.batch.columns import encode
from deniable.engines.randomness import Keystream, Secret
from deniable.owner.matching import Matched, matched
from deniable.owner.scanning import Scanned
from deniable.owner.scenes import CLASSES, ENTRIES, MANY, SEED
from deniable.release.release import Release
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.diversity import rows_to_suppress
from deniable.rivals.generalize.boxes import cells_of

AT_ONCE, FEWEST = 2**23, 1000  # numbers that ten regroupings may hold; people that are attacked at the least


def attacks_on_groups(
    release: Release, original: pa.Table, scan: Scanned, groups: GroupRows
) -> tuple[AttackResult, ...]:
    """Every attack on a release of groups that hold true values."""
    if len(groups.sizes) * release.manifest.parts[0].m > ENTRIES:
        return ()
    rng = np.random.default_rng(SEED)
    if release.manifest.form == "boxes":
        return tuple(played_on_groups(_boxes(release, original, scan, groups), rng))
    scene = _buckets(release, original, scan, groups)
    return (*played_on_groups(scene, rng), *_looked_into(scene), *_regrouped(release, scene))


def _looked_into(scene: GroupScene) -> list[AttackResult]:
    """De Finetti and foreground, of people whose group is known; left out where rows x values are too many to hold."""
    seen, located = scene.seen, np.flatnonzero(scene.located >= 0)
    if not seen.columns or seen.weights is None or not len(located) or len(seen.views) * seen.m > ENTRIES:
        return []
    buckets = Buckets(seen.views, seen.weights, [ours for ours, _ in seen.columns])
    people = [theirs[located] for _, theirs in seen.columns]
    return [
        attack(buckets, people, scene.located[located], seen.original[located]) for attack in (foreground, de_finetti)
    ]


def _boxes(release: Release, original: pa.Table, scan: Scanned, groups: GroupRows) -> GroupScene:
    """A person's box is found by their public values; its rows show true values."""
    table, m = release.table, release.manifest.parts[0].m
    cells = np.asarray(table.column(CELL).to_numpy()).astype(np.int64)
    located, values = cells_of(release.groups, original), scan.codes(original)
    there = (located >= 0) & (values < m)
    shown = scan.codes(table)
    rows = np.flatnonzero(shown < m)
    columns = []
    for name in release.manifest.public_columns:
        own = encode(table.column(name)).codes.astype(np.int64)
        by_cell = np.zeros(int(cells.max()) + 1, np.int64)
        by_cell[cells] = own
        columns.append((own[rows], by_cell[located[there]]))
    evidence = Evidence.as_published(np.maximum(np.bincount(values[there], minlength=m), 1e-9))
    weights = np.eye(m)
    seen = Scene(cells[rows], shown[rows], evidence, shown[rows], located[there], values[there], columns, weights)
    return GroupScene(seen, groups, located[there])


def _buckets(release: Release, original: pa.Table, scan: Scanned, groups: GroupRows) -> GroupScene:
    """A row shows its group; whose row it is, is certain where public values occur once."""
    table, m = release.table, release.manifest.parts[0].m
    match = matched(original, table, release.manifest.public_columns)
    cells = np.asarray(table.column(CELL).to_numpy()).astype(np.int64)
    values = scan.codes(original)
    people = np.flatnonzero(values < m)
    evidence = Evidence(groups.likelihood(m), groups.totals_of(m) / groups.totals.sum())
    shares = groups.likelihood(m) * groups.totals_of(m) / np.maximum(groups.sizes, 1)[:, None]
    columns = [(ours, theirs[people]) for ours, theirs in _columns(table, match)]
    seen = Scene(match.published, cells, evidence, None, match.people[people], values[people], columns, shares)
    located = np.full(len(people), -1)
    rows, alone = seen.alone()
    located[alone] = cells[rows]
    return GroupScene(seen, groups, located)


def _regrouped(release: Release, scene: GroupScene) -> list[AttackResult]:
    """Repeated publication of Anatomy: the same rows in fresh groups, each of which leaves fewer values possible."""
    part = release.manifest.parts[0]
    assert isinstance(part.promise, Groups)
    seen, l = scene.seen, part.promise.l
    counts = np.bincount(seen.original, minlength=seen.m)
    suppressed = rows_to_suppress(Histogram(part.domain, counts), l)
    stream = Keystream(Secret.from_key(SEED.to_bytes(32, "big")), "attack")
    drawn = [
        anatomy_groups(seen.original, seen.m, l, stream.subkey(f"groups {number}"), suppressed)
        for number in range(RELEASES)
    ]
    there = np.flatnonzero(np.logical_and.reduce([groups >= 0 for groups in drawn]))
    most = max(FEWEST, AT_ONCE // (RELEASES * seen.m))
    people = there if len(there) <= most else np.random.default_rng(SEED).choice(there, most, replace=False)
    likelihood: list[Floats] = []
    views: list[Ints] = []
    for groups in drawn:
        looked_at, own = np.unique(groups[people], return_inverse=True)
        members = np.flatnonzero(np.isin(groups, looked_at))
        rows = np.zeros((len(looked_at), seen.m))
        np.add.at(rows, (np.searchsorted(looked_at, groups[members]), seen.original[members]), 1.0)
        views.append(own + sum(len(channel) for channel in likelihood))
        likelihood.append(rows / np.maximum(counts, 1))
    evidence = Evidence(np.concatenate(likelihood), counts / counts.sum())
    result = repeated(views, evidence, seen.original[people])
    return [replace(result, note=f"if the rows were published {RELEASES} times, each time in fresh groups")]


def _columns(table: pa.Table, match: Matched) -> list[tuple[Codes, Codes]]:
    """Public columns as a classifier learns from them: numbers in classes, rare values as one."""
    columns = []
    for name, codes in match.public.items():
        both: Codes = codes
        if int(codes.max(initial=0)) >= MANY:
            both = _classes([table.column(name), match.original.column(name)], codes)
        columns.append((both[: match.rows], both[match.rows :]))
    return columns


def _classes(columns: Sequence[pa.ChunkedArray], codes: Codes) -> Ints:
    kind = columns[0].type
    numbers = None
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and columns[1].type == kind:
        numbers = np.concatenate([pc.cast(values, pa.float64(), safe=False).to_numpy() for values in columns])
    return in_classes(codes, numbers, MANY, CLASSES)
