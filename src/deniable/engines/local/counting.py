"""Counting the rows of a release: dictionary codes, mixed-radix keys, ``bincount``; never a loop over rows.

A row's *state* is its cell and its published value, as one number: cell i's values take the numbers from
m_0 + .. + m_{i-1}. A tally counts rows by (group, class, state); when that array would be too large to hold, keys are
sorted instead, and the tally is handed out a few groups at a time.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deniable.core.errors import ManifestError, QuestionError
from deniable.engines.batch.columns import Codes, Encoded, Ints, encode, mixed, plain, smallest
from deniable.engines.batch.cubes import Cube, Cubes, Leaf, slice_cube
from deniable.engines.batch.tallies import Block, Floats, Moments, add_moments

DENSE_ENTRIES = 2**24  # of a tally or a cube held in one piece
BLOCK_ENTRIES = 2**22  # of one block of a tally that is handed out in pieces
ALL_ENTRIES = 2**35  # of a whole tally; beyond it a question is refused
CHUNK_ROWS = 2**18
RADIX_LIMIT = 2**62


class Layout(Protocol):
    """The part of a manifest that says how rows are to be read."""

    @property
    def domain(self) -> Sequence[Hashable]: ...
    @property
    def cell_positions(self) -> Sequence[npt.NDArray[Any]]: ...
    @property
    def cells_published(self) -> bool: ...
    @property
    def sensitive_columns(self) -> Sequence[str]: ...


class LocalCounter:
    """Counts the rows of a table in memory, or of a Parquet file, of which only the columns in question are read."""

    def __init__(self, table: pa.Table | str | Path, layout: Layout) -> None:
        self._table = table
        self._layout = layout
        self._columns: dict[str, Encoded] = {}
        self._numbers: dict[str, Floats] = {}
        self._cubes = Cubes()
        self._cell_column = next(
            (column.name for column in getattr(layout, "columns", ()) if column.role == "cell"), "cell"
        )

    @cached_property
    def rows(self) -> int:
        if isinstance(self._table, pa.Table):
            return int(self._table.num_rows)
        return int(pq.ParquetFile(self._table).metadata.num_rows)

    # -- columns ---------------------------------------------------------------------------------------------------

    def distinct(self, column: str) -> pa.Array:
        return self._encoded(column).values

    def _read(self, column: str) -> pa.ChunkedArray:
        if isinstance(self._table, pa.Table):
            return self._table[column]
        return pq.read_table(self._table, columns=[column])[column]

    def _encoded(self, column: str) -> Encoded:
        if column not in self._columns:
            self._columns[column] = encode(self._read(column))
        return self._columns[column]

    def _number(self, column: str) -> Floats:
        """A numeric column as floats, missing as NaN, looked up through its codes so that nothing large is kept."""
        if column not in self._numbers:
            values = pc.cast(self._encoded(column).values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            self._numbers[column] = np.append(values, np.nan)
        return self._numbers[column]

    # -- states ----------------------------------------------------------------------------------------------------

    @cached_property
    def _several_parts(self) -> bool:
        """Columns that are perturbed independently are asked about by conditions alone: there is one state."""
        parts = getattr(self._layout, "parts", ())
        return len(parts) > 1 or any(part.range is not None for part in parts)

    @cached_property
    def state_count(self) -> int:
        if self._several_parts:
            return 1
        return sum(len(positions) for positions in self._cells) + int(self._exempt)

    @cached_property
    def _exempt(self) -> bool:
        """Whether missing values are published as they are: a state of its own, the last."""
        names = self._layout.sensitive_columns
        missing = (None,) * len(names) if len(names) > 1 else None
        return getattr(self._layout, "missing", "value") == "exempt" and missing not in self._layout.domain

    @property
    def _cells(self) -> Sequence[npt.NDArray[Any]]:
        published = self._layout.cells_published or len(self._layout.cell_positions) == 1
        return self._layout.cell_positions if published else [np.arange(len(self._layout.domain))]

    @cached_property
    def _states(self) -> Codes:
        """The state of every row."""
        if self._several_parts:
            return np.zeros(self.rows, np.uint8)
        positions = self._positions()
        cells = self._cells
        if len(cells) == 1 and np.array_equal(cells[0], np.arange(len(self._layout.domain))):
            return smallest(positions, self.state_count)
        cell = np.zeros(self.rows, np.int64)
        if len(cells) > 1:
            cell = self._read(self._cell_column).fill_null(0).to_numpy().astype(np.int64)
            cell[positions == len(self._layout.domain)] = 0
            if self.rows and not 0 <= cell.min() <= cell.max() < len(cells):
                raise ManifestError("The release's rows name a cell that its manifest does not have.")
        m = len(self._layout.domain)
        inside = np.concatenate([c * m + np.asarray(p, np.int64) for c, p in enumerate(cells)])
        order = np.argsort(inside, kind="stable")
        key = cell * m + positions
        place = np.minimum(np.searchsorted(inside[order], key), len(inside) - 1)
        states = order[place]
        missing = positions == m
        if not ((inside[states] == key) | missing).all():
            raise ManifestError("The release's rows hold a value that their cell does not have.")
        return smallest(np.where(missing, self.state_count - 1, states), self.state_count)

    def _positions(self) -> Ints:
        """Where every row's published value stands in the domain; after its end where missing values are exempt."""
        names = self._layout.sensitive_columns
        domain = [value if len(names) > 1 else (value,) for value in self._layout.domain]
        place = {tuple(plain(part) for part in value): i for i, value in enumerate(domain)}  # type: ignore[attr-defined]
        columns = [encode(self._read(name)) for name in names]
        radix = math.prod(column.size for column in columns)
        if radix > RADIX_LIMIT:
            raise QuestionError("The sensitive columns together have too many values to be counted.")
        key = mixed([column.codes for column in columns], [column.size for column in columns])
        used, inverse = (np.arange(radix), key) if radix <= 2**20 else np.unique(key, return_inverse=True)
        lists = [[plain(value) for value in [*column.values.to_pylist(), None]] for column in columns]
        lookup = np.empty(len(used), np.int64)
        for i, code in enumerate(used):
            parts = np.unravel_index(code, [column.size for column in columns])
            value = tuple(values[part] for values, part in zip(lists, parts, strict=True))
            lookup[i] = place.get(value, len(domain) if self._exempt and None in value else -1)
        positions: Ints = lookup[inverse]
        if (positions < 0).any():
            raise ManifestError("The release's rows hold a sensitive value that its manifest does not list.")
        return positions

    # -- tallies ---------------------------------------------------------------------------------------------------

    def tally(
        self, groups: Sequence[str], leaves: Sequence[Leaf], classes: Ints, values: Sequence[str] = ()
    ) -> Iterator[Block]:
        """Rows by group, class and state (see ``estimation.published.Counter``)."""
        sizes = [self._encoded(name).size for name in groups]
        inner = (int(classes.max(initial=0)) + 1) * self.state_count
        if math.prod(sizes) * inner <= DENSE_ENTRIES:
            yield from self._dense(groups, sizes, leaves, classes, values)
        else:
            yield from self._sparse(groups, leaves, classes, values)

    def _chunks(self, entries: int) -> Iterator[slice]:
        step = int(min(max(CHUNK_ROWS, entries), 2**22))
        return (slice(start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def _classes(self, leaves: Sequence[Leaf], classes: Ints, part: slice) -> Ints:
        pattern = np.zeros(part.stop - part.start, np.int64)
        for bit, (column, mask) in enumerate(leaves):
            pattern |= mask[self._encoded(column).codes[part]].astype(np.int64) << bit
        found: Ints = classes[pattern]
        return found

    def _inner(self, leaves: Sequence[Leaf], classes: Ints, part: slice) -> tuple[Ints | None, Ints]:
        """Which rows of a chunk count (None: all), and their class and state as one number."""
        states = self._states[part].astype(np.int64)
        if not leaves:
            return None, states
        found = self._classes(leaves, classes, part)
        kept = np.flatnonzero(found >= 0)
        return kept, found[kept] * self.state_count + states[kept]

    def _dense(
        self, groups: Sequence[str], sizes: list[int], leaves: Sequence[Leaf], classes: Ints, values: Sequence[str]
    ) -> Iterator[Block]:
        shape = (math.prod(sizes), int(classes.max(initial=0)) + 1, self.state_count)
        total = math.prod(shape)
        counts = np.zeros(total)
        moments = {name: Moments(np.zeros(total), np.zeros(total), np.zeros(total)) for name in values}
        for part in self._chunks(total):
            kept, key = self._inner(leaves, classes, part)
            if groups:
                codes = [self._encoded(name).codes[part] for name in groups]
                key += mixed([c if kept is None else c[kept] for c in codes], sizes) * (shape[1] * shape[2])
            counts += np.bincount(key, minlength=total)
            for name, moment in moments.items():
                number = self._number(name)[self._encoded(name).codes[part]]
                add_moments(moment, key, number if kept is None else number[kept])
        counts = counts.reshape(shape)
        filled = np.flatnonzero(counts.any(axis=(1, 2))) if groups else np.arange(1)
        keys = np.stack(np.unravel_index(filled, sizes), axis=1) if groups else np.zeros((1, 0), np.int64)
        everything = len(filled) == shape[0]
        pick = slice(None) if everything else filled
        yield Block(
            keys.astype(np.int64),
            counts[pick],
            {
                name: Moments(*(a.reshape(shape)[pick] for a in (moment.rows, moment.sums, moment.squares)))
                for name, moment in moments.items()
            },
        )

    def _sparse(
        self, groups: Sequence[str], leaves: Sequence[Leaf], classes: Ints, values: Sequence[str]
    ) -> Iterator[Block]:
        inner = (int(classes.max(initial=0)) + 1, self.state_count)
        width = inner[0] * inner[1]
        kept, key = self._inner(leaves, classes, slice(0, self.rows))
        group = self._group_numbers(groups, kept)
        names, first, group = np.unique(group, return_index=True, return_inverse=True)
        if len(names) * width > ALL_ENTRIES:
            raise QuestionError(
                f"The question has {len(names):,} groups of {width:,} counts each, more than can be answered. "
                "Fix: group by fewer columns, or ask about a part of the rows."
            )
        rows = first if kept is None else kept[first]
        keys = np.stack([self._encoded(name).codes[rows].astype(np.int64) for name in groups], axis=1)
        order = np.argsort(group, kind="stable")
        edges = np.searchsorted(group[order], np.arange(len(names) + 1))
        step = max(1, BLOCK_ENTRIES // width)
        for start in range(0, max(len(names), 1), step):
            stop = min(start + step, len(names))
            chosen = order[edges[start] : edges[stop]]
            flat = (group[chosen] - start) * width + key[chosen]
            total = (stop - start) * width
            moments = {}
            for name in values:
                moment = Moments(np.zeros(total), np.zeros(total), np.zeros(total))
                original = chosen if kept is None else kept[chosen]
                add_moments(moment, flat, self._number(name)[self._encoded(name).codes[original]])
                shaped = (a.reshape(-1, *inner) for a in (moment.rows, moment.sums, moment.squares))
                moments[name] = Moments(*shaped)
            counts = np.bincount(flat, minlength=total).astype(np.float64).reshape(-1, *inner)
            yield Block(keys[start:stop], counts, moments)

    def _group_numbers(self, groups: Sequence[str], kept: Ints | None) -> Ints:
        """One number per row that tells its group, compressed whenever the radix would grow too large."""
        number, radix = np.zeros(self.rows if kept is None else len(kept), np.int64), 1
        for name in groups:
            column = self._encoded(name)
            if radix * column.size > RADIX_LIMIT:
                used, number = np.unique(number, return_inverse=True)
                radix = len(used)
            number = number * column.size + (column.codes if kept is None else column.codes[kept])
            radix *= column.size
        return number

    # -- pools of questions ------------------------------------------------------------------------------------------

    def pool(self, questions: Sequence[Sequence[Leaf]]) -> Floats:
        """For each conjunction of leaves, the rows that satisfy it, by state: one cube per set of columns."""
        found = np.zeros((len(questions), self.state_count))
        by_columns: dict[tuple[str, ...], list[int]] = {}
        for i, leaves in enumerate(questions):
            by_columns.setdefault(tuple(sorted({column for column, _ in leaves})), []).append(i)
        for columns, members in by_columns.items():
            shape = (*(self._encoded(name).size for name in columns), self.state_count)
            if math.prod(shape) > DENSE_ENTRIES:
                for i in members:
                    classes = np.full(2 ** len(questions[i]), -1)
                    classes[-1] = 0
                    found[i] = next(self.tally((), questions[i], classes)).counts[0, 0]
                continue
            cube = self._cubes.get(columns, shape, self._count_cube)
            for i in members:
                found[i] = slice_cube(cube, columns, questions[i])
        return found

    def _count_cube(self, columns: tuple[str, ...], shape: tuple[int, ...]) -> Cube:
        """Rows by the codes of some columns and the state."""
        total = math.prod(shape)
        cube = np.zeros(total, np.uint32 if self.rows < 2**32 else np.int64)
        for part in self._chunks(total):
            codes = [self._encoded(name).codes[part] for name in columns]
            counted = np.bincount(mixed([*codes, self._states[part]], shape), minlength=total)
            np.add(cube, counted, out=cube, casting="unsafe")
        return cube.reshape(shape)
