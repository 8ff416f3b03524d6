"""The parts of a release, and the original table over their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.errors import TableError
from deniable.core.histogram import Counts
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.engines.base import Dataset, Progress, Scan, Unfolds, no_progress
from deniable.engines.batch.values import require_columns
from deniable.owner.columns import IntervalScan, scan_intervals


@dataclass(frozen=True)
class Scanned:
    """One part of a release, and the original table over its values."""

    part: Part
    scan: Scan | IntervalScan

    @property
    def counts(self) -> Counts:
        """The rows of each value."""
        return self.scan.histogram.counts if isinstance(self.scan, Scan) else self.scan.counts

    @property
    def encoder(self) -> Any:
        """How values become codes."""
        return self.scan.encoder

    def codes(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Where each row's value stands in the domain; after its last value where the row is exempt."""
        encoder = self.scan.encoder
        batches = table.select(encoder.columns).combine_chunks().to_batches()
        pieces = [encoder.encode(batch).astype(np.int64) for batch in batches]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def as_published(dataset: Dataset, manifest: Manifest) -> Dataset:
    """The table with its columns as coarse as the release has them, and its sensitive numbers as intervals."""
    dataset = _unfolded(dataset, manifest)
    require_columns([*manifest.recoded], dataset.names)
    if manifest.recoded:
        dataset = dataset.recoded(manifest.recoded)
    bins = {name: bins for part in manifest.parts for name, bins in part.bins.items() if name in dataset.names}
    numeric = {name: edges for name, edges in bins.items() if not pa.types.is_string(dataset.schema.field(name).type)}
    return dataset.binned(numeric)


def _unfolded(dataset: Dataset, manifest: Manifest) -> Dataset:
    """With the items of its lists as columns, where the release has them so."""
    items = [part.item for part in manifest.parts if part.item is not None]
    if not items or all(item.column in dataset.names for item in items):
        return dataset
    require_columns([items[0].list], dataset.names)
    if not isinstance(dataset, Unfolds):
        raise TableError(f"This engine cannot read the lists of {items[0].list!r}. Fix: audit it on one machine.")
    return dataset.unfolded(items[0].list, items[0].unfolding, [item.item for item in items])


def scanned(source: Dataset, part: Part, progress: Progress = no_progress) -> Scanned:
    """The original histogram over the part's domain; a table that does not fit is another table."""
    if part.range is not None:
        return Scanned(part, scan_intervals(source, part))
    domain: Any = list(part.domain)
    if len(part.columns) > 1:
        domain = {name: list(dict.fromkeys(part.column_values(name))) for name in part.columns}
    return Scanned(part, source.scan(part.columns, part.missing, domain, progress))
