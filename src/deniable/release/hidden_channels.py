"""The channel of decoy groups as an analyst knows it: planned once more, from counts that are public.

Who was in which group is not published. What an estimate needs of it, Pr[x is published as y] in the whole table,
follows nearly from any histogram that is near the true one: the noisy one, where a release publishes it, or else the
release's own published counts, which estimate the true ones without bias (SPEC 7) and are out already.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest, Part
from deniable.core.parts import Mixture
from deniable.estimation.columns import PerturbedColumn
from deniable.estimation.decoys import FullChannel
from deniable.estimation.joint import places
from deniable.estimation.published import Counter, Published
from deniable.mechanisms.decoys.mechanism import Grouping, replanned

LARGEST_MIXTURE = 1000  # values; a dense channel of more would not fit a manifest that people open


def mixture_from(public: Histogram, c: int, grouping: Grouping) -> Mixture | None:
    """The channel of the whole table, by a public histogram; six digits. None where there are too many values."""
    if public.m > LARGEST_MIXTURE:
        return None
    again = replanned(public, c, grouping)
    matrix = FullChannel.of_plan(again, without=again.options.get("dropped_cell")).matrix.round(6)
    empty = ~matrix.any(0)
    matrix[empty, empty] = 1.0
    return tuple(tuple(row) for row in matrix.tolist())


@dataclasses.dataclass(frozen=True, eq=False)
class _Asked:
    """A release whose hidden channels are known."""

    manifest: Manifest
    counted: Counter

    def counter(self) -> Counter:
        return self.counted


def asked_of(release: Published) -> Published:
    """The release as estimation sees it: hidden channels that it does not publish are made from its own counts."""
    manifest: Manifest = release.manifest
    if manifest.mechanism != "decoys" or all(part.mixture is not None for part in manifest.parts):
        return release
    counter = release.counter()
    parts = tuple(_with_mixture(part, manifest, counter) for part in manifest.parts)
    return _Asked(dataclasses.replace(manifest, parts=parts), counter)


def _with_mixture(part: Part, manifest: Manifest, counter: Counter) -> Part:
    counts = np.maximum(_published_counts(part, manifest, counter), 1)
    options: Any = manifest.options
    made = mixture_from(Histogram(part.domain, counts), options["c"], options["grouping"])
    return dataclasses.replace(part, mixture=made)


def _published_counts(part: Part, manifest: Manifest, counter: Counter) -> npt.NDArray[np.int64]:
    """How many rows show each value of the domain."""
    m, everything = len(part.domain), np.zeros(1, np.int64)
    if len(manifest.parts) == 1:
        states = sum(block.counts.sum((0, 1)) for block in counter.tally([], [], everything))
        return np.asarray(states)[:m].astype(np.int64)
    column = PerturbedColumn.of(part, manifest.types[part.columns[0]])
    found = np.zeros(m + int(column.exempt), np.int64)
    for block in counter.tally([column.name], [], everything):
        place = places(counter, (column,), (len(found),), block.keys)
        np.add.at(found, place, block.counts.sum((1, 2)).astype(np.int64))
    return found[:m]
