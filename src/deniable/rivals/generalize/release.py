"""A generalized release: rows with ranges and true values, groups as boxes, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.engines.batch.values import lookup
from deniable.engines.local.engine import CELL
from deniable.estimation import Estimate
from deniable.estimation.estimate import normal_quantile
from deniable.estimation.predicates import Between, Leaf, Not, compare, conjunction, require_known
from deniable.rivals.anatomy.release import TwoTables, holds_for
from deniable.rivals.generalize import boxes
from deniable.rivals.generalize.axes import kind_of, places_of
from deniable.rivals.generalize.estimate import BoxCounts, Ranges, Sets

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class GeneralizedRelease(TwoTables):
    """Two tables: ``table`` (ranges, true values, group) and ``groups`` (the box of each group, and its rows)."""

    def count(self, where: Mapping[str, Any] | None = None, *, confidence: float = 0.95, **options: Any) -> Estimate:
        """Rows that satisfy ``where``: a group's rows are taken to lie evenly in its box.

        The standard error holds if they do, independently of each other and of the sensitive value; where they do not,
        the estimate is biased, and nothing in the release says by how much.
        """
        self.refuse(options)
        normal_quantile(confidence)
        share = np.ones(self.groups.num_rows)
        wanted = np.ones(len(self.manifest.domain), dtype=bool)
        for leaf in conjunction(where).parts:
            assert isinstance(leaf, Leaf)
            if leaf.column in self.manifest.parts[0].columns:
                wanted &= self.domain_mask(leaf)
            elif leaf.column in self.manifest.public_columns:
                share *= self._share(leaf, (where or {})[leaf.column])
            else:
                raise self.no_column(leaf.column)
        value, variance = self._counts.count(share, wanted)
        largest = float(self._counts.rows[wanted[self._counts.value]].sum())
        return Estimate(value, float(np.sqrt(variance)), confidence, 0.0, largest, "uniform in boxes")

    def cells_of(self, table: pa.Table) -> Ints:
        """For each row of a table with the public columns, the group whose box holds it; -1 where none does."""
        return boxes.cells_of(self.groups, table)

    @cached_property
    def _counts(self) -> BoxCounts:
        domain = self.manifest.domain
        columns = self.manifest.parts[0].columns
        shown = zip(*(self.table[name].to_pylist() for name in columns), strict=True)
        place = {value if len(columns) > 1 else (value,): i for i, value in enumerate(domain)}
        codes = np.array([place[value] for value in shown], dtype=np.int64)
        return BoxCounts.of_codes(self.table[CELL].to_numpy(), codes, len(domain), self.groups.num_rows)

    def _share(self, leaf: Leaf, condition: Any) -> Floats:
        if leaf.column + boxes.VALUES in self.groups.column_names:
            sets, values = sets_of(self.groups, leaf.column)
            require_known(leaf.column, values.drop_null(), leaf.named, sensitive=False)
            return sets.share(holds_for(leaf, values))
        ranges = ranges_of(self.groups, leaf.column)
        kind = self.groups.schema.field(leaf.column + boxes.LOW).type
        return ranges.share(_covered(ranges, kind, condition), leaf.missing)


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


def _covered(ranges: Ranges, kind: pa.DataType, condition: Any) -> Floats:
    """The share of each box that a condition covers, missing rows apart."""
    if isinstance(condition, Not):
        return 1.0 - _covered(ranges, kind, condition.condition)
    if isinstance(condition, Between):
        return ranges.covered([[_place(kind, condition.low), _place(kind, condition.high)]])
    several = isinstance(condition, Iterable) and not isinstance(condition, str | bytes | Mapping)
    asked = {_place(kind, value) for value in (condition if several else [condition]) if value is not None}
    return ranges.covered([[place, place] for place in sorted(asked)])


def _place(kind: pa.DataType, literal: Any) -> float:
    """Where a literal stands on a column's axis; one that cannot be compared with it is refused."""
    compare("==", pa.array([], kind), literal)
    if pa.types.is_temporal(kind):
        return float(places_of(pa.array([pa.scalar(literal).cast(kind).as_py()], kind))[0])
    return float(literal)
