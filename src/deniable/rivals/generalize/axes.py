"""Public columns as axes: every value has a place in an order, and missing stands after the last.

Whole numbers, dates and times have their own distances (``whole``), other numbers theirs (``real``); everything else is
in the order of its sorted values, one step apart (``listed``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Codes, Floats, Ints
from deniable.core.errors import ColumnError, TableError, option
from deniable.engines.base import Dataset, Progress, no_progress
from deniable.engines.batch.columns import Encoded, coded_columns, smallest

Kind = Literal["whole", "real", "listed"]


@dataclass(frozen=True, eq=False)
class Axis:
    """One public column.

    Attributes:
        kind: how distances are measured.
        values: the distinct values in order, without missing.
        codes: for each row where its value stands; ``len(values)`` where it is missing.
        places: how far along the axis each code is; one entry more than ``values``, for missing.
        order: where each of the values stood before it was put in order.
    """

    kind: Kind
    values: pa.Array
    codes: Codes
    places: Floats
    order: Ints


def kind_of(arrow: pa.DataType) -> Kind:
    """How distances are measured in a column of this type."""
    kinds = pa.types
    if kinds.is_integer(arrow) or kinds.is_date(arrow) or kinds.is_timestamp(arrow):
        return "whole"
    return "real" if kinds.is_floating(arrow) or kinds.is_decimal(arrow) else "listed"


def places_of(values: pa.Array) -> Floats:
    """Where numbers, dates (days) and times (their unit) stand; missing becomes NaN."""
    plain = values
    if pa.types.is_date32(values.type):
        plain = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        plain = values.cast(pa.int64())
    return np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def axes_of_codes(columns: Mapping[str, Encoded]) -> dict[str, Axis]:
    """Axes of columns that are codes already, in any order of their values."""
    return {name: _axis(name, column) for name, column in columns.items()}


def axes_of_rows(
    dataset: Dataset, names: Sequence[str], rows: Ints, progress: Progress = no_progress
) -> dict[str, Axis]:
    """Columns of a dataset as axes, of some of its rows in their order; one column is decoded at a time."""
    axes: dict[str, Axis] = {}
    for name in names:
        try:
            column = coded_columns(dataset, [name], progress)[name]
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise _no_ranges(name, dataset.schema.field(name).type) from None
        axes[name] = _axis(name, _only_those(column, rows))
    return axes


def _only_those(column: Encoded, rows: Ints) -> Encoded:
    """Some rows of a column; values that none of them has are not on its axis."""
    codes = column.codes[rows]
    occurs = np.bincount(codes, minlength=column.size)[:-1] > 0
    if occurs.all():
        return Encoded(column.values, codes)
    place = np.append(np.cumsum(occurs) - 1, occurs.sum()).astype(codes.dtype)
    return Encoded(column.values.filter(pa.array(occurs)), place[codes])


def _no_ranges(name: str, kind: pa.DataType) -> ColumnError:
    return ColumnError(f"The column {name!r} of type {kind} has no ranges. Fix: {option('drop', name)}.")


def _require_written(name: str, ordered: pa.Array) -> None:
    """Refuse times that cannot be written as the end of a range: Python's years are 1 to 9999."""
    try:
        _ = [ordered[place].as_py() for place in (0, -1) if len(ordered)]
    except (OverflowError, ValueError):
        raise TableError(
            f"The column {name!r} holds times before the year 1 or after 9999, which cannot be written as the end of a "
            f"range. Fix: {option('drop', name)}, or mend them."
        ) from None


def _axis(name: str, column: Encoded) -> Axis:
    values, kind = column.values, kind_of(column.values.type)
    rank = np.full(len(values) + 1, -1, dtype=np.int64)
    if pa.types.is_floating(values.type):
        numbers = places_of(values)
        if np.isinf(numbers).any():
            raise TableError(
                f"The column {name!r} holds infinite numbers, which no range holds. Fix: {option('drop', name)}."
            )
        known = np.flatnonzero(~np.isnan(numbers))  # NaN is missing
        _, first, place = np.unique(numbers[known], return_index=True, return_inverse=True)  # 0.0 and -0.0 are one
        order, rank[known] = known[first], place
    else:
        order = _sorted(values)
        rank[order] = np.arange(len(order))
    ordered = values.take(pa.array(order))
    if pa.types.is_temporal(values.type):
        _require_written(name, ordered)
    places = np.arange(len(order) + 1.0) if kind == "listed" else _with_missing(places_of(ordered))
    codes = smallest(np.where(rank < 0, len(order), rank), len(order) + 1)[column.codes]
    return Axis(kind, ordered, codes, places, order)


def _sorted(values: pa.Array) -> Ints:
    try:
        return np.asarray(pc.sort_indices(values).to_numpy(), dtype=np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        listed: list[Any] = values.to_pylist()
        return np.array(sorted(range(len(listed)), key=lambda i: repr(listed[i])), dtype=np.int64)


def _with_missing(places: Floats) -> Floats:
    """One place more, an average step after the last."""
    step = (places[-1] - places[0]) / (len(places) - 1) if len(places) > 1 else 1.0
    return np.append(places, (places[-1] if len(places) else 0.0) + step)
