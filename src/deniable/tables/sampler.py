"""The sampler: codes and random words in, perturbed codes out (mathematics 1)."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deniable.core.channels import Channel
from deniable.core.errors import InternalError
from deniable.core.exact import SCALE
from deniable.core.values import Bools, Codes, Ints, Words
from deniable.tables.keys import Keystream

# -- The kernel's fast path: two look-ups a row, and what the channels' own integers say, to the last bit --------------
# coin:         the row's word is below keep 2^32; keep is looked up by cell and value, two rows at a time where
#               both fit into 16 bits
# replacement:  a step function of the low 32 bits. Their range is cut into equal stretches; most lie within one step
#               and name its value, and rows whose draw falls into another are worked out from the step itself


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


# -- The kernel: codes and random words in, perturbed codes out (mathematics 1) ----------------------------------------
#     coin:         the high 32 bits of the row's word; the value is kept iff they are below keep[value]
#     replacement:  the low 32 bits; value j owns exactly replace[j] of their 2^32 numbers
#
# Each row is a pure function of its code, its word and its cell, so chunks and threads cannot change a release. Where
# there are many rows, a guide (``batch.guide``) does the same in two look-ups a row.


CHUNK = 128 * 1024  # rows; work buffers stay near the processor, and calls cost little beside the arithmetic
GUIDED_ROWS = 2**14  # from here on a guide costs less than it saves
DENSE_PAIRS = 2**22  # (cell, value) pairs up to here are looked up in a dense table, above by binary search

_LOW_WORD = np.uint64(0xFFFFFFFF)
_HIGH_HALF = slice(1 if sys.byteorder == "little" else 0, None, 2)  # of 64-bit words seen as pairs of 32 bits


class Kernel:
    """The sampler of a plan's channels.

    Args:
        channels: one channel per cell.
        positions: for each cell, where its channel's values stand in the table's domain.
    """

    def __init__(self, channels: Sequence[Channel], positions: Sequence[npt.ArrayLike]) -> None:
        places = [np.asarray(position, dtype=np.int64) for position in positions]
        if len(channels) != len(places) or any(c.m != len(p) for c, p in zip(channels, places, strict=True)):
            raise InternalError("a kernel needs one position for each value of each channel")
        self.cells = len(channels)
        self._largest = max(int(place.max()) for place in places)
        whole = len(places) == 1 and np.array_equal(places[0], np.arange(len(places[0])))
        self._guides: dict[np.dtype[Any], Guide | None] = {}
        self._path: _Path
        if whole and channels[0].is_uniform:
            self._path = WholeDomain(int(channels[0].keep[0]), channels[0].m)
        elif all(channel.is_uniform for channel in channels):
            self._path = _UniformCells(channels, places)
        else:
            self._path = _AliasCells(channels, places)

    def perturb(
        self, codes: Codes, draws: Words, cells: npt.NDArray[np.integer] | None = None, *, chunk: int = CHUNK
    ) -> Codes:
        """Perturbed codes, of the same type; row k uses the word draws[k] and the channel of cells[k]."""
        self._check(codes, cells)
        out = np.empty_like(codes)
        run = self._runner(codes, chunk)
        for first in range(0, len(codes), chunk):
            rows = slice(first, min(first + chunk, len(codes)))
            run(codes[rows], draws[rows], None if cells is None else cells[rows], out[rows])
        return out

    def perturb_rows(
        self,
        codes: Codes,
        source: Keystream,
        start: int = 0,
        cells: npt.NDArray[np.integer] | None = None,
        *,
        chunk: int = CHUNK,
    ) -> Codes:
        """Perturbed codes of rows start, start + 1, ...: row k uses the k-th word of the source.

        The words never exist at once, only a chunk of them.
        """
        self._check(codes, cells)
        out = np.empty_like(codes)
        words = np.empty(min(chunk, len(codes)), dtype=np.uint64)
        run = self._runner(codes, chunk)
        for first in range(0, len(codes), chunk):
            rows = slice(first, min(first + chunk, len(codes)))
            draws = source.words(start + first, rows.stop - first, words[: rows.stop - first])
            run(codes[rows], draws, None if cells is None else cells[rows], out[rows])
        return out

    def _runner(self, codes: Codes, chunk: int) -> Callable[[Codes, Words, npt.NDArray[Any] | None, Codes], None]:
        """What perturbs chunks of these codes, with buffers that one thread reuses."""
        rows, kind = min(chunk, len(codes)), codes.dtype
        if len(codes) >= GUIDED_ROWS and not isinstance(self._path, WholeDomain):
            if kind not in self._guides:
                self._guides[kind] = Guide.of(self._path, kind)
            guide = self._guides[kind]
            if guide is not None:
                return partial(guide.run, work=Buffers.of(rows, kind))
        return partial(self._path.run, work=_Work(rows, kind))

    def _check(self, codes: Codes, cells: npt.NDArray[np.integer] | None) -> None:
        if codes.dtype.kind not in "ui" or self._largest > np.iinfo(codes.dtype).max:
            raise InternalError(f"codes of type {codes.dtype} cannot hold this domain")
        if cells is None and self.cells > 1:
            raise InternalError("a plan of several cells needs the cell of each row")


class _Work:
    """Buffers that a thread reuses for every chunk: allocating them anew would cost more than the arithmetic."""

    def __init__(self, rows: int, codes: np.dtype[Any]) -> None:
        self.low = np.empty(rows, dtype=np.uint64)
        self.kept = np.empty(rows, dtype=bool)
        self.spare = np.empty(rows, dtype=codes)


class WholeDomain:
    """One uniform channel over the whole domain: one comparison, one multiplication, one blend."""

    def __init__(self, keep: int, m: int) -> None:
        self.keep, self.m = keep, np.uint64(m)

    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: _Work) -> None:
        n = len(codes)
        low = work.low[:n]
        if self.keep == 0:
            work.kept[:n] = False
        else:  # high < keep, said of the whole word: keep 2^32 may itself be 2^64
            np.less_equal(draws, np.uint64(self.keep * SCALE - 1), out=work.kept[:n])
        np.bitwise_and(draws, _LOW_WORD, out=low)
        np.multiply(low, self.m, out=low)
        np.copyto(out, low.view(np.uint32)[_HIGH_HALF], casting="unsafe")  # floor(low m / 2^32)
        blend(codes, work.kept[:n], out, work.spare[:n])


class _Cells(Steps):
    """Channels of several cells, or of one over some other domain: a coin, and a step function to draw from."""

    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: _Work) -> None:
        n = len(codes)
        low, kept = work.low[:n], work.kept[:n]
        np.right_shift(draws, _32, out=low)
        np.less(low, self.thresholds(codes, cells), out=kept)
        np.bitwise_and(draws, _LOW_WORD, out=low)
        np.copyto(out, self.drawn(low, cells), casting="unsafe")
        blend(codes, kept, out, work.spare[:n])

    @abstractmethod
    def thresholds(self, codes: Codes, cells: npt.NDArray[Any] | None) -> Words | np.uint64:
        """What the high half of a row's word must be below for its value to be kept."""


class _UniformCells(_Cells):
    """Uniform channels over sub-domains: the coin and the size depend on the cell alone."""

    def __init__(self, channels: Sequence[Channel], places: Sequence[Ints]) -> None:
        self.cells = len(channels)
        self.keep = np.array([channel.keep[0] for channel in channels], dtype=np.uint64)
        self.m = np.array([channel.m for channel in channels], dtype=np.uint64)
        self.start = np.concatenate([[0], np.cumsum(self.m)[:-1]]).astype(np.int64)
        self.places = np.concatenate(places)

    def thresholds(self, codes: Codes, cells: npt.NDArray[Any] | None) -> Words | np.uint64:
        kept: Words | np.uint64 = self.keep[0 if cells is None else cells]
        return kept

    def drawn(self, low: Words, cells: npt.NDArray[Any] | None) -> Ints:
        cell = 0 if cells is None else cells
        index = (low * self.m[cell] >> _32).view(np.int64)
        return self.places[index + self.start[cell]]

    def steps(self, cell: int) -> tuple[Ints, Ints]:
        m, start = int(self.m[cell]), int(self.start[cell])
        return -(-np.arange(m, dtype=np.int64) * SCALE // m), self.places[start : start + m]

    def keeps(self) -> tuple[Ints, int] | None:
        return self.keep.astype(np.int64), 0


class _AliasCells(_Cells):
    """Any channels: a coin per (cell, value), replacements from one integer alias table per cell."""

    def __init__(self, channels: Sequence[Channel], places: Sequence[Ints]) -> None:
        self.cells = len(channels)
        self.pairs = _Pairs(places)
        self.keep = np.concatenate([channel.keep for channel in channels]).astype(np.uint64)[self.pairs.order]
        tables = [alias_table(channel.replace) for channel in channels]
        bits = np.array([len(threshold).bit_length() - 1 for threshold, _ in tables])
        self.shift = (32 - bits).astype(np.uint64)
        self.within = (np.left_shift(1, 32 - bits) - 1).astype(np.uint64)
        self.first = np.concatenate([[0], np.cumsum(np.left_shift(1, bits))]).astype(np.int64)
        self.threshold = np.concatenate([threshold for threshold, _ in tables]).astype(np.uint64)
        self.choice = np.concatenate([place[choice].ravel() for (_, choice), place in zip(tables, places, strict=True)])

    def thresholds(self, codes: Codes, cells: npt.NDArray[Any] | None) -> Words | np.uint64:
        return self.keep[self.pairs.of(codes, cells)]

    def drawn(self, low: Words, cells: npt.NDArray[Any] | None) -> Ints:
        cell = 0 if cells is None else cells
        bucket = (low >> self.shift[cell]).view(np.int64) + self.first[cell]
        alias = low & self.within[cell] >= self.threshold[bucket]
        return self.choice[2 * bucket + alias]

    def steps(self, cell: int) -> tuple[Ints, Ints]:
        first, end = self.first[cell : cell + 2]
        begins = np.arange(end - first, dtype=np.int64) << int(self.shift[cell])
        edges = np.stack([begins, begins + self.threshold[first:end].astype(np.int64)], axis=1)
        return edges.ravel(), self.choice[2 * first : 2 * end]

    def keeps(self) -> tuple[Ints, int] | None:
        if self.pairs.dense is None:
            return None
        keep = np.append(self.keep.astype(np.int64), -1)
        return keep[self.pairs.dense], self.pairs.m


_Path = WholeDomain | _Cells


class _Pairs:
    """Numbers the (cell, value) pairs that exist, in the order of cell, then value."""

    def __init__(self, places: Sequence[Ints]) -> None:
        self.m = max(int(place.max()) for place in places) + 1
        cell = np.repeat(np.arange(len(places)), [len(place) for place in places])
        key = cell * self.m + np.concatenate(places)
        self.order = np.argsort(key, kind="stable")
        self.keys = key[self.order]
        self.dense: Ints | None = None
        if len(places) * self.m <= max(DENSE_PAIRS, 2 * len(key)):
            self.dense = np.full(len(places) * self.m, -1, dtype=np.int64)
            self.dense[self.keys] = np.arange(len(key))

    def of(self, codes: Codes, cells: npt.NDArray[Any] | None) -> Ints:
        key = codes if cells is None else cells.astype(np.int64) * self.m + codes
        if self.dense is not None:
            pair = self.dense[key]
            known = pair >= 0
        else:
            pair = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            known = self.keys[pair] == key
        if not known.all():
            raise InternalError("a row was dealt to a cell that does not have its value")
        return pair


def alias_table(weights: Ints) -> tuple[Ints, Ints]:
    """A table of 2^b buckets that draws j with probability weights[j] / 2^32 exactly, in two look-ups.

    The high b bits of a 32-bit number choose a bucket, the rest an offset: below threshold[bucket] the result is
    choice[bucket][0], else choice[bucket][1]. Whole numbers throughout, so each j owns weights[j] of the 2^32 numbers.
    """
    bits = max(1, (len(weights) - 1).bit_length())
    capacity = SCALE >> bits
    rest = [*weights.tolist(), *[0] * ((1 << bits) - len(weights))]
    threshold = rest.copy()
    donor = list(range(len(rest)))
    small = [j for j, weight in enumerate(rest) if weight < capacity]
    large = [j for j, weight in enumerate(rest) if weight > capacity]
    while small:  # the donor fills up the bucket of a light value; the sum of all weights leaves nothing over
        light, heavy = small.pop(), large[-1]
        threshold[light], donor[light] = rest[light], heavy
        rest[heavy] -= capacity - rest[light]
        if rest[heavy] <= capacity:
            large.pop()
            if rest[heavy] < capacity:
                small.append(heavy)
    limits = np.minimum(np.array(threshold, dtype=np.int64), capacity)
    first = np.where(limits > 0, np.arange(len(rest)), donor)  # a bucket without a value of its own
    return limits, np.stack([first, np.array(donor, dtype=np.int64)], axis=1)
