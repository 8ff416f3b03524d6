"""A release of groups and its table in memory, their public columns under one numbering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.exposure import combined
from deniable.core.arrays import Codes, Ints
from deniable.core.manifest import Manifest
from deniable.engines.base import Dataset, Progress, no_progress
from deniable.owner.scanning import require_original


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
    public: dict[str, Codes]
    combined: Ints
    rows: int

    @property
    def published(self) -> Ints:
        """The combination of each published row."""
        return self.combined[: self.rows]

    @property
    def people(self) -> Ints:
        """The combination of each row of the table."""
        return self.combined[self.rows :]


def read_original(source: Dataset, manifest: Manifest, progress: Progress = no_progress) -> pa.Table:
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


def matched(original: pa.Table, table: pa.Table, names: Sequence[str]) -> Matched:
    """Release and table side by side."""
    public = {name: _together(table.column(name), original.column(name)) for name in names}
    return Matched(
        original, public, combined(list(public.values()), table.num_rows + original.num_rows), table.num_rows
    )


def _together(published: pa.ChunkedArray, original: pa.ChunkedArray) -> Codes:
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
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return codes
