"""A release beside the table it was made from, read in batches as numbers: nothing of a batch is held after it.

Small tables are read once and held as codes; larger ones are read again by whoever looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Ints, Words
from deniable.core.errors import TableError
from deniable.core.manifest import Manifest
from deniable.engines.base import CELL, Dataset, Progress, no_progress
from deniable.engines.batch.columns import smallest
from deniable.engines.batch.lineup_columns import states_shown
from deniable.engines.batch.values import arrow_type
from deniable.owner.numbering import Numbering, combination_keys
from deniable.owner.scanning import Scanned, require_original
from deniable.release.release import Release

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
