"""Numbers and dates replaced within a range, on a grid, and the intervals that their adversary looks at."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.channels import Channel, Kind, NumberRange, Replace
from deniable.core.errors import ColumnError, OptionError, TableError, option, worded
from deniable.core.exact import SCALE
from deniable.core.values import Bools, Codes, Ints
from deniable.tables.base import RangeScan
from deniable.tables.encoding import decoded, plain_type
from deniable.tables.sampler import Kernel, WholeDomain
from deniable.tables.transforms import numbers_in

# -- Numbers and dates replaced within a range, on a grid --------------------------------------------------------------
# A draw is one 64-bit word: its high 32 bits are the coin, its low 32 bits, scaled to the number of points, the
# replacement.


EPOCH = datetime.date(1970, 1, 1).toordinal()
FINE_STEPS = 2**16  # the grid of numbers that have no common number of decimals
MOST_STEPS = 16 * FINE_STEPS
DECIMALS = range(7)
MOST_DIGITS = 38  # of decimals of 128 bits
LARGEST_EXACT = 2**53  # the whole numbers up to here are doubles


class RangeEncoder:
    """Numbers as positions on a grid, and back; missing is one more point, or an exempt code after all points."""

    def __init__(self, column: str, dtype: pa.DataType, grid: NumberRange, *, exempt: bool = False) -> None:
        self.columns = [column]
        self.types = [dtype]
        self.range = grid
        self.exempt = exempt
        self.m = grid.points
        self.dtype = np.dtype(np.uint32)

    def with_range(self, grid: NumberRange) -> RangeEncoder:
        """The same for the range with its coin."""
        return RangeEncoder(self.columns[0], self.types[0], grid, exempt=self.exempt)

    def encode(self, batch: pa.RecordBatch) -> Codes:
        """The grid point of each row."""
        name = self.columns[0]
        numbers, gone = numbers_of(name, batch.column(name), self.range.kind)
        require_inside(name, numbers, gone, self.range)
        if gone.any() and not (self.exempt or self.range.missing):
            raise _missing(name)
        places = np.zeros(len(numbers), np.int64)
        places[~gone] = self.range.position(numbers[~gone])
        places[gone] = self.range.grid  # missing as a point, or the exempt code: the range has no such point then
        return places.astype(self.dtype)

    def exempt_mask(self, codes: Codes) -> Bools | None:
        return codes == self.range.grid if self.exempt else None

    def decode(self, codes: Codes) -> list[pa.Array]:
        """The numbers at grid points, in the column's type."""
        gone = codes == self.range.grid
        numbers = self.range.numbers(np.where(gone, 0, codes))
        mask = gone if gone.any() else None
        if self.range.kind == "date":
            days = pa.array((numbers - EPOCH).astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())
            return [days.cast(self.types[0])]
        return [pa.array(numbers, mask=mask).cast(self.types[0])]


class RangeKernel(Kernel):
    """Keeps a grid point with the coin, else draws one: floor(low points / 2^32)."""

    def __init__(self, grid: NumberRange) -> None:
        self.cells, self._largest, self._guides = 1, grid.points - 1, {}
        self._path = WholeDomain(grid.keep, grid.points)


class RangeScanner:
    """Checks that a column's values lie in the declared range, and finds the decimals of its grid, batch by batch."""

    def __init__(self, column: str, dtype: pa.DataType, replace: Replace) -> None:
        assert replace.low is not None
        assert replace.high is not None
        self._column, self._replace = column, replace
        self._dtype = plain_type(dtype)
        self._kind = kind_of(column, self._dtype, replace)
        self._ends = NumberRange(self._kind, replace.low, replace.high, _width(replace), keep=0)
        self._fitting = list(DECIMALS)
        self._rows = self._lost = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        numbers, gone = numbers_of(self._column, batch.column(self._column), self._kind)
        require_inside(self._column, numbers, gone, self._ends)
        if self._kind == "number" and self._replace.step is None:
            self._fitting = [d for d in self._fitting if _has_decimals(numbers[~gone], d, self._dtype)]
        self._rows += len(numbers)
        self._lost += int(gone.sum())

    def merge(self, other: RangeScanner) -> None:
        """Take in the rows that another scanner of the same column has seen."""
        self._fitting = [d for d in self._fitting if d in other._fitting]
        self._rows += other._rows
        self._lost += other._lost

    def scan(self, missing: str) -> RangeScan:
        """What was found."""
        if self._lost and missing == "refuse":
            raise _missing(self._column)
        if self._rows == 0:
            raise TableError(
                "The table has no rows: there is nothing to publish. Fix: a file with rows below its header."
            )
        step = self._replace.step
        if step is None:
            step = _step(self._kind, self._replace, self._fitting, pa.types.is_decimal(self._dtype))
        with_missing = bool(self._lost) and missing == "value"
        grid = NumberRange(self._kind, self._ends.low, self._ends.high, step, 0, with_missing)
        kind = _published_type(self._dtype)
        _require_exact(self._column, kind, grid)
        encoder = RangeEncoder(self._column, kind, grid, exempt=missing == "exempt")
        return RangeScan(grid, self._rows, encoder)


def _published_type(dtype: pa.DataType) -> pa.DataType:
    """Points of a grid are decimals, which shorter floats do not hold: 0.3 would be 0.30000001. Of the types of
    decimals Arrow looks up one."""
    if pa.types.is_decimal(dtype):
        return pa.decimal128(min(dtype.precision, MOST_DIGITS), dtype.scale)
    return pa.float64() if pa.types.is_floating(dtype) else dtype


def kind_of(column: str, dtype: pa.DataType, replace: Replace) -> Kind:
    """What kind of range a column of this type can have, or an error that says what to do."""
    t = pa.types
    dated = isinstance(replace.low, datetime.date)
    if t.is_timestamp(dtype):
        zone = f" with the time zone {dtype.tz}" if dtype.tz else ""
        raise ColumnError(
            f"The column {column!r} holds times{zone}; a range holds whole days. A time zone decides which day it is, "
            "so say it yourself. Fix: convert the column to dates in the time zone that you mean."
        )
    if t.is_date(dtype) != dated:
        needs = "dates, such as datetime.date(2020, 1, 31)" if t.is_date(dtype) else "numbers"
        raise ColumnError(f"The column {column!r} has the type {dtype}: low and high must be {needs}.")
    if t.is_date(dtype):
        kind: Kind = "date"
    elif t.is_integer(dtype):
        kind = "integer"
    elif t.is_floating(dtype):
        return "number"
    elif t.is_decimal(dtype):
        _require_decimals(column, dtype, replace)
        return "number"
    else:
        raise ColumnError(
            f"The column {column!r} has the type {dtype}, which has no range: numbers and dates do. "
            "Fix: convert it, or leave low and high out to perturb it as categories."
        )
    for name, number in (("low", replace.low), ("high", replace.high), ("step", replace.step)):
        if isinstance(number, float) and not number.is_integer():
            nearest = math.ceil(number) if name == "high" else max(math.floor(number), int(name == "step"))
            raise OptionError(
                f"{name} = {number} is not whole, but the column {column!r} holds {kind}s. Fix: {name}={nearest}, or "
                "convert the column to floats."
            )
    if kind == "integer":
        _require_type_holds(column, dtype, replace)
    return kind


def _require_type_holds(column: str, dtype: pa.DataType, replace: Replace) -> None:
    """Replacements come from the whole range, so the column's type must hold all of it."""
    whole = np.iinfo(dtype.to_pandas_dtype())
    for name, number in (("low", replace.low), ("high", replace.high)):
        assert isinstance(number, int | float)
        if not whole.min <= number <= whole.max:
            raise OptionError(
                f"{name} = {number} does not fit the column {column!r}, whose type {dtype} holds {whole.min} to "
                f"{whole.max}. Fix: a narrower range, or convert the column to int64."
            )


def _require_exact(column: str, dtype: pa.DataType, grid: NumberRange) -> None:
    """Points are doubles, which must tell them apart and hold the ends as they are."""
    if isinstance(grid.low, datetime.date) or isinstance(grid.high, datetime.date):
        return
    end = max(abs(grid.low), abs(grid.high))
    if (not pa.types.is_floating(dtype) and end > LARGEST_EXACT) or np.spacing(float(end)) > grid.step:
        raise OptionError(
            f"The range {grid.low} to {grid.high} of the column {column!r} in steps of {grid.step:g} needs more than "
            "the 53 bits of the numbers that it is computed in. Fix: a larger step=, or subtract a constant from the "
            "column."
        )


def _require_decimals(column: str, dtype: pa.DataType, replace: Replace) -> None:
    """The grid must consist of decimals that the column's type holds."""
    most = 10.0 ** (min(dtype.precision, MOST_DIGITS) - dtype.scale)
    for name, number in (("low", replace.low), ("high", replace.high), ("step", replace.step)):
        if number is None:
            continue
        assert isinstance(number, int | float)
        if abs(number) >= most or round(number, dtype.scale) != number:
            raise OptionError(
                f"{name} = {number} does not fit the column {column!r}, whose type {dtype} holds numbers below "
                f"{most:g} with {dtype.scale} decimals. Fix: such a {name}=, or convert the column to floats."
            )


def numbers_of(column: str, values: pa.Array, kind: Kind) -> tuple[npt.NDArray[Any], Bools]:
    """A column as numbers (dates as ordinals) and which rows are missing; NaN is missing, infinities are refused."""
    values = decoded(values)
    gone = np.asarray(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=bool)
    if kind == "number":
        numbers = numbers_in(values)
        if np.isinf(numbers).any():
            raise TableError(
                f"The column {column!r} holds infinite numbers, which no range holds. Fix: make them missing, or "
                "remove those rows."
            )
        return numbers, gone
    if kind == "date":
        days = values.cast(pa.date32()).cast(pa.int32())
        return pc.fill_null(days, 0).to_numpy(zero_copy_only=False).astype(np.int64) + EPOCH, gone
    try:
        return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), gone
    except pa.ArrowInvalid:
        raise TableError(
            f"The column {column!r} holds whole numbers beyond 64 bits. Fix: convert it to floats."
        ) from None


def require_inside(column: str, numbers: npt.NDArray[Any], gone: Bools, grid: NumberRange) -> None:
    """Refuse values outside the declared range: kept, they would stand out from all replacements."""
    ends = [end.toordinal() if isinstance(end, datetime.date) else end for end in (grid.low, grid.high)]
    if (((numbers < ends[0]) | (numbers > ends[1])) & ~gone).any():
        raise TableError(
            f"The column {column!r} holds values outside the declared range {grid.low} to {grid.high}. Fix: widen "
            f"{worded('low= and high=', 'LOW..HIGH')}, or cut the values to the range first."
        )


def _missing(column: str) -> TableError:
    return TableError(
        f"The column {column!r} has missing values, and missing = 'refuse'. Fix: remove those rows, or "
        f"{option('missing', 'value')} (a value like any other) or {option('missing', 'exempt')} (published as "
        "missing)."
    )


def _width(replace: Replace) -> float:
    low, high = replace.low, replace.high
    if isinstance(low, datetime.date) and isinstance(high, datetime.date):
        return float((high - low).days)
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    return float(high - low)


def _step(kind: Kind, replace: Replace, fitting: Sequence[int], decimal: bool) -> float:
    """1, or the coarsest decimals that all numbers have, or a fine grid where they have none in common.

    A column of decimals stays one: the finest power of ten that makes no more than a million steps.
    """
    if kind != "number":
        return 1
    width = _width(replace)
    assert isinstance(replace.low, int | float)
    for d in fitting:
        if _has_decimals(np.array([float(replace.low)]), d, pa.float64()) and width * 10**d < MOST_STEPS:
            return float(f"1e-{d}")
    return 10.0 ** math.ceil(math.log10(width / MOST_STEPS)) if decimal else width / FINE_STEPS


def _has_decimals(numbers: npt.NDArray[Any], d: int, dtype: pa.DataType) -> bool:
    scaled = numbers * 10.0**d
    tolerance = (1e-9 if dtype == pa.float64() else 1e-5) * np.maximum(1.0, np.abs(scaled))
    return bool((np.abs(scaled - np.rint(scaled)) <= tolerance).all())


# -- Ranges of numbers as their adversary looks at them: in intervals, each of them a value ----------------------------
# With one coin, joining values leaves a coin with joined replacing masses: nothing is approximated.


MOST_POINTS = 100  # a range of more is looked at in intervals
INTERVALS = 50


@dataclass(frozen=True, eq=False)
class IntervalEncoder:
    """A column of numbers as the places of intervals; missing after the last."""

    inner: RangeEncoder
    firsts: Ints

    @classmethod
    def of(cls, inner: RangeEncoder) -> IntervalEncoder:
        """Over the intervals of the encoder's range."""
        return cls(inner, _firsts(inner.range))

    @property
    def columns(self) -> list[str]:
        return self.inner.columns

    def encode(self, batch: pa.RecordBatch) -> Ints:
        places = self.inner.encode(batch).astype(np.int64)
        inside = np.searchsorted(self.firsts, places, side="right") - 1
        return np.where(places == self.inner.range.grid, len(self.firsts), inside).astype(np.int64)


def interval_channel(grid: NumberRange) -> Channel:
    """The channel of a range over its points, or over intervals where these are many; missing is the last value."""
    firsts = _firsts(grid)
    lasts = np.append(firsts[1:], grid.grid) - 1
    labels = [_label(grid, first, last) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
    domain: tuple[Hashable, ...] = (*labels, *([None] if grid.missing else []))
    starts = [*firsts.tolist(), grid.grid, *([grid.points] if grid.missing else [])]
    edges = np.array([-(-place * SCALE // grid.points) for place in starts], dtype=np.int64)
    return Channel(domain, np.full(len(domain), grid.keep, dtype=np.int64), np.diff(edges))


def _firsts(grid: NumberRange) -> Ints:
    if grid.grid <= MOST_POINTS:
        return np.arange(grid.grid, dtype=np.int64)
    return np.unique(np.arange(INTERVALS, dtype=np.int64) * grid.grid // INTERVALS)


def _label(grid: NumberRange, first: int, last: int) -> str:
    ends = [_shown(grid, place) for place in (first, last)]
    return ends[0] if first == last else f"{ends[0]} to {ends[1]}"


def _shown(grid: NumberRange, place: int) -> str:
    number = grid.numbers(np.array([place]))[0]
    return datetime.date.fromordinal(int(number)).isoformat() if grid.kind == "date" else f"{number:.10g}"
