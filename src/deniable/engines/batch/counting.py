"""Counting the rows of a release: dictionary codes, mixed-radix keys, ``bincount``; never a loop over rows.

A row's *state* is its cell and its published value, as one number: cell i's values take the numbers from
m_0 + .. + m_{i-1}. A tally counts rows by (group, class, state); when that array would be too large to hold, keys are
sorted instead, and the tally is handed out a few groups at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Codes, Floats, Ints
from deniable.core.errors import QuestionError
from deniable.core.tally import Block, CodedRows, CodeMask, Derived, Moments
from deniable.engines.batch.columns import Encoded, derived_column, mixed, smallest
from deniable.engines.batch.cubes import Cube, Cubes, combinations_of, slice_cube

DENSE_ENTRIES = 2**24  # of a tally or a cube held in one piece
BLOCK_ENTRIES = 2**22  # of one block of a tally that is handed out in pieces
ALL_ENTRIES = 2**35  # of a whole tally; beyond it a question is refused
CHUNK_ROWS = 2**18
RADIX_LIMIT = 2**62


class CodeCounter:
    """Counts rows whose columns are codes.

    Args:
        encoded: a column as codes; asked for when a question first needs it.
        states: the state of every row, made when first needed; None where there are none to tell apart.
        state_count: how many states there are.
        rows: how many rows.
    """

    def __init__(
        self, encoded: Callable[[str], Encoded], states: Callable[[], Codes] | None, state_count: int, rows: int
    ) -> None:
        self._encode = encoded
        self._make_states = states
        self._columns: dict[str, Encoded] = {}
        self._numbers: dict[str, Floats] = {}
        self._cubes = Cubes()
        self.state_count = state_count
        self.rows = rows

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a column, without missing."""
        return self._encoded(column).values

    def _encoded(self, column: str) -> Encoded:
        if column not in self._columns:
            self._columns[column] = self._encode(column)
        return self._columns[column]

    def with_columns(self, derived: Sequence[Derived]) -> CodeCounter:
        """A counter that has some more columns, computed where a question first needs them."""
        more = {column.name: column for column in derived}

        def encoded(name: str) -> Encoded:
            if name not in more:
                return self._encoded(name)
            return derived_column(more[name], [counter._encoded(source) for source in more[name].sources])

        counter = CodeCounter(encoded, lambda: self._states, self.state_count, self.rows)
        return counter

    def under(self, values: Mapping[str, pa.Array]) -> CodeCounter:
        """A counter of the same rows whose codes are places in given values: those of a table that these rows are a
        part of. Columns without given values keep their own."""

        def encoded(name: str) -> Encoded:
            own = self._encoded(name)
            if name not in values:
                return own
            places = pc.index_in(own.values, value_set=values[name]).to_numpy(zero_copy_only=False)
            whole = np.append(places, len(values[name])).astype(np.int64)
            return Encoded(values[name], smallest(whole[own.codes], len(values[name]) + 1))

        return CodeCounter(encoded, lambda: self._states, self.state_count, self.rows)

    def _number(self, column: str) -> Floats:
        """A numeric column as floats, missing as NaN, looked up through its codes so that nothing large is kept."""
        if column not in self._numbers:
            values = pc.cast(self._encoded(column).values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            self._numbers[column] = np.append(values, np.nan)
        return self._numbers[column]

    @cached_property
    def _states(self) -> Codes:
        return np.zeros(self.rows, np.uint8) if self._make_states is None else self._make_states()

    # -- tallies ---------------------------------------------------------------------------------------------------

    def tally(
        self,
        groups: Sequence[str],
        masks: Sequence[CodeMask],
        classes: Ints,
        values: Sequence[str] = (),
        *,
        states: bool = False,
    ) -> Iterator[Block]:
        """Rows by group, class and state (see ``core.tally.Counter``)."""
        sizes = [self._encoded(name).size for name in groups]
        rows = _Rows(self, masks, classes, states)
        if math.prod(sizes) * rows.width <= DENSE_ENTRIES:
            yield self._dense(groups, sizes, rows, values)
        else:
            yield from self._sparse(groups, rows, values)

    def coded(self, columns: Sequence[str], masks: Sequence[CodeMask], *, states: bool = False) -> CodedRows:
        """Every row's codes, pattern and state (see ``core.tally.Counter``)."""
        keys = np.empty((self.rows, len(columns)), np.int64)
        for place, name in enumerate(columns):
            keys[:, place] = self._encoded(name).codes
        own = self._states if states else np.zeros(self.rows, np.uint8)
        return CodedRows(keys, self._patterns(masks, slice(0, self.rows)), own.astype(np.int64))

    def _patterns(self, masks: Sequence[CodeMask], part: slice) -> Ints:
        pattern = np.zeros(part.stop - part.start, np.int64)
        for bit, (column, mask) in enumerate(masks):
            pattern |= mask[self._encoded(column).codes[part]].astype(np.int64) << bit
        return pattern

    def _chunks(self, entries: int) -> Iterator[slice]:
        step = int(min(max(CHUNK_ROWS, entries), 2**22))
        return (slice(start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def _dense(self, groups: Sequence[str], sizes: list[int], rows: _Rows, values: Sequence[str]) -> Block:
        shape = (math.prod(sizes), *rows.shape)
        total = math.prod(shape)
        counts = np.zeros(total)
        moments = {name: _no_moments(total) for name in values}
        for part in self._chunks(total):
            kept, key = rows.keys(part)
            if groups:
                codes = [self._encoded(name).codes[part] for name in groups]
                key += mixed([c if kept is None else c[kept] for c in codes], sizes) * rows.width
            counts += np.bincount(key, minlength=total)
            for name, moment in moments.items():
                number = self._number(name)[self._encoded(name).codes[part]]
                _add_moments(moment, key, number if kept is None else number[kept])
        counts = counts.reshape(shape)
        filled = np.flatnonzero(counts.any(axis=(1, 2))) if groups else np.arange(1)
        keys = np.stack(np.unravel_index(filled, sizes), axis=1) if groups else np.zeros((1, 0), np.int64)
        pick = slice(None) if len(filled) == shape[0] else filled
        shaped = {name: _shaped(moment, shape, pick) for name, moment in moments.items()}
        return Block(keys.astype(np.int64), counts[pick], shaped)

    def _sparse(self, groups: Sequence[str], rows: _Rows, values: Sequence[str]) -> Iterator[Block]:
        kept, key = rows.keys(slice(0, self.rows))
        group = self._group_numbers(groups, kept)
        names, first, group = np.unique(group, return_index=True, return_inverse=True)
        if len(names) * rows.width > ALL_ENTRIES:
            raise QuestionError(
                f"The question has {len(names):,} groups of {rows.width:,} counts each, more than can be answered. "
                "Fix: group by fewer columns, or ask about a part of the rows."
            )
        heads = first if kept is None else kept[first]
        keys = np.stack([self._encoded(name).codes[heads].astype(np.int64) for name in groups], axis=1)
        order = np.argsort(group, kind="stable")
        edges = np.searchsorted(group[order], np.arange(len(names) + 1))
        step = max(1, BLOCK_ENTRIES // rows.width)
        for start in range(0, max(len(names), 1), step):
            stop = min(start + step, len(names))
            chosen = order[edges[start] : edges[stop]]
            flat = (group[chosen] - start) * rows.width + key[chosen]
            total, shape = (stop - start) * rows.width, (stop - start, *rows.shape)
            moments = {}
            for name in values:
                moment = _no_moments(total)
                original = chosen if kept is None else kept[chosen]
                _add_moments(moment, flat, self._number(name)[self._encoded(name).codes[original]])
                moments[name] = _shaped(moment, shape, slice(None))
            counts = np.bincount(flat, minlength=total).astype(np.float64).reshape(shape)
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

    # -- many conjunctions ---------------------------------------------------------------------------------------------

    def conjunctions(self, questions: Sequence[Sequence[CodeMask]]) -> Floats:
        """For each conjunction of masks, the rows that satisfy it, by state: by one cube for each set of columns where
        so many questions share it that it pays, else row by row."""
        counts = np.zeros((len(questions), self.state_count))
        by_columns: dict[tuple[str, ...], list[int]] = {}
        for i, masks in enumerate(questions):
            by_columns.setdefault(tuple(sorted({column for column, _ in masks})), []).append(i)
        for columns, members in by_columns.items():
            sizes = [self._encoded(name).size for name in columns]
            shape = (*sizes, self.state_count)
            if math.prod(sizes) > DENSE_ENTRIES:
                for i in members:
                    classes = np.full(2 ** len(questions[i]), -1)
                    classes[-1] = 0
                    counts[i] = next(self.tally((), questions[i], classes, states=True)).counts[0, 0]
            elif math.prod(shape) <= DENSE_ENTRIES and self._cubes.pays(columns, shape, len(members), self.rows):
                cube = self._cubes.get(columns, shape, self._count_cube)
                for i in members:
                    counts[i] = slice_cube(cube, columns, questions[i])
            else:
                counts[members] = self._picked(columns, sizes, [questions[i] for i in members])
        return counts

    def _picked(
        self, columns: tuple[str, ...], sizes: Sequence[int], questions: Sequence[Sequence[CodeMask]]
    ) -> Floats:
        """Rows by state of conjunctions on the same columns: combinations of codes that are meant, looked up."""
        counts = np.zeros((len(questions), self.state_count))
        for part in self._chunks(0):
            key = mixed([self._encoded(name).codes[part] for name in columns], sizes)
            states = self._states[part]
            for own, question in zip(counts, questions, strict=True):
                taken = states[np.flatnonzero(combinations_of(columns, question).take(key))]
                own += np.bincount(taken, minlength=self.state_count)
        return counts

    def _count_cube(self, columns: tuple[str, ...], shape: tuple[int, ...]) -> Cube:
        """Rows by the codes of some columns and the state."""
        total = math.prod(shape)
        cube = np.zeros(total, np.uint32 if self.rows < 2**32 else np.int64)
        for part in self._chunks(total):
            codes = [self._encoded(name).codes[part] for name in columns]
            counted = np.bincount(mixed([*codes, self._states[part]], shape), minlength=total)
            np.add(cube, counted, out=cube, casting="unsafe")
        return cube.reshape(shape)


class _Rows:
    """The class and state of rows as one number, for one tally."""

    def __init__(self, counter: CodeCounter, masks: Sequence[CodeMask], classes: Ints, states: bool) -> None:
        self._counter, self._masks, self._classes, self._with_states = counter, masks, classes, states
        self.shape = (int(classes.max(initial=0)) + 1, counter.state_count if states else 1)
        self.width = self.shape[0] * self.shape[1]

    def keys(self, part: slice) -> tuple[Ints | None, Ints]:
        """Which rows of a chunk count (None: all), and their class and state as one number."""
        counter, number = self._counter, part.stop - part.start
        states = counter._states[part].astype(np.int64) if self._with_states else np.zeros(number, np.int64)
        if not self._masks and self._classes[0] == 0:
            return None, states
        own: Ints = self._classes[counter._patterns(self._masks, part)]
        kept = np.flatnonzero(own >= 0)
        return kept, own[kept] * self.shape[1] + states[kept]


def _no_moments(total: int) -> Moments:
    return Moments(np.zeros(total), np.zeros(total), np.zeros(total))


def _shaped(moment: Moments, shape: tuple[int, ...], pick: slice | Ints) -> Moments:
    return Moments(*(array.reshape(shape)[pick] for array in (moment.rows, moment.sums, moment.squares)))


def _add_moments(moment: Moments, key: Ints, number: Floats) -> None:
    """Add rows, sums and sums of squares of the numbers that are not missing."""
    there = ~np.isnan(number)
    if not there.all():
        key, number = key[there], number[there]
    total = len(moment.rows)
    moment.rows[:] += np.bincount(key, minlength=total)
    moment.sums[:] += np.bincount(key, weights=number, minlength=total)
    moment.squares[:] += np.bincount(key, weights=number * number, minlength=total)
