"""A source whose numeric columns are read as bins."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.bins import EDGES_EPSILON, Bins, BinsLike, Quantiles, as_bins
from deniable.core.errors import ColumnError, TableError, did_you_mean
from deniable.engines.local.sources import BATCH_ROWS, DerivedSource, Source
from deniable.engines.randomness import Keystream, Secret

WARNED = (
    "The bins of {column!r} are drawn near the quantiles of the table, and published: another key gives other bins. "
    "Give edges yourself to depend on nothing."
)
SAID = (
    "The edges of the bins of {column!r} were drawn near the quantiles of the table, not by single rows: they let the "
    "odds of any belief about one person grow by a further factor of up to {factor:.3g} (epsilon {epsilon:g})."
)


class BinnedSource(DerivedSource):
    """Another source, with some numeric columns replaced by the labels of their bins.

    ``keys`` decide where quantiles have their edges; left out, fresh ones do.
    """

    def __init__(self, source: Source, bins: Mapping[str, BinsLike], keys: Keystream | None = None) -> None:
        for column in bins:
            if column not in source.names:
                hint = did_you_mean(column, source.names)
                raise ColumnError(f"bins names the column {column!r}, which the table does not have.{hint}")
            kind = source.schema.field(column).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                raise ColumnError(
                    f"bins: the column {column!r} holds {kind}, not numbers. Fix: bin numeric columns only."
                )
        super().__init__(source)
        self._keys = keys
        self.warnings: list[str] = []
        self.said: list[str] = []
        self.bins = {column: self._resolved(column, as_bins(given)) for column, given in bins.items()}
        fields = [pa.field(f.name, pa.string()) if f.name in bins else f for f in source.schema]
        self.schema = pa.schema(fields)

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """The labels of each binned column, from the lowest bin to the highest."""
        return {column: tuple(bins.labels) for column, bins in self.bins.items()}

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows, with bins instead of numbers."""
        for batch in self._source.batches(columns, batch_rows):
            arrays = [
                self._labelled(name, batch.column(name)) if name in self.bins else batch.column(name)
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self.schema.field(name) for name in columns]))

    def _resolved(self, column: str, given: Bins | Quantiles) -> Bins:
        if isinstance(given, Bins):
            return given
        self.warnings.append(WARNED.format(column=column))
        self.said.append(SAID.format(column=column, factor=math.exp(EDGES_EPSILON), epsilon=EDGES_EPSILON))
        parts = [_numbers(batch.column(column)) for batch in self._source.batches([column])]
        numbers = np.concatenate(parts) if parts else np.zeros(0)
        keys = self._keys or Keystream(Secret.generate(), "bins")
        # Draws depend on the numbers too: under one key another table gets fresh ones, and no difference tells a row.
        digest = hashlib.sha256(np.sort(numbers).tobytes()).hexdigest()
        words = keys.subkey("quantiles", column, digest).words(0, given.count - 1)
        whole = pa.types.is_integer(self._source.schema.field(column).type)
        return given.bins(numbers, (words >> np.uint64(11)).astype(np.float64) * 2.0**-53, whole=whole)

    def _labelled(self, column: str, values: pa.Array) -> pa.Array:
        numbers = _numbers(values)
        bins = self.bins[column]
        places = bins.places(numbers)
        outside = (places < 0) & ~np.isnan(numbers)
        if outside.any():
            raise TableError(
                f"The column {column!r} holds numbers outside its bins, which go from {bins.edges[0]:g} to "
                f"{bins.edges[-1]:g}. Fix: widen the first or the last bin."
            )
        return pa.array(bins.labels).take(pa.array(places, mask=places < 0))


def _numbers(values: pa.Array) -> np.ndarray:
    """Numbers as floats, missing as NaN."""
    return pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
