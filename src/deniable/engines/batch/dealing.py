"""Dealing: which rows of a value go to which cell of a plan (mathematics 1).

The t-th row of value x goes to the cell that owns place pi_x(t), where pi_x is a secret permutation of 0..f_x-1: cells
get exactly the rows that were planned, every way to choose them is equally likely, and batches do not matter.

    f_x <= 4096:  pi_x sorts f_x random words
    f_x >  4096:  pi_x is a Feistel network of 8 rounds over Z_a x Z_b, a b >= f_x, walked until it lands below f_x;
                  its round functions are tables of random words, so memory grows with the root of f_x only
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Cells, Codes, Ints, Words
from deniable.core.errors import table_changed
from deniable.core.plan import PlannedPart
from deniable.engines.randomness import Keystream

EXPLICIT = 4096  # rows of a value up to which its permutation is a list
ROUNDS = 8
_BLOCK_ROWS = 2**18  # explicit permutations are made for this many rows at a time


class Dealer:
    """Deals the rows of a table to the cells of a planned part. A row's cell depends on how many rows of its value came
    before it, which is an argument: any part of a table can deal its own rows."""

    def __init__(self, part: PlannedPart, keystream: Keystream) -> None:
        dealt = list(part.value_cells().values())
        self.planned = self._planned = part.values.counts
        self._only = np.array([cells[0][0] if len(cells) == 1 else -1 for cells in dealt], dtype=np.int32)
        self._only[self._planned == 0] = 0  # no row will ask
        split = self._only < 0
        self._small = split & (self._planned <= EXPLICIT)
        large = split & ~self._small
        self._lists = _Explicit(np.flatnonzero(self._small), self._planned, dealt, keystream.subkey("dealing", "lists"))
        self._networks = _Feistel(np.flatnonzero(large), self._planned, dealt, keystream.subkey("dealing", "networks"))
        self._any_split = bool(split.any())

    def deal(self, codes: Codes, seen: Ints) -> Cells:
        """The cell of each row of a batch; codes are positions in the table's domain.

        ``seen`` says how many rows of each value come before this batch.
        """
        counts = self.counts(codes)
        if len(counts) > len(seen) or (seen + counts > self._planned).any():
            raise table_changed("more rows of a value came than were counted")
        cells: Cells = self._only[codes]
        if self._any_split:
            rows = np.flatnonzero(cells < 0)
            values, order, ranks = _ranked(codes[rows], counts, seen)
            small = self._small[values]
            dealt = np.empty(len(rows), dtype=np.int32)
            dealt[small] = self._lists.cells(values[small], ranks[small])
            dealt[~small] = self._networks.cells(values[~small], ranks[~small])
            cells[rows[order]] = dealt
        return cells

    def counts(self, codes: Codes) -> Ints:
        """How many rows of each value a batch has."""
        return np.bincount(codes, minlength=len(self._planned))


class DrawnCells:
    """Cells that rows draw for themselves, each value's in the planned proportion: no row's cell depends on another's.

    A value owns 2^32 numbers, its cells stretches of them as long as their share of its rows.
    """

    def __init__(self, part: PlannedPart) -> None:
        ends, cells = [], []
        for code, dealt in enumerate(part.value_cells().values()):
            pairs = dealt or [(0, 1)]  # no row asks, unless it is the first of a value that had none
            rows = np.cumsum([n for _, n in pairs], dtype=np.float64)
            stretch = np.floor(rows / rows[-1] * 2**32).astype(np.int64)
            ends.append((code << 32) + stretch)
            cells += [cell for cell, _ in pairs]
        self._ends = np.concatenate(ends)
        self._cells = np.array(cells, dtype=np.int32)

    def cells(self, codes: Codes, words: Words) -> Cells:
        """The cell of each row, from its code and a random word of its own."""
        places = (codes.astype(np.int64) << 32) + (words >> np.uint64(32)).astype(np.int64)
        drawn: Cells = self._cells[np.searchsorted(self._ends, places, side="right")]
        return drawn


def require_all_dealt(seen: Ints, planned: Ints) -> None:
    """Check, when all batches were dealt, that every planned row has come."""
    if not np.array_equal(seen, planned):
        raise table_changed("fewer rows of a value came than were counted")


def _ranked(codes: Codes, counts: Ints, seen: Ints) -> tuple[Ints, npt.NDArray[np.intp], Ints]:
    """Rows sorted by value: the values, the order that sorts them, and each row's rank among its value's rows."""
    narrow = codes.astype(np.uint16) if len(counts) <= 2**16 else codes  # 16-bit keys are sorted by radix
    order = np.argsort(narrow, kind="stable")
    values = codes[order].astype(np.int64)
    heads = np.flatnonzero(np.diff(values, prepend=-1))
    lengths = np.diff(heads, append=len(values))
    ranks = np.arange(len(values)) - np.repeat(heads, lengths) + seen[values]
    return values, order, ranks


class _Explicit:
    """The shuffled cells of rare values, as one list; a block of it is made when a row first asks for it."""

    def __init__(self, values: Ints, planned: Ints, dealt: list[list[tuple[int, int]]], keystream: Keystream) -> None:
        self._keystream = keystream
        rows = planned[values]
        self._first = np.zeros(len(planned), dtype=np.int64)
        self._first[values] = np.cumsum(rows) - rows
        self._block = np.zeros(len(planned), dtype=np.int64)
        self._block[values] = self._first[values] // _BLOCK_ROWS
        self._values = values
        self._rows = rows
        pairs = [pair for value in values for pair in dealt[value]]
        self._cell = np.repeat(
            np.array([cell for cell, _ in pairs], dtype=np.int32), np.array([n for _, n in pairs], dtype=np.int64)
        )
        self._made = np.zeros(int(rows.sum()) // _BLOCK_ROWS + 1, dtype=bool)

    def cells(self, values: Ints, ranks: Ints) -> Cells:
        blocks = np.flatnonzero(np.bincount(self._block[values], minlength=len(self._made)) * ~self._made)
        for block in blocks:
            self._make(int(block))
        dealt: Cells = self._cell[self._first[values] + ranks]
        return dealt

    def _make(self, block: int) -> None:
        """Shuffle the cells of each value of a block: sort by value, then by a random word."""
        inside = self._block[self._values] == block
        rows = self._rows[inside]
        first, total = int(self._first[self._values[inside][0]]), int(rows.sum())
        words = self._keystream.words(first, total)
        order = np.lexsort((words, np.repeat(np.arange(len(rows)), rows)))
        self._cell[first : first + total] = self._cell[first : first + total][order]
        self._made[block] = True


class _Feistel:
    """A permutation of 0..f-1 for each frequent value, computed row by row.

    A place is l b + r with l < a, r < b; even rounds do l += T(r) mod a, odd rounds r += T(l) mod b.
    """

    def __init__(self, values: Ints, planned: Ints, dealt: list[list[tuple[int, int]]], keystream: Keystream) -> None:
        index = np.zeros(len(planned), dtype=np.int64)
        index[values] = np.arange(len(values))
        self._index = index
        self._f = planned[values]
        self._a = np.array([math.isqrt(int(f) - 1) + 1 for f in self._f], dtype=np.int64)
        self._b = -(-self._f // np.maximum(self._a, 1))
        sizes = ROUNDS * self._a  # every round gets a entries, b of which are used by even rounds
        self._table_first = np.cumsum(sizes) - sizes
        self._table = np.empty(int(sizes.sum()), dtype=np.uint32)
        for a, b, first in zip(self._a.tolist(), self._b.tolist(), self._table_first.tolist(), strict=True):
            words = keystream.words(first, ROUNDS * a).reshape(ROUNDS, a)
            moduli = np.array([a, b] * (ROUNDS // 2), dtype=np.uint64)[:, None]
            self._table[first : first + ROUNDS * a] = (words % moduli).ravel()
        self._place_first = np.cumsum(self._f) - self._f
        pairs = [pair for value in values for pair in dealt[value]]
        self._ends = np.cumsum([n for _, n in pairs], dtype=np.int64)
        self._cells = np.array([cell for cell, _ in pairs], dtype=np.int32)

    def cells(self, values: Ints, ranks: Ints) -> Cells:
        if not len(values):
            return np.empty(0, dtype=np.int32)
        index = self._index[values]
        places = self._permuted(index, ranks)
        outside = np.flatnonzero(places >= self._f[index])
        while len(outside):  # a cycle that starts below f comes back below f
            places[outside] = self._permuted(index[outside], places[outside])
            outside = outside[places[outside] >= self._f[index[outside]]]
        dealt: Cells = self._cells[np.searchsorted(self._ends, self._place_first[index] + places, side="right")]
        return dealt

    def _permuted(self, index: Ints, places: Ints) -> Ints:
        a, b, first = self._a[index], self._b[index], self._table_first[index]
        left, right = np.divmod(places, b)
        for turn in range(ROUNDS):
            if turn % 2 == 0:
                left += self._table[first + right]
                left -= a * (left >= a)
            else:
                right += self._table[first + left]
                right -= b * (right >= b)
            first += a
        result: Ints = left * b + right
        return result
