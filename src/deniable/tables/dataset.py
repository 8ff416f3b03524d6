"""A table on this machine: rows read in batches, in bounded memory; perturbed by threads, shuffled through files."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.channels import Replace
from deniable.core.errors import ColumnError, TableError, option, table_changed
from deniable.core.histogram import Histogram
from deniable.core.manifest import DataFile, Manifest
from deniable.core.tally import Counter
from deniable.core.transforms import (
    MOST_ITEMS,
    Bins,
    BinsLike,
    ListItem,
    Quantiles,
    Steps,
    Unfolding,
    as_bins,
    item_column,
)
from deniable.core.values import Ints, Labels
from deniable.tables.base import (
    BATCH_ROWS,
    ROW_GROUP,
    Domain,
    Job,
    PartJob,
    Progress,
    RangeScan,
    Scan,
    no_progress,
    repeated,
)
from deniable.tables.content import PIECE_ROWS, Sketch, Sketcher, content_schema, digest_of_piece, digest_of_pieces
from deniable.tables.counting import local_counter
from deniable.tables.encoding import DomainScanner, Encoder, require_columns, without_rows
from deniable.tables.files import Source, open_source
from deniable.tables.inspection import OrderWatch, identifier_warnings, require_short
from deniable.tables.keys import Keystream, Secret
from deniable.tables.ranges import RangeScanner
from deniable.tables.shuffling import rechunked, shuffled
from deniable.tables.storage import describe, read_table, write_table
from deniable.tables.transforms import (
    WARNED,
    Plans,
    Resolved,
    binned,
    binned_schema,
    bins_note,
    lists_of,
    numbers_in,
    places_of,
    rare_note,
    recoded,
    recoded_schema,
    require_items,
    require_lists,
    require_numbers,
    resolved,
    sorted_items,
    with_lists,
)
from deniable.tables.worker import Piece, Worker, added, published_schema

# -- A table whose column of lists is read as columns of yes and no, one for each item ---------------------------------


@dataclass(frozen=True, eq=False)
class UnfoldedSource:
    """A source with the columns of a list's items instead of the list.

    Attributes:
        inner: the source as it is.
        column, how, items: the column of lists, how it is read, and all of its items.
        person: a column that names people; it is read together with the list, so that a person's rows with one list
            draw alike, and all others on their own.
        counts: how many rows have each item.
        total: of the rows.
    """

    inner: Source
    column: str
    how: Unfolding
    items: pa.Array
    person: str | None
    counts: Ints
    total: int

    @property
    def of_columns(self) -> Mapping[str, ListItem]:
        """The columns of items, and which each is."""
        items, how = self.items.to_pylist(), self.how
        most = len(items) if how.most is None else min(how.most, len(items))
        return {
            item_column(self.column, item): ListItem(self.column, item, most, how.beyond, how.separator)
            for item in items
        }

    @property
    def names(self) -> list[str]:
        own = list(self.of_columns)
        return [name for old in self.inner.names for name in (own if old == self.column else [old])]

    @property
    def schema(self) -> pa.Schema:
        own = [pa.field(name, pa.bool_()) for name in self.of_columns]
        fields = [field for old in self.inner.schema for field in (own if old.name == self.column else [old])]
        return pa.schema([pa.field(f.name, pa.string()) if f.name == self.person else f for f in fields])

    @property
    def rows(self) -> int | None:
        return self.inner.rows

    @property
    def in_memory(self) -> bool:
        return self.inner.in_memory

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {name: labels for name, labels in self.inner.labels.items() if name not in (self.column, self.person)}

    @property
    def warned(self) -> Mapping[str, Sequence[str]]:
        return {name: words for name, words in self.inner.warned.items() if name != self.column}

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns in the order asked for, in row order; texts are never dictionaries."""
        require_columns(columns, self.names)
        place = {name: number for number, name in enumerate(self.of_columns)}
        unfolds = any(name in place or name == self.person for name in columns)
        read = [name for name in columns if name not in place]
        for batch in self.inner.batches([*read, *([self.column] if unfolds else [])], batch_rows):
            if not unfolds:
                yield batch
                continue
            held = places_of(self.column, batch.column(self.column), self.items, self.how)
            made: dict[str, Any] = {name: pa.array(held[:, place[name]]) for name in columns if name in place}
            if self.person is not None and self.person in columns:
                made[self.person] = with_lists(batch.column(self.person), held)
            arrays = [made[name] if name in made else batch.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def scan(self, column: str) -> Scan:
        """What is known of an item from the first pass; yes and no are there whether or not a row shows them."""
        place = list(self.of_columns).index(column)
        yes = int(self.counts[place])
        encoder = Encoder([column], [pa.array([False, True])], exempt=False)
        return Scan(Histogram((False, True), np.array([self.total - yes, yes])), 0, encoder)


def unfold(
    source: Source, column: str, how: Unfolding, declared: Sequence[Any] | None, person: str | None
) -> UnfoldedSource:
    """Find the items of a column of lists, and count them."""
    require_lists(column, source.schema.field(column).type, how)
    if declared is None:
        seen = [lists_of(column, batch.column(0), how)[1].unique() for batch in source.batches([column])]
        items = sorted_items(seen)
    else:
        items = pa.array(require_items(column, declared), pa.large_string())
    if not 1 <= len(items) <= MOST_ITEMS:
        raise TableError(
            f"The lists of the column {column!r} have {'no items' if not len(items) else 'too many items'}: between 1 "
            f"and {MOST_ITEMS:,} different ones can be published. Fix: group rare ones, or name fewer "
            f"({option('domain', '')})."
        )
    counts, rows = np.zeros(len(items), np.int64), 0
    for batch in source.batches([column]):
        counts += places_of(column, batch.column(0), items, how).sum(0)
        rows += batch.num_rows
    made = UnfoldedSource(source, column, how, items, person, counts, rows)
    twice = [name for name in made.of_columns if name in source.names]
    if twice:
        raise ColumnError(f"The table has a column {twice[0]!r}, as an item's would be called. Fix: rename it.")
    return made


# -- A table on this machine: rows read in batches, in bounded memory; perturbed by threads, shuffled through files.


class LocalDataset:
    """A source, with some columns recoded, some numbers read as bins, and without some rows.

    Attributes:
        recodes: the columns that are read coarser, and how.
        said: what reading it so gives away, for a release to say.
        labels: what the codes of a column stand for, where the table says it.
    """

    def __init__(
        self,
        source: Source,
        bins: Mapping[str, Bins] | None = None,
        gone: Ints | None = None,
        said: tuple[str, ...] = (),
        warned: tuple[str, ...] = (),
        recodes: Steps | None = None,
        plans: Plans | None = None,
    ) -> None:
        self._source = source
        self._plans: Plans = plans or {}
        self.recodes: Steps = recodes or {}
        self._gone = np.zeros(0, np.int64) if gone is None else gone
        self._warned = warned
        self.said = said
        self.bins: Mapping[str, Bins] = bins or {}
        self.schema: pa.Schema = binned_schema(recoded_schema(source.schema, self._plans), self.bins)
        self.names: list[str] = list(source.names)
        # A column that is read coarser, or as intervals, has other values than those that its labels are of.
        changed = {*self.recodes, *self.bins}
        self.labels = {name: labels for name, labels in source.labels.items() if name not in changed}
        self.in_memory = source.in_memory

    @property
    def items(self) -> Mapping[str, ListItem]:
        return self._source.of_columns if isinstance(self._source, UnfoldedSource) else {}

    @property
    def rows(self) -> int | None:
        return None if self._source.rows is None else self._source.rows - len(self._gone)

    def digest(self, columns: Sequence[str] | None = None, by: str | None = None) -> str:
        """SHA-256 over the rows; batches, chunks, dictionaries and how texts are laid out do not matter.

        In the order of the rows, or, with ``by``, of a column that names them, which takes the table in memory.
        """
        wanted = list(self.names if columns is None else columns)
        schema = content_schema(pa.schema([self.schema.field(name) for name in wanted]))
        tables = map(pa.Table.from_batches, ([batch] for batch in self._folded(wanted)))
        plain = (table.cast(schema) for table in (tables if by is None else self._sorted(tables, schema, by)))
        pieces = enumerate(rechunked(plain, schema, PIECE_ROWS))
        return digest_of_pieces(digest_of_piece(piece, number == 0) for number, piece in pieces)

    def _sorted(self, tables: Iterable[pa.Table], schema: pa.Schema, by: str) -> Iterator[pa.Table]:
        """All rows in the order of a column, piece by piece; what is held is one copy of them, texts folded."""
        held = list(tables)
        whole = pa.concat_tables(held).combine_chunks() if held else schema.empty_table()
        held.clear()
        try:
            order = pc.sort_indices(whole[by].cast(schema.field(by).type))
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
            raise ColumnError(
                f"The column {by!r} has the type {self.schema.field(by).type}, whose values have no order, so it "
                "cannot name people or rows. Fix: convert it to strings or whole numbers first."
            ) from None
        for start in range(0, whole.num_rows, PIECE_ROWS):
            yield whole.take(order.slice(start, PIECE_ROWS))

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The columns in the order asked for, in row order."""
        return self._read(columns, batch_rows)

    def _folded(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The same for whoever reads texts from dictionaries as well."""
        return self._read(columns, batch_rows, folded=not (self._plans or self.bins))

    def _read(self, columns: Sequence[str], batch_rows: int, folded: bool = False) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in self._source.batches(columns, batch_rows, folded):
            kept = without_rows(require_short(batch, start), self._gone, start)
            coarse = recoded(kept, self._plans) if self._plans else kept
            yield binned(coarse, self.bins) if self.bins else coarse
            start += batch.num_rows

    # -- other datasets ------------------------------------------------------------------------------------------------

    def binned(self, bins: Mapping[str, BinsLike], keys: Keystream | None = None) -> LocalDataset:
        """With numbers read as intervals; ``keys`` decide where quantiles have their edges, fresh ones if left out."""
        if not bins:
            return self
        require_numbers(list(bins), self.schema)
        edges = {column: self._edges(column, as_bins(given), keys) for column, given in bins.items()}
        drawn = [column for column, given in bins.items() if isinstance(as_bins(given), Quantiles)]
        return LocalDataset(
            self._source,
            {**self.bins, **edges},
            self._gone,
            (*self.said, *map(bins_note, drawn)),
            (*self._warned, *(WARNED.format(column=column) for column in drawn)),
            self.recodes,
            self._plans,
        )

    def unfolded(
        self, column: str, how: Unfolding, items: Sequence[Any] | None = None, person: str | None = None
    ) -> LocalDataset:
        """With a column of yes and no for each item of a column of lists, which is read twice here."""
        if self.items or self.recodes or self.bins or len(self._gone):
            raise TableError("This table was unfolded, recoded, binned or shortened before; unfold it first, and once.")
        return LocalDataset(unfold(self._source, column, how, items, person))

    def recoded(self, recodes: Steps) -> LocalDataset:
        """With columns read coarser. What is rare is counted here, in a pass over each such column."""
        if not recodes:
            return self
        if self.recodes or self.bins or len(self._gone):
            raise TableError("This table was recoded, binned or shortened before; recode it first, and once.")

        def counted(column: str, taken: tuple[Resolved, ...]) -> Scan:
            return LocalDataset(self._source, plans={column: taken}).scan((column,))

        plans = resolved(recodes, self._source.schema, counted)
        said = (*self.said, *rare_note(recodes))
        return LocalDataset(self._source, said=said, warned=self._warned, recodes=recodes, plans=plans)

    def _edges(self, column: str, given: Bins | Quantiles, keys: Keystream | None) -> Bins:
        if isinstance(given, Bins):
            return given
        parts = [numbers_in(batch.column(column)) for batch in self.batches([column])]
        numbers = np.concatenate(parts) if parts else np.zeros(0)
        keys = keys or Keystream(Secret.generate(), "bins")
        # Draws depend on the numbers too: under one key another table gets fresh ones, and no difference tells a row.
        digest = hashlib.sha256(np.sort(numbers).tobytes()).hexdigest()
        words = keys.subkey("quantiles", column, digest).words(0, given.count - 1)
        whole = pa.types.is_integer(self.schema.field(column).type)
        return given.bins(numbers, (words >> np.uint64(11)).astype(np.float64) * 2.0**-53, whole=whole)

    def without(self, rows: Ints) -> LocalDataset:
        """Without the rows that have these numbers; they are never counted, dealt or perturbed."""
        if len(self._gone):
            raise TableError("Rows were left out of this table before; leave out all of them at once.")
        return LocalDataset(self._source, self.bins, np.sort(rows), self.said, self._warned, self.recodes, self._plans)

    # -- scans ---------------------------------------------------------------------------------------------------------

    def scan(
        self, columns: tuple[str, ...], missing: str = "value", domain: Domain = None, progress: Progress = no_progress
    ) -> Scan:
        """Count the values of some columns together."""
        if isinstance(self._source, UnfoldedSource) and len(columns) == 1 and columns[0] in self.items:
            return self._source.scan(columns[0])
        orders = {column: tuple(bins.labels) for column, bins in self.bins.items()}
        scanner = DomainScanner(columns, self.schema, orders)
        self._feed(scanner, columns, progress, "counting")
        return scanner.scan(missing, domain)

    def scan_range(self, column: str, replace: Replace, missing: str, progress: Progress = no_progress) -> RangeScan:
        """Check that a column's values lie in the declared range, and find its grid."""
        scanner = RangeScanner(column, self.schema.field(column).type, replace)
        self._feed(scanner, [column], progress, "counting")
        return scanner.scan(missing)

    def _feed(self, scanner: Any, columns: Sequence[str], progress: Progress, what: str) -> None:
        done = 0
        for batch in self._folded(list(columns)):
            scanner.update(batch)
            done += batch.num_rows
            progress(done, self.rows, what)

    def require_distinct(self, row_id: str, keys: Keystream) -> None:
        """Refuse a row id that names two rows: their draws would be the same. Takes eight bytes a row."""
        words = [keys.words_of(batch.column(row_id)) for batch in self.batches([row_id])]
        joined = np.sort(np.concatenate(words)) if words else np.zeros(0, np.uint64)
        if (joined[1:] == joined[:-1]).any():
            raise repeated(row_id)

    def inspect(self, public: Sequence[str], parts: Sequence[PartJob] = ()) -> list[str]:
        """Public columns that look like identifiers; parts whose values the order of the rows predicts."""
        warned = identifier_warnings(self, list(public))
        for work in parts:
            watch = OrderWatch(work.encoder.m)
            for batch in self._folded(list(work.part.columns)):
                watch.update(work.encoder.encode(batch))
            warned += watch.warnings(", ".join(work.part.columns))
        return [*warned, *self._warned]

    def sketch(self, keys: Keystream) -> Sketch:
        sketcher = Sketcher(keys)
        for batch in self.batches(self.names):
            sketcher.update(batch)
        return sketcher.sketch()

    def said_of_reading(self, columns: Sequence[str]) -> list[str]:
        """What an owner should know of how these columns were read."""
        return [words for column in columns for words in self._source.warned.get(column, ())]

    # -- execution -----------------------------------------------------------------------------------------------------

    def published_schema(self, job: Job) -> pa.Schema:
        return published_schema(self.schema, job)

    def execute(self, job: Job, spool: Path | None = None) -> Iterator[pa.Table]:
        """The published rows in pieces of a fixed size; ``spool`` is a private folder for tables larger than memory."""
        schema = self.published_schema(job)
        pieces = self._perturbed(job, schema)
        tables: Iterable[pa.Table]
        if job.shuffle:
            tables = shuffled(pieces, schema, None if self.in_memory else spool, job.rows, job.threads)
        else:
            tables = (pa.Table.from_batches([batch]) for batch, _ in pieces)
        yield from rechunked(tables, schema, ROW_GROUP)

    def _perturbed(self, job: Job, schema: pa.Schema) -> Iterator[Piece]:
        """Batches of perturbed rows with their sort keys, in the order of the input; threads do all but the dealing.
        What fits into one batch is not worth a thread."""
        worker = Worker(job, schema, folds=True)
        self._swap(worker)
        waiting: deque[Future[Piece]] = deque()
        start, seen, small = 0, worker.nothing_seen(), job.rows <= job.batch_rows
        with ThreadPoolExecutor(job.threads) as threads:
            try:
                for batch in self._folded(job.columns, job.batch_rows):
                    if not batch.num_rows:
                        continue
                    coded = worker.coded(batch, seen)
                    seen = added(seen, [mine.counts for mine in coded])
                    place, start = start, start + batch.num_rows
                    if small:
                        yield worker.perturb(batch, coded, place)
                    else:
                        waiting.append(threads.submit(worker.perturb, batch, coded, place))
                    job.progress(start, job.rows, "perturbing")
                    if len(waiting) > 2 * job.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
        worker.finish(seen)
        if start != job.rows:
            raise table_changed()

    def _swap(self, worker: Worker) -> None:
        """Swapped columns take a pass of their own, and their codes in memory."""
        if not worker.swaps:
            return
        pieces: list[list[Any]] = [[] for _ in worker.swaps]
        start = 0
        for batch in self.batches(worker.job.columns, worker.job.batch_rows):
            for part, piece in zip(worker.swaps, pieces, strict=True):
                piece.append(part.replaced(worker.job, batch, start))
            start += batch.num_rows
        for part, piece in zip(worker.swaps, pieces, strict=True):
            part.swap(piece)


# -- The local engine: one machine, tables in memory or in files -------------------------------------------------------


class LocalEngine:
    """Reads CSV, Parquet and any data frame; threads, and files for what does not fit into memory."""

    name = "local"

    def open(self, table: Any) -> LocalDataset:
        return LocalDataset(open_source(table))

    def write(self, pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, form: str) -> DataFile:
        return DataFile(path.name, form, write_table(pieces, schema, path, form))

    def read(self, path: Path, file: DataFile, types: Mapping[str, str]) -> pa.Table:
        return read_table(path, file.format, types)

    def describe(self, path: Path, file: DataFile, types: Mapping[str, str]) -> tuple[list[str], int]:
        return describe(path, file.format, types)

    def counter(self, table: pa.Table | Path, manifest: Manifest) -> Counter:
        return local_counter(table, manifest)
