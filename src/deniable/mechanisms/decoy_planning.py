"""Grouping rows into decoy groups, many at a time, from the histogram alone (SPEC 4, 7; SPLU 3.2).

Groups of c rows with c distinct values take all but n mod c rows exactly when fmax <= n/c. With mu_k the k-th highest
remaining count and n0 the remaining rows, the largest h for which h groups of the c most frequent values leave the
remainder groupable is

    h = min(mu_c, floor(n0/c) - mu_{c+1})

(SPEC 4 with theta = c; its first condition, mu_1 <= n0/c, always holds here). When h = 0 the c + 1 most frequent values
all have floor(n0/c) rows, which takes n0 < c^2: then one row of each of the c most frequent values forms a group, until
fewer than c values are left. What is left then are n mod c rows of different values.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.core.histogram import Counts

Groups = list[tuple[Counts, int]]


def largest_size(counts: Counts) -> int:
    """The largest c with fmax <= n/c; 1 when all rows have the same value, 0 without rows."""
    most = int(counts.max(initial=0))
    return int(counts.sum()) // most if most else 0


def decoy_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """(positions of c values, number of groups) for all groups, and the positions of the rows that are left over.

    >>> groups, left = decoy_groups(np.array([4, 3, 2, 2]), 3)
    >>> [(places.tolist(), h) for places, h in groups], left.tolist()
    ([([0, 1, 2], 1), ([0, 1, 3], 1), ([0, 1, 2], 1)], [0, 3])
    """
    m = len(counts)
    present = np.flatnonzero(counts)
    keys = np.sort(present - counts[present] * m)  # most rows first, then the order of the domain
    groups: Groups = []
    while len(keys) >= c:
        h = max(_groups_at_once(keys, m, c), 1)
        groups.append((np.sort(keys[:c] % m), h))
        keys[:c] += h * m
        keys = keys[keys < 0]
        keys.sort(kind="stable")  # two sorted runs: merged in linear time
    return groups, np.sort(keys % m)


def _groups_at_once(keys: Counts, m: int, c: int) -> int:
    """h of the module's equation."""
    rows = -int(((keys - keys % m) // m).sum())
    last, following = (-int(key // m) if key < 0 else 0 for key in (keys[c - 1], keys[c] if len(keys) > c else 0))
    return min(last, rows // c - following)


def size_for(sizes: range, wanted: Callable[[int], bool], *, smallest: bool) -> int | None:
    """The smallest or largest size that is wanted, by halving: what is wanted begins or ends somewhere and stays so.

    The answer itself is always checked; None when neither it nor the size at the safe end is wanted.
    """
    ordered = sizes if not smallest else sizes[::-1]  # from "wanted, if any is" to "not wanted, if any is not"
    low, high = 0, len(ordered)
    if not len(ordered) or not wanted(ordered[0]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wanted(ordered[middle]) else (low, middle)
    return ordered[low]
