"""Phase 3 of small-domain randomization: merge neighbouring groups into cells (mathematics 4.3, SDR 5.3, Eq. 14).

    O(j) = min over i <= j of O(i-1) + cost(groups i..j)

The sums that a cost needs are kept for all starts i at once and updated when the end j moves by one group:

- rows and mass add up;
- a value of group j is new to the cells that start after its previous group, so numbers of distinct values (and
  weights, and categories) grow by a step function of i;
- the largest protected count can only be reached by a value that has just been added, so it is compared with the
  values of group j alone.

That is O(t^2 + t * nnz) simple operations on arrays for t groups with nnz entries, and O(t + nnz) memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Bools, Counts, Floats
from deniable.mechanisms.small_domain.balance import Group, joined
from deniable.mechanisms.small_domain.cost import Cost, Sums

# Cells of more groups than this are not tried, except the whole table. It bounds time and memory for tables of tens of
# thousands of groups and changes nothing below that. Above it little is lost: such a cell holds thousands of values,
# most of them in a few of its groups only, so its coin is almost 0. Of the 2,604 groups of Zipf(1) over 15,000 values,
# with every length allowed, no cost chooses a cell of more than 627.
WIDE = 500  # values in a group on average: from there on they are taken together
LONGEST = 2_000


@dataclass(frozen=True, eq=False)
class Rules:
    """Which sets of values may make up a cell.

    Attributes:
        apart: one row per set that no cell may lie within: an indicator over the domain.
        category: the category of each value, as a number.
        min_categories: how many categories each cell must hold.
        min_rows: how many rows each cell must hold.
    """

    apart: Floats
    category: Counts | None = None
    min_categories: int = 1
    min_rows: int = 1

    def allow(self, rows: Floats, values: Floats, inside: Floats, categories: Floats) -> Bools:
        """Which candidate cells are allowed, from how many rows, values, values inside each set and categories."""
        allowed: Bools = (categories >= self.min_categories) & (rows >= self.min_rows)
        if len(inside):
            allowed &= (inside < values).all(axis=0)
        return allowed


@dataclass(frozen=True)
class Merge:
    """Where to cut a sequence of groups: cell k holds groups cuts[k] .. cuts[k+1] - 1."""

    cuts: tuple[int, ...]
    cost: float


def merge(
    groups: list[Group], protected: Bools, weights: Floats, cost: Cost, rules: Rules, longest: int = LONGEST
) -> Merge:
    """The cheapest cut of a sequence of groups into allowed cells; its cost is infinite when there is none."""
    t = len(groups)
    sweep = _Sweep(groups, protected, weights, rules, longest)
    best = np.zeros(t + 1)
    start_of = np.zeros(t + 1, dtype=np.int64)
    for j in range(t):
        first = max(0, j + 1 - longest)
        total = best[first : j + 1] + sweep.costs(cost, first, j)
        chosen = int(np.argmin(total))
        best[j + 1], start_of[j + 1] = total[chosen], first + chosen
    cuts = [t]
    while cuts[-1] > 0:
        cuts.append(int(start_of[cuts[-1]]))
    cut = Merge(tuple(reversed(cuts)), float(best[t]))
    if t <= longest:
        return cut
    whole = float(_Sweep([joined(groups)], protected, weights, rules, 1).costs(cost, 0, 0)[0])
    return cut if cut.cost <= whole else Merge((0, t), whole)


class _Sweep:
    """The sums of all cells that end at group j, entry i for the cell that starts at group i."""

    def __init__(self, groups: list[Group], protected: Bools, weights: Floats, rules: Rules, longest: int) -> None:
        t, m = len(groups), len(protected)
        self.groups, self.protected, self.weights, self.rules, self.longest = groups, protected, weights, rules, longest
        self.rows, self.mass, self.peak = np.zeros(t), np.zeros(t), np.zeros(t)
        # What a value adds to a cell when it first occurs there: itself, its weight, its place in each set kept apart.
        self.worth = np.vstack([np.ones(m), weights, rules.apart.reshape(-1, m)])
        self.distinct = np.zeros((len(self.worth), t))
        self.categories = np.zeros(t)
        self.last = np.full(m, -1, dtype=np.int64)
        self.last_category = np.full(0 if rules.category is None else int(rules.category.max()) + 1, -1, dtype=np.int64)
        # For each protected value the groups it occurred in, and its rows before each of them and up to now.
        self.seen: dict[int, tuple[list[int], list[int]]] = {}
        # The same for few groups of many values: every occurrence, its group, its rows, and the one before it.
        occurrences = sum(len(group.positions) for group in groups)
        self.wide = occurrences > WIDE * t
        self.where, self.count = np.zeros(occurrences, dtype=np.int64), np.zeros(occurrences)
        self.before, self.taken = np.zeros(occurrences, dtype=np.int64), 0
        self.latest = np.full(m, -1, dtype=np.int64)

    def costs(self, cost: Cost, first: int, j: int) -> Floats:
        """Take group j in; the costs of the cells first..j, first+1..j, .., j..j."""
        group, window = self.groups[j], slice(first, j + 1)
        self.rows[window] += group.size
        self.mass[window] += float((self.weights[group.positions] * group.counts).sum())
        for sums, worth in zip(self.distinct, self.worth, strict=True):
            sums[window] += _first_times(self.last[group.positions], worth[group.positions], first, j)
        self._raise_peak(group, first, j)
        self.last[group.positions] = j
        self._count_categories(group, first, j)
        values, weight, inside = self.distinct[0, window], self.distinct[1, window], self.distinct[2:, window]
        price = cost(Sums(self.rows[window], self.peak[window], values, self.mass[window], weight))
        allowed = self.rules.allow(self.rows[window], values, inside, self.categories[window])
        result: Floats = np.where(allowed, price, np.inf)
        return result

    def _raise_peak(self, group: Group, first: int, j: int) -> None:
        guarded = self.protected[group.positions]
        positions, counts = group.positions[guarded], group.counts[guarded]
        if self.wide:
            self._raise_together(positions, counts, first, j)
            return
        peak = self.peak[first : j + 1]
        # Values that no cell held before: every cell gets all their rows, so the most frequent one stands for all.
        np.maximum(peak, counts[self.last[positions] < first].max(initial=0), out=peak)
        for value, count in zip(positions.tolist(), counts.tolist(), strict=True):
            where, before = self.seen.setdefault(value, ([], [0]))
            while where and where[0] < first:
                del where[0], before[0]
            where.append(j)
            before.append(before[-1] + count)
            if len(where) > 1:
                # A cell that starts after where[k-1] and not after where[k] holds the value's rows of where[k] .. j.
                held = before[-1] - np.array(before[:-1], dtype=np.float64)
                ends = np.array([first - 1, *where])
                np.maximum(peak, held.repeat(ends[1:] - ends[:-1]), out=peak)

    def _raise_together(self, positions: Counts, counts: Counts, first: int, j: int) -> None:
        """All values at once, from occurrence to occurrence. The rows of a value only grow with an earlier start, so
        the largest of each occurrence, carried to all earlier starts, is the largest of each cell."""
        now = np.arange(self.taken, self.taken + len(positions))
        self.taken += len(positions)
        self.where[now], self.count[now], self.before[now] = j, counts, self.latest[positions]
        self.latest[positions] = now
        tops, held = np.zeros(j + 1 - first), self.count[now]
        while len(now):
            np.maximum.at(tops, self.where[now] - first, held)
            earlier = self.before[now]
            inside = (earlier >= 0) & (self.where[earlier] >= first)
            now = earlier[inside]
            held = held[inside] + self.count[now]
        peak = self.peak[first : j + 1]
        np.maximum(peak, np.maximum.accumulate(tops[::-1])[::-1], out=peak)

    def _count_categories(self, group: Group, first: int, j: int) -> None:
        if self.rules.category is None:
            self.categories[j] = 1
            return
        present = np.unique(self.rules.category[group.positions])
        self.categories[first : j + 1] += _first_times(self.last_category[present], np.ones(len(present)), first, j)
        self.last_category[present] = j


def _first_times(last: Counts, worth: Floats, first: int, j: int) -> Floats:
    """For each start i = first..j, the summed worth of those whose last occurrence before j is before i."""
    steps: Floats = np.cumsum(np.bincount(np.maximum(last + 1 - first, 0), weights=worth, minlength=j + 1 - first))
    return steps
