"""The engine's perturbation for a single row, where it was collected: the same thresholds, one 64-bit word a column."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.channel import SCALE, Channel
from deniable.core.errors import ColumnError, TableError, shortened
from deniable.core.part import Part
from deniable.core.replace import NumberRange
from deniable.engines.batch.kernel import alias_table
from deniable.engines.batch.ranges import RangeEncoder, RangeKernel

Draw = Callable[[], int]


def respond(row: Mapping[str, Any], parts: Sequence[Part], draw: Draw | None = None) -> dict[str, Any]:
    """Perturb one row as the engine would, where it was collected: the other columns stay.

    Args:
        row: column -> value, holding every column of the parts.
        parts: of a manifest, with one column each.
        draw: a source of 64-bit numbers; by default the operating system's.
    """
    draw = draw or (lambda: secrets.randbits(64))
    answer = dict(row)
    for part in parts:
        (column,) = part.columns
        if column not in row:
            raise ColumnError(f"The row has no value for {column!r}. Fix: give None where it is missing.")
        answer[column] = _respond(column, row[column], part, draw())
    return answer


def _respond(column: str, value: Any, part: Part, word: int) -> Hashable:
    if value is None and part.missing == "exempt":
        return None
    if part.range is not None:
        return _respond_range(column, value, part.range, word)
    if value not in part.domain:
        raise TableError(f"{shortened(value)} is not in the domain of the column {column!r}. Fix: one of its values.")
    channel = part.channels[0]
    place = part.domain.index(value)
    if word >> 32 < int(channel.keep[place]):
        return part.domain[place]
    return part.domain[_replacement(channel, word & 0xFFFFFFFF)]


def _replacement(channel: Channel, low: int) -> int:
    if channel.is_uniform:
        return low * channel.m >> 32
    threshold, choice = alias_table(channel.replace)
    capacity = SCALE // len(threshold)
    bucket, offset = divmod(low, capacity)
    return int(choice[bucket][int(offset >= threshold[bucket])])


def _respond_range(column: str, value: Any, grid: NumberRange, word: int) -> Hashable:
    kind = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}[grid.kind]
    decimal = isinstance(value, Decimal) and grid.kind == "number"
    value = float(value) if decimal else value
    encoder = RangeEncoder(column, kind, grid)
    try:
        batch = pa.RecordBatch.from_arrays([pa.array([value], kind)], names=[column])
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise TableError(f"{shortened(value)} is no {grid.kind}, which the column {column!r} holds.") from None
    codes = RangeKernel(grid).perturb(encoder.encode(batch), np.array([word], np.uint64))
    result: Hashable = encoder.decode(codes)[0][0].as_py()
    return Decimal(repr(result)) if decimal and result is not None else result
