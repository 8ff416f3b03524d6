"""Exact arithmetic over a channel's integers: amplification and posteriors, no rounding, O(m).

With thresholds K_i (keep) and weights W_j (replace) out of S = 2^32, every entry of the channel is a whole number out
of S^2:

    P[i][i] = K_i S + (S - K_i) W_i,    P[j][i] = (S - K_i) W_j  for j != i
"""

from __future__ import annotations

import heapq
from fractions import Fraction

import numpy as np
import numpy.typing as npt

SCALE = 2**32
Integers = npt.NDArray[np.int64]


def amplification(keep: Integers, replace: Integers) -> Fraction | None:
    """max over y, x, x' of P[y][x] / P[y][x'] (mathematics 2); None when some published value rules an original value
    out.

    In the row of y the off-diagonal entries are W_y (S - K_x): only the smallest and largest coin among x != y count.
    """
    worst = Fraction(1)
    least, most = _extremes_without_self(keep)
    for y, (k, w) in enumerate(zip(keep.tolist(), replace.tolist(), strict=True)):
        diagonal = k * SCALE + (SCALE - k) * w
        if len(keep) == 1 or diagonal == 0 == w:
            continue
        row = (diagonal, w * (SCALE - int(least[y])), w * (SCALE - int(most[y])))
        if min(row) == 0:
            if max(row) > 0:
                return None
            continue
        worst = max(worst, Fraction(max(row), min(row)))
    return worst


def own_amplification(keep: Integers, replace: Integers, y: int) -> Fraction | None:
    """max over k != y of P[y][y] / P[y][k] (THESIS Thm 7): how much seeing y speaks for y; None when unbounded."""
    _, most = _extremes_without_self(keep)
    k, w = int(keep[y]), int(replace[y])
    other = w * (SCALE - int(most[y]))
    diagonal = k * SCALE + (SCALE - k) * w
    if diagonal == 0 or len(keep) == 1:
        return Fraction(1)
    return None if other == 0 else Fraction(diagonal, other)


def own_amplifications(keep: Integers, replace: Integers) -> list[Fraction | None]:
    """``own_amplification`` of every value at once, O(m): how much seeing y speaks for y; None when unbounded."""
    if len(keep) == 1:
        return [Fraction(1)]
    _, most = _extremes_without_self(keep)
    result: list[Fraction | None] = []
    for k, w, largest in zip(keep.tolist(), replace.tolist(), most.tolist(), strict=True):
        other = w * (SCALE - largest)
        result.append(Fraction(k * SCALE + (SCALE - k) * w, other) if other else None)
    return result


def posterior_same(keep: Integers, replace: Integers, counts: Integers) -> list[Fraction]:
    """Pr[x | y = x] for each x, for an attacker whose prior is counts / n; 0 where x is never published."""
    replaced = [f * (SCALE - k) for f, k in zip(counts.tolist(), keep.tolist(), strict=True)]
    total = sum(replaced)
    result = []
    for f, k, w, own in zip(counts.tolist(), keep.tolist(), replace.tolist(), replaced, strict=True):
        mine = f * (k * SCALE + (SCALE - k) * w)
        seen = mine + w * (total - own)
        result.append(Fraction(mine, seen) if seen else Fraction(0))
    return result


def posterior_other(keep: Integers, replace: Integers, counts: Integers) -> list[Fraction]:
    """The largest Pr[x | y] over y != x, for each x, for an attacker whose prior is counts / n.

        Pr[x | y] = f_x (S-K_x) W_y / (f_y K_y S + W_y T),   T = sum_k f_k (S-K_k)

    It is largest where f_y K_y / W_y is smallest, so the two smallest decide for all x.
    """
    replaced = [f * (SCALE - k) for f, k in zip(counts.tolist(), keep.tolist(), strict=True)]
    total = sum(replaced)
    smallest = _two_smallest(keep, replace, counts)
    result = []
    for x, own in enumerate(replaced):
        ratio = next((ratio for ratio, y in smallest if y != x), None)
        if ratio is None or own == 0:
            result.append(Fraction(0))
        else:
            result.append(Fraction(own * ratio.denominator, ratio.numerator + total * ratio.denominator))
    return result


def _two_smallest(keep: Integers, replace: Integers, counts: Integers) -> list[tuple[Fraction, int]]:
    """The two smallest f_y K_y S / W_y, and their y: compared as fractions where rounding could decide."""
    drawn = np.flatnonzero(replace > 0)
    if not len(drawn):
        return []
    rounded = counts[drawn] * keep[drawn].astype(np.float64) / replace[drawn]
    second = np.partition(rounded, min(1, len(drawn) - 1))[min(1, len(drawn) - 1)]
    near = drawn[rounded <= second * (1 + 1e-9)].tolist()
    exact = [(Fraction(int(counts[y]) * int(keep[y]) * SCALE, int(replace[y])), y) for y in near]
    return heapq.nsmallest(2, exact)


def posterior_of_sets(keep: Integers, replace: Integers, counts: Integers, sets: Integers) -> list[Fraction]:
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


def _extremes_without_self(keep: Integers) -> tuple[Integers, Integers]:
    """For each position the smallest and the largest threshold among the *other* positions."""
    if len(keep) == 1:
        return keep, keep
    order = np.argsort(keep, kind="stable")
    least, most = np.full(len(keep), keep[order[0]]), np.full(len(keep), keep[order[-1]])
    least[order[0]] = keep[order[1]]
    most[order[-1]] = keep[order[-2]]
    return least, most
