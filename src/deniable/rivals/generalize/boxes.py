"""The boxes of generalized groups: what the rows of a group have in common, column by column.

One line per group. A column that is measured has ``NAME low``, ``NAME high`` and ``NAME missing`` (rows in which it is
missing); any other has ``NAME values``, the list of its values that occur, missing among them. Boxes are as tight as
the rows allow, and no two overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Bools, Ints
from deniable.engines.base import CELL
from deniable.rivals.generalize.axes import Axis, places_of

LOW, HIGH, MISSING, VALUES, ROWS = " low", " high", " missing", " values", "rows"
SHOWN = 12  # values of a set that are written out
FLAGS_AT_ONCE = 2**24


def box_table(axes: Mapping[str, Axis], groups: Ints) -> pa.Table:
    """The boxes of groups 0, 1, .., none of which is empty."""
    number = int(groups.max(initial=-1)) + 1
    columns: dict[str, pa.Array] = {CELL: pa.array(np.arange(number))}
    for name, axis in axes.items():
        if axis.kind == "listed":
            columns[name + VALUES] = _lists(axis, groups, number)
        else:
            columns |= _ends(name, axis, groups, number)
    columns[ROWS] = pa.array(np.bincount(groups, minlength=number))
    return pa.table(columns)


def _lists(axis: Axis, groups: Ints, number: int) -> pa.Array:
    size = len(axis.values) + 1
    pairs = np.unique(groups * size + axis.codes)
    offsets = np.searchsorted(pairs, np.arange(number + 1) * size)
    known = pa.concat_arrays([axis.values, pa.nulls(1, axis.values.type)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), known.take(pa.array(pairs % size)))


def _ends(name: str, axis: Axis, groups: Ints, number: int) -> dict[str, pa.Array]:
    size = len(axis.values)
    there = axis.codes < size
    low, high = np.full(number, size), np.full(number, -1)
    np.minimum.at(low, groups[there], axis.codes[there])
    np.maximum.at(high, groups[there], axis.codes[there])
    none = high < 0
    return {
        name + LOW: axis.values.take(pa.array(low, mask=none)),
        name + HIGH: axis.values.take(pa.array(high, mask=none)),
        name + MISSING: pa.array(np.bincount(groups[~there], minlength=number)),
    }


def box_texts(boxes: pa.Table, name: str) -> pa.Array:
    """A column of boxes as text: ``17..25``, ``{a, b}``, ``*`` for everything, a single value as itself."""
    if name + VALUES in boxes.column_names:
        lists = boxes[name + VALUES].to_pylist()
        every = len({value for own in lists for value in own})
        return pa.array([_set_text(own, every) for own in lists], pa.string())
    low, high = boxes[name + LOW].to_pylist(), boxes[name + HIGH].to_pylist()
    missing = boxes[name + MISSING].to_pylist()
    ends = [value for value in (*low, *high) if value is not None]
    whole = (min(ends), max(ends), any(missing)) if ends else None
    texts = [_range_text(*own, (*own[:2], own[2] > 0) == whole) for own in zip(low, high, missing, strict=True)]
    return pa.array(texts, pa.string())


def _set_text(values: list[Any], every: int) -> str | None:
    if len(values) == 1:
        return None if values[0] is None else str(values[0])
    if len(values) == every:
        return "*"
    if len(values) > SHOWN:
        return f"{{{_text(values[0])}, .., {_text(values[-1])}: {len(values)} values}}"
    return f"{{{', '.join(map(_text, values))}}}"


def _range_text(low: Any, high: Any, missing: int, everything: bool) -> str | None:
    if low is None:
        return None
    if low == high and not missing:
        return str(low)
    if everything:
        return "*"
    between = str(low) if low == high else f"{low}..{high}"
    return f"{between} or missing" if missing else between


def _text(value: Any) -> str:
    return "missing" if value is None else str(value)


def cells_of(boxes: pa.Table, table: pa.Table) -> Ints:
    """For each row of a table with the same public columns, the box that holds it: what someone does who links.

    Boxes do not overlap, so there is at most one; -1 where there is none.
    """
    names = [name.removesuffix(end) for name in boxes.column_names for end in (LOW, VALUES) if name.endswith(end)]
    names = [name for name in names if name in table.column_names]
    box = np.full(table.num_rows, -1, dtype=np.int64)
    step = max(1, FLAGS_AT_ONCE // max(boxes.num_rows, 1))
    for start in range(0, table.num_rows, step):
        piece = table.slice(start, step)
        inside = np.ones((piece.num_rows, boxes.num_rows), dtype=bool)
        for name in names:
            inside &= _inside(boxes, name, piece[name].combine_chunks())
        some = inside.any(axis=1)
        box[start : start + step][some] = inside.argmax(axis=1)[some]
    return box


def _inside(boxes: pa.Table, name: str, column: pa.Array) -> Bools:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if name + VALUES in boxes.column_names:
        lists = boxes[name + VALUES].to_pylist()
        place = {value: i for i, value in enumerate(dict.fromkeys(value for own in lists for value in own))}
        member = np.zeros((len(place) + 1, len(lists)), dtype=bool)  # the last line: a value of no box
        for box, own in enumerate(lists):
            member[[place[value] for value in own], box] = True
        inside: Bools = member[[place.get(value, len(place)) for value in column.to_pylist()]]
        return inside
    low, high = (places_of(boxes[name + end].combine_chunks()) for end in (LOW, HIGH))
    own = places_of(column)
    here = (own[:, None] >= low) & (own[:, None] <= high)
    there: Bools = np.where(np.isnan(own)[:, None], boxes[name + MISSING].to_numpy() > 0, here)
    return there
