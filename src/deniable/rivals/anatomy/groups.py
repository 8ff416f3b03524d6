"""Anatomy's groups: one row of each of the l most frequent remaining values, ties at random (mathematics 9; SDR 6.3).

Which values form a group depends on counts alone, so compositions are made first, many rounds at a time, and rows are
dealt to them afterwards. At any time k values have more rows than the l-th largest count v ("high", in every group),
and d = l - k of those at v are drawn. Two ways to take many rounds at once, distributed as single rounds are:

- the values at v, shuffled, are taken d at a time until they are used up, or until a high value comes down to v;
- the values T at v and v - 1 go down together: after R = |T| / gcd(|T|, d) rounds as many of them are one above the
  others as before. Such blocks differ only in *which* are above, and the draw treats all values alike: so many blocks
  are drawn side by side from the same start, and each is renamed to start where the one before it ended.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Bools, Codes, Ints, Words
from deniable.core.errors import InternalError
from deniable.engines.randomness import Keystream

BLOCKS = 8  # fewer blocks are not worth drawing side by side
ROW_BITS = 42  # random bits that order the rows of a value; the other 22 hold the value
AT_ONCE = 2**21  # random numbers drawn at once


def anatomy_groups(
    codes: Codes, m: int, l: int, keystream: Keystream, suppressed: Ints | None = None
) -> npt.NDArray[np.int32]:
    """The group of each row, -1 for rows that are suppressed; ``suppressed`` says how many rows of each value are.

    Every group has l rows or a few more, with different values; all choices are made by the keystream. Arrays are as
    narrow as they can be, since all rows are held at once.
    """
    counts = np.bincount(codes, minlength=m).astype(np.int64)
    taken = counts if suppressed is None else counts - suppressed
    if len(taken) != m or (taken < 0).any() or int(taken.max(initial=0)) * l > int(taken.sum()):
        raise InternalError("these rows cannot be grouped: a value has more than 1/l of them")
    groups, joined = compositions(taken, l, keystream.subkey("composition"))
    values = np.concatenate((groups.ravel(), joined[:, 1].astype(groups.dtype)))
    numbers = np.concatenate((np.repeat(np.arange(len(groups), dtype=np.int32), l), joined[:, 0].astype(np.int32)))
    del groups
    numbers = numbers[np.argsort(values, kind="stable")]  # 16-bit keys are sorted by radix
    rows = _shuffled_by_value(codes, keystream.subkey("rows"))
    first = np.cumsum(counts) - counts
    skipped = first - (np.cumsum(taken) - taken)  # rows of smaller values that get no group
    result = np.full(len(codes), -1, dtype=np.int32)
    if len(rows) > len(numbers):
        rows = rows[np.arange(len(numbers)) + np.repeat(skipped, taken)]
    result[rows] = numbers
    return result


def compositions(counts: Ints, l: int, keystream: Keystream) -> tuple[Codes, Ints]:
    """The values of each group [groups, l] in the order they were formed, and the (group, value) of leftover rows."""
    noise = _Noise(keystream)
    left = counts.astype(np.int64)
    parts: list[Codes] = []
    narrow = np.uint16 if len(counts) <= 2**16 else np.int32
    while int((left > 0).sum()) >= l:
        level = int(np.partition(left, -l)[-l])
        part = _side_by_side(left, level, l, noise)
        if part is None:
            part = _used_up(left, level, l, noise)
        left = left - np.bincount(part.ravel(), minlength=len(left))
        parts.append(part.astype(narrow))
    groups = np.concatenate(parts) if parts else np.zeros((0, l), dtype=narrow)
    return groups, _joined(groups, np.repeat(np.arange(len(left)), left), noise)


def _used_up(left: Ints, level: int, l: int, noise: _Noise) -> Ints:
    """Rounds until the values at ``level`` are used up or a high value comes down to it."""
    high, at = np.flatnonzero(left > level), np.flatnonzero(left == level)
    d = l - len(high)
    rounds = len(at) // d
    if len(high):
        rounds = min(rounds, int(left[high].min()) - level)
    drawn = at[np.argsort(noise.take(len(at)))][: rounds * d].reshape(rounds, d)
    return np.concatenate((np.broadcast_to(high, (rounds, len(high))), drawn), axis=1)


def _side_by_side(left: Ints, level: int, l: int, noise: _Noise) -> Ints | None:
    """As many whole blocks as come before any other value is met; None when they are few."""
    high, tied = np.flatnonzero(left > level), np.flatnonzero((left == level) | (left == level - 1))
    d = l - len(high)
    above = left[tied] == level
    bottom = int(left[tied].min())
    common = math.gcd(len(tied), d)
    rounds, fall = len(tied) // common, d // common
    blocks = (bottom - int(left[left < bottom].max(initial=0))) // fall
    if len(high) and rounds > fall:
        blocks = min(blocks, (int(left[high].min()) - level - 1) // (rounds - fall))
    if blocks < BLOCKS:
        return None
    drawn = tied[_blocks(above, d, rounds, blocks, noise)].reshape(-1, d)
    return np.concatenate((np.broadcast_to(high, (len(drawn), len(high))), drawn), axis=1)


def _blocks(above: Bools, d: int, rounds: int, blocks: int, noise: _Noise) -> Ints:
    """Places in T drawn in each round [blocks, rounds, d]: the d highest, ties at random."""
    size = len(above)
    if d == size:
        return np.broadcast_to(np.arange(size), (blocks, rounds, d))
    drawn = np.empty((blocks, rounds * d), dtype=np.int64)
    ends = np.empty((blocks, size), dtype=np.int64)
    some = max(AT_ONCE // size, 1)
    for first in range(0, blocks, some):
        lanes = slice(first, min(first + some, blocks))
        _passes(above, d, drawn[lanes], ends[lanes], noise)
    picks: Ints = drawn.reshape(blocks, rounds, d)
    if above.all():
        return picks
    return np.take_along_axis(_renamed(above, ends)[:, None, :], picks, axis=2)


def _passes(above: Bools, d: int, picks: Ints, ends: Ints, noise: _Noise) -> None:
    """The draws of some blocks side by side, pass by pass: a pass takes every place once, in random order.

    The first pass takes those above. Where a pass leaves r < d, the round that takes these r also takes d - r of the
    places one below, which are any but these; they open the next pass. ``ends`` says which are above in the end.
    """
    number, size = ends.shape
    begin = np.flatnonzero(above)
    filled = len(begin)
    picks[:, :filled] = begin[np.argsort(noise.halves(number * filled).reshape(number, filled), axis=1)]
    ends[:] = 0
    while filled < picks.shape[1]:
        keys = noise.halves(number * size).reshape(number, size).astype(np.int64)
        over = filled % d
        if over:
            np.put_along_axis(keys, picks[:, filled - over : filled], 1 << 32, axis=1)
            opening = np.argpartition(keys, d - over - 1, axis=1)[:, : d - over]
            keys = noise.halves(number * size).reshape(number, size).astype(np.int64)  # the others are in no order yet
            np.put_along_axis(keys, opening, -1, axis=1)
        taken = np.argsort(keys, axis=1)[:, : picks.shape[1] - filled]
        picks[:, filled : filled + taken.shape[1]] = taken
        filled += taken.shape[1]
        if filled == picks.shape[1]:
            np.put_along_axis(ends, taken, -1, axis=1)


def _renamed(above: Bools, ends: Ints) -> Ints:
    """Names for each block's places, so that it starts with those above that the block before it left above."""
    start = np.argsort(~above, kind="stable")
    steps = np.empty_like(ends)
    steps[:, start] = np.argsort(-ends, axis=1, kind="stable")
    names = np.empty_like(ends)
    name = np.arange(len(above))
    for block, step in enumerate(steps):
        names[block] = name
        name = name[step]
    return names


def _joined(groups: Codes, values: Ints, noise: _Noise) -> Ints:
    """(group, value) for each leftover row: a random group without its value."""
    joined: list[tuple[int, int]] = []
    for value in values.tolist():
        taken = {group for group, other in joined if other == value}
        free = np.flatnonzero(~(groups == value).any(1))
        free = free[~np.isin(free, list(taken))]
        if not len(free):
            raise InternalError("a leftover row finds no group without its value")
        joined.append((int(free[int(noise.take(1)[0]) % len(free)]), value))
    return np.array(joined, dtype=np.int64).reshape(-1, 2)


def _shuffled_by_value(codes: Codes, keystream: Keystream) -> npt.NDArray[np.intp]:
    """Row numbers sorted by value, rows of a value in random order."""
    keys = keystream.words(0, len(codes))
    keys >>= np.uint64(64 - ROW_BITS)
    keys |= codes.astype(np.uint64) << np.uint64(ROW_BITS)
    return np.argsort(keys)


class _Noise:
    """Random words, each used once."""

    def __init__(self, keystream: Keystream) -> None:
        self._keystream = keystream
        self._next = 0

    def take(self, count: int) -> Words:
        words = self._keystream.words(self._next, count)
        self._next += count
        return words

    def halves(self, count: int) -> npt.NDArray[np.uint32]:
        """Numbers of 32 bits, two of each word."""
        return self.take(-(-count // 2)).view(np.uint32)[:count]
