"""Phase 1 of small-domain randomization: balance (mathematics 4.1, SDR 5.1 and 10.7).

The table is split into groups of few values in which no protected value is more frequent than 1/theta, where
theta = floor(n / fmax) is as balanced as the table itself can be. Groups that are joined stay as balanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Bools, Counts


@dataclass(frozen=True, eq=False)
class Group:
    """Rows taken from a few values: ``counts[k]`` rows of the value at ``positions[k]`` of the domain."""

    positions: Counts
    counts: Counts

    @property
    def size(self) -> int:
        return int(self.counts.sum())


def balance(counts: Counts, protected: Bools) -> list[Group]:
    """Groups that take every row once, protected values balanced, exempt rows dealt in proportion.

    >>> f = np.array([12, 8, 6, 5, 4, 3, 1, 1, 1, 1])
    >>> [g.positions.tolist() for g in balance(f, f > 0)]
    [[0, 1, 2], [0, 3, 4], [0, 1, 5], [3, 5, 6], [7, 8, 9]]
    """
    groups = balance_all(np.where(protected, counts, 0))
    return deal_exempt(groups, np.where(protected, 0, counts))


def balance_all(counts: Counts) -> list[Group]:
    """Groups of the theta most frequent remaining values, h rows of each (SDR Eq. 13, THESIS Eq. 22).

        h = mu_theta                          if n0/theta - max(mu_1 - mu_theta, mu_{theta+1}) >= mu_theta
        h = floor(n0/theta - mu_{theta+1})    otherwise; when that is 0 the group is all that remains

    with mu_k the k-th highest remaining count and n0 the remaining rows; ties keep the order of the domain. Each h is
    the largest that leaves the remainder theta-balanced (THESIS Lemmas 1-4).
    """
    present = np.flatnonzero(counts)
    theta = int(counts.sum()) // int(counts.max())
    # One sortable number for "most rows first, then the order of the domain". Taking rows off the first theta values
    # leaves two sorted runs, which the stable sort merges in linear time.
    m = len(counts)
    keys = np.sort(present - counts[present] * m)
    groups = []
    while len(keys):
        positions = keys % m
        left = (positions - keys) // m
        rows, last = int(left.sum()), int(left[theta - 1])
        following = int(left[theta]) if len(left) > theta else 0
        h = last
        if rows - theta * max(int(left[0]) - last, following) < theta * last:
            h = rows // theta - following
        if h == 0:
            groups.append(_group(positions, left))
            break
        groups.append(_group(positions[:theta], np.full(theta, h, dtype=np.int64)))
        keys[:theta] += h * m
        keys = keys[keys < 0]
        keys.sort(kind="stable")
    return groups


def deal_exempt(groups: list[Group], exempt: Counts) -> list[Group]:
    """Give each group floor(|g|/n' * n'') exempt rows, most frequent exempt value first, the residue to the last."""
    spare = int(exempt.sum())
    if not spare:
        return groups
    total = sum(group.size for group in groups)
    shares = [group.size * spare // total for group in groups]
    shares[-1] += spare - sum(shares)
    order = np.argsort(-exempt, kind="stable")
    # Exempt rows stand in one line, sorted by value; each group takes the next stretch of it.
    ends = np.cumsum(exempt[order])
    dealt, start = [], 0
    for group, share in zip(groups, shares, strict=True):
        stop = start + share
        first, past = np.searchsorted(ends, start, side="right"), np.searchsorted(ends, stop, side="left") + 1
        taken = np.diff(np.clip(np.concatenate(([0], ends)), start, stop)[first : past + 1])
        values = order[first:past]
        some = taken > 0
        dealt.append(
            _group(np.concatenate((group.positions, values[some])), np.concatenate((group.counts, taken[some])))
        )
        start = stop
    return dealt


def joined(groups: list[Group]) -> Group:
    """All rows of several groups, values in the order of the domain."""
    positions = np.concatenate([group.positions for group in groups])
    values, where = np.unique(positions, return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, where, np.concatenate([group.counts for group in groups]))
    return Group(values, counts)


def _group(positions: Counts, counts: Counts) -> Group:
    order = np.argsort(positions)
    return Group(positions[order], counts[order])
