"""Counting by key in bounded memory, however many keys there are: what does not fit waits in a file, sorted by key.

Keys are 64-bit numbers that are spread evenly (``spread`` makes them so), which is what cuts them into ranges of about
the same size: each range is then added up by itself. The file has no name, so nothing of it is left after a crash.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Codes, Ints, Words

RANGES = 1024  # of keys, by their first bits
HELD = 2**20  # records in memory, of one tally
Records = npt.NDArray[Any]


def spread(words: Words) -> Words:
    """64-bit numbers one to one to others that look like chance: Stafford's mix."""
    mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def pair_keys(first: Codes, second: Codes) -> Words:
    """A key for each pair of codes below 2^32; pairs with one ``first`` stand together, ``second`` is its low half."""
    odd = first.astype(np.uint32) * np.uint32(0x9E3779B1)  # times an odd number: one to one, and spread evenly
    keys: Words = (odd.astype(np.uint64) << np.uint64(32)) | second.astype(np.uint64)
    return keys


class Tally:
    """Records by key: those of one key are one, their numbers added up.

    Of fields whose names begin with ``low`` or ``high`` the least or the most is kept instead.

    Args:
        fields: the numbers of a record, by name, with their types.
        held: how many records may be in memory; left out, a million.

    >>> tally = Tally({"rows": "u4"})
    >>> tally.add(np.array([7, 3, 7], np.uint64), rows=np.ones(3, np.uint32))
    >>> [(int(one["key"]), int(one["rows"])) for records in tally.ranges() for one in records]
    [(3, 1), (7, 2)]
    """

    def __init__(self, fields: Mapping[str, str], held: int | None = None) -> None:
        self._type = np.dtype([("key", "<u8"), *fields.items()])
        self._held, self._waiting, self._pieces = HELD if held is None else held, 0, list[Records]()
        self._file: IO[bytes] | None = None
        self._runs: list[Ints] = []  # where each range of each sorted run begins, in records

    def add(self, keys: Words, **numbers: Codes | int) -> None:
        """One record for each key, with its own numbers or the same ones."""
        records = np.empty(len(keys), self._type)
        records["key"] = keys
        for name, column in numbers.items():
            records[name] = column
        self._pieces.append(_added_up(records))
        self._waiting += len(self._pieces[-1])
        if self._waiting > self._held:
            self._settle()
            if self._waiting > self._held // 2:
                self._write()

    def ranges(self) -> Iterator[Records]:
        """All records, one for each key, in the order of keys; as many at a time as may be in memory."""
        self._settle()
        if self._file is None:
            yield from self._pieces
            return
        self._write()
        sizes = np.sum([np.diff(run) for run in self._runs], axis=0)
        first = 0
        while first < RANGES:
            within = np.cumsum(sizes[first:]) <= self._held
            last = first + max(1, int(within.sum()))
            yield _added_up(np.concatenate([self._read(run[first], run[last]) for run in self._runs]))
            first = last

    def _settle(self) -> None:
        if len(self._pieces) > 1:
            self._pieces = [_added_up(np.concatenate(self._pieces))]
        self._waiting = sum(map(len, self._pieces))

    def _write(self) -> None:
        if not self._waiting:
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="deniable-")  # noqa: SIM115  (closed with the tally)
        (records,) = self._pieces
        begin = self._runs[-1][-1] if self._runs else 0
        edges = np.arange(1, RANGES, dtype=np.uint64) << np.uint64(64 - RANGES.bit_length() + 1)
        places = np.searchsorted(records["key"], edges)
        self._runs.append(begin + np.concatenate([[0], places, [len(records)]]))
        self._file.seek(int(begin) * self._type.itemsize)
        self._file.write(records.tobytes())
        self._pieces, self._waiting = [], 0

    def _read(self, start: int, end: int) -> Records:
        assert self._file is not None
        size = self._type.itemsize
        self._file.seek(int(start) * size)
        return np.frombuffer(self._file.read(int(end - start) * size), self._type)


def _added_up(records: Records) -> Records:
    """One record for each key, sorted by it."""
    keys = records["key"]
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    if len(starts) == len(keys):
        return records[order]
    added = np.empty(len(starts), records.dtype)
    added["key"] = keys[starts]
    for name in records.dtype.names[1:]:  # type: ignore[index]
        adding = np.minimum if name.startswith("low") else np.maximum if name.startswith("high") else np.add
        added[name] = adding.reduceat(records[name][order], starts)
    return added
