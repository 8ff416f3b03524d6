"""Sensitive numbers as the labels of their bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Floats
from deniable.core.bins import EDGES_EPSILON, Bins
from deniable.core.errors import ColumnError, TableError, no_column
from deniable.engines.batch.values import in_words, is_number, other_way

WARNED = (
    "The bins of {column!r} are drawn near the quantiles of the table, and published: another key gives other bins. "
    "Give edges yourself to depend on nothing."
)
SAID = (
    "The edges of the bins of {column!r} were drawn near the quantiles of the table, not by single rows: they let the "
    "odds of any belief about one person grow by a further factor of up to {factor:.3g} (epsilon {epsilon:g})."
)


def said_of(column: str) -> str:
    """What drawn edges give away, for the release to say."""
    return SAID.format(column=column, factor=math.exp(EDGES_EPSILON), epsilon=EDGES_EPSILON)


def require_numbers(columns: Sequence[str], schema: pa.Schema) -> None:
    """Refuse columns that are not there, or hold no numbers."""
    for column in columns:
        if column not in schema.names:
            raise ColumnError(no_column("bins", column, schema.names))
        kind = schema.field(column).type
        if not is_number(kind):
            raise ColumnError(
                f"bins: the column {column!r} holds {in_words(kind)}, and bins are for numbers. Fix: {other_way(kind)}."
            )


def binned_schema(schema: pa.Schema, bins: Mapping[str, Bins]) -> pa.Schema:
    """The columns' types, with text for the labels of bins."""
    return pa.schema([pa.field(field.name, pa.string()) if field.name in bins else field for field in schema])


def binned(batch: pa.RecordBatch, bins: Mapping[str, Bins]) -> pa.RecordBatch:
    """A batch with bins instead of numbers."""
    arrays = [
        _labelled(name, column, bins[name]) if name in bins else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=binned_schema(batch.schema, bins))


def numbers_in(values: pa.Array) -> Floats:
    """Numbers as floats of 64 bits, by the digits that they are written with, missing as NaN.

    Arrow's way from decimals to floats is off by a last digit at times, and 0.7 in 32 bits is below an edge of 0.7.
    """
    if pa.types.is_decimal(values.type) or pa.types.is_float32(values.type):
        values = values.cast(pa.string())
    numbers: Floats = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _labelled(column: str, values: pa.Array, bins: Bins) -> pa.Array:
    numbers = numbers_in(values)
    places = bins.places(numbers)
    outside = (places < 0) & ~np.isnan(numbers)
    if outside.any():
        raise TableError(
            f"The column {column!r} holds numbers outside its bins, which go from {bins.edges[0]:g} to "
            f"{bins.edges[-1]:g}. Fix: widen the first or the last bin."
        )
    return pa.array(bins.labels).take(pa.array(places, mask=places < 0))
