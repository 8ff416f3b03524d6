"""The kernel: codes and random words in, perturbed codes out (mathematics 1).

    coin:         the high 32 bits of the row's word; the value is kept iff they are below keep[value]
    replacement:  the low 32 bits; value j owns exactly replace[j] of their 2^32 numbers

Each row is a pure function of its code, its word and its cell, so chunks and threads cannot change a release.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deniable.core.channel import SCALE, Channel
from deniable.core.errors import InternalError

CHUNK = 64 * 1024  # rows; all work buffers of a chunk fit into the second-level cache
DENSE_PAIRS = 2**22  # (cell, value) pairs up to here are looked up in a dense table, above by binary search

Codes = npt.NDArray[Any]  # unsigned integers of any width
Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_HIGH_HALF = slice(1 if sys.byteorder == "little" else 0, None, 2)  # of 64-bit words seen as pairs of 32 bits


class WordSource(Protocol):
    """Random words by position; a Keystream is one."""

    def words(self, start: int, count: int, out: Words | None = None) -> Words: ...


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
        self._path: _Path
        if whole and channels[0].is_uniform:
            self._path = _WholeDomain(channels[0])
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
        work = _Work(min(chunk, len(codes)), codes.dtype)
        for first in range(0, len(codes), chunk):
            rows = slice(first, min(first + chunk, len(codes)))
            self._path.run(codes[rows], draws[rows], None if cells is None else cells[rows], out[rows], work)
        return out

    def perturb_rows(
        self,
        codes: Codes,
        source: WordSource,
        start: int = 0,
        cells: npt.NDArray[np.integer] | None = None,
        *,
        threads: int = 1,
        chunk: int = CHUNK,
    ) -> Codes:
        """Perturbed codes of rows start, start + 1, ...: row k uses the k-th word of the source.

        The words never exist at once, only a chunk of them per thread; AES and NumPy both release the interpreter.
        """
        self._check(codes, cells)
        out = np.empty_like(codes)
        chunks = -(-len(codes) // chunk)

        def run(first_chunk: int, last_chunk: int) -> None:
            work = _Work(min(chunk, len(codes)), codes.dtype)
            for first in range(first_chunk * chunk, min(last_chunk * chunk, len(codes)), chunk):
                rows = slice(first, min(first + chunk, len(codes)))
                draws = source.words(start + first, rows.stop - first, work.draws[: rows.stop - first])
                self._path.run(codes[rows], draws, None if cells is None else cells[rows], out[rows], work)

        workers = max(1, min(threads, chunks))
        edges = [chunks * worker // workers for worker in range(workers + 1)]
        if workers == 1:
            run(0, chunks)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run, edges[:-1], edges[1:]))
        return out

    def _check(self, codes: Codes, cells: npt.NDArray[np.integer] | None) -> None:
        if codes.dtype.kind not in "ui" or self._largest > np.iinfo(codes.dtype).max:
            raise InternalError(f"codes of type {codes.dtype} cannot hold this domain")
        if cells is None and self.cells > 1:
            raise InternalError("a plan of several cells needs the cell of each row")


class _Work:
    """Buffers that a thread reuses for every chunk: allocating them anew would cost more than the arithmetic."""

    def __init__(self, rows: int, codes: np.dtype[Any]) -> None:
        self.draws = np.empty(rows, dtype=np.uint64)
        self.low = np.empty(rows, dtype=np.uint64)
        self.kept = np.empty(rows, dtype=bool)
        self.difference = np.empty(rows, dtype=codes)

    def blend(self, codes: Codes, out: Codes) -> None:
        """out = codes where kept, without a branch: a random coin defeats branch prediction."""
        n = len(codes)
        difference = self.difference[:n]
        np.subtract(codes, out, out=difference)
        np.multiply(difference, self.kept[:n].view(np.uint8), out=difference, casting="unsafe")
        np.add(out, difference, out=out)


class _Path(Protocol):
    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: _Work) -> None: ...


class _WholeDomain:
    """One uniform channel over the whole domain: one comparison, one multiplication, one blend."""

    def __init__(self, channel: Channel) -> None:
        self.keep = int(channel.keep[0])
        self.m = np.uint64(channel.m)

    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: _Work) -> None:
        n = len(codes)
        low = work.low[:n]
        if self.keep == 0:
            work.kept[:n] = False
        else:  # high < keep, said of the whole word: keep 2^32 may itself be 2^64
            np.less_equal(draws, np.uint64(self.keep * SCALE - 1), out=work.kept[:n])
        np.bitwise_and(draws, _LOW, out=low)
        np.multiply(low, self.m, out=low)
        np.copyto(out, low.view(np.uint32)[_HIGH_HALF], casting="unsafe")  # floor(low m / 2^32)
        work.blend(codes, out)


class _UniformCells:
    """Uniform channels over sub-domains: the coin and the size depend on the cell alone."""

    def __init__(self, channels: Sequence[Channel], places: Sequence[Integers]) -> None:
        self.keep = np.array([channel.keep[0] for channel in channels], dtype=np.uint64)
        self.m = np.array([channel.m for channel in channels], dtype=np.uint64)
        self.start = np.concatenate([[0], np.cumsum(self.m)[:-1]]).astype(np.int64)
        self.places = np.concatenate(places)

    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: _Work) -> None:
        n = len(codes)
        low = work.low[:n]
        cell = 0 if cells is None else cells
        np.right_shift(draws, _32, out=low)
        np.less(low, self.keep[cell], out=work.kept[:n])
        np.bitwise_and(draws, _LOW, out=low)
        np.multiply(low, self.m[cell], out=low)
        np.right_shift(low, _32, out=low)
        index = low.view(np.int64)
        np.add(index, self.start[cell], out=index)
        np.copyto(out, self.places[index], casting="unsafe")
        work.blend(codes, out)


class _AliasCells:
    """Any channels: a coin per (cell, value), replacements from one integer alias table per cell."""

    def __init__(self, channels: Sequence[Channel], places: Sequence[Integers]) -> None:
        self.pairs = _Pairs(places)
        self.keep = np.concatenate([channel.keep for channel in channels]).astype(np.uint64)[self.pairs.order]
        tables = [alias_table(channel.replace) for channel in channels]
        bits = np.array([len(threshold).bit_length() - 1 for threshold, _ in tables])
        self.shift = (32 - bits).astype(np.uint64)
        self.within = (np.left_shift(1, 32 - bits) - 1).astype(np.uint64)
        self.first = np.concatenate([[0], np.cumsum(np.left_shift(1, bits))[:-1]]).astype(np.int64)
        self.threshold = np.concatenate([threshold for threshold, _ in tables]).astype(np.uint64)
        self.choice = np.concatenate([place[choice].ravel() for (_, choice), place in zip(tables, places, strict=True)])

    def run(self, codes: Codes, draws: Words, cells: npt.NDArray[Any] | None, out: Codes, work: _Work) -> None:
        n = len(codes)
        low = work.low[:n]
        cell = 0 if cells is None else cells
        np.right_shift(draws, _32, out=low)
        np.less(low, self.keep[self.pairs.of(codes, cells)], out=work.kept[:n])
        np.bitwise_and(draws, _LOW, out=low)
        offset = low & self.within[cell]
        np.right_shift(low, self.shift[cell], out=low)
        bucket = low.view(np.int64)
        np.add(bucket, self.first[cell], out=bucket)
        alias = offset >= self.threshold[bucket]
        np.left_shift(bucket, 1, out=bucket)
        np.add(bucket, alias, out=bucket)
        np.copyto(out, self.choice[bucket], casting="unsafe")
        work.blend(codes, out)


class _Pairs:
    """Numbers the (cell, value) pairs that exist, in the order of cell, then value."""

    def __init__(self, places: Sequence[Integers]) -> None:
        self.m = max(int(place.max()) for place in places) + 1
        cell = np.repeat(np.arange(len(places)), [len(place) for place in places])
        key = cell * self.m + np.concatenate(places)
        self.order = np.argsort(key, kind="stable")
        self.keys = key[self.order]
        self.dense: Integers | None = None
        if len(places) * self.m <= max(DENSE_PAIRS, 2 * len(key)):
            self.dense = np.full(len(places) * self.m, -1, dtype=np.int64)
            self.dense[self.keys] = np.arange(len(key))

    def of(self, codes: Codes, cells: npt.NDArray[Any] | None) -> Integers:
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


def alias_table(weights: Integers) -> tuple[Integers, Integers]:
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
