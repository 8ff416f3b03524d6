"""The engine's perturbation for a single row, where it was collected: the same thresholds, one 64-bit word a column.

Whoever measures how long a respondent takes must not learn the value. So nothing here branches on it: a value is
compared with every value of its domain, a replacement is drawn whether or not the coin keeps, and arithmetic chooses.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core import lineup_codes
from deniable.core.arrays import Ints
from deniable.core.channel import Channel
from deniable.core.errors import ColumnError, TableError
from deniable.core.exact import SCALE
from deniable.core.lineup import LineUpDesign
from deniable.core.part import Part
from deniable.core.replace import NumberRange
from deniable.engines.batch.kernel import alias_table
from deniable.engines.batch.lineups import LineUpKernel
from deniable.engines.batch.ranges import RangeEncoder, numbers_of, require_inside
from deniable.engines.batch.values import arrow_type

Draw = Callable[[], int]
EXEMPT = -1  # the code of a missing value that is published as it is
_KINDS = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}


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
        answer[part.columns[0]] = decoded(part, perturbed(part, encoded(row, part), draw()))
    return answer


def encoded(row: Mapping[str, Any], part: Part) -> int:
    """The code of a row's value: its place in the domain, or its point of the range. No error names the value."""
    (column,) = part.columns
    if column not in row:
        raise ColumnError(f"The row has no value for {column!r}. Fix: give None where it is missing.")
    value = row[column]
    if part.exempt and value is None:
        return EXEMPT
    if part.range is not None:
        return _point(column, value, part.range)
    try:
        hits = np.fromiter((entry == value for entry in part.domain), np.int64, part.m)
    except (TypeError, ValueError):  # an array, say, which is neither equal to a value nor different from it
        hits = np.zeros(part.m, np.int64)
    if hits.sum() != 1:
        raise TableError(
            f"What the row holds is not in the domain of the column {column!r}. Fix: one of the values that the "
            "release lists."
        )
    return int(hits @ np.arange(part.m))


def _point(column: str, value: Any, grid: NumberRange) -> int:
    kind, low = _KINDS[grid.kind], grid.low
    try:
        gone = (value is None) | bool(operator.ne(value, value))  # missing, or not a number
        shown: Any = (value, low)[gone]
        if grid.kind == "number":
            shown = (operator.pos, float)[isinstance(shown, Decimal)](shown)
        array = pa.array([shown], kind)
    except (TypeError, ValueError, ArithmeticError):  # Arrow's own errors are of the first two kinds, and name values
        array = None
    if array is None:
        raise TableError(f"What the row holds for {column!r} is no {grid.kind}. Fix: give one, such as {grid.low}.")
    numbers, missing = numbers_of(column, array, grid.kind)
    require_inside(column, numbers, missing, grid)
    if gone > grid.missing:
        raise TableError(f"The column {column!r} has no missing values. Fix: a {grid.kind} of its range.")
    return int(grid.position(numbers)[0]) * (1 - gone) + grid.grid * gone


def perturbed(part: Part, code: int, word: int) -> int:
    """The code that is published for a code and a random word of 64 bits; of line-ups the number of the set.

    How long the search for a set takes depends on its point. Of the points that stand for a set none is likelier for
    one value than for another that may publish it, so the time tells nothing that the set does not.
    """
    if code == EXEMPT:
        return EXEMPT
    if part.lineups is not None:
        return int(_kernel(part.lineups).perturb(np.array([code]), np.array([word], np.uint64))[0])
    low = word & 0xFFFFFFFF
    if part.range is not None:
        keep, drawn = part.range.keep, low * part.range.points >> 32
    else:
        channel = part.channels[0]
        keep, drawn = int(channel.keep[code]), _replacement(channel, low)
    return drawn + (code - drawn) * (word >> 32 < keep)


@lru_cache(maxsize=8)
def _kernel(design: LineUpDesign) -> LineUpKernel:
    return LineUpKernel(design)


@lru_cache(maxsize=8)
def _codes(design: LineUpDesign) -> Ints:
    return lineup_codes.codes(design)


def _replacement(channel: Channel, low: int) -> int:
    if channel.is_uniform:
        return low * channel.m >> 32
    threshold, choice = alias_table(channel.replace)
    capacity = SCALE // len(threshold)
    bucket, offset = divmod(low, capacity)
    return int(choice[bucket][int(offset >= threshold[bucket])])


def decoded(part: Part, code: int) -> Any:
    """The value of a code, in the column's own type, whatever type the row had it in; of line-ups the list of values,
    or the code of a set that is too large for one."""
    if code == EXEMPT:
        return None
    if part.lineups is not None:
        if lineup_codes.is_coded(part.lineups):
            return int(_codes(part.lineups)[code])
        return [part.domain[place] for place in part.lineups.sets.members[code].tolist()]
    if part.range is None:
        return part.domain[code]
    encoder = RangeEncoder(part.columns[0], arrow_type(part.types[0]), part.range)
    return encoder.decode(np.array([code], encoder.dtype))[0][0].as_py()
