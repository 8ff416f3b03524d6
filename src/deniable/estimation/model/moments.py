"""How weights are distributed: second and third moments, of rows that satisfy a condition and of all.

    E[w^j | x] = sum over y of P[y][x] w(y)^j,    averaged over x in S and x not in S as often as the table has them

Nothing of it depends on what the rows of a question happen to show, so it says how far their estimate may lie from any
truth, also where few rows decide (``estimation.limits``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.limits import Cumulants


@dataclass(frozen=True, eq=False)
class Moments:
    """Of the weights of conditions, in some rows.

    Attributes:
        share: how many of the rows satisfy the condition.
        own: E[w^2], E[w^3] of those.
        every: the same of all rows.
    """

    share: Floats
    own: tuple[Floats, Floats]
    every: tuple[Floats, Floats]

    def times(self, other: Moments) -> Moments:
        """Of two independent conditions that both must hold; labels of the first outside."""
        pairs = zip((self.share, *self.own, *self.every), (other.share, *other.own, *other.every), strict=True)
        share, *rest = (np.multiply.outer(one, its).reshape(-1) for one, its in pairs)
        return Moments(share, (rest[0], rest[1]), (rest[2], rest[3]))

    def picked(self, labels: Any) -> Moments:
        """Of some of the conditions."""
        share, *rest = (part[labels] for part in (self.share, *self.own, *self.every))
        return Moments(share, (rest[0], rest[1]), (rest[2], rest[3]))

    def at(self, inside: Ints, labels: Ints, number: int) -> Moments:
        """Some of the conditions, at some of so many labels; nothing at the others."""

        def placed(part: Floats) -> Floats:
            result = np.zeros(number)
            result[labels] = part[inside]
            return result

        share, *rest = map(placed, (self.share, *self.own, *self.every))
        return Moments(share, (rest[0], rest[1]), (rest[2], rest[3]))

    @property
    def others(self) -> tuple[Floats, Floats]:
        """E[w^2], E[w^3] of rows that do not satisfy the condition; 0 where all do."""
        left = 1 - self.share
        second, third = (
            np.divide(every - self.share * own, left, out=np.zeros_like(own), where=left > 1e-12)
            for every, own in zip(self.every, self.own, strict=True)
        )
        return second, third


def of_sets(back: Callable[[Floats], Floats], weights: Floats, sets: Bools, often: Floats) -> Moments:
    """Of value sets [.., m], from their weights [.., states].

    Args:
        back: numbers of states -> what a value expects of them, P^T z.
        weights: of the sets.
        sets: which values.
        often: how often the table has each value.
    """
    inside, some = sets * often, sets.sum(axis=-1)
    share = inside.sum(axis=-1)
    plain = np.divide(sets, some[..., None], out=np.zeros(sets.shape), where=some[..., None] > 0)
    known = np.divide(inside, share[..., None], out=plain, where=share[..., None] > 0)
    expected = [back(weights**power) for power in (2, 3)]
    trivial = sets.min(axis=-1) == sets.max(axis=-1)
    own = [np.where(trivial, 1.0, (one * known).sum(axis=-1)) for one in expected]
    every = [np.where(trivial, 0.0, one @ often) for one in expected]
    return Moments(np.where(trivial, 0.0, share), (own[0], own[1]), (every[0], every[1]))


def of_values(matrix: Floats, weights: Floats, often: Floats) -> Moments:
    """Of every single value, from a channel P[y][x] and the weights [values, states]."""
    shown = matrix @ often
    own, every = [], []
    for power in (2, 3):
        raised = weights**power
        own.append(np.einsum("yx,xy->x", matrix, raised))
        every.append(raised @ shown)
    return Moments(often, (own[0], own[1]), (every[0], every[1]))


def of_coins(p: Floats, r: Floats, often: Floats) -> Moments:
    """The same of a channel of coins and a replacing distribution, in O(m).

    A row that shows another value y counts for -s g_y, g = (1-p) / p; one that shows the value itself for
    (1 - (1-p) s) / p, with s = (r / p) / (1 + r . g).
    """
    g = (1 - p) / p
    s = (r / p) / (1 + (r * g).sum())
    shown = (1 - (1 - p) * s) / p
    own, every = [], []
    for power in (2, 3):
        drawn = r * shown**power + (-s) ** power * ((r * g**power).sum() - r * g**power)
        kept = often * p * shown**power + (-s) ** power * ((often * p * g**power).sum() - often * p * g**power)
        own.append(p * shown**power + (1 - p) * drawn)
        every.append(kept + (often * (1 - p)).sum() * drawn)
    if len(p) == 1:
        return Moments(np.zeros(1), (np.ones(1), np.ones(1)), (np.zeros(1), np.zeros(1)))
    return Moments(often, (own[0], own[1]), (every[0], every[1]))


def cumulants_of(parts: Iterable[tuple[Floats, Moments]], shape: tuple[int, int]) -> Cumulants:
    """Of sums of weights over rows [groups, labels], from how many rows there are of each kind and their moments.

    Those that satisfy the condition are taken to be of each kind as often as the table has them.
    """
    second, third, own_second, own_third, satisfy = (np.zeros(shape) for _ in range(5))
    for rows, moments in parts:
        others, own = moments.others, moments.own
        second += rows * others[0]
        third += rows * others[1]
        mass = rows * moments.share
        own_second += mass * (own[0] - 1 - others[0])
        own_third += mass * (own[1] - 3 * own[0] + 2 - others[1])
        satisfy += mass
    slopes = [np.divide(one, satisfy, out=np.zeros(shape), where=satisfy > 0) for one in (own_second, own_third)]
    return Cumulants(second, slopes[0], third, slopes[1])
