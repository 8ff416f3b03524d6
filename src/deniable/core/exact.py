"""How sure anyone can become, exactly: arithmetic over the integers of a channel, nothing rounded (mathematics
2, 6).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from deniable.core.errors import InternalError, RequirementError
from deniable.core.values import Ints, Probability, probability

# -- Exact arithmetic over a channel's integers: amplification and posteriors, no rounding, O(m) -----------------------
# With thresholds K_i (keep) and weights W_j (replace) out of S = 2^32, every entry of the channel is a whole number out
# of S^2:
#
#     P[i][i] = K_i S + (S - K_i) W_i,    P[j][i] = (S - K_i) W_j  for j != i


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


# -- Swapping among n rows, exactly (mathematics 6, 13.11) -------------------------------------------------------------
# Each row keeps its value by a coin p; the others' values are permuted among themselves. A row that no coin keeps has K
# companions, K binomial, and draws its own value with 1 / (K + 1), so that it ends with its own value with
#
#     q = p + (1 - p) E[1 / (K + 1)] = p + (1 - p^n) / n
#
# and else with the value of any of the n - 1 other rows alike. In terms of the column's histogram f / n that is
#
#     P = p' I + (1 - p') (f / n) 1^T,    p' = (n q - 1) / (n - 1) = p (n - p^(n-1)) / (n - 1)
#
# the channel of a coin p' > p: Lemma 1 holds with p', and with p only as n grows. By the symmetry of the rows all of
# them together tell no more about one row than its own published value does.


MOST_EXACT = 4096  # rows; for more p^(n-1) is left out, which makes the coin larger than it is


@lru_cache(maxsize=64)  # exact numbers of many digits, and a guarantee asks for the same one many times
def swapping_coin(keep: int, rows: int) -> Fraction:
    """p', the coin that swapping among so many rows comes to; never below it.

    >>> swapping_coin(SCALE // 2, 2), float(swapping_coin(SCALE // 2, 20))
    (Fraction(3, 4), 0.5263157392802992)
    """
    if rows < 1 or not 0 <= keep <= SCALE:
        raise InternalError(f"a coin of {keep} among {rows} rows")
    if rows == 1:
        return Fraction(1)
    coin = Fraction(keep, SCALE)
    last = coin ** (rows - 1) if rows <= MOST_EXACT else 0
    return min(coin * (rows - last) / (rows - 1), Fraction(1))


def swapping_threshold(limit: Fraction, rows: int) -> int:
    """The largest coin, out of 2^32, that among so many rows comes to less than ``limit``; it grows with the coin."""
    low, high = 0, SCALE  # at 0 it is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if swapping_coin(middle, rows) < limit else (low, middle)
    return low


# -- (s, rho1, rho2)-breaches: what a value set, not a single value, gives away (mathematics 2; OLAP Def. 5, Thm 4, 5,
# Lemma 1).
#
# A set S has the prior p_S and the mass m_S under the replacing distribution; its *relative prior* is p_S / m_S. There
# is a breach when a set of relative prior below s, believed at rho1 or less, is believed at rho2 or more after the
# release.


Number = float | Fraction


def relative_prior_limit(coin: Number, rho1: Number, rho2: Number) -> Number:
    """One column is safe for s below (rho2 - rho1)(1 - p) / ((1 - rho2) p); infinite without a coin (OLAP Thm 4).

    >>> relative_prior_limit(Fraction(1, 5), Fraction(1, 10), Fraction(95, 100))
    Fraction(68, 1)
    """
    return math.inf if coin == 0 else (rho2 - rho1) * (1 - coin) / ((1 - rho2) * coin)


def joint_limit(coins: Sequence[Number], masses: Sequence[Number], rho1: Number, rho2: Number) -> Number:
    """S_1 x..x S_k is safe for p_S / m_S below this; every column with its own coin (OLAP Thm 5).

        rho2 (1 - rho1) prod_i (1 - p_i) / ((1 - rho2) prod_i ((1 - p_i) m_i + p_i))

    >>> tiny = [0.0, 0.0]
    >>> math.floor(joint_limit([0.2, 0.2], tiny, 0.1, 0.95))
    273
    """
    _same_length(coins, masses)
    above = rho2 * (1 - rho1)
    below = 1 - rho2
    for coin, mass in zip(coins, masses, strict=True):
        above *= 1 - coin
        below *= (1 - coin) * mass + coin
    return math.inf if below == 0 else above / below


@lru_cache(maxsize=64, typed=True)  # coins of many digits, asked for by every sentence; 0.5 is not Fraction(1, 2) here
def belief_limit(coin: Number, rho2: Number, s: Number = 1) -> Number:
    """Beliefs below rho2 - s p (1 - rho2) / (1 - p) stay below rho2, for sets of relative prior up to s (Thm 4).

    At s = 1, replacements drawn like the column itself, this is (rho2 - p) / (1 - p): OLAP Lemma 1.

    >>> belief_limit(Fraction(1, 5), Fraction(95, 100), 68)
    Fraction(1, 10)
    """
    return rho2 - s * coin * (1 - rho2) / (1 - coin) if coin < 1 else -math.inf


def posterior(prior: Number, mass: Number, coin: Number) -> Number:
    """Pr[X in S | Y in S] = p_S (p + (1-p) m_S) / (p p_S + (1-p) m_S), exactly, for one column.

    The prior is meant of S as a whole; inside S the bound is reached by any distribution.
    """
    seen = coin * prior + (1 - coin) * mass
    return prior * (coin + (1 - coin) * mass) / seen if seen else 0 * prior


def joint_posterior(prior: Number, coins: Sequence[Number], masses: Sequence[Number]) -> Number:
    """The largest Pr[X in S | Y in S] for S = S_1 x..x S_k, however the columns are correlated (OLAP Thm 5, proof).

    U p_S / (U p_S + L (1 - p_S)),  L = prod (1-p_i) m_i,  U = prod ((1-p_i) m_i + p_i)
    """
    _same_length(coins, masses)
    low: Number = 1
    high: Number = 1
    for coin, mass in zip(coins, masses, strict=True):
        low *= (1 - coin) * mass
        high *= (1 - coin) * mass + coin
    seen = high * prior + low * (1 - prior)
    return high * prior / seen if seen else 0 * prior


def largest_coin(s: Number, rho1: Probability, rho2: Probability, columns: int = 1, *, mass: Number = 0) -> float:
    """The coin below which (s, rho1, rho2)-breaches are impossible; 0 if none is small enough.

        one column:      p = (rho2-rho1) / (rho2-rho1 + s (1-rho2))                       (OLAP Thm 4)
        k columns:       ((1-p) / ((1-p) mass + p))^k = s (1-rho2) / (rho2 (1-rho1))      (OLAP Thm 5)

    Args:
        s: by how many times a set of values may be likelier than its replacements.
        rho1, rho2: the belief before, and the one that must not be reached.
        columns: how many columns get the same coin.
        mass: the largest share of a column's replacements that falls into a set; 0 speaks of single values of large
            domains only, larger sets need a smaller coin.

    >>> import deniable as dn
    >>> round(dn.largest_coin(68, 0.1, 0.95), 12)
    0.2
    """
    if columns == 1:
        return float(_coin_bound(*requirement(s, rho1, rho2)))
    exact_s, first, second = (float(number) for number in requirement(s, rho1, rho2))
    odds = (exact_s * (1 - second) / (second * (1 - first))) ** (1 / columns)
    left = 1 - odds * float(mass)
    return max(left / (left + odds), 0.0) if left > 0 else 0.0


def safe_threshold(s: Number, rho1: Probability, rho2: Probability) -> int:
    """The largest coin, as an integer out of 2^32, for which one column has no (s, rho1, rho2)-breach.

    s = 1 speaks of replacements that are drawn like the column itself: (rho2 - rho1) / (1 - rho1) (OLAP Lemma 1).
    """
    return math.ceil(_coin_bound(*requirement(s, rho1, rho2)) * SCALE) - 1  # strictly below


def requirement(s: Number, rho1: Probability, rho2: Probability) -> tuple[Fraction, Fraction, Fraction]:
    """(s, rho1, rho2) as exact numbers, or an error in words."""
    try:
        exact = Fraction(s) if isinstance(s, int | Fraction) else Fraction(repr(float(s)))
    except (ValueError, OverflowError, TypeError):
        exact = Fraction(0)
    if isinstance(s, bool) or exact <= 0:
        raise RequirementError(
            f"s = {s!r} is not allowed: it is how many times likelier a set may be than its replacing mass, a number "
            "above 0. Fix: s=68 covers all sets that are up to 68 times likelier."
        )
    first, second = probability(rho1, "rho1"), probability(rho2, "rho2")
    if first >= second:
        raise RequirementError(f"rho1 = {rho1} is not below rho2 = {rho2}: a belief may only be allowed to grow.")
    return exact, first, second


def _coin_bound(s: Fraction, rho1: Fraction, rho2: Fraction) -> Fraction:
    return (rho2 - rho1) / (rho2 - rho1 + s * (1 - rho2))


def _same_length(coins: Sequence[Number], masses: Sequence[Number]) -> None:
    if len(coins) != len(masses) or len(coins) == 0:
        raise RequirementError(
            f"{len(coins)} coins and {len(masses)} replacing masses were given: each column needs one of both."
        )
