"""Line-ups: a row publishes a set of L values, in which its own stands, or does not (mathematics 12).

    P(S | x) = t D(S) [x in S] / pi_x + (1-t) D(S),    pi_x = Pr[x in S],    sum_x pi_x = L

The sets and their distribution D are a public *design*: systematic sampling. Values are laid in a public order on a
line, x taking an arc of pi_x; a point u of [0, 1) stands for the set of values hit by u, u+1, .., u+L-1. There are K
orders, and the order is drawn with the row. A row that is made around its value x draws u on x's arc, all others draw u
without looking. The truth t is the share of rows that are made around their value.

A design *is* the integers that the sampler uses. A row's 64-bit word has three parts, and nothing is rounded after:

    bits 58-63   the order, where there are 64 (fewer orders: the highest bits of these)
    bits 40-57   the coin: around the value iff it is below truth / 2^14
    bits 0-39    r: the point is start_k(x) + floor(r arc_x / 2^40), or floor(r / 2^16) without looking

so arcs are multiples of 2^8 out of 2^32 (a turn has 2^24 steps) and the truth is a multiple of 2^14 out of 2^32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deniable.core.arrays import Floats, Ints
from deniable.core.channel import SCALE
from deniable.core.errors import InternalError, ManifestError

TURN_BITS, COIN_BITS, POINT_BITS, ORDER_BITS = 24, 18, 40, 6
TURN, COIN, POINTS, ORDERS = 2**TURN_BITS, 2**COIN_BITS, 2**POINT_BITS, 2**ORDER_BITS
ARC_STEP, TRUTH_STEP = SCALE // TURN, SCALE // COIN
MOST_ENTRIES = 2**23  # members of all sets of all orders that a design may list
MANY_VALUES, ORDERS_OF_MANY = 4096, 16  # with so many values, more orders cost more than they are worth
SEED_NAME = "deniable line-ups"
PAIR_COST = 80  # a pair of members that is counted, against an entry of a product of matrices


class Sets(NamedTuple):
    """The sets of a design, each once, in lexical order.

    Attributes:
        members: positions in the domain, ascending, [sets, L].
        lengths: how many of the K 2^24 points without looking stand for each set.
        hits: how many of the K 2^40 (order, r) of each member stand for the set, [sets, L].
        edges: where the points of an interval begin, ascending: order * 2^24 + first point.
        of_edge: the set that each interval stands for.
    """

    members: Ints
    lengths: Ints
    hits: Ints
    edges: Ints
    of_edge: Ints


@dataclass(frozen=True, eq=False)
class LineUpDesign:
    """A design of line-ups over a domain of m values, as integers out of 2^32.

    Attributes:
        arcs: pi_x * 2^32, for each value; they add up to L * 2^32.
        truth: t * 2^32.
        orders: K, a power of two up to 64.
        seed: the public seed that the orders are made of.

    >>> design = LineUpDesign.of([3.0, 2.0, 2.0, 1.0], size=2, truth=0.5)
    >>> design.inclusion.tolist(), design.size
    ([0.75, 0.5, 0.5, 0.25], 2)
    """

    arcs: Ints
    truth: int
    orders: int = ORDERS
    seed: int = 0

    def __post_init__(self) -> None:
        arcs = np.array(self.arcs, dtype=np.int64)
        arcs.setflags(write=False)
        object.__setattr__(self, "arcs", arcs)
        for wrong in problems(arcs, self.truth, self.orders, self.seed):
            raise InternalError(wrong)

    @classmethod
    def of(
        cls, weights: Floats | list[float], size: int, truth: float, *, largest: float = 1.0, seed: int = 0
    ) -> LineUpDesign:
        """A design whose inclusion is in proportion to weights, none above ``largest``; truth is rounded down."""
        arcs = arcs_of(np.asarray(weights, dtype=np.float64), size, largest)
        return cls(arcs, int(truth * COIN) * TRUTH_STEP, orders_for(len(arcs), size), seed)

    # -- what it is, as floating-point numbers -----------------------------------------------------------------------

    @property
    def m(self) -> int:
        return len(self.arcs)

    @property
    def size(self) -> int:
        """L, the number of values in every line-up."""
        return int(self.arcs.sum()) // SCALE

    @property
    def inclusion(self) -> Floats:
        """pi, each value's share of the line-ups that are made without looking."""
        return self.arcs / SCALE

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
        return self.sets.lengths / (self.orders * TURN)

    def joint(self) -> Floats:
        """J[x][y] = Pr[x and y in S], exact: whole numbers below 2^53 divided by a power of two."""
        members, lengths = self.sets.members, self.sets.lengths.astype(np.float64)
        by_pairs = PAIR_COST * self.size**2 < self.m**2
        total = np.zeros(self.m**2)
        step = max(1, 2**22 // (self.size**2 if by_pairs else self.m))
        for first in range(0, len(members), step):
            some, often = members[first : first + step], lengths[first : first + step, None]
            if by_pairs:
                pairs = (some[:, :, None] * self.m + some[:, None, :]).reshape(len(some), -1)
                total += np.bincount(pairs.ravel(), np.broadcast_to(often, pairs.shape).ravel(), len(total))
            else:
                inside = indicator(some, self.m)
                total += (inside.T @ (inside * often)).ravel()
        joint: Floats = total.reshape(self.m, self.m) / (self.orders * TURN)
        return joint

    # -- the design ------------------------------------------------------------------------------------------------

    def order(self, number: int) -> Ints:
        """One public order of the values: positions by their place on the line."""
        digest = hashlib.shake_256(f"{SEED_NAME} {self.seed} {number}".encode()).digest(8 * self.m)
        return np.argsort(np.frombuffer(digest, dtype="<u8"), kind="stable").astype(np.int64)

    @cached_property
    def starts(self) -> Ints:
        """The point where each value's arc begins, [K, m]."""
        starts = np.empty((self.orders, self.m), dtype=np.int64)
        for number in range(self.orders):
            order = self.order(number)
            steps = self.arcs[order] // ARC_STEP
            starts[number, order] = (np.cumsum(steps) - steps) % TURN
        starts.setflags(write=False)
        return starts

    @cached_property
    def sets(self) -> Sets:
        """All sets with their exact probabilities, at most K m of them."""
        pieces = [self._intervals(number) for number in range(self.orders)]
        edges = np.concatenate([number * TURN + points for number, (points, _) in enumerate(pieces)])
        members = np.sort(np.concatenate([hit for _, hit in pieces]), axis=1)
        lengths = np.diff(np.append(edges, self.orders * TURN))
        hits = self._hits(edges, lengths, members)
        order = np.lexsort(members.T[::-1])
        ranked = members[order]
        first = np.flatnonzero(np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1)))
        of_edge = np.empty(len(members), dtype=np.int64)
        of_edge[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(members))))
        whole = np.add.reduceat(hits[order], first, axis=0)
        return Sets(ranked[first], np.add.reduceat(lengths[order], first), whole, edges, of_edge)

    def _intervals(self, number: int) -> tuple[Ints, Ints]:
        """The points of one order at which the set changes, and the set from there on."""
        order = self.order(number)
        ends = np.cumsum(self.arcs[order] // ARC_STEP)
        points = np.unique(np.append(ends % TURN, 0))
        layers = points[:, None] + np.arange(self.size) * TURN
        return points, order[np.searchsorted(ends, layers, side="right")]

    def _hits(self, edges: Ints, lengths: Ints, members: Ints) -> Ints:
        """ceil(high 2^40 / arc) - ceil(low 2^40 / arc): the r of each member that fall into an interval of its arc."""
        number, point = edges // TURN, edges % TURN
        arcs = self.arcs[members] // ARC_STEP
        low = (point[:, None] - self.starts[number[:, None], members]) % TURN
        return _first_r(low + lengths[:, None], arcs) - _first_r(low, arcs)


def problems(arcs: Ints, truth: int, orders: int, seed: int) -> list[str]:
    """What is wrong with the integers of a design."""
    wrong = []
    if len(arcs) < 2 or (arcs <= 0).any() or (arcs > SCALE).any() or (arcs % ARC_STEP).any():
        wrong.append("an arc of a line-up must be a multiple of 2^8, above 0 and at most 2^32, for two values or more")
    elif int(arcs.sum()) % SCALE or int(arcs.sum()) >= len(arcs) * SCALE:
        wrong.append("the arcs of a line-up must add up to a whole number of values, and less than all")
    if not 0 < truth <= SCALE or truth % TRUTH_STEP:
        wrong.append("the truth of a line-up must be a multiple of 2^14, above 0 and at most 2^32")
    if orders not in (1 << bits for bits in range(ORDER_BITS + 1)):
        wrong.append("a design has 1, 2, 4, .., 64 orders")
    elif not wrong and orders * len(arcs) * (int(arcs.sum()) // SCALE) > MOST_ENTRIES:
        wrong.append(f"a design may list at most {MOST_ENTRIES:,} members of sets")
    if not 0 <= seed < 2**63:
        wrong.append("the seed of a design is a whole number from 0")
    return wrong


def design_dict(design: LineUpDesign) -> dict[str, Any]:
    """A design as JSON: its integers."""
    return {
        "arcs": design.arcs.tolist(),
        "truth": design.truth,
        "orders": design.orders,
        "seed": design.seed,
    }


def design_of(raw: Mapping[str, Any], m: int) -> LineUpDesign:
    """A design from JSON, for a domain of m values."""
    arcs = np.array(raw["arcs"], dtype=np.int64)
    wrong = problems(arcs, raw["truth"], raw["orders"], raw["seed"])
    if wrong or len(arcs) != m:
        raise ManifestError(f"manifest.json is damaged: {(wrong or ['a line-up needs one arc for each value'])[0]}.")
    return LineUpDesign(arcs, raw["truth"], raw["orders"], raw["seed"])


def orders_for(m: int, size: int) -> int:
    """How many orders a design has: 64, fewer where there are many values, or the largest power of two that its limit
    allows; 0 where there is none."""
    room = MOST_ENTRIES // (m * size)
    most = ORDERS if m <= MANY_VALUES else ORDERS_OF_MANY
    return min(most, 1 << (room.bit_length() - 1)) if room else 0


def arcs_of(weights: Floats, size: int, largest: float = 1.0) -> Ints:
    """pi_x = min(c w_x, largest) with sum L, as whole steps: none below one, nearest by largest remainders."""
    if not ((weights > 0) & np.isfinite(weights)).all() or not 0 < size < len(weights):
        raise InternalError("line-ups need positive weights, and hold fewer values than there are")
    most = int(largest * TURN)
    if size * TURN > most * len(weights):
        raise InternalError("line-ups of this size cannot be drawn: the largest inclusion does not suffice")
    full = np.zeros(len(weights), dtype=bool)
    share = np.zeros(len(weights))
    while True:  # values that are at their largest leave the rest to the others
        rest = size * TURN - most * int(full.sum())
        share = np.where(full, most, weights / weights[~full].sum() * rest if not full.all() else most)
        over = ~full & (share > most)
        if not over.any():
            break
        full |= over
    steps = np.clip(np.floor(share), 1, most).astype(np.int64)
    _settle(steps, share, size * TURN, most)
    return steps * ARC_STEP


def _settle(steps: Ints, share: Floats, total: int, most: int) -> None:
    """Bring whole steps to their total: up by largest remainders, down where there is most to take from."""
    while (missing := total - int(steps.sum())) != 0:
        if missing > 0:
            able = np.flatnonzero(steps < most)
            chosen = able[np.argsort(-(share - steps)[able], kind="stable")[:missing]]
            steps[chosen] += 1
        else:
            steps[int(np.argmax(steps))] -= min(-missing, int(steps.max()) - 1)


def indicator(members: Ints, m: int) -> Floats:
    """Sets as rows of zeros and ones, [sets, m]."""
    inside = np.zeros((len(members), m))
    inside[np.arange(len(members))[:, None], members] = 1.0
    return inside


def _first_r(offset: Ints, arcs: Ints) -> Ints:
    """ceil(offset 2^40 / arc): the first r whose point lies at or beyond an offset of the arc."""
    inside = np.minimum(offset, arcs - 1).astype(np.uint64)
    wide = arcs.astype(np.uint64)
    first = (inside * np.uint64(POINTS) + wide - np.uint64(1)) // wide
    return np.where(offset >= arcs, POINTS, first.astype(np.int64))
