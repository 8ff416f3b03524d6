"""A table whose column of lists is read as columns of yes and no, one for each item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Ints
from deniable.core.errors import ColumnError, TableError, option
from deniable.core.histogram import Histogram
from deniable.core.items import MOST_ITEMS, ListItem, Unfolding, item_column
from deniable.core.labels import Labels
from deniable.engines.base import BATCH_ROWS, Scan
from deniable.engines.batch import lists
from deniable.engines.batch.encoding import Encoder
from deniable.engines.batch.values import require_columns
from deniable.engines.local.files import Source


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
            held = lists.places_of(self.column, batch.column(self.column), self.items, self.how)
            made: dict[str, Any] = {name: pa.array(held[:, place[name]]) for name in columns if name in place}
            if self.person is not None and self.person in columns:
                made[self.person] = lists.with_lists(batch.column(self.person), held)
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
    lists.require_lists(column, source.schema.field(column).type, how)
    if declared is None:
        seen = [lists.lists_of(column, batch.column(0), how)[1].unique() for batch in source.batches([column])]
        items = lists.sorted_items(seen)
    else:
        items = pa.array(lists.require_items(column, declared), pa.large_string())
    if not 1 <= len(items) <= MOST_ITEMS:
        raise TableError(
            f"The lists of the column {column!r} have {'no items' if not len(items) else 'too many items'}: between 1 "
            f"and {MOST_ITEMS:,} different ones can be published. Fix: group rare ones, or name fewer "
            f"({option('domain', '')})."
        )
    counts, rows = np.zeros(len(items), np.int64), 0
    for batch in source.batches([column]):
        counts += lists.places_of(column, batch.column(0), items, how).sum(0)
        rows += batch.num_rows
    made = UnfoldedSource(source, column, how, items, person, counts, rows)
    twice = [name for name in made.of_columns if name in source.names]
    if twice:
        raise ColumnError(f"The table has a column {twice[0]!r}, as an item's would be called. Fix: rename it.")
    return made
