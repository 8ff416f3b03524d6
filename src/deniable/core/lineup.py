"""Line-ups: a row publishes a set of L values, in which its own stands, or does not (mathematics 12).

    P(S | x) = t D(S | x in S) + (1-t) D(S),    pi_x = Pr[x in S],    sum_x pi_x = L

The sets and their distribution D are a public *design*, made of K public orders of the values. A row draws an order; if
it is made around its value x, it draws among the sets of this order that hold x, otherwise without looking. The truth t
is the share of rows that are made around their value. There are two kinds of design:

- ``lineup_arcs``: values have arcs of pi_x on a line, so that inclusion follows the frequencies;
- ``lineup_blocks``: all values are included alike, and every two of them come together almost equally often.

A design *is* the integers that the sampler uses. A row's 64-bit word has three parts, and nothing is rounded after:

    bits 58-63   the order, where there are 64 (fewer orders: the highest bits of these)
    bits 40-57   the coin: around the value iff it is below truth / 2^14
    bits 0-39    r: which of the sets around the value, or of all sets without looking

so the truth is a multiple of 2^14 out of 2^32, and every probability of a set a whole number out of K 2^58.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from deniable.core.arrays import Floats, Ints
from deniable.core.exact import SCALE

COIN_BITS, POINT_BITS, ORDER_BITS = 18, 40, 6
COIN, POINTS, ORDERS = 2**COIN_BITS, 2**POINT_BITS, 2**ORDER_BITS
TRUTH_STEP = SCALE // COIN
MOST_ENTRIES = 2**23  # members of all sets of all orders that a design may list
MANY_VALUES, ORDERS_OF_MANY = 4096, 16  # with so many values, more orders cost more than they are worth
SEED_NAME = "deniable line-ups"


class Sets(NamedTuple):
    """The sets of a design, each once, in lexical order.

    Attributes:
        members: positions in the domain, ascending, [sets, L].
        lengths: how many of the K 2^40 (order, r) without looking stand for each set.
        hits: how many of the K 2^40 (order, r) of each member stand for the set, [sets, L].
        of_interval: the set of each interval. Along each order the sets that follow one another are numbered, one
            order after the other; two of these intervals may have the same set.
    """

    members: Ints
    lengths: Ints
    hits: Ints
    of_interval: Ints

    @classmethod
    def of(cls, members: Ints, lengths: Ints, hits: Ints) -> Sets:
        """The sets of intervals, whose members ascend; the draws of intervals that are alike are added up."""
        order = np.lexsort(members.T[::-1])
        ranked = members[order]
        first = np.flatnonzero(np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1)))
        of_interval = np.empty(len(members), dtype=np.int64)
        of_interval[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(members))))
        if len(first) == len(members):
            return cls(ranked, lengths[order], hits[order], of_interval)
        whole = np.add.reduceat(hits[order], first, axis=0)
        return cls(ranked[first], np.add.reduceat(lengths[order], first), whole, of_interval)


class Lines(NamedTuple):
    """What the sampler draws from: with order k, a row's point is starts[k, line] + floor(r lengths[line] / 2^40).

    Attributes:
        starts: [K, 1 + m]; line 0 is that of rows that do not look, line x + 1 that of value x.
        lengths: of the lines, [1 + m].
        edges: where the points of a set begin, ascending; None where every point has a set of its own.
        sets: the set from each edge on, or of each point.
        whole: how many points there are.
    """

    starts: Ints
    lengths: Ints
    edges: Ints | None
    sets: Ints
    whole: int


class LineUpDesign(ABC):
    """A design of line-ups over a domain of m values.

    Attributes:
        truth: t * 2^32.
        orders: K, a power of two up to 64.
        seed: the public seed that the orders are made of.
    """

    truth: int
    orders: int
    seed: int

    @property
    @abstractmethod
    def m(self) -> int:
        """How many values there are."""

    @property
    @abstractmethod
    def size(self) -> int:
        """L, the number of values in every line-up."""

    @property
    @abstractmethod
    def inclusion(self) -> Floats:
        """pi, each value's share of the line-ups that are made without looking."""

    @cached_property
    @abstractmethod
    def sets(self) -> Sets:
        """All sets with their exact probabilities."""

    @abstractmethod
    def joint(self) -> Floats:
        """J[x][y] = Pr[x and y in S], for sets that are made without looking."""

    @abstractmethod
    def lines(self) -> Lines:
        """What a row's set is drawn from."""

    @abstractmethod
    def code_table(self) -> dict[str, Ints]:
        """The table by which a code is read; its column ``value`` holds positions in the domain."""

    @abstractmethod
    def integers(self) -> dict[str, Any]:
        """The design as JSON."""

    # -- what follows from it ----------------------------------------------------------------------------------------

    @property
    def share_true(self) -> float:
        """t, the share of line-ups that are made around the person's value."""
        return self.truth / SCALE

    @property
    def coin(self) -> int:
        """The truth out of 2^18, as the sampler's coin has it."""
        return self.truth // TRUTH_STEP

    @cached_property
    def distribution(self) -> Floats:
        """D, the probability of each set without looking."""
        return self.sets.lengths / (self.orders * POINTS)

    def with_coin(self, coin: int) -> Self:
        """The same sets, with another truth out of 2^18."""
        other = dataclasses.replace(self, truth=coin * TRUTH_STEP)  # type: ignore[type-var]
        if "sets" in self.__dict__:
            other.__dict__["sets"] = self.sets  # they do not depend on the truth
        return other

    def order(self, number: int) -> Ints:
        """One public order of the values: positions by their place."""
        return public_order(self.seed, number, self.m)


def public_order(seed: int, number: int, m: int) -> Ints:
    """An order of m values that anyone can make again from its seed and number."""
    digest = hashlib.shake_256(f"{SEED_NAME} {seed} {number}".encode()).digest(8 * m)
    return np.argsort(np.frombuffer(digest, dtype="<u8"), kind="stable").astype(np.int64)


def problems(m: int, size: int, truth: int, orders: int, seed: int) -> list[str]:
    """What is wrong with the integers that every design has."""
    wrong = []
    if not 0 < truth <= SCALE or truth % TRUTH_STEP:
        wrong.append("the truth of a line-up must be a multiple of 2^14, above 0 and at most 2^32")
    if orders not in (1 << bits for bits in range(ORDER_BITS + 1)):
        wrong.append("a design has 1, 2, 4, .., 64 orders")
    elif not wrong and orders * m * size > MOST_ENTRIES:
        wrong.append(f"a design may list at most {MOST_ENTRIES:,} members of sets")
    if not 0 <= seed < 2**63:
        wrong.append("the seed of a design is a whole number from 0")
    return wrong


def orders_for(m: int, size: int) -> int:
    """How many orders a design has: 64, fewer where there are many values, or the largest power of two that its limit
    allows; 0 where there is none."""
    room = MOST_ENTRIES // (m * size)
    most = ORDERS if m <= MANY_VALUES else ORDERS_OF_MANY
    return min(most, 1 << (room.bit_length() - 1)) if room else 0


def first_draw(offset: Ints, length: Ints) -> Ints:
    """ceil(offset 2^40 / length): the first r whose point lies at or beyond an offset of a line of up to 2^24."""
    inside = np.minimum(offset, length - 1).astype(np.uint64)
    wide = length.astype(np.uint64)
    first = (inside * np.uint64(POINTS) + wide - np.uint64(1)) // wide
    return np.where(offset >= length, POINTS, first.astype(np.int64))
