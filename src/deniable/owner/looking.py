"""One look at all rows of a release and of its table: everything that an audit needs of them, as counts and samples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.audit.functional import Meetings
from deniable.audit.rows import BLOCKS, Combinations, RowCounts, blocks_of, counted, is_ordered, order_classes
from deniable.core.arrays import Counts, Ints
from deniable.engines.base import CELL
from deniable.engines.batch.tallies import Tally, pair_keys
from deniable.owner.beside import HELD, Beside, Look
from deniable.planning.informed import spread_rows

SEED = 2010  # which rows are looked at of a large table; the same audit gives the same figures
TELLING = 100_000  # rows that dependence is learnt from and tried on, at the most
DENSE = 2**20  # pairs of values that are counted in a table
NOBODY = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Looked:
    """What was seen.

    Attributes:
        combinations: how often each combination of public values occurs in release and table.
        rows: counts of rows, for the report on them.
        shown: for each part, how many published rows of each cell show each value, exempt rows last.
        functions: for each part the public columns that it is a function of, or they of it.
        telling: for each part, people to learn from what public columns tell about it.
        people: people to attack: all of them, or as many as are held.
    """

    combinations: Tally
    rows: RowCounts
    shown: tuple[Counts, ...]
    functions: tuple[dict[str, str], ...]
    telling: tuple[Look, ...]
    people: Look


def looked_at(beside: Beside) -> Looked:
    """Read release and table, and the release once more for the order of its rows."""
    combinations = Tally({"published": "u4", "people": "u4", "low": "i4", "high": "i4"})
    shown, in_cells, release_order = _published(beside, combinations)
    published_rows = {name: one.rows for name, one in beside.numberings.items()}
    meetings = [_Meetings(beside, place) for place in range(len(beside.scans))]
    people = _Chosen(None if beside.is_held else spread_rows(beside.people, HELD, SEED))
    table_order = hashlib.sha256()
    for look in beside.original():
        _count(beside, look)
        combinations.add(look.keys, published=0, people=1, low=look.values[0], high=look.values[0])
        table_order.update(look.keys.tobytes())
        people.see(look, np.arange(look.start, look.start + len(look)))
        for one in meetings:
            one.see(look)
    pieces = (
        Combinations(records["published"], records["people"], records["low"], records["high"])
        for records in combinations.ranges()
    )
    rows = counted(
        pieces,
        _ordered(beside, published_rows, shown, in_cells),
        in_order=beside.rows == beside.people and release_order == table_order.digest(),
        with_table=True,
    )
    functions, telling = zip(*((one.functions(), one.telling.whole()) for one in meetings), strict=True)
    return Looked(combinations, rows, shown, functions, telling, people.whole())


def _published(beside: Beside, combinations: Tally) -> tuple[tuple[Counts, ...], Counts | None, bytes]:
    """Of each part how many rows of each cell show each value; the rows of each cell, where cells are published; and a
    digest of the order of public values."""
    shown = [
        np.zeros((len(scan.part.channels) if scan.part.cells_published else 1, _values(beside, place) + 1), np.int64)
        for place, scan in enumerate(beside.scans)
    ]
    order, in_cells = hashlib.sha256(), None
    for look in beside.published():
        _count(beside, look)
        combinations.add(look.keys, published=1, people=0, low=NOBODY, high=-1)
        order.update(look.keys.tobytes())
        for counts, codes, scan in zip(shown, look.values, beside.scans, strict=True):
            own = look.cells if scan.part.cells_published and look.cells is not None else None
            states = codes if own is None else own.astype(np.int64) * counts.shape[1] + codes
            counts += np.bincount(states, minlength=counts.size).reshape(counts.shape)
        if look.cells is not None:
            counts = np.bincount(look.cells)
            in_cells = counts if in_cells is None else _added(in_cells, counts)
    return tuple(shown), in_cells, order.digest()


def _values(beside: Beside, place: int) -> int:
    """How many values, or sets, a published row may show of a part."""
    part = beside.scans[place].part
    return len(part.domain) if part.lineups is None else len(part.lineups.sets.members)


def _count(beside: Beside, look: Look) -> None:
    for name, codes in look.public.items():
        beside.numberings[name].count(codes)


def _ordered(beside: Beside, public: dict[str, Counts], shown: Sequence[Counts], in_cells: Counts | None) -> list[str]:
    """Published columns whose values depend on where a row stands; line-ups are not looked at."""
    rows = dict(public)
    listed = [(place, scan) for place, scan in enumerate(beside.scans) if scan.part.lineups is None]
    names = {"+".join(scan.part.columns): place for place, scan in listed}
    for name, place in names.items():
        rows[name] = shown[place].sum(0)
    if in_cells is not None:
        rows[CELL] = in_cells
    classes = {name: order_classes(counts) for name, counts in rows.items()}
    blocks = {name: np.zeros((BLOCKS, int(own.max(initial=0)) + 1), np.int64) for name, own in classes.items()}
    for look in beside.published():
        columns = {**look.public, **{name: look.values[place] for name, place in names.items()}}
        if look.cells is not None:
            columns[CELL] = look.cells
        for name, table in blocks.items():
            table += blocks_of(classes[name][columns[name]], look.start, beside.rows, table.shape[1])
    return [name for name, table in blocks.items() if is_ordered(table)]


class _Chosen:
    """Rows picked by their numbers while they pass; None: all of them."""

    def __init__(self, numbers: Ints | None) -> None:
        self._numbers, self._taken = numbers, list[Look]()

    def see(self, look: Look, numbers: Ints) -> None:
        """Rows with their numbers, which grow; rows numbered below 0 are never taken."""
        if self._numbers is None:
            there = numbers >= 0
        else:
            place = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
            there = self._numbers[place] == numbers
        self._taken.append(look if there.all() else look.take(np.flatnonzero(there)))

    def whole(self) -> Look:
        return joined(self._taken)


class _Meetings:
    """How the values of each public column meet those of one sensitive part; and people to learn from."""

    def __init__(self, beside: Beside, place: int) -> None:
        self._scan, self._place = beside.scans[place], place
        self._people = int(self._scan.counts.sum())
        self._m = len(self._scan.part.domain)
        self._pairs = {name: Tally({"rows": "u4"}) for name in beside.numberings}
        self._rows = {name: np.zeros(0, np.int64) for name in beside.numberings}
        self._seen = 0
        drawn = np.random.default_rng(SEED)
        some = None if self._people <= TELLING else np.sort(drawn.choice(self._people, TELLING, replace=False))
        self.telling = _Chosen(some)

    def see(self, look: Look) -> None:
        values = look.values[self._place]
        there = values < self._m
        numbers = np.where(there, self._seen + np.cumsum(there) - 1, -1)
        self._seen += int(there.sum())
        self.telling.see(look, numbers)
        for name, codes in look.public.items():
            own, value = (codes, values) if there.all() else (codes[there], values[there])
            self._rows[name] = _added(self._rows[name], np.bincount(own))
            size = int(own.max(initial=-1)) + 1
            if size * self._m <= DENSE:
                counts = np.bincount(own.astype(np.int64) * self._m + value, minlength=size * self._m)
                met = np.flatnonzero(counts)
                self._pairs[name].add(pair_keys(met // self._m, met % self._m), rows=counts[met])
            else:
                self._pairs[name].add(pair_keys(own, value), rows=1)

    def functions(self) -> dict[str, str]:
        functions = {}
        for name, pairs in self._pairs.items():
            by_column, most = 0, np.zeros(self._m, np.int64)
            for records in pairs.ranges():
                column, rows = records["key"] >> np.uint64(32), records["rows"].astype(np.int64)
                if not len(rows):
                    continue
                starts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
                by_column += int(np.maximum.reduceat(rows, starts).sum())
                np.maximum.at(most, (records["key"] & np.uint64(2**32 - 1)).astype(np.int64), rows)
            function = Meetings(self._rows[name], self._scan.counts, by_column, int(most.sum())).function
            if function:
                functions[name] = function
        return functions


def joined(looks: Sequence[Look]) -> Look:
    """Rows that were taken from several looks, as one."""
    if len(looks) == 1:
        return looks[0]
    cells = None if looks[0].cells is None else np.concatenate([one.cells for one in looks if one.cells is not None])
    return Look(
        0,
        {name: np.concatenate([one.public[name] for one in looks]) for name in looks[0].public},
        tuple(np.concatenate(columns) for columns in zip(*(one.values for one in looks), strict=True)),
        cells,
    )


def _added(counts: Counts, more: Counts) -> Counts:
    longer, shorter = (counts, more) if len(counts) >= len(more) else (more, counts)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
