"""Exact arithmetic over a channel's integers: amplification and posteriors, no rounding, O(m).

With thresholds K_i (keep) and weights W_j (replace) out of S = 2^32, every entry of the channel is a whole number out
of S^2:

    P[i][i] = K_i S + (S - K_i) W_i,    P[j][i] = (S - K_i) W_j  for j != i
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Ints

SCALE = 2**32
FEW = 200  # values: below, looking for equal ones takes longer than they do
T = TypeVar("T")
U = TypeVar("U")


class Distinct(NamedTuple):
    """Values that are alike in some numbers: these numbers, how many values have them, and which each value has.

    Values of as many rows have the same coins, and n rows have at most sqrt(2 n) different counts: a column of a
    million values is a few hundred fractions.
    """

    rows: list[tuple[int, ...]]
    times: list[int]
    of: list[int]

    def of_all(self, computed: Sequence[T]) -> list[T]:
        """What was computed for the distinct ones, for every value."""
        return [computed[place] for place in self.of]


def distinct(*columns: Ints) -> Distinct:
    """The distinct rows of some columns of numbers.

    >>> distinct(np.array([7, 7, 3]), np.array([1, 1, 1]))
    Distinct(rows=[(7, 1), (7, 1), (3, 1)], times=[1, 1, 1], of=[0, 1, 2])
    >>> distinct(np.arange(300) % 2).rows
    [(0,), (1,)]
    """
    m = len(columns[0])
    if m < FEW:
        return Distinct(list(zip(*(column.tolist() for column in columns), strict=True)), [1] * m, list(range(m)))
    first, codes, times = kinds(*columns)
    rows = list(zip(*(column[first].tolist() for column in columns), strict=True))
    return Distinct(rows, times.tolist(), codes.tolist())


def kinds(*columns: npt.NDArray[Any]) -> tuple[Ints, Ints, Ints]:
    """The first of each kind of row, the kind of every row, and how many are of each kind.

    >>> [numbers.tolist() for numbers in kinds(np.array([0.5, 0.5, 0.1]), np.array([1, 1, 1]))]
    [[2, 0], [1, 1, 0], [1, 2]]
    """
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1]
        codes = np.unique(codes * (int(own.max()) + 1) + own, return_inverse=True)[1]
    _, first, times = np.unique(codes, return_index=True, return_counts=True)
    return first, codes, times


def amplification(keep: Ints, replace: Ints) -> Fraction | None:
    """max over y, x, x' of P[y][x] / P[y][x'] (mathematics 2); None when some published value rules an original value
    out.

    In the row of y the off-diagonal entries are W_y (S - K_x): only the smallest and largest coin among x != y count.
    """
    worst = Fraction(1)
    least, most = _extremes_without_self(keep)
    for k, w, smallest, largest in distinct(keep, replace, least, most).rows:
        diagonal = k * SCALE + (SCALE - k) * w
        if len(keep) == 1 or diagonal == 0 == w:
            continue
        row = (diagonal, w * (SCALE - smallest), w * (SCALE - largest))
        if min(row) == 0:
            if max(row) > 0:
                return None
            continue
        worst = max(worst, Fraction(max(row), min(row)))
    return worst


def own_amplifications(keep: Ints, replace: Ints) -> list[Fraction | None]:
    """max over k != y of P[y][y] / P[y][k] for each y, O(m): how much seeing y speaks for y (THESIS Thm 7); None when
    unbounded."""
    if len(keep) == 1:
        return [Fraction(1)]
    _, most = _extremes_without_self(keep)
    alike = distinct(keep, replace, most)
    result: list[Fraction | None] = []
    for k, w, largest in alike.rows:
        other = w * (SCALE - largest)
        result.append(Fraction(k * SCALE + (SCALE - k) * w, other) if other else None)
    return alike.of_all(result)


def downward_amplifications(keep: Ints, replace: Ints) -> list[Fraction | None]:
    """max over y and k != x of P[y][k] / P[y][x], for every x: how much some y can speak *against* x; O(m).

    It is reached at k = y, the row that speaks most for itself, or at y = x, or at the k with the smallest coin.
    """
    alike = distinct(keep, replace)
    if any(w == 0 for _, w in alike.rows):
        return [None] * len(keep)
    speaks = alike.of_all([Fraction(k * SCALE, w) + (SCALE - k) for k, w in alike.rows])
    ranked = {place: speaks[place] for place in _first_two(alike.of)}
    first, second = sorted(ranked, key=lambda y: (-ranked[y], y))[:2]

    def against(x: int, loudest: int) -> Fraction | None:
        k = int(keep[x])
        return speaks[loudest] / (SCALE - k) if k < SCALE else None

    of_coin: dict[int, Fraction | None] = {}
    for x, k in enumerate(keep.tolist()):
        if k not in of_coin:
            of_coin[k] = against(x, first)
    result = [of_coin[k] for k in keep.tolist()]
    result[first] = against(first, second)
    return result


def _first_two(kinds: Sequence[int]) -> list[int]:
    """Where the first two of each kind stand."""
    times: dict[int, int] = {}
    places = []
    for place, kind in enumerate(kinds):
        times[kind] = times.get(kind, 0) + 1
        if times[kind] <= 2:
            places.append(place)
    return places


def _same(alike: Distinct) -> list[Fraction]:
    """Pr[x | y = x] of the distinct (f, K, W)."""
    total = _replaced_rows(alike)
    result = []
    for f, k, w in alike.rows:
        mine = f * (k * SCALE + (SCALE - k) * w)
        seen = mine + w * (total - f * (SCALE - k))
        result.append(Fraction(mine, seen) if seen else Fraction(0))
    return result


def _drawn(row: tuple[int, ...], ratio: Fraction, total: int) -> Fraction:
    """Pr[x | y] where x has the (f, K) that ``row`` begins with, and ``ratio`` is f_y K_y S / W_y."""
    own = row[0] * (SCALE - row[1])
    return Fraction(own * ratio.denominator, ratio.numerator + total * ratio.denominator) if own else Fraction(0)


def surest(keep: Ints, replace: Ints, counts: Ints) -> list[Fraction]:
    """The largest Pr[x | y] over all y, for each x, for an attacker whose prior is counts / n.

        Pr[x | y] = f_x (S-K_x) W_y / (f_y K_y S + W_y T)  for y != x,   T = sum_k f_k (S-K_k)

    is largest where f_y K_y / W_y is smallest, so the two smallest decide for all x.
    """
    alike = distinct(counts, keep, replace)
    same, total = _same(alike), _replaced_rows(alike)
    smallest = _two_smallest(keep, replace, counts)
    if not smallest:
        return alike.of_all(same)
    (ratio, at), others = smallest[0], smallest[1:]
    result = alike.of_all([max(own, _drawn(row, ratio, total)) for own, row in zip(same, alike.rows, strict=True)])
    kind = alike.of[at]  # the one value for which the smallest is its own: the second decides
    result[at] = max(same[kind], _drawn(alike.rows[kind], others[0][0], total)) if others else same[kind]
    return result


def different(numbers: Iterable[T]) -> list[T]:
    """Each fraction that occurs, as often as there are objects of it: of values that are alike there is one."""
    return list({id(number): number for number in numbers}.values())


def different_pairs(first: Sequence[T], second: Sequence[U]) -> list[tuple[T, U]]:
    """The same of what stands side by side."""
    keys = zip(map(id, first), map(id, second), strict=True)
    return list(dict(zip(keys, zip(first, second, strict=True), strict=True)).values())


def _replaced_rows(alike: Distinct) -> int:
    """T = sum_k f_k (S-K_k), of rows that begin with f and K: Python's integers, since it may exceed 64 bits."""
    return sum(times * row[0] * (SCALE - row[1]) for row, times in zip(alike.rows, alike.times, strict=True))


def _two_smallest(keep: Ints, replace: Ints, counts: Ints) -> list[tuple[Fraction, int]]:
    """The two smallest f_y K_y S / W_y, and their y: compared as fractions where rounding could decide."""
    drawn = np.flatnonzero(replace > 0)
    if not len(drawn):
        return []
    rounded = counts[drawn] * keep[drawn].astype(np.float64) / replace[drawn]
    second = np.partition(rounded, min(1, len(drawn) - 1))[min(1, len(drawn) - 1)]
    near = drawn[rounded <= second * (1 + 1e-9)]
    alike = distinct(counts[near], keep[near], replace[near])
    ratios = alike.of_all([Fraction(f * k * SCALE, w) for f, k, w in alike.rows])
    return heapq.nsmallest(2, zip(ratios, near.tolist(), strict=True))


def posterior_of_sets(keep: Ints, replace: Ints, counts: Ints, sets: Ints) -> list[Fraction]:
    """The largest Pr[x in set | y] over all y, for each set of a partition: ``sets[x]`` is the set of value x.

    y in the set:   (f_y K_y S + W_y T_set) / (f_y K_y S + W_y T),   largest where f_y K_y / W_y is largest
    y outside:      W_y T_set / (f_y K_y S + W_y T),                 largest where it is smallest
    """
    number = int(sets.max()) + 1
    inside = [0] * number
    most: list[Fraction | None] = [Fraction(-1)] * number  # None: unbounded, since such a y is never drawn
    ratios: list[tuple[Fraction, int]] = []
    for f, k, w, own in zip(counts.tolist(), keep.tolist(), replace.tolist(), sets.tolist(), strict=True):
        inside[own] += f * (SCALE - k)
        if w:
            ratio = Fraction(f * k * SCALE, w)
            ratios.append((ratio, own))
            best = most[own]
            most[own] = None if best is None else max(best, ratio)
        elif f * k:
            most[own] = None
    total, first = sum(inside), min(ratios)
    second = min((entry for entry in ratios if entry[1] != first[1]), default=(None, -1))
    return [
        _sure_of(mine, total, most[own], second[0] if own == first[1] else first[0]) for own, mine in enumerate(inside)
    ]


def _sure_of(mine: int, total: int, most: Fraction | None, least: Fraction | None) -> Fraction:
    if most is None:
        return Fraction(1)
    here = (most + mine) / (most + total) if most >= 0 and most + total else Fraction(0)
    there = Fraction(mine) / (least + total) if least is not None and least + total else Fraction(0)
    return max(here, there)


def _extremes_without_self(keep: Ints) -> tuple[Ints, Ints]:
    """For each position the smallest and the largest threshold among the *other* positions."""
    if len(keep) == 1:
        return keep, keep
    order = np.argsort(keep, kind="stable")
    least, most = np.full(len(keep), keep[order[0]]), np.full(len(keep), keep[order[-1]])
    least[order[0]] = keep[order[1]]
    most[order[-1]] = keep[order[-2]]
    return least, most
