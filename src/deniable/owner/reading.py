"""A release beside the table it was made from: both read in batches, under one numbering, as counts and samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.channels import NumberRange
from deniable.core.errors import ColumnError, TableError, listing
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.values import Codes, Counts, Floats, Ints, Words
from deniable.owner.findings import BLOCKS, Combinations, RowCounts, blocks_of, counted, is_ordered, order_classes
from deniable.planning.informed import spread_rows
from deniable.release.release import Release
from deniable.tables.base import CELL, Dataset, Progress, Unfolds, no_progress
from deniable.tables.counting import Tally, spread
from deniable.tables.encoding import arrow_type, decoded, plain_type, smallest
from deniable.tables.lineups import states_shown
from deniable.tables.ranges import IntervalEncoder, RangeEncoder, interval_channel

# -- One numbering for the values of a public column in a release and in its table, made while both are read -----------


class Numbering:
    """Values as 0, 1, .. in the order in which they are first met; missing is a value.

    Attributes:
        kind: the type that values of both sides are brought to.
        known: the values so far, each at its number.
        rows: how many rows hold each, in both tables.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.known = pa.array([], kind)
        self.rows = np.zeros(0, np.int64)

    @classmethod
    def of(cls, name: str, published: pa.DataType, source: Dataset) -> Numbering:
        """In the published type, or, where the table's values are not of it, as texts."""
        kind, own = _looked_up(published), _looked_up(source.schema.field(name).type)
        if kind != own:
            try:
                for batch in source.batches([name]):
                    decoded(batch.column(0)).cast(kind)
            except pa.ArrowException:
                kind = pa.string()
        return cls(kind)

    def codes(self, column: pa.Array) -> Codes:
        """The numbers of a batch's values; new values get the next ones."""
        plain = decoded(column)
        encoded = pc.dictionary_encode(
            plain if plain.type == self.kind else plain.cast(self.kind), null_encoding="encode"
        )
        places = pc.index_in(encoded.dictionary, value_set=self.known)
        if places.null_count:
            new = places.is_null()
            first = len(self.known)
            self.known = pa.concat_arrays([self.known, encoded.dictionary.filter(new)])
            numbers = places.fill_null(0).to_numpy(zero_copy_only=False).copy()
            numbers[new.to_numpy(zero_copy_only=False)] = np.arange(first, len(self.known))
        else:
            numbers = places.to_numpy(zero_copy_only=False)
        codes: Codes = numbers.astype(np.int32)[encoded.indices.to_numpy(zero_copy_only=False)]
        return codes

    def count(self, codes: Codes) -> None:
        """Add these rows to those of their values."""
        counts = np.bincount(codes, minlength=len(self.known))
        counts[: len(self.rows)] += self.rows
        self.rows = counts

    @property
    def numbers(self) -> Floats | None:
        """The values as numbers, not a number where they are missing; None where they are none."""
        if not (pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)):
            return None
        numbers: Floats = pc.cast(self.known, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers


def combination_keys(columns: list[Codes], rows: int) -> Words:
    """A key for each row's combination of values: a function of the numbers of its values.

    Two different combinations get one key with a chance of 2^-64, so of 10^8 different ones hardly ever two do.
    """
    keys = np.full(rows, 0x9E3779B97F4A7C15, np.uint64)
    for codes in columns:
        keys = spread(keys + spread(codes.astype(np.uint64) + np.uint64(1)))
    return keys


def _looked_up(kind: pa.DataType) -> pa.DataType:
    plain = plain_type(kind)
    return pa.float32() if plain == pa.float16() else plain  # Arrow does not look half floats up


# -- The parts of a release, and the original table over their values; ranges of numbers are looked at in intervals.


MOST_PAIRS = 2**20  # combinations of two columns' values that are counted


@dataclass(frozen=True, eq=False)
class Scanned:
    """One part of a release, and the original table over its values.

    Attributes:
        part: of the release.
        counts: the rows of each value.
        encoder: how values become codes.
    """

    part: Part
    counts: Counts
    encoder: Any

    def codes(self, table: pa.Table) -> Ints:
        """Where each row's value stands in the domain; after its last value where the row is exempt."""
        batches = table.select(self.encoder.columns).combine_chunks().to_batches()
        pieces = [self.encoder.encode(batch).astype(np.int64) for batch in batches]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def as_published(dataset: Dataset, manifest: Manifest) -> Dataset:
    """The table with its columns as coarse as the release has them, and its sensitive numbers as intervals."""
    dataset = _unfolded(dataset, manifest)
    require_original([*manifest.recoded], dataset)
    if manifest.recoded:
        dataset = dataset.recoded(manifest.recoded)
    bins = {name: bins for part in manifest.parts for name, bins in part.bins.items() if name in dataset.names}
    numeric = {name: edges for name, edges in bins.items() if not pa.types.is_string(dataset.schema.field(name).type)}
    return dataset.binned(numeric)


def require_original(columns: Sequence[str], dataset: Dataset) -> None:
    """Refuse a table without a column that the release has."""
    lacking = [column for column in columns if column not in dataset.names]
    if lacking:
        raise ColumnError(
            f"The table has no column {listing(lacking)}, which the release has: it is not the one that was published. "
            f"Fix: name that one. Its columns: {listing(dataset.names)}."
        )


def _unfolded(dataset: Dataset, manifest: Manifest) -> Dataset:
    """With the items of its lists as columns, where the release has them so."""
    items = [part.item for part in manifest.parts if part.item is not None]
    if not items or all(item.column in dataset.names for item in items):
        return dataset
    require_original([items[0].list], dataset)
    if not isinstance(dataset, Unfolds):
        raise TableError(f"This engine cannot read the lists of {items[0].list!r}. Fix: audit it on one machine.")
    return dataset.unfolded(items[0].list, items[0].unfolding, [item.item for item in items])


def scanned(source: Dataset, part: Part, progress: Progress = no_progress) -> Scanned:
    """The original histogram over the part's domain; a table that does not fit is another table."""
    if part.range is not None:
        return _scanned_range(source, part, part.range)
    domain: Any = list(part.domain)
    if len(part.columns) > 1:
        domain = {name: list(dict.fromkeys(part.column_values(name))) for name in part.columns}
    scan = source.scan(part.columns, part.missing, domain, progress)
    return Scanned(part, scan.histogram.counts, scan.encoder)


def _scanned_range(source: Dataset, part: Part, grid: NumberRange) -> Scanned:
    """Count the rows of each interval."""
    dtype = source.schema.field(part.columns[0]).type
    inner = RangeEncoder(part.columns[0], dtype, grid, exempt=part.missing == "exempt")
    encoder = IntervalEncoder.of(inner)
    m = len(part.domain)
    counts = np.zeros(m + 1, dtype=np.int64)
    for batch in source.batches(list(part.columns)):
        counts += np.bincount(encoder.encode(batch), minlength=m + 1)
    return Scanned(part, counts[:m], encoder)


def with_intervals(manifest: Manifest) -> Manifest:
    """The manifest with a channel for every range of numbers, over points or intervals; categories come first."""
    shown = [_in_intervals(part, part.range) if part.range is not None else part for part in manifest.parts]
    return replace(manifest, parts=tuple(sorted(shown, key=lambda part: part.range is not None)))


def _in_intervals(part: Part, grid: NumberRange) -> Part:
    channel = interval_channel(grid)
    return replace(part, domain=channel.values, channels=(channel,), cell_positions=(np.arange(channel.m),))


def joint_counts(source: Dataset, scans: Sequence[Scanned]) -> Mapping[tuple[int, int], Counts]:
    """How often each pair of values of two columns occurs, for columns that are perturbed with one coin each."""
    parts = [scan.part for scan in scans]
    alone = [i for i, part in enumerate(parts) if len(part.columns) == 1 and _has_one_coin(part)]
    sizes = [len(part.domain) for part in parts]
    pairs = [(i, j) for i, j in combinations(alone, 2) if sizes[i] * sizes[j] <= MOST_PAIRS]
    counts = {(i, j): np.zeros((sizes[i] + 1) * (sizes[j] + 1), dtype=np.int64) for i, j in pairs}
    used = sorted({i for pair in pairs for i in pair})
    for batch in source.batches([parts[i].columns[0] for i in used]) if used else ():
        codes = {i: np.minimum(scans[i].encoder.encode(batch).astype(np.int64), sizes[i]) for i in used}
        for i, j in pairs:  # a code after the last value is a missing one that is published as it is
            counts[i, j] += np.bincount(codes[i] * (sizes[j] + 1) + codes[j], minlength=len(counts[i, j]))
    return {(i, j): counts[i, j].reshape(sizes[i] + 1, sizes[j] + 1)[:-1, :-1] for i, j in pairs}


def _has_one_coin(part: Part) -> bool:
    return len(part.channels) == 1 and bool((part.channels[0].keep == part.channels[0].keep[0]).all())


# -- A release beside the table it was made from, read in batches as numbers: nothing of a batch is held after it ------
# Small tables are read once and held as codes; larger ones are read again by whoever looks at them.


HELD = 2**20  # rows of a table that is held, and of what is looked at of a larger one
BATCH = 2**18
MOST = 2**31 - 1  # rows that are counted in 32 bits


@dataclass(frozen=True, eq=False)
class Look:
    """Consecutive rows of a release or of its table.

    Attributes:
        start: the number of the first.
        public: the numbers of the values of each public column.
        values: for each sensitive part where the row's value stands in its domain, the set that it shows, or after
            them all where it has none.
        cells: the published cells, where there are some.
    """

    start: int
    public: dict[str, Codes]
    values: tuple[Codes, ...]
    cells: Codes | None = None

    def __len__(self) -> int:
        return len(self.values[0])

    def take(self, places: Ints) -> Look:
        """Some of these rows."""
        public = {name: codes[places] for name, codes in self.public.items()}
        values = tuple(codes[places] for codes in self.values)
        return Look(self.start, public, values, None if self.cells is None else self.cells[places])

    @cached_property
    def keys(self) -> Words:
        """The key of each row's combination of public values."""
        return combination_keys(list(self.public.values()), len(self))


class Beside:
    """Both tables as looks at consecutive rows.

    Args:
        source: the table.
        release: made from it.
        manifest: of the release, its ranges in intervals.
        scans: its parts, and the table over their values.
        progress: called with the rows that were read.

    Attributes:
        numberings: of the values of each public column, complete after the first pass over both.
        rows, people: how many rows the release and the table have.
        by_person: whether rows of one person are published alike.
    """

    def __init__(
        self,
        source: Dataset,
        release: Release,
        manifest: Manifest,
        scans: Sequence[Scanned],
        progress: Progress = no_progress,
    ) -> None:
        self._source, self._release, self._progress = source, release, progress
        self._published_rows, self._people_rows = list[Look](), list[Look]()
        self.scans = tuple(scans)
        self.sensitive = list(dict.fromkeys(name for scan in scans for name in scan.part.columns))
        require_original([*manifest.public_columns, *self.sensitive], source)
        published = release.published_schema()
        self.numberings = {
            name: Numbering.of(name, published.field(name).type, source) for name in manifest.public_columns
        }
        self.rows, self.by_person = manifest.rows, manifest.randomness.by_person
        counted = source.rows
        if counted is None:
            counted = sum(batch.num_rows for batch in source.batches(self.sensitive[:1]))
        self.people = counted
        if max(self.rows, self.people) > MOST:
            raise TableError(
                f"An audit counts up to {MOST:,} rows, and this table has {max(self.rows, self.people):,}. Fix: audit "
                "the releases of its parts."
            )
        self._with_cells = CELL in published.names and any(part.cells_published for part in manifest.parts)

    @property
    def is_held(self) -> bool:
        """Whether all rows are looked at by everyone."""
        return max(self.rows, self.people) <= HELD

    def published(self) -> Iterator[Look]:
        """The rows of the release, in order."""
        if not self._published_rows:
            columns = [*self.numberings, *self.sensitive, *([CELL] if self._with_cells else [])]
            batches = self._release.batches(columns, BATCH)
            yield from self._looks(batches, _shown, self._published_rows, self.rows, "reading the release")
        else:
            yield from self._published_rows

    def original(self) -> Iterator[Look]:
        """The rows of the table, in order."""
        if not self._people_rows:
            batches = self._source.batches([*self.numberings, *self.sensitive], BATCH)
            yield from self._looks(batches, _held, self._people_rows, self.people, "reading the table")
        else:
            yield from self._people_rows

    def _looks(
        self,
        batches: Iterable[pa.RecordBatch],
        coded: Callable[[Scanned, pa.RecordBatch], Codes],
        kept: list[Look],
        rows: int,
        what: str,
    ) -> Iterator[Look]:
        start, looks = 0, list[Look]()
        for batch in batches:
            public = {name: one.codes(batch.column(name)) for name, one in self.numberings.items()}
            values = tuple(coded(scan, batch) for scan in self.scans)
            cells = None
            if CELL in batch.schema.names:  # the rows of exempt values may have none
                cells = batch.column(CELL).fill_null(0).to_numpy(zero_copy_only=False)
            look = Look(start, public, values, cells)
            if self.is_held:
                looks.append(look)
            yield look
            start += batch.num_rows
            self._progress(start, rows, what)
        kept += looks


def _held(scan: Scanned, batch: pa.RecordBatch) -> Codes:
    """Where the rows' values stand in the domain; after its last value where they are exempt."""
    return smallest(scan.encoder.encode(batch), len(scan.part.domain) + 1)


def _shown(scan: Scanned, batch: pa.RecordBatch) -> Codes:
    """The same of published rows; of line-ups the number of the set, and after the last where there is none."""
    part = scan.part
    if part.lineups is None:
        return _held(scan, batch)
    number = len(part.lineups.sets.members)
    domain = pa.array(list(part.domain), arrow_type(part.types[0]))
    states = states_shown(pa.chunked_array([batch.column(part.columns[0])]), part.lineups, domain)
    return smallest(np.where(states < 0, number, states), number + 1)


# -- One look at all rows of a release and of its table: everything that an audit needs of them, as counts and samples.


SEED = 2010  # which rows are looked at of a large table; the same audit gives the same figures
NOBODY = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Looked:
    """What was seen.

    Attributes:
        combinations: how often each combination of public values occurs in release and table.
        rows: counts of rows, for the report on them.
        shown: for each part, how many published rows of each cell show each value, exempt rows last.
        people: people to attack: all of them, or as many as are held.
    """

    combinations: Tally
    rows: RowCounts
    shown: tuple[Counts, ...]
    people: Look


def looked_at(beside: Beside) -> Looked:
    """Read release and table, and the release once more for the order of its rows."""
    combinations = Tally({"published": "u4", "people": "u4", "low": "i4", "high": "i4"})
    shown, in_cells, release_order = _published(beside, combinations)
    published_rows = {name: one.rows for name, one in beside.numberings.items()}
    people = _Chosen(None if beside.is_held else spread_rows(beside.people, HELD, SEED))
    table_order = hashlib.sha256()
    for look in beside.original():
        _count(beside, look)
        combinations.add(look.keys, published=0, people=1, low=look.values[0], high=look.values[0])
        table_order.update(look.keys.tobytes())
        people.see(look, np.arange(look.start, look.start + len(look)))
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
    return Looked(combinations, rows, shown, people.whole())


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
