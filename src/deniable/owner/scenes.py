"""Attacks on a release of one's own: the joiner of release, table and the attackers of the audit room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.attacks.de_finetti import Buckets, de_finetti, foreground
from deniable.audit.attacks.evidence import Evidence, views_of
from deniable.audit.attacks.groups import GroupScene, played_on_groups
from deniable.audit.attacks.informed import Informed, in_classes
from deniable.audit.attacks.repeated import repeated
from deniable.audit.attacks.result import AttackResult
from deniable.audit.attacks.scene import RELEASES, Scene, informed, played_on_rows, rebuilt_decoys
from deniable.audit.attacks.shown import LineUpRows
from deniable.audit.audit import Audit
from deniable.audit.grouped import GroupRows
from deniable.audit.part import PartAudit
from deniable.audit.posteriors import Posteriors
from deniable.core.errors import DeniableError
from deniable.core.histogram import Histogram
from deniable.core.lineup import LineUpDesign
from deniable.core.promise import Groups
from deniable.engines.base import CELL
from deniable.engines.batch.lineup_columns import states_of
from deniable.engines.batch.values import arrow_type
from deniable.engines.randomness import Keystream, Secret
from deniable.estimation.model.lineups import LineUpStates
from deniable.mechanisms.decoys.mechanism import Decoys
from deniable.owner.matching import Matched, Scanned, matched
from deniable.release.release import Release
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.diversity import rows_to_suppress
from deniable.rivals.generalize.boxes import cells_of

Ints = npt.NDArray[np.int64]
SEED = 2010  # attackers toss coins too; the same audit gives the same figures
ENTRIES = 2**25  # numbers in what all views say of all values: beyond that nothing is played
AT_ONCE, FEWEST = 2**23, 1000  # numbers that ten regroupings may hold; people that are attacked at the least
MANY, CLASSES = 50, 20  # a public column of more values is learnt from in so many classes


class Staged(NamedTuple):
    """A sensitive column as attackers see it, and the rho2 that is required of it."""

    scan: Scanned
    scene: Scene
    rho2: float | None


def scenes_of(table: pa.Table, match: Matched, scans: Sequence[Scanned], figures: Audit) -> list[Staged]:
    """Every sensitive column as attackers see it; columns of too many values are left out."""
    parts = {part.columns: part for part in figures.parts}
    staged = []
    for scan in scans:
        part = parts[scan.part.columns]
        if scan.part.lineups is not None:
            scene = _lineup_scene(table, match, scan, scan.part.lineups)
        else:
            evidence = _evidence(part, scan)
            scene = None if evidence is None else _scene(table, match, scan, evidence)
        if scene is not None:
            rho2 = max((float(limit[1]) for limit in part.limits if limit is not None), default=None)
            staged.append(Staged(scan, scene, rho2))
    return staged


def attacks_on_rows(scenes: Sequence[Staged]) -> tuple[AttackResult, ...]:
    """Every attack on every sensitive column."""
    results: list[AttackResult] = []
    for scan, scene, _ in scenes:
        played = [*played_on_rows(scene, np.random.default_rng(SEED)), *_minimality(scene, scan)]
        about = f" ({', '.join(scan.part.columns)})" if len(scenes) > 1 else ""
        results += [replace(result, name=result.name + about) for result in played]
    return tuple(results)


def informed_about(scenes: Sequence[Staged]) -> tuple[Informed, ...]:
    """The informed attackers on every sensitive column."""
    results: list[Informed] = []
    for scan, scene, rho2 in scenes:
        about = f" ({', '.join(scan.part.columns)})" if len(scenes) > 1 else ""
        known = informed(scene, rho2, np.random.default_rng(SEED))
        results += [replace(one, learnt_from=one.learnt_from + about) for one in known]
    return tuple(results)


def _evidence(part: PartAudit, scan: Scanned) -> Evidence | None:
    """What a row's view says, by the posteriors of the audit: the cells and the rows that each of them took."""
    posteriors, m = part.posteriors, len(part.domain)
    assert isinstance(posteriors, Posteriors)
    apart = posteriors.shows_cell or len(posteriors.cells) == 1
    if (len(posteriors.cells) if apart else 1) * m * m > ENTRIES:
        return None
    channels = [cell.channel for cell in posteriors.cells]
    places = [np.array(cell.positions) for cell in posteriors.cells]
    dealt = [np.array(cell.rows, dtype=np.float64) for cell in posteriors.cells]
    make = Evidence.of_channels if apart else Evidence.of_hidden_channels
    return make(np.maximum(scan.counts, 1e-9), channels, places, dealt)


def _scene(table: pa.Table, match: Matched, scan: Scanned, evidence: Evidence) -> Scene:
    """Release and people without their exempt rows, which show that they are."""
    m = len(evidence.prior)
    shown, original = scan.codes(table), scan.codes(match.original)
    cells = None
    if scan.part.cells_published and CELL in table.column_names:
        cells = np.asarray(table.column(CELL).to_numpy()).astype(np.int64)
    rows, people = np.flatnonzero(shown < m), np.flatnonzero(original < m)
    views = views_of(shown[rows], m, None if cells is None else cells[rows]).astype(np.int64)
    columns = [(ours[rows], theirs[people]) for ours, theirs in _columns(table, match)]
    return Scene(match.published[rows], views, evidence, shown[rows], match.people[people], original[people], columns)


def _lineup_scene(table: pa.Table, match: Matched, scan: Scanned, design: LineUpDesign) -> Scene | None:
    """Rows that show line-ups; of a single value they show the one that they speak for most."""
    number = len(design.sets.members)
    if number * design.m > ENTRIES:
        return None
    evidence = Evidence(LineUpRows(design).likelihood(np.arange(number)), scan.counts / max(scan.counts.sum(), 1))
    known = pa.array(list(scan.part.domain), arrow_type(scan.part.types[0]))
    views = states_of(table.column(scan.part.columns[0]), design, known)
    original = scan.codes(match.original)
    rows, people = np.flatnonzero(views >= 0), np.flatnonzero(original < design.m)
    columns = [(ours[rows], theirs[people]) for ours, theirs in _columns(table, match)]
    weights = LineUpStates(design).weights(np.eye(design.m, dtype=bool)).T
    speaks_for = evidence.posterior.argmax(1)[views[rows]]
    return Scene(
        match.published[rows],
        views[rows],
        evidence,
        speaks_for,
        match.people[people],
        original[people],
        columns,
        weights,
    )


def _columns(table: pa.Table, match: Matched) -> list[tuple[Ints, Ints]]:
    """Public columns as a classifier learns from them: numbers in classes, rare values as one."""
    columns = []
    for name, both in match.public.items():
        if int(both.max(initial=0)) >= MANY:
            both = _classes([table.column(name), match.original.column(name)], both)
        columns.append((both[: match.rows], both[match.rows :]))
    return columns


def _classes(columns: Sequence[pa.ChunkedArray], codes: Ints) -> Ints:
    kind = columns[0].type
    numbers = None
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and columns[1].type == kind:
        numbers = np.concatenate([pc.cast(values, pa.float64(), safe=False).to_numpy() for values in columns])
    return in_classes(codes, numbers, MANY, CLASSES)


def _minimality(scene: Scene, scan: Scanned) -> list[AttackResult]:
    """Decoy groups, rebuilt from what is published by running the algorithm on the published counts."""
    if scan.part.groups is None:
        return []
    assert scene.shown is not None
    c = scan.part.groups.c
    published = np.bincount(scene.shown, minlength=scene.m)
    try:
        plan = Decoys(c=c, leftovers="drop").plan(Histogram(scan.part.domain, published), None)
    except DeniableError:  # by chance a value is published too often to be grouped
        return []
    channels, places = [cell.channel for cell in plan.cells], [plan.positions(cell) for cell in plan.cells]
    dealt = [cell.rows.counts for cell in plan.cells]
    rebuilt = Evidence.of_hidden_channels(np.maximum(published, 1e-9), channels, places, dealt)
    return [rebuilt_decoys(scene, rebuilt, 1 / c)]


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
        codes = pc.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode")
        codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        own = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
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
    likelihood: list[npt.NDArray[np.float64]] = []
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
