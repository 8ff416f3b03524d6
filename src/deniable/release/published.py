"""A release as estimation sees it: with the channels of all its parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.tally import Counter
from deniable.core.values import Ints
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import places
from deniable.estimation.published import Completed, Published
from deniable.mechanisms.decoys import mixture_of


def with_channels(release: Published) -> Published:
    """The release as estimation sees it. Decoy groups that publish no histogram have their channels made from their own
    published counts."""
    manifest: Manifest = release.manifest
    if all(part.groups is None or part.mixture is not None for part in manifest.parts):
        return release
    counter, parts = release.counter(), []
    for part in manifest.parts:
        assert part.groups is not None
        counts = np.maximum(published_counts(part, manifest, counter), 1)
        parts.append(replace(part, mixture=mixture_of(Histogram(part.domain, counts), part.groups)))
    return Completed(replace(manifest, parts=tuple(parts)), counter)


def published_counts(part: Part, manifest: Manifest, counter: Counter) -> Ints:
    """How many rows show each value of the domain."""
    column = PerturbedColumn.of(part, manifest.types[part.columns[0]])
    shown = np.zeros(part.m + int(column.exempt), np.int64)
    for block in counter.tally([column.name], [], np.zeros(1, np.int64)):
        place = places(counter, (column,), (len(shown),), block.keys)
        np.add.at(shown, place, block.counts.sum((1, 2)).astype(np.int64))
    return shown[: part.m]
