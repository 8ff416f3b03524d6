"""Crossing: what a learned release asks of a table, in two passes over it (mathematics 14.1).

    survey:  the values of every public column and how many rows have each; those of the sensitive columns
    cross:   the combinations of levels of the public columns, and how many rows of each hold which sensitive value

Rows that are left out because their sensitive value is missing and exempt are counted in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from deniable.core.errors import TableError, option
from deniable.core.learned import Coding
from deniable.core.values import Ints, Words
from deniable.learned.levels import ColumnCounts, Crossed, keys_of, level_codes
from deniable.tables.base import Dataset, Domain, Progress, Scan, no_progress
from deniable.tables.counting import Tally
from deniable.tables.encoding import DomainScanner, Encoder, ValueCodes, plain_type, sorted_values
from deniable.tables.keys import Keystream

MOST_COMBINATIONS = 2**22
HELD = 2**22  # (combination, value) pairs that wait to be added up
_WIDER = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary(), pa.float16(): pa.float32()}


@dataclass(frozen=True)
class Survey:
    """What one pass tells of a table: its public columns, and its sensitive ones."""

    columns: tuple[ColumnCounts, ...]
    scan: Scan


def survey(
    dataset: Dataset,
    public: Sequence[str],
    sensitive: tuple[str, ...],
    *,
    missing: str,
    domain: Domain,
    progress: Progress = no_progress,
) -> Survey:
    """The first pass.

    Args:
        dataset, public, sensitive: the table and its columns.
        missing, domain: as for ``Dataset.scan``.
        progress: called with rows done.
    """
    orders = {column: tuple(bins.labels) for column, bins in dataset.bins.items()}
    values = DomainScanner(sensitive, dataset.schema, orders)
    coded = [ValueCodes(name, _plain(dataset.schema.field(name).type)) for name in public]
    rows = [np.zeros(1, dtype=np.int64) for _ in public]
    done = 0
    for batch in dataset.batches([*public, *sensitive]):
        values.update(batch.select(list(sensitive)))
        for place, column in enumerate(coded):
            codes = column.codes(batch.column(column.name))
            counts = np.bincount(codes, minlength=column.size)
            counts[: len(rows[place])] += rows[place]
            rows[place] = counts
        done += batch.num_rows
        progress(done, dataset.rows, "counting")
    counted = [_in_order(column, counts) for column, counts in zip(coded, rows, strict=True)]
    return Survey(tuple(counted), values.scan(missing, domain))


def rows_together(dataset: Dataset, owners: Sequence[str], keys: Keystream) -> int:
    """The most rows of one person or group, which changes with nobody's values; a digest of each name is kept."""
    people = [Tally({"rows": "u4"}) for _ in owners]
    for batch in dataset.batches(owners):
        for tally, name in zip(people, owners, strict=True):
            tally.add(keys.subkey("together", name).words_of(batch.column(name)), rows=1)
    return max((int(rows["rows"].max()) for tally in people for rows in tally.ranges() if len(rows)), default=1)


def cross(
    dataset: Dataset,
    codings: Sequence[Coding],
    encoder: Encoder,
    shown: Ints,
    size: int,
    progress: Progress = no_progress,
) -> Crossed:
    """The second pass.

    Args:
        dataset: the table.
        codings: how public columns are read as levels.
        encoder: of the sensitive columns.
        shown: for each of its codes the place in the list of values that are published.
        size: how many these are.
        progress: called with rows done.
    """
    sizes = [coding.size for coding in codings]
    pairs = _Pairs(len(codings), size)
    done = 0
    for batch in dataset.batches([*(coding.column for coding in codings), *encoder.columns]):
        codes = levels_of(batch, codings)
        own = encoder.encode(batch)
        exempt = encoder.exempt_mask(own)
        if exempt is not None and exempt.any():
            codes, own = codes[~exempt], own[~exempt]
        pairs.add(keys_of(codes, sizes), codes, shown[own])
        done += batch.num_rows
        progress(done, dataset.rows, "crossing")
    return pairs.crossed()


def levels_of(batch: pa.RecordBatch, codings: Sequence[Coding]) -> Ints:
    """The level of every row in each column."""
    codes = np.zeros((batch.num_rows, len(codings)), dtype=np.int64)
    for place, coding in enumerate(codings):
        codes[:, place] = level_codes(coding, batch.column(coding.column))
    return codes


class _Pairs:
    """(combination, value) pairs, added up when many wait."""

    def __init__(self, width: int, size: int) -> None:
        self.size = size
        self.keys: Words = np.zeros(0, dtype=np.uint64)
        self.codes: Ints = np.zeros((0, width), dtype=np.int64)
        self.waiting: list[tuple[Words, Ints, Ints]] = []
        self.held = 0

    def add(self, keys: Words, codes: Ints, values: Ints) -> None:
        distinct, first, of = np.unique(keys, return_index=True, return_inverse=True)
        own = codes[first]
        if (own[of] != codes).any():
            raise _alike()
        self._know(distinct, own)
        pair, rows = np.unique(of.ravel() * self.size + values, return_counts=True)
        self.waiting.append((distinct[pair // self.size], pair % self.size, rows))
        self.held += len(pair)
        if self.held > HELD:
            self._settle()

    def _know(self, keys: Words, codes: Ints) -> None:
        place = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        known = self.keys[place] == keys if len(self.keys) else np.zeros(len(keys), dtype=bool)
        if (self.codes[place[known]] != codes[known]).any():
            raise _alike()
        if known.all():
            return
        joined = np.concatenate([self.keys, keys[~known]])
        order = np.argsort(joined)
        self.keys = joined[order]
        self.codes = np.concatenate([self.codes, codes[~known]])[order]
        if len(self.keys) > MOST_COMBINATIONS:
            raise TableError(
                f"The public columns have more than {MOST_COMBINATIONS:,} different combinations, more than a model is "
                f"learned from. Fix: leave columns out ({option('drop', 'COLUMN')}), make them coarser "
                f"({option('recode', '')}), or publish row by row ({option('mechanism', 'lineup')})."
            )

    def _settle(self) -> None:
        keys, values, rows = (np.concatenate(pieces) for pieces in zip(*self.waiting, strict=True))
        order = np.lexsort((values, keys))
        keys, values, rows = keys[order], values[order], rows[order]
        new = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])))
        self.waiting = [(keys[new], values[new], np.add.reduceat(rows, new))]
        self.held = len(new)

    def crossed(self) -> Crossed:
        shape = (len(self.keys), self.size)
        if not self.waiting:
            return Crossed(self.keys, self.codes, sparse.csr_array(shape, dtype=np.int64))
        self._settle()
        ((keys, values, rows),) = self.waiting
        counts = sparse.csr_array((rows.astype(np.int64), (np.searchsorted(self.keys, keys), values)), shape)
        return Crossed(self.keys, self.codes, counts)


def _alike() -> TableError:
    return TableError(
        f"Two combinations of public columns have one digest of 64 bits. Fix: leave a column out "
        f"({option('drop', 'COLUMN')}), or make one coarser ({option('recode', '')})."
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    plain = plain_type(kind)
    return _WIDER.get(plain, plain)


def _in_order(column: ValueCodes, rows: Ints) -> ColumnCounts:
    """Values in their order; codes of ``ValueCodes`` are in order of appearance, missing first."""
    values = sorted_values(column.known, with_null=False)
    order = pc.index_in(values, value_set=column.known).to_numpy(zero_copy_only=False)
    return ColumnCounts(column.name, values, rows[order], int(rows[0]))
