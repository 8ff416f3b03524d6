"""The parts of a release, and the original table over their values; ranges of numbers are looked at in intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Counts, Ints
from deniable.core.errors import ColumnError, TableError, listing
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.replace import NumberRange
from deniable.engines.base import Dataset, Progress, Unfolds, no_progress
from deniable.engines.batch.range_intervals import IntervalEncoder, interval_channel
from deniable.engines.batch.ranges import RangeEncoder

MOST_PAIRS = 2**20  # combinations of two columns' values that are counted


@dataclass(frozen=True, eq=False)
class Scanned:
    """One part of a release, and the original table over its values.

    Attributes:
        part: of the release.
        counts: the rows of each value.
        encoder: how values become codes.
    """

    part: Part
    counts: Counts
    encoder: Any

    def codes(self, table: pa.Table) -> Ints:
        """Where each row's value stands in the domain; after its last value where the row is exempt."""
        batches = table.select(self.encoder.columns).combine_chunks().to_batches()
        pieces = [self.encoder.encode(batch).astype(np.int64) for batch in batches]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def as_published(dataset: Dataset, manifest: Manifest) -> Dataset:
    """The table with its columns as coarse as the release has them, and its sensitive numbers as intervals."""
    dataset = _unfolded(dataset, manifest)
    require_original([*manifest.recoded], dataset)
    if manifest.recoded:
        dataset = dataset.recoded(manifest.recoded)
    bins = {name: bins for part in manifest.parts for name, bins in part.bins.items() if name in dataset.names}
    numeric = {name: edges for name, edges in bins.items() if not pa.types.is_string(dataset.schema.field(name).type)}
    return dataset.binned(numeric)


def require_original(columns: Sequence[str], dataset: Dataset) -> None:
    """Refuse a table without a column that the release has."""
    lacking = [column for column in columns if column not in dataset.names]
    if lacking:
        raise ColumnError(
            f"The table has no column {listing(lacking)}, which the release has: it is not the one that was published. "
            f"Fix: name that one. Its columns: {listing(dataset.names)}."
        )


def _unfolded(dataset: Dataset, manifest: Manifest) -> Dataset:
    """With the items of its lists as columns, where the release has them so."""
    items = [part.item for part in manifest.parts if part.item is not None]
    if not items or all(item.column in dataset.names for item in items):
        return dataset
    require_original([items[0].list], dataset)
    if not isinstance(dataset, Unfolds):
        raise TableError(f"This engine cannot read the lists of {items[0].list!r}. Fix: audit it on one machine.")
    return dataset.unfolded(items[0].list, items[0].unfolding, [item.item for item in items])


def scanned(source: Dataset, part: Part, progress: Progress = no_progress) -> Scanned:
    """The original histogram over the part's domain; a table that does not fit is another table."""
    if part.range is not None:
        return _scanned_range(source, part, part.range)
    domain: Any = list(part.domain)
    if len(part.columns) > 1:
        domain = {name: list(dict.fromkeys(part.column_values(name))) for name in part.columns}
    scan = source.scan(part.columns, part.missing, domain, progress)
    return Scanned(part, scan.histogram.counts, scan.encoder)


def _scanned_range(source: Dataset, part: Part, grid: NumberRange) -> Scanned:
    """Count the rows of each interval."""
    dtype = source.schema.field(part.columns[0]).type
    inner = RangeEncoder(part.columns[0], dtype, grid, exempt=part.missing == "exempt")
    encoder = IntervalEncoder.of(inner)
    m = len(part.domain)
    counts = np.zeros(m + 1, dtype=np.int64)
    for batch in source.batches(list(part.columns)):
        counts += np.bincount(encoder.encode(batch), minlength=m + 1)
    return Scanned(part, counts[:m], encoder)


def with_intervals(manifest: Manifest) -> Manifest:
    """The manifest with a channel for every range of numbers, over points or intervals; categories come first."""
    shown = [_in_intervals(part, part.range) if part.range is not None else part for part in manifest.parts]
    return replace(manifest, parts=tuple(sorted(shown, key=lambda part: part.range is not None)))


def _in_intervals(part: Part, grid: NumberRange) -> Part:
    channel = interval_channel(grid)
    return replace(part, domain=channel.values, channels=(channel,), cell_positions=(np.arange(channel.m),))


def joint_counts(source: Dataset, scans: Sequence[Scanned]) -> Mapping[tuple[int, int], Counts]:
    """How often each pair of values of two columns occurs, for columns that are perturbed with one coin each."""
    parts = [scan.part for scan in scans]
    alone = [i for i, part in enumerate(parts) if len(part.columns) == 1 and _has_one_coin(part)]
    sizes = [len(part.domain) for part in parts]
    pairs = [(i, j) for i, j in combinations(alone, 2) if sizes[i] * sizes[j] <= MOST_PAIRS]
    counts = {(i, j): np.zeros((sizes[i] + 1) * (sizes[j] + 1), dtype=np.int64) for i, j in pairs}
    used = sorted({i for pair in pairs for i in pair})
    for batch in source.batches([parts[i].columns[0] for i in used]) if used else ():
        codes = {i: np.minimum(scans[i].encoder.encode(batch).astype(np.int64), sizes[i]) for i in used}
        for i, j in pairs:  # a code after the last value is a missing one that is published as it is
            counts[i, j] += np.bincount(codes[i] * (sizes[j] + 1) + codes[j], minlength=len(counts[i, j]))
    return {(i, j): counts[i, j].reshape(sizes[i] + 1, sizes[j] + 1)[:-1, :-1] for i, j in pairs}


def _has_one_coin(part: Part) -> bool:
    return len(part.channels) == 1 and bool((part.channels[0].keep == part.channels[0].keep[0]).all())
