"""The rows of the conditions of a pool: held, or counted again in all rows where a table is too large for that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Bools, Codes, Floats, Ints
from deniable.engines.batch.columns import mixed
from deniable.planning.tables import CodedTable

Rows = npt.NDArray[np.int32]
HELD = 2**19  # rows of a table whose conditions are held as lists of rows: three times as fast to count
CHUNK = 2**18
RADIX = 2**62


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition on public columns.

    Attributes:
        leaves: columns, and which codes of each are meant.
        classes: for each pattern of their truth, whether rows with it satisfy the condition (0) or not (-1); None
            where all leaves must hold.
    """

    leaves: tuple[tuple[str, Bools], ...]
    classes: Ints | None = None

    @classmethod
    def all_of(cls, masks: Mapping[str, Bools]) -> Condition:
        """A conjunction."""
        return cls(tuple(masks.items()))

    def rows(self, table: CodedTable) -> Rows:
        """The rows that satisfy it."""
        parts = [(self.within(table, start) + start).astype(np.int32) for start in range(0, table.rows, CHUNK)]
        return np.concatenate([np.zeros(0, np.int32), *parts])

    def within(self, table: CodedTable, start: int) -> Ints:
        """Those of the chunk of rows that begins there, counted from its first."""
        columns = [(mask, table.columns[name].codes[start : start + CHUNK]) for name, mask in self.leaves]
        number = min(CHUNK, table.rows - start)
        if self.classes is None:
            meant = np.ones(number, bool)
            for mask, codes in columns:
                meant &= mask[codes]
        else:
            pattern = np.zeros(number, np.int64)
            for bit, (mask, codes) in enumerate(columns):
                pattern |= mask[codes].astype(np.int64) << bit
            meant = self.classes[pattern] >= 0
        return np.flatnonzero(meant)


class CountedRows(Sequence[Rows]):
    """The rows of conditions, looked for when they are needed; counts of them take no list of rows."""

    def __init__(self, table: CodedTable, conditions: Sequence[Condition]) -> None:
        self._table, self._conditions = table, tuple(conditions)

    def __len__(self) -> int:
        return len(self._conditions)

    @overload
    def __getitem__(self, place: int) -> Rows: ...

    @overload
    def __getitem__(self, place: slice) -> CountedRows: ...

    def __getitem__(self, place: int | slice) -> Rows | CountedRows:
        if isinstance(place, slice):
            return CountedRows(self._table, self._conditions[place])
        return self._conditions[place].rows(self._table)

    def __add__(self, other: CountedRows) -> CountedRows:
        return CountedRows(self._table, (*self._conditions, *other._conditions))

    def tally(self, states: Codes, number: int) -> Floats:
        """Rows of every condition by state: [conditions, number of states]."""
        counts = np.zeros((len(self), number))
        sets = self._column_sets
        by_set = [np.zeros((len(one.keys), number)) for one in sets]
        for start in range(0, self._table.rows, CHUNK):
            own = states[start : start + CHUNK]
            for one, counted in zip(sets, by_set, strict=True):
                rows, places = one.matching(self._table, start)
                key = places * number + own[rows]
                counted += np.bincount(key, minlength=counted.size).reshape(counted.shape)
            for place in self._others:
                rows = self._conditions[place].within(self._table, start)
                counts[place] += np.bincount(own[rows], minlength=number)
        for one, counted in zip(sets, by_set, strict=True):
            counts[one.members] = counted[one.place_of_member]
        return counts

    @cached_property
    def _column_sets(self) -> list[_ColumnSet]:
        members: dict[tuple[str, ...], list[int]] = {}
        for place, one in enumerate(self._conditions):
            if place not in self._others:
                members.setdefault(tuple(name for name, _ in one.leaves), []).append(place)
        return [
            _ColumnSet.of(self._table, names, places, [self._conditions[place] for place in places])
            for names, places in members.items()
        ]

    @cached_property
    def _others(self) -> frozenset[int]:
        """Conditions that are not one value of each of some columns."""

        def is_other(one: Condition) -> bool:
            names = [name for name, _ in one.leaves]
            radix = math.prod(len(mask) for _, mask in one.leaves)
            single = all(int(mask.sum()) == 1 for _, mask in one.leaves)
            return one.classes is not None or not single or not names or len(set(names)) < len(names) or radix > RADIX

        return frozenset(place for place, one in enumerate(self._conditions) if is_other(one))


@dataclass(frozen=True, eq=False)
class _ColumnSet:
    """Conditions that ask for one value of each of the same columns.

    Attributes:
        names, sizes: the columns, and how many codes each has.
        keys: the different combinations of codes that are asked for, sorted.
        members, place_of_member: the conditions, and the key of each.
        rarest, meant: the column of the most codes, and which of them are asked for: other rows are not looked at.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    keys: Ints
    members: list[int]
    place_of_member: Ints
    rarest: str
    meant: Bools

    @classmethod
    def of(
        cls, table: CodedTable, names: tuple[str, ...], members: list[int], conditions: Sequence[Condition]
    ) -> _ColumnSet:
        sizes = tuple(table.columns[name].size for name in names)
        codes = [[int(mask.argmax()) for _, mask in one.leaves] for one in conditions]
        keys, places = np.unique(mixed([*np.array(codes).T], sizes), return_inverse=True)
        rarest = names[int(np.argmax(sizes))]
        meant = np.logical_or.reduce([dict(one.leaves)[rarest] for one in conditions])
        return cls(names, sizes, keys, members, places, rarest, meant)

    def matching(self, table: CodedTable, start: int) -> tuple[Ints, Ints]:
        """The rows of a chunk that satisfy a condition, counted from its first, and the place of its key."""
        rows = np.flatnonzero(self.meant[table.columns[self.rarest].codes[start : start + CHUNK]])
        own = mixed([table.columns[name].codes[start : start + CHUNK][rows] for name in self.names], self.sizes)
        places = np.minimum(np.searchsorted(self.keys, own), len(self.keys) - 1)
        there = self.keys[places] == own
        return rows[there], places[there]


def rows_of(table: CodedTable, conditions: Sequence[Condition]) -> Sequence[Rows]:
    """The rows of each condition: held where the table is small."""
    if table.rows > HELD:
        return CountedRows(table, conditions)
    return tuple(condition.rows(table) for condition in conditions)
