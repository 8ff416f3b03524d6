"""The audit of a release of one perturbed row of each box: what a box says of whoever is in it.

A person of a box of n rows knows that one of them was drawn, and nobody knows which. To who knows how frequent values
are (pi) the box shows y with

    P'(y | x) = (p/n) [x = y] + (1-p) r_y + (1 - 1/n) p pi_y

which is a channel of coins again: coin p/n, and the rest replaced. Posteriors are those of the smallest box, where they
are the largest; attackers use each person's own.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.corruption import sample_corruption
from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.homogeneity import homogeneity
from deniable.audit.attacks.linking import linking
from deniable.audit.attacks.result import AttackResult
from deniable.audit.attacks.scene import KNOWN, Scene, known_of, learnt
from deniable.audit.audit import Audit
from deniable.audit.audit import audit as audit_figures
from deniable.audit.columns import requirement_of
from deniable.audit.findings import about_any_prior, by_grade
from deniable.core.arrays import Floats, Ints
from deniable.core.channel import Channel
from deniable.core.errors import TableError
from deniable.core.histogram import Histogram
from deniable.engines.base import CELL, Dataset, Progress
from deniable.engines.batch.columns import encode
from deniable.owner.matching import read_original
from deniable.owner.scanning import Scanned, scanned
from deniable.owner.scenes import ENTRIES, SEED
from deniable.release.release import Release
from deniable.rivals.generalize.boxes import ROWS, cells_of


def audit_of_samples(source: Dataset, release: Release, attacks: bool, progress: Progress) -> Audit:
    """What someone's box says about them, and how often attackers are right."""
    manifest, part = release.manifest, release.manifest.parts[0]
    scan = scanned(source, part, progress)
    sizes = release.groups[ROWS].to_numpy().astype(np.int64)
    smallest = int(sizes.min())
    shares = scan.counts / max(int(scan.counts.sum()), 1)
    as_a_channel = dataclasses.replace(part, channels=(of_a_person(part.channels[0], shares, smallest),))
    figures = audit_figures(dataclasses.replace(manifest, parts=(as_a_channel,)), [Histogram(part.domain, scan.counts)])
    whole = part.channels[0].exact_gamma  # of who knows the others of a box, too
    assert whole is not None
    (own,), gamma = figures.parts, 1 + (whole - 1) / smallest
    findings = [finding for finding in figures.findings if finding.what != "any belief"]
    findings += about_any_prior(gamma, requirement_of(manifest, part), 0.0)
    figures = dataclasses.replace(figures, parts=(dataclasses.replace(own, gamma=gamma),), findings=by_grade(findings))
    if not attacks or len(sizes) * part.m > ENTRIES:
        return figures
    original = read_original(source, manifest, progress)
    return dataclasses.replace(figures, attacks=tuple(_played(release, original, scan, sizes)))


def of_a_person(channel: Channel, shares: Floats, rows: int) -> Channel:
    """What is published of one of so many rows, to who knows how frequent values are."""
    p = channel.coins
    replaced = (1 - p) * channel.replacing + (1 - 1 / rows) * p * shares
    return Channel.of(channel.values, p / rows, replaced)


def _played(release: Release, original: pa.Table, scan: Scanned, sizes: Ints) -> list[AttackResult]:
    """Linking, homogeneity, corruption and the classifier; a view is a box and what it shows."""
    part, table = release.manifest.parts[0], release.table
    cells = table[CELL].to_numpy().astype(np.int64)
    shown = np.empty(len(sizes), np.int64)
    shown[cells] = scan.codes(table)
    located, values = cells_of(release.groups, original), scan.codes(original)
    there = np.flatnonzero((located >= 0) & (values < part.m))
    if not len(there):
        raise TableError("Nobody of the table is in a box of the release: it is of another one. Fix: name that one.")
    located, values = located[there], values[there]
    prior = np.maximum(scan.counts, 1e-9) / np.maximum(scan.counts, 1e-9).sum()
    matrix = part.channels[0].matrix()
    own = matrix[shown] / sizes[:, None]  # of each box: that its row is the person's, and shows what it shows
    evidence = Evidence(own + ((1 - 1 / sizes) * (matrix[shown] @ prior))[:, None], prior)
    boxes = np.arange(len(sizes))
    columns = [(own, own[located]) for own in _looks(release, cells)]
    weights = sizes[:, None] * np.linalg.inv(matrix)[:, shown].T
    scene = Scene(boxes, boxes, evidence, shown, located, values, columns, weights)
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(located))
    order = order[np.argsort(located[order], kind="stable")]
    channel = Evidence(matrix, prior)
    corrupted = [
        dataclasses.replace(
            sample_corruption(located[order], shown, channel, values[order], known_of(located[order], share)),
            note=f"{name} of the others of the box are known",
        )
        for name, share in KNOWN.items()
    ]
    return [
        linking(boxes, boxes, evidence, located, values),
        homogeneity(boxes, shown, located, values),
        *corrupted,
        *learnt(scene, rng),
    ]


def _looks(release: Release, cells: Ints) -> list[Ints]:
    """Every public column of the boxes, coded: boxes that look alike have one code."""
    looks = []
    for name in release.manifest.public_columns:
        own = np.empty(len(cells), np.int64)
        own[cells] = encode(release.table[name]).codes
        looks.append(own)
    return looks
