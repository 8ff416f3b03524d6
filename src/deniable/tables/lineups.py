"""Line-ups in a batch: the set that a row publishes, and the column that shows it (mathematics 12)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core import values
from deniable.core.designs import codes, is_coded
from deniable.core.errors import ManifestError
from deniable.core.lineups import COIN, ORDER_BITS, POINT_BITS, POINTS, Lines, LineUpDesign
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.values import Codes, Ints, Words
from deniable.tables.encoding import arrow_type
from deniable.tables.keys import Keystream
from deniable.tables.sampler import INSIDE

# -- Line-ups in a batch: the set that a row publishes, from its code and its 64-bit word, and sets as lists of values.
# The word's three parts are the order, the coin and the point (``core.lineup``). Every step is in whole numbers, so the
# probability of each set is the one that the certificate is computed from.


CHUNK = 64 * 1024  # rows; all work buffers of a chunk fit into the second-level cache
STRETCHES, MOST_STRETCHES, MOST_STEPS = 32, 2**20, 6  # stretches for each edge, so that few of them hold one
States = npt.NDArray[np.signedinteger[Any]]  # numbers of sets, of the smallest width that holds them
_ODD = np.uint64(0x9E3779B97F4A7C15)
_START_BITS = np.uint64(32)  # of a point; how long a line is takes the rest
_START = np.uint64((1 << int(_START_BITS)) - 1)


def list_type(kind: pa.DataType) -> pa.DataType:
    """The type of a published column of line-ups."""
    return pa.list_(pa.field("element", kind))


class LineUpKernel:
    """The sampler of a design: codes and words in, numbers of sets out.

    A point is start + offset on the line of its order and value. Where a set has many points, they are cut into equal
    stretches; most lie in one interval and name its set, the others are searched.
    """

    def __init__(self, design: LineUpDesign) -> None:
        self.design = design
        self._always, self._truth = design.coin == COIN, np.uint64(design.coin % COIN << POINT_BITS + ORDER_BITS)
        row_bits, order_bits = design.m.bit_length(), design.orders.bit_length() - 1
        self._kind = np.min_scalar_type(design.m)
        self._order_shift = np.uint64(64 - order_bits - row_bits) if order_bits else None
        self._order_mask = np.uint64((1 << row_bits + order_bits) - (1 << row_bits))
        lines = design.lines()
        self._lines = _packed(lines, row_bits)
        self._edges, self._sets, self._most, bits = np.array([2**62]), lines.sets, 0, 0
        if lines.edges is None:
            self._guide = lines.sets.astype(_kind(len(design.sets.lengths)))
        else:
            self._edges = np.append(lines.edges, 2**62)
            bits = max((lines.whole // min(len(lines.edges) * STRETCHES, MOST_STRETCHES)).bit_length() - 1, 0)
            self._guide, self._most = _guide(self._edges, self._sets, lines.whole, bits)
        self._stretch = np.uint64(bits)

    def perturb(self, codes: Codes, draws: Words) -> States:
        """The set of every row; a pure function of its code and its word."""
        out = np.empty(len(codes), dtype=self._guide.dtype)
        work = _Work(min(CHUNK, len(codes)))
        for first in range(0, len(codes), CHUNK):
            rows = slice(first, first + CHUNK)
            self._run(codes[rows], draws[rows], out[rows], work)
        return out

    def perturb_rows(self, codes: Codes, source: Keystream, start: int = 0) -> States:
        """The same for rows start, start + 1, ..: row k uses the k-th word of the source."""
        out = np.empty(len(codes), dtype=self._guide.dtype)
        work = _Work(min(CHUNK, len(codes)))
        for first in range(0, len(codes), CHUNK):
            rows = slice(first, min(first + CHUNK, len(codes)))
            draws = source.words(start + first, rows.stop - first, work.draws[: rows.stop - first])
            self._run(codes[rows], draws, out[rows], work)
        return out

    def _run(self, codes: Codes, draws: Words, out: States, work: _Work) -> None:
        count = len(codes)
        line, point = work.line[:count], work.point[:count]
        self._around(codes, draws, line, work)
        np.take(self._lines, line.view(np.int64), out=line, mode=INSIDE)
        np.bitwise_and(draws, np.uint64(POINTS - 1), out=point)
        np.right_shift(line, _START_BITS, out=work.arc[:count])
        np.multiply(point, work.arc[:count], out=point)
        np.right_shift(point, np.uint64(POINT_BITS), out=point)
        np.bitwise_and(line, _START, out=line)
        np.add(point, line, out=point)
        np.right_shift(point, self._stretch, out=line)
        np.take(self._guide, line.view(np.int64), out=out, mode=INSIDE)
        crowded = np.flatnonzero(np.less(out, 0, out=work.heads[:count]))
        if len(crowded):
            out[crowded] = self._searched(point[crowded].view(np.int64), ~out[crowded].astype(np.int64))

    def _searched(self, points: Ints, first: Ints) -> Ints:
        """The sets of points in stretches with edges, from the first edge of each: step by step, or by bisection."""
        if self._most > MOST_STEPS:
            return self._sets[np.searchsorted(self._edges, points, "right") - 1]
        for _ in range(self._most):
            first += self._edges[first] <= points
        return self._sets[first - 1]

    def _around(self, codes: Codes, draws: Words, line: Words, work: _Work) -> None:
        """Which line of which order a row's point is on: that of its value, or line 0 without looking."""
        around = np.add(codes, 1, dtype=self._kind, casting="unsafe")
        if not self._always:
            np.left_shift(draws, np.uint64(ORDER_BITS), out=line)
            heads = np.less(line, self._truth, out=work.heads[: len(codes)])
            np.multiply(around, heads.view(np.uint8), out=around)
        if self._order_shift is None:
            line[:] = around
            return
        np.right_shift(draws, self._order_shift, out=line)
        np.bitwise_and(line, self._order_mask, out=line)
        np.add(line, around, out=line)

    def lists(self, states: Ints, known: pa.Array) -> pa.Array:
        """Sets as lists of values, in the order of the domain, so that a place tells nothing; -1 is missing."""
        gone = states < 0
        members = self.design.sets.members[states[~gone]]
        lengths = np.where(gone, 0, self.design.size)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        flat = known.take(pa.array(members.reshape(-1)))
        mask = pa.array(gone) if gone.any() else None
        return pa.ListArray.from_arrays(pa.array(offsets), flat, type=list_type(known.type), mask=mask)


class _Work:
    """Buffers that are reused for every chunk: allocating them anew would cost more than the arithmetic."""

    def __init__(self, rows: int) -> None:
        self.draws, self.line, self.point, self.arc = (np.empty(rows, dtype=np.uint64) for _ in range(4))
        self.heads = np.empty(rows, dtype=np.bool_)


def _packed(lines: Lines, row_bits: int) -> Words:
    """Of every order and line where it begins, and above these bits how long it is."""
    packed = np.zeros((len(lines.starts), 1 << row_bits), dtype=np.uint64)
    packed[:, : len(lines.lengths)] = lines.starts.astype(np.uint64) | lines.lengths.astype(np.uint64) << _START_BITS
    return packed.ravel()


def _kind(numbers: int) -> npt.DTypeLike:
    """The smallest signed type that holds so many numbers."""
    return np.int16 if numbers < 2**15 else np.int32


def _guide(edges: Ints, sets: Ints, whole: int, bits: int) -> tuple[States, int]:
    """The set of each stretch of 2^bits points that lies in one interval; elsewhere ~k, k the first edge inside.

    And how many edges a stretch has at most.
    """
    ends = np.arange(0, whole + 1, 1 << bits)
    before = np.searchsorted(edges, ends, "left")
    first = np.searchsorted(edges, ends[:-1], "right")
    inside = first < before[1:]
    stated = np.where(inside, ~first, sets[first - 1]).astype(_kind(len(edges)))
    return stated, int((before[1:] - first).max())


def states_of(column: pa.ChunkedArray, design: LineUpDesign, known: pa.Array) -> Ints:
    """The number of the set that each published list is; -1 where it is missing. ``known`` are the domain's values."""
    array = pa.concat_arrays(column.chunks) if len(column.chunks) else pa.array([], column.type)
    lists = array.drop_null() if array.null_count else array
    if (lists.value_lengths().to_numpy() != design.size).any():
        raise ManifestError("The release's rows hold a line-up of another size than its manifest says.")
    places = pa.compute.index_in(lists.flatten(), value_set=known.cast(array.type.value_type))
    if places.null_count:
        raise ManifestError("The release's rows hold a sensitive value that its manifest does not list.")
    members = places.to_numpy().reshape(-1, design.size)
    if (members[:, 1:] <= members[:, :-1]).any():  # a file that was written by others may list them in any order
        members = np.sort(members, axis=1)
    numbers = _numbers(members, design.sets.members.astype(members.dtype))
    if not array.null_count:
        return numbers
    states = np.full(len(array), -1, dtype=np.int64)
    states[array.is_valid().to_numpy(zero_copy_only=False)] = numbers
    return states


def _numbers(rows: Ints, sets: Ints) -> Ints:
    """Where each row stands among the sets: by a hash of 64 bits, then compared member by member."""
    hashes = _hashed(sets)
    if len(np.unique(hashes)) < len(hashes):
        raise ManifestError("Two line-ups of this design cannot be told apart by their hash.")
    known = pa.compute.index_in(pa.array(_hashed(rows)), value_set=pa.array(hashes))
    numbers: Ints = known.fill_null(0).to_numpy().astype(np.int64)
    if known.null_count or not np.array_equal(sets[numbers], rows):
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


# -- The published column of line-ups: a list of values where sets are small, a code where they are large --------------
# Codes come with a table of their own, ``lineups``, by which anyone can tell the sets that hold a value
# (``core.lineup_codes``). Both follow from the design alone.


CODE = pa.int32()


def column_type(design: LineUpDesign, kind: pa.DataType) -> pa.DataType:
    """The type of a published column; ``kind`` is that of its values."""
    return CODE if is_coded(design) else list_type(kind)


class Publisher:
    """Numbers of sets as they are published.

    Args:
        kernel: the sampler, which knows the design.
        known: the values of the domain.
    """

    def __init__(self, kernel: LineUpKernel, known: pa.Array) -> None:
        self._kernel, self._known = kernel, known
        self._codes = codes(kernel.design) if is_coded(kernel.design) else None

    def column(self, states: Ints) -> pa.Array:
        """Lists or codes; -1 is missing."""
        if self._codes is None:
            return self._kernel.lists(states, self._known)
        gone = states < 0
        return pa.array(self._codes[np.maximum(states, 0)], CODE, mask=gone if gone.any() else None)


def states_shown(column: pa.ChunkedArray, design: LineUpDesign, known: pa.Array) -> Ints:
    """The number of the set that each row shows, as a list or by its code; -1 where it is missing."""
    if not pa.types.is_integer(column.type):
        return states_of(column, design, known)
    gone = column.is_null().to_numpy()
    shown = column.fill_null(0).to_numpy().astype(np.int64)
    own = codes(design)
    inside = (shown >= 0) & (shown < len(design.sets.of_interval))
    states: Ints = design.sets.of_interval[np.where(inside, shown, 0)]
    if not (gone | (inside & (own[states] == shown))).all():
        raise ManifestError("The release's rows hold a code of a line-up that its design does not have.")
    states[gone] = -1
    return states


def coded_part(manifest: Manifest) -> Part | None:
    """The part whose rows show line-ups by codes, as the type of its column tells; None where there is none."""
    coded = {column.name for column in manifest.columns if column.type == str(CODE)}
    return next((part for part in manifest.parts if part.lineups is not None and part.columns[0] in coded), None)


def code_table(part: Part) -> pa.Table:
    """The table ``lineups``: by arcs value, first and last code; by blocks their number and places."""
    assert part.lineups is not None
    columns = {name: pa.array(numbers, CODE) for name, numbers in part.lineups.code_table().items()}
    if "value" in columns:
        columns["value"] = pa.array(list(part.domain), arrow_type(part.types[0])).take(columns["value"])
    return pa.table(columns)
