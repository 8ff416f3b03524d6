"""What an engine is: it opens a table as an immutable dataset, executes plans over it, and counts published rows.

Every mechanism runs on every engine. What a worker does with a batch is in ``engines.batch``, so an engine only says
where batches come from, who works on them, and where they go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from deniable.core.channels import NumberRange, Replace
from deniable.core.errors import ColumnError, option
from deniable.core.histogram import Histogram
from deniable.core.manifest import DataFile, Manifest
from deniable.core.plan import PlannedPart
from deniable.core.tally import Counter
from deniable.core.transforms import Bins, BinsLike, ListItem, Steps, Unfolding
from deniable.core.values import Ints, Labels
from deniable.tables.content import Sketch
from deniable.tables.keys import Keystream

CELL = "cell"  # the column that says which cell, or group, a row fell into
BATCH_ROWS = 2**17
ROW_GROUP = 2**18  # rows that are written at a time
_UNNAMED = re.compile(r"(__index_level_\d+__|Unnamed: \d+(\.\d+)*)?")  # what pandas calls labels of rows in its files
Progress = Callable[[int, int | None, str], None]
Domain = Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None


def row_labels(names: Iterable[str], named: Iterable[str | None]) -> tuple[str, ...]:
    """The columns without a name of their own that nobody ``named``: in files of pandas they are labels of rows, which
    tell where each row stood in the original."""
    wanted = set(named)
    return tuple(name for name in names if _UNNAMED.fullmatch(name) and name not in wanted)


def repeated(row_id: str) -> ColumnError:
    """The error for a row id that names two rows."""
    return ColumnError(
        f"{option('row_id')} = {row_id!r} does not name rows: a value of it occurs more than once, and equal ids get "
        f"equal draws. Fix: choose a column without repetitions, or leave {option('row_id')} out."
    )


def no_progress(done: int, total: int | None, what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Scan:
    """What one pass over sensitive columns tells: all that a mechanism may see, and what a worker needs to come back.

    Attributes:
        histogram: of the column; missing values are a value of it, or left out if exempt.
        exempt_rows: rows whose value is missing and exempt.
        encoder: how values become codes (``batch.encoding``).
    """

    histogram: Histogram
    exempt_rows: int
    encoder: Any

    @property
    def rows(self) -> int:
        return self.histogram.rows + self.exempt_rows


@dataclass(frozen=True)
class RangeScan:
    """What one pass over a numeric column tells: its grid (still without a coin), its rows, and how it is encoded."""

    grid: NumberRange
    rows: int
    encoder: Any


@dataclass(frozen=True)
class PartJob:
    """A planned part, and what a worker needs to execute it.

    Attributes:
        part: the plan.
        encoder: how values become codes.
        rows: of the whole table.
        drawn_as: an earlier plan, in whose proportions rows draw their cells (``Job.by_value``); None: this one.
    """

    part: PlannedPart
    encoder: Any
    rows: int
    drawn_as: PlannedPart | None = None


@dataclass(frozen=True)
class Job:
    """Parts and how to execute them. Threads and batch size never change the result.

    ``keys`` are derived from the secret, the content of the table and the plan: no two different jobs share a draw.

    Attributes:
        row_id: a column that decides the draws of its row, instead of the row's number.
        by_value: whether that column names a person and not a row: a row's draw, and its cell, is a function of the
            person and the value, so rows of a person that hold one value are published alike.
        order: the keys of the published order, where it must not be that of another job with these ``keys``.
    """

    parts: tuple[PartJob, ...]
    public: tuple[str, ...]
    keys: Keystream
    row_id: str | None = None
    by_value: bool = False
    order: Keystream | None = None
    shuffle: bool = True
    threads: int = 1
    batch_rows: int = BATCH_ROWS
    progress: Progress = field(default=no_progress)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(column for job in self.parts for column in job.part.columns)

    @property
    def columns(self) -> list[str]:
        """The columns of the table that it needs."""
        return [*self.public, *self.sensitive, *([] if self.row_id is None else [self.row_id])]

    @property
    def rows(self) -> int:
        return self.parts[0].rows

    @property
    def cells_published(self) -> bool:
        return any(job.part.cells_published for job in self.parts)


class Dataset(Protocol):
    """A table that can be read again and again, and never changes: what is left out or binned is another dataset."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def names(self) -> list[str]: ...

    @property
    def rows(self) -> int | None:
        """The number of rows, if known without another pass."""
        ...

    @property
    def bins(self) -> Mapping[str, Bins]:
        """The columns that are read as intervals."""
        ...

    @property
    def recodes(self) -> Steps:
        """The columns that are read coarser than they are."""
        ...

    @property
    def said(self) -> tuple[str, ...]:
        """What reading the table so gives away, for a release to say."""
        ...

    @property
    def labels(self) -> Mapping[str, Labels]:
        """What the codes of a column stand for, where the table says it."""
        ...

    def digest(self, columns: Sequence[str] | None = None, by: str | None = None) -> str:
        """A digest of some or all columns: equal exactly when their content is, in this order or in the order of a
        column that names the rows."""
        ...

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The columns in the order asked for, in row order."""
        ...

    def scan(
        self, columns: tuple[str, ...], missing: str = "value", domain: Domain = None, progress: Progress = no_progress
    ) -> Scan:
        """Count the values of some columns together."""
        ...

    def scan_range(self, column: str, replace: Replace, missing: str, progress: Progress = no_progress) -> RangeScan:
        """Check that a column's values lie in the declared range, and find its grid."""
        ...

    def binned(self, bins: Mapping[str, BinsLike], keys: Keystream | None = None) -> Dataset:
        """The same table, with numbers read as intervals; ``keys`` decide where quantiles have their edges."""
        ...

    def recoded(self, recodes: Steps) -> Dataset:
        """The same table, with columns read coarser; before anything else is done to it."""
        ...

    def without(self, rows: Ints) -> Dataset:
        """The same table without the rows that have these numbers."""
        ...

    def require_distinct(self, row_id: str, keys: Keystream) -> None:
        """Refuse a column that names two rows."""
        ...

    def sketch(self, keys: Keystream) -> Sketch:
        """Which rows it has, in some thousand words of a key: enough to see the same people in another table."""
        ...

    def inspect(self, public: Sequence[str], parts: Sequence[PartJob] = ()) -> list[str]:
        """What the owner should know: public columns that look like identifiers; parts that the row order predicts."""
        ...

    def said_of_reading(self, columns: Sequence[str]) -> list[str]:
        """What an owner should know of how these columns were read."""
        ...

    def published_schema(self, job: Job) -> pa.Schema:
        """The published table's schema, without any metadata of the input."""
        ...

    def execute(self, job: Job, spool: Path | None = None) -> Iterable[pa.Table]:
        """The published rows in pieces of a fixed size; ``spool`` is a private folder for tables larger than memory.

        Texts may come as dictionaries: ``write`` takes them, and whoever keeps the pieces casts them. An engine may
        hand its own object to its ``write``, which need not bring the rows to this machine."""
        ...


@runtime_checkable
class Unfolds(Protocol):
    """A dataset that can read a column of lists; one that cannot is refused where a mechanism needs it."""

    @property
    def items(self) -> Mapping[str, ListItem]:
        """The columns that are items of a column of lists."""
        ...

    def unfolded(
        self, column: str, how: Unfolding, items: Sequence[Any] | None = None, person: str | None = None
    ) -> UnfoldedDataset:
        """The same table, with a column of yes and no for each item instead of a column of lists; before anything else
        is done to it. ``items`` declares them; ``person`` then names people together with their lists."""
        ...


class UnfoldedDataset(Dataset, Unfolds, Protocol):
    """A dataset with the items of a column of lists as columns."""


def items_of(dataset: Dataset) -> Mapping[str, ListItem]:
    """The columns of a dataset that are items of a column of lists."""
    return dataset.items if isinstance(dataset, Unfolds) else {}


@runtime_checkable
class Engine(Protocol):
    """Opens tables, and keeps and counts published ones."""

    name: str

    def open(self, table: Any) -> Dataset:
        """Any table that the engine can read."""
        ...

    def write(self, pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, form: str) -> DataFile:
        """Write pieces of a published table as one file, or as a folder of parts (``batch.parts``)."""
        ...

    def read(self, path: Path, file: DataFile, types: Mapping[str, str]) -> pa.Table:
        """A published table, in memory."""
        ...

    def describe(self, path: Path, file: DataFile, types: Mapping[str, str]) -> tuple[list[str], int]:
        """The columns that a published file really has, and its rows."""
        ...

    def counter(self, table: pa.Table | Path, manifest: Manifest) -> Counter:
        """Counts the rows of a published table in memory, or in its file or folder."""
        ...
