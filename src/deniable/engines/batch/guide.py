"""The kernel's fast path: two look-ups a row, and what the channels' own integers say, to the last bit.

coin:         the row's word is below keep 2^32; keep is looked up by cell and value, two rows at a time where
              both fit into 16 bits
replacement:  a step function of the low 32 bits. Their range is cut into equal stretches; most lie within one step
              and name its value, and rows whose draw falls into another are worked out from the step itself
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Bools, Codes, Ints, Words
from deniable.core.errors import InternalError
from deniable.core.exact import SCALE

QUARTER_BITS = 16  # of a draw: its quarter of a word is read without arithmetic
STRETCHES = 64  # for each edge of a step function, so that few of them hold one
CACHED, LARGEST = 2**17, 2**20  # stretches that the second-level cache holds; above the largest there is no guide
INSIDE: Literal["wrap"] = "wrap"  # how NumPy looks up places that are in a table: two thirds of the time of "clip"
UNKNOWN, ALWAYS = 1, 2**64 - 2  # limits that no keep below 2^32 has: of a pair that is none, of a coin that is 1
_32 = np.uint64(32)
_LOW = np.uint64(SCALE - 1)
_ONE = np.uint64(1)


class Steps(ABC):
    """Channels as the coins and step functions that they are."""

    cells: int

    @abstractmethod
    def drawn(self, low: Words, cells: npt.NDArray[Any] | None) -> Ints:
        """The replacements of some rows, from the low halves of their words."""

    @abstractmethod
    def steps(self, cell: int) -> tuple[Ints, Ints]:
        """The same for a cell as steps: where they begin, and the code of each; of several at one place the last."""

    @abstractmethod
    def keeps(self) -> tuple[Ints, int] | None:
        """Thresholds by key = cell width + code, -1 where a cell lacks the value; width 0: by cell. None: too many."""


class Buffers:
    """What a thread reuses for every chunk: new memory would cost as much as the arithmetic."""

    _kept = threading.local()

    @classmethod
    def of(cls, rows: int, codes: np.dtype[Any]) -> Buffers:
        """This thread's own, from one call to the next."""
        mine: Buffers | None = getattr(cls._kept, codes.str, None)
        if mine is None or len(mine.index) < rows:
            mine = cls(rows, codes)
            setattr(cls._kept, codes.str, mine)
        return mine

    def __init__(self, rows: int, codes: np.dtype[Any]) -> None:
        even = rows + rows % 2
        self.index = np.zeros(rows, dtype=np.int64)
        self.keys = np.empty(even, dtype=np.int64)
        self.narrow = np.zeros(even, dtype=np.int64)
        self.limits = np.empty(even, dtype=np.uint64)
        self.kept = np.empty(rows, dtype=bool)
        self.spare = np.empty(rows, dtype=codes)


class Guide:
    """The tables of some channels, for codes of one type."""

    def __init__(self, steps: Steps, keeps: tuple[Ints, int], bits: int, codes: np.dtype[Any]) -> None:
        self._steps = steps
        self._dtype = codes
        self._searched = np.iinfo(codes).max  # a value of that code is searched, too: correct, and seldom
        self._bits = bits
        cells = range(steps.cells)
        self._guide = np.concatenate([_stretches(*steps.steps(cell), bits, self._searched) for cell in cells])
        self._guide = self._guide.astype(codes)
        keep, self._width = keeps
        limit = keep.astype(np.uint64) << _32
        limit[keep == SCALE], limit[keep < 0] = ALWAYS, UNKNOWN
        self._some_always, self._full = bool((keep == SCALE).any()), bool((keep >= 0).all())
        self._key_type = np.min_scalar_type(len(limit))
        self._in_pairs = len(limit) <= 256 and codes.itemsize == 1
        self._limits = _in_pairs(limit) if self._in_pairs else np.append(limit, np.uint64(UNKNOWN))

    @classmethod
    def of(cls, steps: Steps, codes: np.dtype[Any]) -> Guide | None:
        """A guide, where one is worth its memory."""
        keeps = steps.keeps()
        if keeps is None or steps.cells << 1 > LARGEST:
            return None
        edges = max(len(steps.steps(cell)[0]) for cell in range(steps.cells))
        bits = QUARTER_BITS
        while steps.cells << bits > CACHED and 1 << bits > STRETCHES * edges:
            bits -= 1
        while steps.cells == 1 and 1 << bits < STRETCHES * edges and 2 << bits <= LARGEST:
            bits += 1
        too_large = steps.cells << bits > LARGEST or STRETCHES * edges > 8 << bits
        return None if too_large else cls(steps, keeps, bits, codes)

    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: Buffers) -> None:
        """Perturb a chunk; codes are of the guide's type."""
        count = len(codes)
        self._toss(codes, draws, cells, work)
        np.take(self._guide, self._stretch(draws, cells, work.index[:count]), out=out, mode=INSIDE)
        searched = np.flatnonzero(np.equal(out, self._searched, out=work.spare[:count].view(bool)[:count]))
        if len(searched):
            out[searched] = self._steps.drawn(draws[searched] & _LOW, None if cells is None else cells[searched])
        blend(codes, work.kept[:count], out, work.spare[:count])

    def _stretch(self, draws: Words, cells: npt.NDArray[Any] | None, out: Ints) -> Ints:
        """Which stretch of its cell's a row's draw is in."""
        if self._bits > QUARTER_BITS:  # of one cell
            np.bitwise_and(draws, _LOW, out=out.view(np.uint64))
            return np.right_shift(out, 32 - self._bits, out=out)
        if cells is None:
            np.copyto(out, _quarter(draws, 1))
        else:
            np.copyto(_quarter(out, 0), _quarter(draws, 1))
            np.copyto(_quarter(out, 1), cells, casting="unsafe")
        if self._bits < QUARTER_BITS:
            np.right_shift(out, QUARTER_BITS - self._bits, out=out)
        return out

    def _toss(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, work: Buffers) -> None:
        """Which rows their coins keep."""
        count = len(codes)
        limits, kept = work.limits[:count], work.kept[:count]
        if self._in_pairs:
            even = count + count % 2
            narrow = work.narrow.view(np.uint8)[:even]
            narrow[count:] = 0
            self._key(codes, cells, narrow[:count])
            np.copyto(work.keys[: even // 2], narrow.view(np.uint16))
            np.take(self._limits, work.keys[: even // 2], out=work.limits[:even].view(np.complex128), mode=INSIDE)
        else:
            keys = work.keys[:count]
            alone = cells is None and self._width
            np.copyto(keys, codes if alone else self._key(codes, cells, work.narrow.view(self._key_type)[:count]))
            np.take(self._limits, keys, out=limits, mode=INSIDE if self._full else "clip")  # beyond the last: unknown
        np.less(draws, limits, out=kept)
        self._require_known(codes, cells, limits)
        if self._some_always:
            np.logical_or(kept, limits == np.uint64(ALWAYS), out=kept)

    def _key(self, codes: Codes, cells: npt.NDArray[Any] | None, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if cells is None:
            np.copyto(out, codes if self._width else 0, casting="unsafe")
            return out
        np.copyto(out, cells, casting="unsafe")
        if self._width:
            np.multiply(out, self._width, out=out)
            np.add(out, codes, out=out, casting="unsafe")
        return out

    def _require_known(self, codes: Codes, cells: npt.NDArray[Any] | None, limits: Words) -> None:
        if self._full:  # every cell has every value: looking at both costs less than at 64 bits of each row
            known = not self._width or codes.max(initial=0) < self._width
            known = known and (cells is None or cells.max(initial=0) < self._steps.cells)
        else:
            known = not np.bitwise_or.reduce(limits) & _ONE
        if not known:
            raise InternalError("a row was dealt to a cell that does not have its value")


def blend(codes: Codes, kept: Bools, out: Codes, spare: Codes) -> None:
    """out = codes where kept, without a branch: a random coin defeats branch prediction."""
    np.subtract(codes, out, out=spare)
    np.multiply(spare, kept.view(np.uint8), out=spare, casting="unsafe")
    np.add(out, spare, out=out)


def _stretches(edges: Ints, codes: Ints, bits: int, searched: int) -> Ints:
    """The code of every stretch of a draw that lies within one step; ``searched`` where an edge is inside."""
    width = 32 - bits
    before = np.cumsum(np.bincount(-(-edges >> width), minlength=(1 << bits) + 1)[: 1 << bits])
    named: Ints = codes[before - 1]
    named[edges[edges & (1 << width) - 1 != 0] >> width] = searched
    return named


def _in_pairs(limit: Words) -> npt.NDArray[np.complex128]:
    """The limits of two rows, by their two keys as they lie side by side in memory."""
    every = np.full(256, UNKNOWN, dtype=np.uint64)
    every[: len(limit)] = limit
    keys = np.arange(2**16, dtype=np.uint16).view(np.uint8)
    return every[keys].view(np.complex128)


def _quarter(words: npt.NDArray[Any], number: int) -> npt.NDArray[np.uint16]:
    """The number-th 16 bits of each 64-bit word, from the lowest."""
    return words.view(np.uint16)[number if sys.byteorder == "little" else 3 - number :: 4]
