"""Recodings of numbers: bands, multiples and limits, by the decimals that people write."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.errors import OptionError, TableError
from deniable.core.numbers import as_written
from deniable.core.recode import Bands, Bottom, Edges, Snap, Top
from deniable.engines.batch.binning import numbers_in

LARGEST_WHOLE = 2**62


def number_recoded(column: str, array: pa.Array, step: Bands | Edges | Snap | Top | Bottom) -> pa.Array:
    """A column of numbers after a step."""
    if isinstance(step, Bands | Edges):
        return _in_bands(column, array, step)
    return _snap(column, array, step) if isinstance(step, Snap) else _limited(array, step)


def _limited(array: pa.Array, step: Top | Bottom) -> pa.Array:
    kind, limit = array.type, pa.scalar(float(step.limit))
    if pa.types.is_decimal(kind):
        array = pa.array(numbers_in(array), mask=np.asarray(array.is_null()))
    elif pa.types.is_integer(kind):
        whole = np.iinfo(kind.to_pandas_dtype())
        limit = pa.scalar(min(max(int(step.limit), int(whole.min)), int(whole.max)), kind)
    return pc.if_else((pc.greater if isinstance(step, Top) else pc.less)(array, limit), limit, array)


def _snap(column: str, array: pa.Array, step: Snap) -> pa.Array:
    gone = np.asarray(array.is_null())
    if not pa.types.is_integer(array.type):
        return pa.array(snapped(numbers_in(array), step.grid), mask=gone)
    grid = int(step.grid)
    return pa.array((_whole(column, array) + grid // 2) // grid * grid, mask=gone)


def snapped(numbers: Floats, grid: float) -> Floats:
    """Multiples in decimals; so are halves, of which the larger is taken: 0.15 / 0.1 is less than 1.5."""
    return as_written(np.floor(np.round(numbers / grid, 9) + 0.5) * grid, grid)


def _whole(column: str, array: pa.Array) -> Ints:
    """Whole numbers, missing as 0, with room for what is added to them."""
    known = array.fill_null(0)
    if np.abs(numbers_in(known)).max(initial=0) > LARGEST_WHOLE:
        raise TableError(f"recode: {column!r} holds whole numbers beyond 2^62. Fix: top or bottom before.")
    numbers: Ints = known.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _in_bands(column: str, array: pa.Array, step: Bands | Edges) -> pa.Array:
    numbers = numbers_in(array)
    known = ~np.isnan(numbers)
    if np.isinf(numbers).any():
        raise TableError(f"recode: {column!r} holds infinite numbers, which no band holds. Fix: top before bands.")
    if isinstance(step, Edges):
        between = np.searchsorted(np.array(step.edges, np.float64), numbers, side="right")
        return pa.array(step.labels).take(pa.array(between, mask=~known))
    if pa.types.is_integer(array.type) and isinstance(step.width, int) and isinstance(step.start, int):
        places: Ints = (_whole(column, array) - step.start) // step.width
    else:
        places = _floored(np.where(known, numbers, step.start), step)
    used, own = np.unique(places, return_inverse=True)
    return pa.array([step.label(int(place)) for place in used], pa.string()).take(pa.array(own, mask=~known))


def _floored(numbers: Floats, step: Bands) -> Ints:
    """The band of each number, by the edges that its label prints: 0.3 lies in [0.3, 0.4), whatever 0.3 / 0.1 is."""
    places = np.floor((numbers - step.start) / step.width)
    if np.abs(places).max(initial=0) > LARGEST_WHOLE:
        raise OptionError(f"bands of {step.width:g} are too narrow for these numbers. Fix: a larger width.")
    used, own = np.unique(places, return_inverse=True)
    low, high = (np.array([step.edge(int(place) + more) for place in used], np.float64)[own] for more in (0, 1))
    moved = _reaches(numbers, high).astype(np.int64) - ~_reaches(numbers, low)
    return places.astype(np.int64) + moved


def _reaches(numbers: Floats, edges: Floats) -> Bools:
    """Whether numbers are at an edge or above it, in the 15 digits that it is printed with."""
    reached: Bools = numbers >= edges - 1e-15 * np.abs(edges)
    return reached
