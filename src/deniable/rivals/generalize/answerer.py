"""Counts from generalized groups: the rows of a box are taken to lie evenly in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Bools, Floats
from deniable.core.errors import QuestionError
from deniable.core.manifest import Manifest
from deniable.engines.base import CELL
from deniable.engines.batch.values import lookup
from deniable.estimation.estimate import Estimate
from deniable.estimation.predicates import Between, Leaf, Not, compare, comparing, require_known
from deniable.estimation.question import Question
from deniable.rivals.base import CountsOnly, holds_for, places_in
from deniable.rivals.generalize import boxes
from deniable.rivals.generalize.axes import kind_of, places_of
from deniable.rivals.generalize.estimate import BoxCounts, Ranges, Sets


class InBoxes(CountsOnly):
    """Answers from rows of which only the box is known: each condition holds for a share of every box.

    Where rows do not lie evenly in their boxes the estimate is biased, and nothing in the release says by how much.
    """

    method: ClassVar[str]

    def __init__(self, manifest: Manifest, table: pa.Table, groups: pa.Table) -> None:
        super().__init__(manifest)
        self._table, self._groups = table, groups

    def estimate(self, question: Question) -> Estimate:
        leaves, wanted = self.split(question)
        share = np.ones(self._groups.num_rows)
        for leaf in leaves:
            share *= share_of(self._groups, leaf)
        value, variance, most = self.counted(share, wanted)
        error = float(np.sqrt(variance))
        return Estimate(value, error, question.options.confidence, 0.0, most, self.method)

    @abstractmethod
    def counted(self, share: Floats, wanted: Bools) -> tuple[float, float, float]:
        """A count of some values in shares of the boxes: its estimate, its variance, and the most that it can be."""


class BoxesAnswerer(InBoxes):
    """Answers from rows with true values, and the boxes of their groups.

    The standard error holds if a group's rows lie evenly in its box, independently of each other and of the sensitive
    value.
    """

    method = "uniform in boxes"

    def counted(self, share: Floats, wanted: Bools) -> tuple[float, float, float]:
        largest = float(self._counts.rows[wanted[self._counts.value]].sum())
        return *self._counts.count(share, wanted), largest

    @cached_property
    def _counts(self) -> BoxCounts:
        part = self.manifest.parts[0]
        codes = places_in(part, self._table)
        return BoxCounts.of_codes(self._table[CELL].to_numpy(), codes, part.m, self._groups.num_rows)


def share_of(groups: pa.Table, leaf: Leaf) -> Floats:
    """The share of each box's rows that satisfies a condition on a public column."""
    if leaf.column + boxes.VALUES in groups.column_names:
        sets, values = sets_of(groups, leaf.column)
        require_known(leaf.column, values.drop_null(), leaf.named, sensitive=False)
        return sets.share(holds_for(leaf, values))
    ranges = ranges_of(groups, leaf.column)
    kind = groups.schema.field(leaf.column + boxes.LOW).type
    with comparing(leaf.column, kind):
        return ranges.share(_covered(ranges, kind, leaf.condition, leaf.column), leaf.missing)


def ranges_of(groups: pa.Table, name: str) -> Ranges:
    """A measured column of the boxes."""
    low, high = (places_of(groups[name + end].combine_chunks()) for end in (boxes.LOW, boxes.HIGH))
    missing = groups[name + boxes.MISSING].to_numpy() / groups[boxes.ROWS].to_numpy()
    return Ranges(low, high, missing, kind_of(groups.schema.field(name + boxes.LOW).type) == "whole")


def sets_of(groups: pa.Table, name: str) -> tuple[Sets, pa.Array]:
    """A listed column of the boxes, and the values that its positions stand for; the last is missing."""
    lists = groups[name + boxes.VALUES].combine_chunks()
    lists = lists if isinstance(lists, pa.Array) else pa.concat_arrays(lists.chunks)
    flat = lists.flatten()
    known = pc.unique(flat.drop_null())
    values = pa.concat_arrays([known, pa.nulls(1, flat.type)])
    place = lookup(flat, values)
    assert place is not None
    box = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
    return Sets(box, place.astype(np.int64), len(lists)), values


def _covered(ranges: Ranges, kind: pa.DataType, condition: Any, column: str) -> Floats:
    """The share of each box that a condition covers, missing rows apart."""
    if isinstance(condition, Not):
        return 1.0 - _covered(ranges, kind, condition.condition, column)
    if isinstance(condition, Between):
        intervals = [[_place(kind, condition.low), _place(kind, condition.high)]]
    else:
        several = isinstance(condition, Iterable) and not isinstance(condition, str | bytes | Mapping)
        places = {_place(kind, value) for value in (condition if several else [condition]) if value is not None}
        intervals = [[place, place] for place in sorted(places)]
    if not ranges.whole:
        _require_width(ranges, intervals, column)
    return ranges.covered(intervals)


def _require_width(ranges: Ranges, intervals: list[list[float]], column: str) -> None:
    """Refuse single numbers inside a box: of no width, they would be nobody's for certain."""
    for low, high in intervals:
        if low == high and ((ranges.low <= low) & (low <= ranges.high) & (ranges.low < ranges.high)).any():
            raise QuestionError(
                f"Of {column!r} ranges are published, which do not tell how many rows have exactly {low:g}. Fix: ask "
                f"for a range, {{{column!r}: dn.between(..)}}."
            )


def _place(kind: pa.DataType, literal: Any) -> float:
    """Where a literal stands on a column's axis; one that cannot be compared with it is refused."""
    compare("==", pa.array([], kind), literal)
    if pa.types.is_temporal(kind):
        return float(places_of(pa.array([pa.scalar(literal).cast(kind).as_py()], kind))[0])
    return float(literal)
