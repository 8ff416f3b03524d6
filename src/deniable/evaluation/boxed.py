"""A coded table in generalized boxes, and the share of each box that a condition of a pool covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.errors import QuestionError
from deniable.engines.batch.columns import Encoded
from deniable.engines.batch.values import lookup
from deniable.planning.pools import QuestionPool
from deniable.planning.tables import CodedTable
from deniable.rivals.generalize.answerer import ranges_of, sets_of
from deniable.rivals.generalize.axes import Axis, axes_of_codes
from deniable.rivals.generalize.boxes import box_table
from deniable.rivals.generalize.estimate import Ranges, Sets
from deniable.rivals.generalize.mondrian import mondrian


@dataclass(frozen=True, eq=False)
class Boxed:
    """Groups of some rows of a table.

    Attributes:
        axes: the public columns of these rows.
        groups: the group of each of them.
        boxes: one line per group, as a release publishes it.
    """

    axes: Mapping[str, Axis]
    groups: Ints
    boxes: pa.Table

    @classmethod
    def of(cls, table: CodedTable, rows: Ints, k: int, l: int) -> Boxed:
        """Groups of at least k of these rows, in which no value has more than 1/l."""
        axes = axes_of_codes({name: Encoded(own.values, own.codes[rows]) for name, own in table.columns.items()})
        groups = mondrian(list(axes.values()), table.codes[rows], k, l)
        return cls(axes, groups, box_table(axes, groups))

    def shares(self, pool: QuestionPool) -> Iterator[Floats]:
        """For each condition of a pool the share of every box, rows lying evenly in it."""
        columns = {name: self._column(name) for name in self.axes}
        for masks in pool.masks:
            if masks is None:
                raise QuestionError(
                    "Boxes can be asked for conditions on single columns that are joined with AND, and for no others."
                )
            share = np.ones(self.boxes.num_rows)
            for name, mask in masks.items():
                share *= columns[name].share(mask)
            yield share

    def _column(self, name: str) -> _Ordered | _Listed:
        axis = self.axes[name]
        if axis.kind == "listed":
            return _Listed.of(axis, self.boxes, name)
        return _Ordered(axis, ranges_of(self.boxes, name))


@dataclass(frozen=True, eq=False)
class _Ordered:
    axis: Axis
    ranges: Ranges

    def share(self, mask: Bools) -> Floats:
        """Runs of neighbouring values that satisfy a condition are intervals, ends in."""
        holds = np.r_[False, mask[self.axis.order], False]
        first = np.flatnonzero(holds[1:-1] & ~holds[:-2])
        last = np.flatnonzero(holds[1:-1] & ~holds[2:])
        intervals = np.stack([self.axis.places[first], self.axis.places[last]], axis=1)
        return self.ranges.share(self.ranges.covered(intervals), bool(mask[-1]))


@dataclass(frozen=True, eq=False)
class _Listed:
    axis: Axis
    sets: Sets  # its values are codes of the axis

    @classmethod
    def of(cls, axis: Axis, boxes: pa.Table, name: str) -> _Listed:
        sets, values = sets_of(boxes, name)
        code = lookup(values, pa.concat_arrays([axis.values, pa.nulls(1, axis.values.type)]))
        assert code is not None
        return cls(axis, Sets(sets.box, code.astype(np.int64)[sets.value], sets.boxes))

    def share(self, mask: Bools) -> Floats:
        return self.sets.share(np.append(mask[self.axis.order], mask[-1]))
