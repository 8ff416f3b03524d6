"""Who answers for a release, by what it publishes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deniable.audit.verify.group_tables import tables_problem
from deniable.core.arrays import Ints
from deniable.core.errors import ManifestError, QuestionError
from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.tally import Counter
from deniable.estimation.answering import RowsAnswerer
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import places
from deniable.estimation.published import Completed, Published
from deniable.estimation.question import Answerer
from deniable.mechanisms.decoys.mixture import mixture_of
from deniable.rivals.anatomy.answerer import BucketsAnswerer
from deniable.rivals.generalize.answerer import BoxesAnswerer
from deniable.rivals.perturbed_generalization.answerer import SamplesAnswerer

if TYPE_CHECKING:
    from deniable.release.release import Release

OF_GROUPS: dict[str, type[BucketsAnswerer | SamplesAnswerer | BoxesAnswerer]] = {
    "buckets": BucketsAnswerer,
    "samples": SamplesAnswerer,
    "boxes": BoxesAnswerer,
}


def answerer_of(release: Release) -> Answerer:
    """The answerer of a release that was opened or made."""
    manifest = release.manifest
    if manifest.form == "rows":
        return RowsAnswerer(_with_channels(release))
    if manifest.form in OF_GROUPS:
        problem = tables_problem(manifest, release.table, release.groups)
        if problem is not None:
            raise ManifestError(f"The release is damaged: {problem}. Fix: ask whoever published it for its files.")
        return OF_GROUPS[manifest.form](manifest, release.table, release.groups)
    raise QuestionError(
        "Answers can be asked of the object that publish returned only: the table stays with its owner."
    )


def _with_channels(release: Published) -> Published:
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
