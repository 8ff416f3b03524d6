"""Grouping rows into decoy groups, many at a time, from the histogram alone (mathematics 4, 7; SPLU 3.2).

Groups of c rows with c distinct values take all but n mod c rows exactly when fmax <= n/c.

**Balanced.** With mu_k the k-th highest remaining count and n0 the remaining rows, the largest h for which h groups of
the c most frequent values leave the remainder groupable is

    h = min(mu_c, floor(n0/c) - mu_{c+1})

(mathematics 4 with theta = c; its first condition, mu_1 <= n0/c, always holds here). When h = 0 the c + 1 most frequent
values all have floor(n0/c) rows, which takes n0 < c^2: then one row of each of the c most frequent values forms a
group, until fewer than c values are left. What is left then are n mod c rows of different values.

**Mixed.** Let all rows stand in a line, sorted by value, values in any order, group j taking rows j, j + G, j + 2G, ..
with G = n/c. No value has more than G rows, so a group's c values are distinct, and there are at most m + 1 kinds of
groups. Done for a few shares of the rows, each with another order, it lets every value meet all others. Balancing lets
each value meet few, always the same: then values cannot be told apart in the release (docs/explanation/decoys.md).

**Anatomy.** One row of each of the c values with the most rows left, group after group, as SPLU 6.1 does it. Let k
values have more rows than the c-th largest count v, and T be those at v or v - 1, the ones at v first. Taking T's
values round and round, c - k for each group, always takes the most frequent; after |T| / gcd(|T|, c - k) groups all of
T have fallen alike, and may be gone round again, in the same order or another, until a value from above or below joins
them. Orders change often enough for values to meet many others, and seldom enough for the kinds of groups to stay few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from deniable.core.arrays import Counts

Groups = list[tuple[Counts, int]]
CELLS = 2000  # kinds of groups that mixing may make, about
SHARES = 30  # beyond, more mixing changes little


def largest_size(counts: Counts) -> int:
    """The largest c with fmax <= n/c; 1 when all rows have the same value, 0 without rows."""
    most = int(counts.max(initial=0))
    return int(counts.sum()) // most if most else 0


def cut_to_fit(counts: Counts, c: int) -> Counts:
    """The counts with as few rows taken off the most frequent values as leave none with more than 1/c of the rows.

    Cutting every count to t does so when c t <= sum min(f, t); the largest such t is found by halving, since
    sum min(f, t) / t only falls.

    >>> cut_to_fit(np.array([9, 3, 2]), 2).tolist()
    [5, 3, 2]
    """
    low, high = 0, int(counts.max(initial=0)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = c * middle <= int(np.minimum(counts, middle).sum())
        low, high = (middle, high) if fits else (low, middle)
    cut: Counts = np.minimum(counts, low)
    return cut


def balanced_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """(positions of c values, number of groups) for all groups, and the positions of the rows that are left over.

    >>> groups, left = balanced_groups(np.array([4, 3, 2, 2]), 3)
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


def anatomy_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """The same as Anatomy forms its groups: always of the c values with the most rows left, ties in patternless order.

    >>> groups, left = anatomy_groups(np.array([4, 3, 2, 2]), 3)
    >>> sum(h for _, h in groups), len(left)
    (3, 2)
    """
    left = counts.astype(np.int64)
    wanted = int(left.sum()) // c
    kinds: Counter[tuple[int, ...]] = Counter()
    turn = 0
    while int((left > 0).sum()) >= c:
        level = int(np.partition(left, -c)[-c])
        high, tied = np.flatnonzero(left > level), np.flatnonzero((left == level) | (left == level - 1))
        times = _rounds_at_once(left, high, tied, level, c)
        times = max(min(times, -(-wanted // CELLS)), 1) if times else 0
        rank = np.argsort(_order(len(left), turn := turn + 1))
        tied = tied[np.lexsort((rank[tied], -left[tied]))]
        d = c - len(high)
        taken = len(tied) * d // math.gcd(len(tied), d) if times else d
        for places in (np.arange(taken) % len(tied)).reshape(-1, d):
            group = np.concatenate((high, tied[places]))
            kinds[tuple(sorted(group.tolist()))] += max(times, 1)
            left[group] -= max(times, 1)
    return [(np.array(places), h) for places, h in kinds.items()], np.flatnonzero(left)


def _rounds_at_once(left: Counts, high: Counts, tied: Counts, level: int, c: int) -> int:
    """How often all of T can be gone round before a value from above or below joins them; 0 where not once."""
    d = c - len(high)
    rounds, fall = len(tied) // math.gcd(len(tied), d), d // math.gcd(len(tied), d)
    bottom = int(left[tied].min())
    times = (bottom - int(left[left < bottom].max(initial=0))) // fall
    if len(high) and rounds > fall:
        times = min(times, (int(left[high].min()) - level) // (rounds - fall))
    return times


def mixed_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """The same by lines of rows. A share of G_k of the G groups takes about f_x G_k / G rows of x, rounded so that it
    adds up: never more than G_k, never so few that the rest is too many.

    >>> groups, left = mixed_groups(np.array([4, 3, 2, 2]), 3)
    >>> sum(h for _, h in groups), left.tolist()
    (3, [0, 1])
    """
    over = np.argsort(-counts, kind="stable")[: int(counts.sum()) % c]
    rest = counts.copy()
    rest[over] -= 1
    groups: Groups = []
    shares = min(max(CELLS // max(int((counts > 0).sum()), 1), 1), SHARES)
    for share in range(shares, 0, -1):
        total = int(rest.sum()) // c
        part = _rounded(rest, total // share, total)
        groups += _line(part, _order(len(counts), share), c)
        rest = rest - part
    return groups, np.sort(over)


def _rounded(rest: Counts, groups: int, total: int) -> Counts:
    """About rest * groups / total, in whole numbers that add up to c * groups: largest remainders first."""
    if groups == total:
        return rest
    whole, remainder = np.divmod(rest * groups, total)
    missing = int(remainder.sum()) // total
    whole[np.argsort(-remainder, kind="stable")[:missing]] += 1
    part: Counts = whole
    return part


def _line(rows: Counts, order: Counts, c: int) -> Groups:
    """Groups of rows that stand G apart in a line; they change only where a value ends, modulo G."""
    ends = np.cumsum(rows[order])
    apart = int(ends[-1]) // c
    cuts = np.unique(np.concatenate((ends % apart, [0, apart]))) if apart else np.zeros(1, dtype=np.int64)
    starts = cuts[:-1, None] + apart * np.arange(c)
    places = order[np.searchsorted(ends, starts, side="right")]
    return [(np.sort(group), int(h)) for group, h in zip(places, np.diff(cuts), strict=True)]


def _order(m: int, number: int) -> Counts:
    """A fixed, patternless order of 0..m-1: sorted by a hash (the finalizer of splitmix64)."""
    word = np.arange(m, dtype=np.uint64) + np.uint64(number * 2**32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    order: Counts = np.argsort(word, kind="stable")
    return order


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
