"""Line-ups in a batch: the set that a row publishes, from its code and its 64-bit word, and sets as lists of values.

The word's three parts are the order, the coin and the point (``core.lineup``). Every step is in whole numbers, so the
probability of each set is the one that the certificate is computed from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core import values
from deniable.core.arrays import Codes, Ints, Words
from deniable.core.errors import ManifestError
from deniable.core.lineup import (
    ARC_STEP,
    COIN,
    ORDER_BITS,
    POINT_BITS,
    POINTS,
    TURN,
    TURN_BITS,
    LineUpDesign,
)

CHUNK = 64 * 1024
STRETCH_BITS, MOST_STEPS = 12, 6
_ODD = np.uint64(0x9E3779B97F4A7C15)


def list_type(kind: pa.DataType) -> pa.DataType:
    """The type of a published column of line-ups."""
    return pa.list_(pa.field("element", kind))


class LineUpKernel:
    """The sampler of a design: codes and words in, numbers of sets out."""

    def __init__(self, design: LineUpDesign) -> None:
        self.design, sets = design, design.sets
        self._coin = np.uint64(design.coin)
        # One more value stands for "without looking": its arc is the whole turn, from 0.
        self._arcs = np.append(design.arcs // ARC_STEP, TURN).astype(np.uint64)
        self._starts = np.pad(design.starts, ((0, 0), (0, 1))).astype(np.uint64)
        self._unused = np.uint64(ORDER_BITS - (design.orders.bit_length() - 1))
        self._edges = np.append(sets.edges, 2**62).astype(np.uint64)
        self._of_edge = sets.of_edge
        # The interval in which each stretch of 2^12 points begins, and how many more may begin in one stretch.
        stretches = np.arange(0, design.orders * TURN + 1, 1 << STRETCH_BITS)
        self._guide = np.searchsorted(sets.edges, stretches[:-1], "right") - 1
        self._most = int(np.diff(np.searchsorted(sets.edges, stretches, "right")).max())

    def perturb(self, codes: Codes, draws: Words) -> Ints:
        """The set of every row; a pure function of its code and its word."""
        out = np.empty(len(codes), dtype=np.int64)
        for first in range(0, len(codes), CHUNK):
            rows = slice(first, first + CHUNK)
            out[rows] = self._of_edge[self.interval(self._points(codes[rows], draws[rows]))]
        return out

    def interval(self, points: Words) -> Ints:
        """The interval that each point lies in: by the guide and a few steps, or by search where edges are dense."""
        if self._most > MOST_STEPS:
            return np.searchsorted(self._edges, points, "right") - 1
        place = self._guide[(points >> np.uint64(STRETCH_BITS)).astype(np.int64)]
        for _ in range(self._most):
            place += self._edges[place + 1] <= points
        return place

    def _points(self, codes: Codes, draws: Words) -> Words:
        """order * 2^24 + point, of every row."""
        coin = draws >> np.uint64(POINT_BITS) & np.uint64(COIN - 1)
        order = draws >> np.uint64(64 - ORDER_BITS) >> self._unused
        around = np.where(coin < self._coin, codes.astype(np.int64), self.design.m)
        offset = (draws & np.uint64(POINTS - 1)) * self._arcs[around] >> np.uint64(POINT_BITS)
        point = self._starts[order.astype(np.int64), around] + offset & np.uint64(TURN - 1)
        keys: Words = (order << np.uint64(TURN_BITS)) + point
        return keys

    def lists(self, states: Ints, known: pa.Array) -> pa.Array:
        """Sets as lists of values, in the order of the domain, so that a place tells nothing; -1 is missing."""
        gone = states < 0
        members = self.design.sets.members[states[~gone]]
        lengths = np.where(gone, 0, self.design.size)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        flat = known.take(pa.array(members.reshape(-1)))
        mask = pa.array(gone) if gone.any() else None
        return pa.ListArray.from_arrays(pa.array(offsets), flat, type=list_type(known.type), mask=mask)


def states_of(column: pa.ChunkedArray, design: LineUpDesign, known: pa.Array) -> Ints:
    """The number of the set that each published list is; -1 where it is missing. ``known`` are the domain's values."""
    array = pa.concat_arrays(column.chunks) if len(column.chunks) else pa.array([], column.type)
    there = ~array.is_null().to_numpy(zero_copy_only=False)
    lists = array.filter(pa.array(there))
    if lists.value_lengths().drop_null().to_numpy().tolist().count(design.size) != len(lists):
        raise ManifestError("The release's rows hold a line-up of another size than its manifest says.")
    places = pa.compute.index_in(lists.flatten(), value_set=known.cast(array.type.value_type))
    if places.null_count:
        raise ManifestError("The release's rows hold a sensitive value that its manifest does not list.")
    members = np.sort(places.to_numpy().astype(np.int64).reshape(-1, design.size), axis=1)
    states = np.full(len(array), -1, dtype=np.int64)
    states[there] = _numbers(members, design.sets.members)
    return states


def _numbers(rows: Ints, sets: Ints) -> Ints:
    """Where each row stands among the sets: by a hash of 64 bits, then compared member by member."""
    hashes = _hashed(sets)
    order = np.argsort(hashes, kind="stable")
    if (np.diff(hashes[order]) == 0).any():
        raise ManifestError("Two line-ups of this design cannot be told apart by their hash.")
    place = np.minimum(np.searchsorted(hashes[order], _hashed(rows)), len(sets) - 1)
    numbers: Ints = order[place]
    if not np.array_equal(sets[numbers], rows):
        raise ManifestError("The release's rows hold a line-up that its design does not have.")
    return numbers


def _hashed(members: Ints) -> Words:
    total = np.zeros(len(members), dtype=np.uint64)
    for column in range(members.shape[1]):
        total = (total ^ (members[:, column].astype(np.uint64) + np.uint64(1))) * _ODD
        total ^= total >> np.uint64(29)
    return total


# -- CSV: a line-up is a JSON array ------------------------------------------------------------------------------------


def to_json(lists: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Lists as JSON text; missing stays missing."""
    encoded = [
        None if row is None else json.dumps([values.to_json(item) for item in row], ensure_ascii=False)
        for row in lists.to_pylist()
    ]
    return pa.array(encoded, pa.string())


def from_json(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Lists of a type from JSON text."""
    item = str(kind.value_type)
    rows: list[Any] = []
    for text in texts:
        row = None if text is None else json.loads(text)
        rows.append(None if row is None else [values.from_json(one, item) for one in row])
    return pa.array(rows, kind)
