"""Line-ups: a row publishes a set of L values, in which its own stands, or does not (mathematics 12)."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from deniable.core.exact import SCALE, different_pairs, kinds
from deniable.core.values import Floats, Ints

# -- Line-ups: a row publishes a set of L values, in which its own stands, or does not (mathematics 12) ----------------
#     P(S | x) = t D(S | x in S) + (1-t) D(S),    pi_x = Pr[x in S],    sum_x pi_x = L
#
# The sets and their distribution D are a public *design*, made of K public orders of the values. A row draws an order;
# if it is made around its value x, it draws among the sets of this order that hold x, otherwise without looking. The
# truth t is the share of rows that are made around their value. There are two kinds of design:
#
# - ``lineup_arcs``: values have arcs of pi_x on a line, so that inclusion follows the frequencies;
# - ``lineup_blocks``: all values are included alike, and every two of them come together almost equally often.
#
# A design *is* the integers that the sampler uses. A row's 64-bit word has three parts, and nothing is rounded after:
#
#     bits 58-63   the order, where there are 64 (fewer orders: the highest bits of these)
#     bits 40-57   the coin: around the value iff it is below truth / 2^14
#     bits 0-39    r: which of the sets around the value, or of all sets without looking
#
# so the truth is a multiple of 2^14 out of 2^32, and every probability of a set a whole number out of K 2^58.


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


# -- Exact arithmetic over a design's integers: what a line-up lets people believe, nothing rounded (mathematics 12).
# With truth T out of 2^18, hits h and lengths l of a set S, every probability is a whole number out of K 2^58:
#
#     P(S | x) = T h_xS + (2^18 - T) l_S  for x in S,    (2^18 - T) l_S  for all others
#
# A maximum over sets is found among floating-point numbers, whose error is far below ``CLOSE``, and all that come that
# close to the largest are compared in whole numbers.


CLOSE = 1e-12
HALF = 20  # bits of a number of hits, which has at most 46: 40, and 6 of the order
AT_ONCE = 2**20  # members of sets that are looked at at once


def likelihoods(design: LineUpDesign, state: int) -> tuple[list[int], int]:
    """P(S | x) for the members x of a set, in their order, and for everyone else, out of K 2^58."""
    sets, coin = design.sets, design.coin
    other = (COIN - coin) * int(sets.lengths[state])
    return [coin * hits + other for hits in sets.hits[state].tolist()], other


def lineup_amplification(design: LineUpDesign) -> Fraction | None:
    """max over S, x, x' of P(S | x) / P(S | x'); None where a set rules the values outside it out.

    Outside is always less likely than inside, and some value is outside, so it is 1 + max T h / ((2^18 - T) l).
    """
    if design.coin == COIN:
        return None
    sets = design.sets
    ratio = sets.hits.max(axis=1) / sets.lengths
    near = np.flatnonzero(ratio >= ratio.max() * (1 - CLOSE))
    alike = set(zip(sets.hits[near].max(axis=1).tolist(), sets.lengths[near].tolist(), strict=True))
    largest = max(Fraction(hits, length) for hits, length in alike)
    return 1 + design.coin * largest / (COIN - design.coin)


class _Weighed(NamedTuple):
    """Every set for a prior, in floating-point numbers: P(S | member), P(S | everyone else), and Pr[S] times the
    prior's total."""

    inside: Floats
    blind: Floats
    seen: Floats

    @classmethod
    def of(cls, design: LineUpDesign, prior: Ints) -> _Weighed:
        sets, coin = design.sets, design.coin
        blind = (COIN - coin) * sets.lengths.astype(np.float64)
        inside = coin * sets.hits.astype(np.float64)
        seen = np.einsum("sl,sl->s", inside, prior[sets.members].astype(np.float64)) + blind * float(prior.sum())
        return cls(inside + blind[:, None], blind, seen)

    def likelier(self) -> Floats:
        """P(S | member) / Pr[S], 0 where nobody shows the set."""
        seen = np.where(self.seen > 0, self.seen, np.inf)
        ratio: Floats = self.inside / seen[:, None]
        return ratio


def surest_in_lineups(design: LineUpDesign, prior: Ints) -> list[Fraction]:
    """max over S of Pr[x | S] for each x, for who believes in x in proportion to ``prior``, whole numbers.

    Among the sets without x it is largest where P(S | elsewhere) / Pr[S] is, whichever x it is; and where that set
    holds x, x is likelier still.
    """
    if int(prior.sum()) == 0:
        return [Fraction(0)] * design.m
    weighed = _Weighed.of(design, prior)
    outside = _outside(design, prior, weighed)
    inside = _members(design, prior, weighed)
    elsewhere = {count: count * outside for count in set(prior.tolist())}
    outer = [elsewhere[count] for count in prior.tolist()]
    larger = {(id(member), id(other)): max(member, other) for member, other in different_pairs(inside, outer)}
    return [larger[pair] for pair in zip(map(id, inside), map(id, outer), strict=True)]


def highest(design: LineUpDesign, prior: Ints, among: Ints) -> Fraction:
    """max over S and over the values ``among`` of Pr[x | S]: the largest of ``surest`` without the others."""
    if int(prior.sum()) == 0 or not len(among):
        return Fraction(0)
    weighed, members = _Weighed.of(design, prior), design.sets.members
    counted = np.zeros(design.m)
    counted[among] = prior[among]
    belief = weighed.likelier() * counted[members]
    state, slot = np.nonzero(belief >= max(float(belief.max()) * (1 - CLOSE), 1e-300))
    inside, _ = _beliefs(design, prior, state, slot)
    return max([*inside, int(prior[among].max()) * _outside(design, prior, weighed)])


def keeps(design: LineUpDesign, prior: Ints, limits: Sequence[Fraction | None]) -> bool:
    """Whether no value is believed above its limit, whatever set is shown; None: without a limit."""
    if int(prior.sum()) == 0:
        return True
    weighed, members = _Weighed.of(design, prior), design.sets.members
    outside = _outside(design, prior, weighed)
    most: dict[int, int] = {}  # the most rows of a value with this limit; limits by identity, since many share one
    for count, limit in zip(prior.tolist(), limits, strict=True):
        most[id(limit)] = max(most.get(id(limit), 0), count)
    known = {id(limit): limit for limit in limits}
    if any(limit is not None and most[key] * outside > limit for key, limit in known.items()):
        return False
    rounded = {key: math.inf if limit is None else float(limit) for key, limit in known.items()}
    allowed = np.array([rounded[id(limit)] for limit in limits])
    excess = weighed.likelier() * (prior / np.maximum(allowed, 1e-300))[members]
    if float(excess.max()) > 1 + CLOSE:
        return False
    state, slot = np.nonzero(excess >= 1 - CLOSE)
    sure, kind = _beliefs(design, prior, state, slot)
    shown = zip(kind.tolist(), (limits[x] for x in members[state, slot].tolist()), strict=True)
    pairs = {(place, id(limit)): (sure[place], limit) for place, limit in shown}
    return all(belief <= (limit or 0) for belief, limit in pairs.values())


def _belief(design: LineUpDesign, prior: Ints, total: int, place: int, column: int) -> Fraction:
    """Pr[x | S] of one member of a set, exactly; ``total`` is the prior's."""
    x = int(design.sets.members[place, column])
    given = likelihoods(design, place)
    return Fraction(int(prior[x]) * given[0][column], _seen(design, prior, total, place, given))


def _members(design: LineUpDesign, prior: Ints, weighed: _Weighed) -> list[Fraction]:
    """The largest posterior of each value over the sets that hold it."""
    members, likelier = design.sets.members, weighed.likelier()
    largest = np.zeros(design.m)
    np.maximum.at(largest, members, likelier)
    state, slot = np.nonzero(likelier >= largest[members] * (1 - CLOSE))
    occurring = prior[members[state, slot]] > 0
    state, slot = state[occurring], slot[occurring]
    none = Fraction(0)
    result = [none] * design.m
    sure, kind = _beliefs(design, prior, state, slot)
    for x, belief in zip(members[state, slot].tolist(), map(sure.__getitem__, kind.tolist()), strict=True):
        result[x] = belief if result[x] is none or result[x] is belief else max(result[x], belief)
    return result


def _beliefs(design: LineUpDesign, prior: Ints, state: Ints, slot: Ints) -> tuple[list[Fraction], Ints]:
    """The different Pr[x | S] of some members of sets, exactly, and which of them each member has."""
    if not len(state):
        return [], state
    first, kind, _ = kinds(*_evidence(design, prior, state, slot))
    total = int(prior.sum())
    shown = zip(state[first].tolist(), slot[first].tolist(), strict=True)
    return [_belief(design, prior, total, place, column) for place, column in shown], kind


def _evidence(design: LineUpDesign, prior: Ints, state: Ints, slot: Ints) -> tuple[Ints, ...]:
    """What the posterior of a member of a set follows from: members that are alike in it share their posterior.

    The rows that show a set are added up in two halves of the hits, since a sum of whole ones may exceed 64 bits.
    """
    sets = design.sets
    places, back = np.unique(state, return_inverse=True)  # a set is added up once, for all of its members
    halves = np.empty((2, len(places)), dtype=np.int64)
    step = max(1, AT_ONCE // design.size)
    for start in range(0, len(places), step):
        some = places[start : start + step]
        rows, hits = prior[sets.members[some]], sets.hits[some]
        for half, part in zip(halves, (hits >> HALF, hits & ((1 << HALF) - 1)), strict=True):
            half[start : start + step] = np.einsum("sl,sl->s", rows, part)
    return (prior[sets.members[state, slot]], sets.hits[state, slot], sets.lengths[state], *halves[:, back])


def _outside(design: LineUpDesign, prior: Ints, weighed: _Weighed) -> Fraction:
    """P(S | elsewhere) / Pr[S] at the most: by how much a row speaks for a value that does not stand in its line-up."""
    if design.coin == COIN:
        return Fraction(0)
    ratio = weighed.blind / weighed.seen
    near = np.flatnonzero(ratio >= ratio.max() * (1 - CLOSE)).tolist()
    total = int(prior.sum())
    seen = set()
    for place in near:
        given = likelihoods(design, place)
        seen.add((given[1], _seen(design, prior, total, place, given)))
    return max(Fraction(*pair) for pair in seen)


def stays(design: LineUpDesign, prior: Ints) -> Fraction:
    """min over S of P(S | elsewhere) / Pr[S]: no belief that is in proportion to ``prior`` falls below that share of
    itself. It is at most 1 - t, the same only where every set is as likely to be shown as to be made without looking.
    """
    total = int(prior.sum())
    if design.coin == COIN or total == 0:
        return Fraction(0 if total else 1)
    weighed = _Weighed.of(design, prior)
    ratio = weighed.blind / weighed.seen
    least = Fraction(1)
    for place in np.flatnonzero(ratio <= ratio.min() * (1 + CLOSE)).tolist():
        given = likelihoods(design, place)
        least = min(least, Fraction(given[1] * total, _seen(design, prior, total, place, given)))
    return least


def stays_by(design: LineUpDesign, public: Ints, rows: int, doubt: float) -> float:
    """The same for counts of ``rows`` rows that are known but for noise: a set is shown more often than they say by up
    to ``doubt``, so many rows of one value, and of several as independent noise adds up."""
    if design.coin == COIN or rows == 0:
        return 0.0 if rows else 1.0
    sets, coin = design.sets, design.coin
    blind = (COIN - coin) * sets.lengths.astype(np.float64) * rows
    own = coin * sets.hits.astype(np.float64)
    looked = np.einsum("sl,sl->s", own, public[sets.members].astype(np.float64))
    return float((blind / (blind + looked + doubt * np.sqrt(np.einsum("sl,sl->s", own, own)))).min())


def _seen(design: LineUpDesign, prior: Ints, total: int, place: int, given: tuple[list[int], int]) -> int:
    """Pr[S] times the prior's total, out of K 2^58; ``given`` are the likelihoods of S."""
    inside, other = given
    rows = prior[design.sets.members[place]].tolist()
    return sum(count * (whole - other) for count, whole in zip(rows, inside, strict=True)) + other * total


def posterior(design: LineUpDesign, prior: Ints, state: int) -> list[Fraction]:
    """Pr[x | S] of every value, exactly."""
    inside, other = given_set = likelihoods(design, state)
    seen = _seen(design, prior, int(prior.sum()), state, given_set)
    given = [other] * design.m
    for x, whole in zip(design.sets.members[state].tolist(), inside, strict=True):
        given[x] = whole
    return [
        Fraction(count * likelihood, seen) if seen else Fraction(0)
        for count, likelihood in zip(prior.tolist(), given, strict=True)
    ]
