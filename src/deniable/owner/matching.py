"""A release beside the table it was made from, as numbers: what an audit looks at, and attackers are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.rows import Codes, Rows
from deniable.core.errors import TableError
from deniable.core.histogram import Counts
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.engines.base import CELL, Dataset, Progress, Scan, Unfolds, no_progress
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


def observed(table: pa.Table, scan: Scanned, published: Codes) -> list[Counts]:
    """For each published cell, how many rows show each value."""
    cells = np.asarray(table.column(CELL).to_numpy())
    m = len(scan.part.domain)
    return [
        np.bincount(published[(cells == cell) & (published < m)], minlength=m).astype(np.int64)
        for cell in range(len(scan.part.channels))
    ]


@dataclass(frozen=True, eq=False)
class Matched:
    """The rows of a release and of its table, and their public columns under one numbering.

    Attributes:
        original: the table, with all columns that the release speaks of.
        public: for each public column its codes, first of the release's rows, then of the table's.
        combined: the same for combinations of all of them.
        rows: how many rows the release has.
    """

    original: pa.Table
    public: dict[str, npt.NDArray[np.int64]]
    combined: npt.NDArray[np.int64]
    rows: int

    @property
    def published(self) -> npt.NDArray[np.int64]:
        """The combination of each published row."""
        return self.combined[: self.rows]

    @property
    def people(self) -> npt.NDArray[np.int64]:
        """The combination of each row of the table."""
        return self.combined[self.rows :]


def read_original(source: Dataset, manifest: Manifest, progress: Progress = no_progress) -> pa.Table:
    """The columns of the table that the release speaks of."""
    sensitive = [name for part in manifest.parts for name in part.columns]
    needed = list(dict.fromkeys([*manifest.public_columns, *sensitive]))
    require_columns(needed, source.names)
    batches, done = [], 0
    for batch in source.batches(needed):
        batches.append(batch)
        done += batch.num_rows
        progress(done, source.rows, "reading the table")
    return pa.Table.from_batches(batches, schema=pa.schema([source.schema.field(name) for name in needed]))


def matched(original: pa.Table, table: pa.Table, names: Sequence[str]) -> Matched:
    """Release and table side by side."""
    public = {name: _together(table.column(name), original.column(name)) for name in names}
    return Matched(
        original, public, _combined(list(public.values()), table.num_rows + original.num_rows), table.num_rows
    )


def audited_rows(
    match: Matched, table: pa.Table, manifest: Manifest, scans: Sequence[Scanned], published: Sequence[Codes]
) -> Rows:
    """What the audit of rows needs; the first sensitive column stands for its person. Line-ups come last: no codes."""
    columns: dict[str, Codes] = {name: both[: match.rows] for name, both in match.public.items()}
    for scan, codes in zip(scans, published, strict=False):
        columns["+".join(scan.part.columns)] = codes
    if CELL in table.column_names and any(part.cells_published for part in manifest.parts):
        columns[CELL] = np.asarray(table.column(CELL).to_numpy())
    return Rows(columns, match.published, scans[0].codes(match.original), match.people)


def _together(published: pa.ChunkedArray, original: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """One numbering for the values of a column in the release and in the table."""
    if original.type != published.type:
        try:
            original = original.cast(published.type)
        except pa.ArrowException:
            original, published = original.cast(pa.string()), published.cast(pa.string())
    both = pa.chunked_array([*published.chunks, *original.chunks], type=published.type).combine_chunks()
    if pa.types.is_dictionary(both.type):
        both = both.cast(both.type.value_type)
    encoded = pc.dictionary_encode(both, null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _combined(columns: Sequence[npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.int64]:
    """The number of each row's combination of values."""
    total = np.zeros(rows, dtype=np.int64)
    for codes in columns:
        total = np.unique(total * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return total
