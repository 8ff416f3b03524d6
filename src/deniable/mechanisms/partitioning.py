"""The cells of small-domain randomization: balance, rearrange, merge, and seat the rows of the true table (mathematics
4, SDR 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from deniable.core import exact
from deniable.core.channels import Channel, coarsened
from deniable.core.exact import different, different_pairs, own_amplifications
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell
from deniable.core.privacy import amplification_limit
from deniable.core.values import Bools, Counts, Floats, Ints
from deniable.mechanisms import one_cell as variances
from deniable.mechanisms.fine_grain import solve_coins
from deniable.mechanisms.one_cell import Covered, lowered_for_singles, most_frequent
from deniable.mechanisms.requirement import OWN_MARGINS, too_close

# -- What a cell costs: three objectives for the merge, all functions of a few sums over the cell (mathematics 4) ------
# For a cell of N rows, m values and largest protected count M: rho1 = M/N, gamma - 1 = (rho2-rho1) / (rho1 (1-rho2)),
# p = (gamma-1)/(m-1+gamma), q = 1/(m-1+gamma). A cell with rho1 >= rho2 costs infinitely much.
#
# The count of x is estimated by f*_x = (o_x - q N) / p, and o_x is a sum of independent coins, f_x of them with
# probability p+q and N-f_x with probability q, so
#
#     Var_x = (f_x (p+q)(1-p-q) + (N-f_x) q (1-q)) / p^2.
#
# Cells are perturbed independently, so the variance of a value's count over the table is the sum over its cells, and
# sum_x weight_x Var_x needs only N, m, sum_x weight_x f_x and sum_x weight_x over the values of the cell.


CostName = Literal["variance", "bound", "relative"]
COSTS: tuple[CostName, ...] = ("variance", "bound", "relative")


@dataclass(frozen=True, eq=False)
class Sums:
    """What the costs need to know of candidate cells, one entry per cell.

    Attributes:
        rows: N, the cell's rows.
        peak: M, the largest count of a protected value in the cell.
        values: m, the number of values in the cell.
        mass: sum over the cell's values of weight_x f_x.
        weight: sum over the cell's values of weight_x.
    """

    rows: Floats
    peak: Floats
    values: Floats
    mass: Floats
    weight: Floats


Cost = Callable[[Sums], Floats]


def weights_for(cost: CostName, counts: Counts) -> Floats:
    """weight_x: 1, or 1/f_x^2 for relative errors (f_x the count in the table)."""
    if cost == "relative":
        present = np.maximum(counts, 1).astype(np.float64)
        relative: Floats = 1 / present**2
        return relative
    return np.ones(len(counts))


def cost_named(cost: CostName, *, rho2: float, rows: int, delta: float) -> Cost:
    """The cost of a cell of a table with ``rows`` rows, as a function of its sums."""
    if cost == "bound":
        return lambda sums: error_bound(sums, rho2, rows, delta)
    return lambda sums: weighted_variance(sums, rho2)


def error_bound(sums: Sums, rho2: float, rows: int, delta: float) -> Floats:
    """The paper's cost (SDR Eq. 12): (N/n) a/sqrt(N) (m/(gamma-1) + 1), a = 2 sqrt(ln(2/delta))."""
    a = 2 * math.sqrt(math.log(2 / delta))
    excess, feasible = _gamma_minus_one(sums, rho2)
    cost: Floats = np.where(feasible, np.sqrt(sums.rows) / rows * a * (sums.values / excess + 1), np.inf)
    return cost


def weighted_variance(sums: Sums, rho2: float) -> Floats:
    """sum over the cell's values of weight_x Var_x, in closed form."""
    excess, feasible = _gamma_minus_one(sums, rho2)
    p = excess / (sums.values + excess)
    q = 1 / (sums.values + excess)
    kept, other = (p + q) * (1 - p - q), q * (1 - q)
    cost: Floats = np.where(feasible, (sums.mass * kept + (sums.weight * sums.rows - sums.mass) * other) / p**2, np.inf)
    return cost


def value_variances(counts: Counts, channel: Channel) -> Floats:
    """Var_x for each value of one cell under any channel; infinite when a coin is 0."""
    if not (channel.keep > 0).all():
        return np.full(channel.m, np.inf)
    return variances.value_variances(channel.coins, channel.replacing, counts.astype(np.float64))


def _gamma_minus_one(sums: Sums, rho2: float) -> tuple[Floats, Bools]:
    """gamma - 1, and where rho1 < rho2; a cell within 1e-9 of the limit would have no coin left, so it is over it."""
    rho1 = sums.peak / sums.rows
    feasible = rho1 < rho2 * (1 - 1e-9)
    excess = np.where(feasible, (rho2 - rho1) / (rho1 * (1 - rho2)), 1.0)
    return excess, feasible


# -- The channel of a cell: uniform at the cell's own gamma, or fine-grain with a gamma for each of its values ---------
# Coins depend on the data, so they go on the coarse grid, rounded down (mathematics 11.6). Both channels satisfy,
# exactly and for every protected value x of the cell with relative frequency pi_x there,
#
#     P[x][x] / P[x][k] <= rho2 (1-pi_x) / (pi_x (1-rho2))  for all k != x.


ChannelKind = Literal["uniform", "fine-grain"]
CHANNELS: tuple[ChannelKind, ...] = ("uniform", "fine-grain")
MIXTURES = (0.25, 0.5, 0.75, 1.0)  # how much of the fine-grain coins, the rest uniform
Shares = list[Fraction]  # of the rows of a cell, each value's


def uniform_channel(values: tuple[Hashable, ...], shares: Shares, protected: Bools, rho2: Fraction) -> Channel:
    """One coin at gamma_i = rho2 (1-rho1_i) / (rho1_i (1-rho2)), rho1_i the largest share of a protected value.

    Without a protected value there is nothing to hide, and the coin is that of the average share.
    """
    guarded = different(compress(shares, protected.tolist()))
    rho1 = max(guarded) if guarded else Fraction(1, len(values))
    return Channel.uniform(values, gamma=amplification_limit(rho1, rho2), coarse=True)


def fine_grain_channel(
    values: tuple[Hashable, ...], shares: Shares, counts: Counts, protected: Bools, rho2: Fraction, weights: Floats
) -> Channel:
    """A coin for each value: gamma_x from its own share of the cell, exempt values without a limit (mathematics 4, 5).

    The coins that keep most rows may starve rare values, down to channels that cannot be inverted. The limits are
    linear in the coins, so every mixture with the uniform coin meets them too: the mixture with the smallest weighted
    variance is taken, and fine-grain is never worse than uniform.
    """
    uniform = uniform_channel(values, shares, protected, rho2)
    known = {id(share): amplification_limit(share, rho2) for share in different(compress(shares, protected.tolist()))}
    limits = [known[id(share)] if guarded else None for share, guarded in zip(shares, protected.tolist(), strict=True)]
    rounded = {id(limit): np.inf if limit is None else float(limit) for limit in different(limits)}
    gammas = np.array([rounded[id(limit)] for limit in limits])
    coins = np.clip(solve_coins(counts / counts.sum(), gammas), 0, 1)
    mixtures = [_rounded(values, share * coins + (1 - share) * uniform.coins, limits) for share in MIXTURES]
    return min((uniform, *mixtures), key=lambda channel: float(weights @ value_variances(counts, channel)))


def _rounded(values: tuple[Hashable, ...], coins: Floats, limits: list[Fraction | None]) -> Channel:
    """The channel with these coins, rounded down until every limit holds exactly."""
    channel = Channel.of(values, coins, coarse=True)
    while not _within(channel, limits):
        # The solver's last bits, or a replacement one part in 2^32 short of 1/m: one step down the grid for every coin.
        channel = Channel(channel.values, coarsened(np.maximum(channel.keep - 1, 0)), channel.replace)
    return channel


def _within(channel: Channel, limits: list[Fraction | None]) -> bool:
    own = own_amplifications(channel.keep, channel.replace)
    return all(limit is None or (gamma is not None and gamma <= limit) for gamma, limit in different_pairs(own, limits))


# -- Phase 1 of small-domain randomization: balance (mathematics 4.1, SDR 5.1 and 10.7) --------------------------------
# The table is split into groups of few values in which no protected value is more frequent than 1/theta, where
# theta = floor(n / fmax) is as balanced as the table itself can be. Groups that are joined stay as balanced.


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


# -- Phase 2 of small-domain randomization: rearrange the groups so that neighbours share values (mathematics 4.2, SDR
# 5.2).
#
# Reading an order backwards changes no merge, so each order stands for its reverse too. The merge tries several orders
# and keeps the cheapest result, which is therefore never worse than with the paper's order.


OrdersKind = Literal["all", "band"]

# Above this many groups only the orders that are found in O(t^2) are tried.
FEW = 300


def band_orders(groups: list[Group], m: int) -> Iterator[tuple[str, Ints]]:
    """The paper's phase 2: band matrices of A A^T by reverse Cuthill-McKee, from a peripheral group and SciPy's."""
    shared = _shared(_matrix(groups, m))
    yield "Cuthill-McKee", cuthill_mckee(shared > 0)
    yield "Cuthill-McKee (SciPy)", reverse_cuthill_mckee(csr_array(shared), symmetric_mode=True).astype(np.int64)


def all_orders(groups: list[Group], m: int) -> Iterator[tuple[str, Ints]]:
    """Band matrices and what else puts groups with common values side by side."""
    counts = _matrix(groups, m)
    shared = _shared(counts)
    yield "Cuthill-McKee", cuthill_mckee(shared > 0)
    yield "as balanced", np.arange(len(groups))
    norms = np.sqrt(shared.diagonal())
    cosine = shared / np.outer(norms, norms)
    yield "chain of similar groups", chain(cosine)
    if len(groups) > FEW:
        return
    yield "by size", np.argsort([group.size for group in groups], kind="stable")
    yield "Cuthill-McKee (SciPy)", reverse_cuthill_mckee(csr_array(shared), symmetric_mode=True).astype(np.int64)
    overlap = _shared((counts > 0).astype(np.float64))
    yield "chain of common values", chain(overlap)
    yield "spectral, similar groups", spectral(cosine)
    yield "spectral, common values", spectral(overlap)


ORDERS: dict[str, Callable[[list[Group], int], Iterator[tuple[str, Ints]]]] = {
    "all": all_orders,
    "band": band_orders,
}


def cuthill_mckee(linked: Bools) -> Ints:
    """Reverse Cuthill-McKee, each component from a peripheral group, neighbours by degree, ties in their order.

    It puts the groups of SDR Example 3 in the order printed there: g1 g3 g2 g4 g5.
    """
    linked = linked & ~np.eye(len(linked), dtype=bool)
    degree = linked.sum(axis=1)
    free = np.ones(len(linked), dtype=bool)
    visited: list[int] = []
    for start in np.argsort(degree, kind="stable").tolist():
        if free[start]:
            farthest = _breadth_first(linked, degree, start, free.copy())[-1]
            visited += _breadth_first(linked, degree, farthest, free)
    return np.array(visited[::-1], dtype=np.int64)


def _breadth_first(linked: Bools, degree: Ints, start: int, free: Bools) -> list[int]:
    """Nodes reached from ``start``, neighbours in order of degree; takes them off ``free``."""
    queue, done = [start], 0
    free[start] = False
    while done < len(queue):
        near = np.flatnonzero(linked[queue[done]] & free)
        free[near] = False
        queue += near[np.argsort(degree[near], kind="stable")].tolist()
        done += 1
    return queue


def chain(similarity: Floats) -> Ints:
    """Start at the group that has least in common with the others, go on to the most similar one not yet visited."""
    likeness = similarity.copy()
    np.fill_diagonal(likeness, 0)
    here = int(np.argmin(likeness.sum(axis=1)))
    visited = [here]
    free = np.ones(len(likeness), dtype=bool)
    free[here] = False
    while free.any():
        here = int(np.argmax(np.where(free, likeness[here], -1)))
        free[here] = False
        visited.append(here)
    return np.array(visited, dtype=np.int64)


def spectral(similarity: Floats) -> Ints:
    """Sort by the Fiedler vector of the normalised similarity, the relaxation of the shortest total distance."""
    if len(similarity) < 2:
        return np.arange(len(similarity))
    scale = 1 / np.sqrt(similarity.sum(axis=1))
    _, vectors = np.linalg.eigh(similarity * np.outer(scale, scale))
    fiedler = vectors[:, -2] * scale
    # Rounded, so that ties do not depend on the last bits of the linear algebra library.
    return np.argsort(np.round(fiedler * np.sign(fiedler[np.argmax(np.abs(fiedler))]), 9), kind="stable")


def _matrix(groups: list[Group], m: int) -> csr_array:
    """A, groups x values counts."""
    ends = np.cumsum([0, *(len(group.positions) for group in groups)])
    columns = np.concatenate([group.positions for group in groups])
    data = np.concatenate([group.counts for group in groups]).astype(np.float64)
    return csr_array((data, columns, ends), shape=(len(groups), m))


def _shared(matrix: csr_array) -> Floats:
    """A A^T, dense: the most frequent values are in almost every group."""
    product: Floats = (matrix @ matrix.T).toarray()
    return product


# -- Phase 3 of small-domain randomization: merge neighbouring groups into cells (mathematics 4.3, SDR 5.3, Eq. 14).
#     O(j) = min over i <= j of O(i-1) + cost(groups i..j)
#
# The sums that a cost needs are kept for all starts i at once and updated when the end j moves by one group:
#
# - rows and mass add up;
# - a value of group j is new to the cells that start after its previous group, so numbers of distinct values (and
#   weights, and categories) grow by a step function of i;
# - the largest protected count can only be reached by a value that has just been added, so it is compared with the
#   values of group j alone.
#
# That is O(t^2 + t * nnz) simple operations on arrays for t groups with nnz entries, and O(t + nnz) memory.


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


# -- From groups of values, planned for a noisy histogram, to cells that take the rows of the true one -----------------
# Each value's rows are split over its cells in the planned proportion. How frequent a value is in a cell is bounded by
# its planned rows and a margin, over the planned rows of the cell; the promise is checked for the true ones.


@dataclass(frozen=True, eq=False)
class Seating:
    """What cells are made for.

    Attributes:
        histogram: the true one.
        noisy: whether groups were planned from another one.
        protected: the values that must stay below rho2.
        weights: of the values' variances, for fine-grain channels.
        covered: of columns that are perturbed together, the single values that must stay below rho2.
    """

    histogram: Histogram
    noisy: bool
    protected: Bools
    rho2: Fraction
    kind: ChannelKind
    weights: Floats
    covered: Covered

    def cells(self, groups: Sequence[Group]) -> tuple[list[Cell], list[Group]]:
        """The cells, and the groups as they were planned; groups that cannot be protected join a neighbour."""
        planned = list(groups)
        while True:
            rows = split(planned, self.histogram.counts)
            channels = []
            for group, counts in zip(planned, rows, strict=True):
                channel = self._channel(group, counts)
                if channel is None:
                    break
                channels.append(channel)
            if len(channels) == len(planned):
                break
            if len(planned) == 1:
                raise too_close(most_frequent(self.histogram, self.protected, self.covered), self.rho2)
            first = min(len(channels), len(planned) - 2)
            planned[first : first + 2] = [joined(planned[first : first + 2])]
        return [
            Cell(Histogram(channel.values, counts), channel) for channel, counts in zip(channels, rows, strict=True)
        ], planned

    def _channel(self, group: Group, counts: Counts) -> Channel | None:
        """The channel of a cell that takes these rows; None where it cannot be protected."""
        guarded = self.protected[group.positions]
        values = tuple(self.histogram.domain[position] for position in group.positions.tolist())
        size = max(group.size, 1)
        for margin in OWN_MARGINS if self.noisy else (0,):
            known = {count: Fraction(count + margin, size) for count in set(group.counts.tolist())}
            shares = [known[count] for count in group.counts.tolist()]
            if max(exact.different(compress(shares, guarded.tolist())), default=0) >= self.rho2:
                return None
            if self.kind == "uniform" or not guarded.any():
                channel = uniform_channel(values, shares, guarded, self.rho2)
            else:
                weights = self.weights[group.positions]
                channel = fine_grain_channel(values, shares, group.counts, guarded, self.rho2, weights)
            if self._keeps(channel, counts, guarded):
                return lowered_for_singles(channel, counts, group.positions, self.covered, self.rho2)
        return None

    def _keeps(self, channel: Channel, counts: Counts, guarded: Bools) -> bool:
        sure = exact.surest(channel.keep, channel.replace, counts)
        return all(belief <= self.rho2 for belief in exact.different(compress(sure, guarded.tolist())))


def split(groups: Sequence[Group], counts: Counts) -> list[Counts]:
    """Each value's rows over the groups that hold it, in proportion to what they were planned to take.

    >>> planned = [Group(np.array([0, 1]), np.array([4, 2])), Group(np.array([0]), np.array([2]))]
    >>> [taken.tolist() for taken in split(planned, np.array([7, 3]))]
    [[5, 3], [2]]
    """
    sizes = [len(group.positions) for group in groups]
    positions = np.concatenate([group.positions for group in groups])
    planned = np.concatenate([group.counts for group in groups]).astype(np.float64)
    total = np.zeros(len(counts))
    np.add.at(total, positions, planned)
    share = counts[positions] * planned / np.maximum(total[positions], 1)
    taken = np.floor(share).astype(np.int64)
    missing = counts.copy()
    np.subtract.at(missing, positions, taken)
    order = np.lexsort((np.arange(len(positions)), taken - share, positions))  # by value, largest remainder first
    rank = np.arange(len(order)) - np.searchsorted(positions[order], positions[order])
    taken[order] += rank < missing[positions[order]]
    return np.split(taken, np.cumsum(sizes)[:-1])
