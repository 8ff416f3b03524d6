"""Anatomy: groups of rows with l different values, published without saying who has which (mathematics 9; SDR 6.3).

It perturbs nothing: it shows which group each row is in, and how often each value occurs in each group. A group has at
least l rows and each value at most once, so

    Pr[x | group] = 1 / |group| <= 1/l

A group is one row of each of the l most frequent remaining values, ties at random.
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
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.core.errors import InternalError, OptionError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.values import Bools, Codes, Counts, Floats, Ints, Words, percent
from deniable.lab.draws import planning_stream
from deniable.lab.rival import Answered, Bound, Rival, Setting, diverse_bound, group_size, rows_to_suppress
from deniable.planning.pools import CodedTable, QuestionPool
from deniable.planning.prediction import ByPool, Errors, Profile
from deniable.tables.keys import Keystream

BLOCKS = 8  # fewer blocks are not worth drawing side by side
ROW_BITS = 42  # random bits that order the rows of a value; the other 22 hold the value
AT_ONCE = 2**21  # random numbers drawn at once
CONDITIONS = 64  # that groups are asked at a time


@dataclass(frozen=True)
class Anatomy(Rival):
    """Groups with at least l different values, each once: Pr[x | group] <= 1/l (mathematics 9; SDR 6.3).

    Attributes:
        l: how many values a group has at least. By its name alone, as many as rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.lab import Anatomy
    >>> Anatomy(l=2).suppressed(dn.Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    l: int = 6
    name: ClassVar[str] = "anatomy"
    reveals: ClassVar[str] = "the few values of a row's group, and the exact histogram"
    biased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.l, bool) or not isinstance(self.l, int) or self.l < 2:
            raise OptionError(f"l = {self.l!r} is not allowed: a group has 2 values or more. Fix: l=6.")

    def fitted(self, privacy: Privacy | None) -> Anatomy:
        """With as many values in a group as ``privacy`` asks for."""
        return self if privacy is None else Anatomy(group_size(privacy))

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value of ``histogram`` no group can take: the fewest, of the most frequent values."""
        return rows_to_suppress(histogram, self.l)

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Bound:
        """What groups bound; refused when a requirement asks for more."""
        sentence = (
            "An attacker who knows how frequent each value is, and nothing more about a person, becomes at most "
            f"{percent(Fraction(1, self.l))} sure of that person's value: a group has at least {self.l} values, each "
            "once."
        )
        return diverse_bound(self.name, self.l, 2, histogram, privacy, sentence)

    def group(self, table: CodedTable, stream: Keystream) -> npt.NDArray[np.int32]:
        """The group of each row of a table; -1 where it is left out."""
        return anatomy_groups(table.codes, table.m, self.l, stream, self.suppressed(table.histogram))

    def setting(self, label: str, privacy: Privacy) -> Setting:
        return Anatomized(self.l, label, privacy)

    def errors(self, profile: Profile, privacy: Privacy, bound: Guarantee) -> Errors:
        return profile.errors_of(AnatomyMoments(self, planning_stream()))


@dataclass(frozen=True)
class Anatomized(Setting):
    """Anatomy in an experiment: a value's share of its group is spread evenly over the group's rows (mathematics 9)."""

    l: int
    label: str = "anatomy"
    privacy: Privacy | None = None

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table, rival = pool.table, Anatomy(self.l)
        begin = time.perf_counter()
        rival.guarantee(table.histogram, self.privacy)  # refused, where it bounds too little
        cell = rival.group(table, stream.subkey("groups"))
        drawn = time.perf_counter()
        answers = AnatomyTables.of_codes(table.codes, cell, table.m).answer(pool, cell >= 0) @ pool.sets.T
        answered = time.perf_counter()
        histogram = (table.histogram.counts - rival.suppressed(table.histogram)).astype(np.float64)
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.errors_of(AnatomyMoments(Anatomy(self.l), planning_stream()))}


@dataclass(frozen=True, eq=False)
class AnatomyTables:
    """What Anatomy publishes, as arrays.

    Attributes:
        cell: the group of each row of the first table.
        groups, values, rows: the second table: group, position of a value in the domain, number of rows.
        m: the size of the domain.
    """

    cell: Ints
    groups: Ints
    values: Ints
    rows: Ints
    m: int

    @classmethod
    def of_codes(cls, codes: npt.ArrayLike, cell: npt.ArrayLike, m: int) -> AnatomyTables:
        """Both tables from original codes and each row's group; rows without a group (-1) are left out.

        >>> AnatomyTables.of_codes([0, 1, 1, 2], [0, 0, 1, 1], 3).counts([[True, False, True, False]]).tolist()
        [[0.5, 1.0, 0.5]]
        """
        all_codes, all_cells = np.asarray(codes, np.int64), np.asarray(cell, np.int64)
        kept = all_cells >= 0
        chosen = all_cells[kept]
        pairs, rows = np.unique(chosen * m + all_codes[kept], return_counts=True)
        return cls(chosen, pairs // m, pairs % m, rows.astype(np.int64), m)

    def counts(self, matching: npt.ArrayLike) -> Floats:
        """Estimated counts [questions, m] of every value, among the rows that match each question [questions, rows].

        A value's share of its group is spread evenly over the group's rows, whichever match.
        """
        return self.counts_of([np.flatnonzero(rows) for rows in np.asarray(matching, dtype=bool)])

    def counts_of(self, rows: Sequence[npt.NDArray[np.integer]]) -> Floats:
        """The same, for the places of the rows that match each question: what they count for is added up."""
        ends = np.cumsum([0, *map(len, rows)])
        cell = self.cell[np.concatenate([np.zeros(0, np.int64), *rows])]
        hits = sparse.csr_array((np.ones(len(cell)), cell, ends), shape=(len(rows), self._shares.shape[0]))
        estimates: Floats = (hits @ self._shares).toarray()
        return estimates

    @cached_property
    def _shares(self) -> sparse.csr_array:
        """Of each group, each value's share of its rows."""
        sizes = np.maximum(np.bincount(self.groups, weights=self.rows), 1.0)
        share = self.rows / sizes[self.groups]
        return sparse.csr_array((share, (self.groups, self.values)), shape=(len(sizes), self.m))

    def answer(self, pool: QuestionPool, there: Bools) -> Floats:
        """Counts [conditions, m] of a pool; conditions are handed over some at a time, as the places of rows that have
        a group."""
        place = np.cumsum(there) - 1
        parts = []
        for start in range(0, len(pool.rows), CONDITIONS):
            some = pool.rows[start : start + CONDITIONS]
            parts.append(self.counts_of([place[rows[there[rows]]] for rows in some]))
        return np.concatenate(parts)


@dataclass(frozen=True)
class AnatomyMoments:
    """How far Anatomy's answers are off (mathematics 9): which values share groups, and who matches.

        est - act = sum_i M_i (c_g / |g| - 1[v_i in S])

    where row i of group g matches the public condition (M_i = 1) with q_v = N_Rv / f_v, and c_g rows of its group hold
    a value of S. Which values share groups is seen in one grouping, made by ``draws``; the rest is closed form.
    """

    mechanism: Anatomy
    draws: Keystream

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        """Each of the f_x groups with x is off by a row that matches with q: Var = f_x q (1-q) (1 - 1/l)."""
        return (1 - question) * (1 - 1 / self.mechanism.l)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        matches = pool.by_value / np.maximum(pool.table.histogram.counts, 1)
        first, second = self.group_sums(pool)
        return matches @ first.T, (matches * (1 - matches)) @ second.T

    def group_sums(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        """For each value set and value: the sums over its rows of c_g/|g| - 1[v in S], and of its square."""
        table = pool.table
        suppressed = self.mechanism.suppressed(table.histogram)
        group = self.mechanism.group(table, self.draws.subkey("groups"))
        there = group >= 0
        codes, group = table.codes[there].astype(np.int64), group[there]
        size = np.maximum(np.bincount(group), 1)
        first, second = np.zeros(pool.sets.shape), np.zeros(pool.sets.shape)
        for place, values in enumerate(pool.sets):
            inside = values[codes].astype(np.float64)
            off = (np.bincount(group, inside, len(size)) / size)[group] - inside
            first[place] = np.bincount(codes, off, table.m)
            second[place] = np.bincount(codes, off**2, table.m)
        # A suppressed row is missing from every answer: it is off by -1 where it matches, and never anything else.
        first -= pool.sets * suppressed
        second += pool.sets * suppressed
        return first, second


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
