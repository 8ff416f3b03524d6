"""Levels: how public columns are read by a model, and the keys of their combinations (mathematics 14.1).

Levels are made from public columns alone, so they cost nothing: an ordered column becomes bands of about as many rows,
of any other one the values too rare for the noise share a level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from deniable.core.learned import Coding, LearnedTable
from deniable.core.values import Counts, Ints, Words
from deniable.learned.measuring import FINE, RARE, Levels, bands

FEW = 10  # values of an ordered column up to which each has its own level, and near ones nothing in common
EXACT = 2**62  # combinations up to which a key is the number of its combination
MOST_NAMED = 4096  # values of a column that have a level of their own


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """The distinct values of a public column in their order, without missing, and how many rows each has."""

    name: str
    values: pa.Array
    rows: Ints
    missing: int


def coding_of(column: ColumnCounts, noise: float) -> Coding:
    """How a column is read: values with fewer rows than twelve standard deviations of noise share a level."""
    kind = column.values.type
    if is_ordered(kind) and len(column.values) > FEW:
        band = bands(column.rows.astype(np.float64), FINE)
        first = np.flatnonzero(np.diff(band)) + 1
        marks = column.values.take(pa.array(first))
        return Coding(column.name, str(kind), True, tuple(marks.to_pylist()), column.missing > 0)
    least = np.sort(column.rows)[-MOST_NAMED] if len(column.rows) > MOST_NAMED else 0
    named = column.rows >= max(RARE * noise, least)
    if (~named).sum() == 1:  # one rare value alone has nobody to share a level with
        named[:] = True
    marks = column.values.filter(pa.array(named))
    return Coding(column.name, str(kind), False, tuple(marks.to_pylist()), column.missing > 0)


def is_ordered(kind: pa.DataType) -> bool:
    """Whether values of a type that are near each other have something in common."""
    t = pa.types
    tests = (t.is_integer, t.is_floating, t.is_decimal, t.is_date, t.is_timestamp, t.is_time)
    return any(test(kind) for test in tests)


def level_codes(coding: Coding, column: pa.Array | pa.ChunkedArray) -> Ints:
    """The level of every row."""
    if isinstance(column, pa.ChunkedArray):
        pieces = [level_codes(coding, chunk) for chunk in column.chunks]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    if pa.types.is_dictionary(column.type):
        known = np.append(level_codes(coding, column.dictionary), len(coding.marks) + int(coding.missing))
        places = column.indices.cast(pa.int64()).fill_null(len(column.dictionary))
        return known[places.to_numpy(zero_copy_only=False)]
    return _ordered(coding, column) if coding.ordered else _named(coding, column)


def _ordered(coding: Coding, column: pa.Array) -> Ints:
    numbers, gone = as_numbers(column)
    edges, _ = as_numbers(pa.array(list(coding.marks), column.type))
    levels = np.searchsorted(edges, numbers, side="right").astype(np.int64)
    levels[gone] = len(coding.marks) + int(coding.missing)
    return levels


def _named(coding: Coding, column: pa.Array) -> Ints:
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    marks = pa.array(list(coding.marks), column.type)
    levels: Ints = pc.index_in(column, value_set=marks).fill_null(len(marks)).to_numpy(zero_copy_only=False)
    levels = levels.astype(np.int64)
    if column.null_count:
        levels[pc.is_null(column).to_numpy(zero_copy_only=False)] = len(marks) + int(coding.missing)
    return levels


def as_numbers(column: pa.Array) -> tuple[Any, Any]:
    """Numbers, dates and times as numbers in their order, and which rows are missing."""
    t, kind = pa.types, column.type
    if t.is_date32(kind) or t.is_time32(kind):
        column = column.cast(pa.int32()).cast(pa.int64())
    elif t.is_temporal(kind):
        column = column.cast(pa.int64())
    elif not t.is_integer(kind):
        column = column.cast(pa.float64())
    gone = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False), gone


def keys_of(codes: Ints, sizes: Sequence[int]) -> Words:
    """A key for each combination of levels: its number where 62 bits hold it, else a digest that is nearly one to one;
    whoever collects combinations checks that it is."""
    exact = math.prod(sizes) < EXACT
    key = np.zeros(len(codes), dtype=np.uint64)
    for place, size in enumerate(sizes):
        factor = size if exact else 0x9E3779B97F4A7C15
        key = key * np.uint64(factor) + codes[:, place].astype(np.uint64)
        if not exact:
            key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return key


def table_of(levels: Levels, codes: Ints, sizes: Sequence[int]) -> LearnedTable:
    """What is published of some levels: the columns that decide them, and the level at each of their combinations."""
    place = np.zeros(len(codes), dtype=np.int64)
    for column in levels.columns:
        place = place * sizes[column] + codes[:, column]
    at = np.full(math.prod(sizes[column] for column in levels.columns), -1, dtype=np.int64)
    at[place] = levels.codes
    return LearnedTable(levels.columns, at, None)


@dataclass(frozen=True, eq=False)
class Crossed:
    """Rows by combination of levels and by sensitive value.

    Attributes:
        keys: of the combinations, rising.
        codes: their levels [combinations, columns].
        counts: of every value [combinations, values].
    """

    keys: Words
    codes: Ints
    counts: sparse.csr_array

    @property
    def rows(self) -> Counts:
        """Of each combination."""
        return np.asarray(self.counts.sum(axis=1)).ravel().astype(np.int64)

    def of(self, levels: Ints, size: int) -> Counts:
        """A table of counts of levels by value, each combination having one level."""
        n = len(levels)
        member = sparse.csr_array((np.ones(n, np.int64), (levels, np.arange(n))), (size, n))
        counts: Counts = (member @ self.counts).toarray()
        return counts
