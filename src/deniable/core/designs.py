"""Designs of line-ups: systematic sampling that follows the frequencies, and shifted blocks that include all values
alike (mathematics 12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable.core import lineups as lineup
from deniable.core.errors import InternalError, ManifestError
from deniable.core.exact import SCALE
from deniable.core.lineups import COIN, ORDERS, POINTS, TRUTH_STEP, Lines, LineUpDesign, Sets, first_draw, orders_for
from deniable.core.values import Floats, Ints

# -- Line-ups whose inclusion follows the frequencies: systematic sampling (mathematics 12) ----------------------------
#     P(S | x) = t D(S) [x in S] / pi_x + (1-t) D(S)
#
# Values are laid in a public order on a line, x taking an arc of pi_x; a point u of [0, 1) stands for the set of values
# hit by u, u+1, .., u+L-1. A row that is made around its value x draws u on x's arc, all others draw u without looking:
#
#     u = start_k(x) + floor(r arc_x / 2^40),    or floor(r / 2^16) without looking
#
# so arcs are multiples of 2^8 out of 2^32: a turn has 2^24 steps.


TURN = 2**24
ARC_STEP, BLIND = SCALE // TURN, POINTS // TURN  # a point without looking stands for so many r
PAIR_COST = 80  # a pair of members that is counted, against an entry of a product of matrices


@dataclass(frozen=True, eq=False)
class ArcDesign(LineUpDesign):
    """A design by arcs, as integers out of 2^32.

    Attributes:
        arcs: pi_x * 2^32, for each value; they add up to L * 2^32.

    >>> design = ArcDesign.of([3.0, 2.0, 2.0, 1.0], size=2, truth=0.5)
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
        for wrong in arc_problems(arcs, self.truth, self.orders, self.seed):
            raise InternalError(wrong)

    @classmethod
    def of(
        cls, weights: Floats | list[float], size: int, truth: float, *, largest: float = 1.0, seed: int = 0
    ) -> ArcDesign:
        """A design whose inclusion is in proportion to weights, none above ``largest``; truth is rounded down."""
        arcs = arcs_of(np.asarray(weights, dtype=np.float64), size, largest)
        return cls(arcs, int(truth * COIN) * TRUTH_STEP, orders_for(len(arcs), size), seed)

    @property
    def m(self) -> int:
        return len(self.arcs)

    @property
    def size(self) -> int:
        return int(self.arcs.sum()) // SCALE

    @property
    def inclusion(self) -> Floats:
        return self.arcs / SCALE

    def joint(self) -> Floats:
        """Exact: whole numbers below 2^53 divided by a power of two."""
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
                inside = _indicator(some, self.m)
                total += (inside.T @ (inside * often)).ravel()
        joint: Floats = total.reshape(self.m, self.m) / (self.orders * POINTS)
        return joint

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
    def edges(self) -> Ints:
        """Where the points of each interval begin, ascending: order * 2^24 + first point."""
        ends = (np.cumsum(self.arcs[self.order(number)] // ARC_STEP) for number in range(self.orders))
        return np.concatenate([n * TURN + np.unique(np.append(end % TURN, 0)) for n, end in enumerate(ends)])

    @cached_property
    def sets(self) -> Sets:
        """All sets with their exact probabilities, at most K m of them."""
        points = np.split(self.edges % TURN, np.flatnonzero(np.diff(self.edges // TURN)) + 1)
        members = np.sort(np.concatenate([self._hit(number, at) for number, at in enumerate(points)]), axis=1)
        lengths = np.diff(np.append(self.edges, self.orders * TURN))
        return Sets.of(members, lengths * BLIND, self._hits(lengths, members))

    def _hit(self, number: int, points: Ints) -> Ints:
        """The set at each of these points of one order."""
        order = self.order(number)
        ends = np.cumsum(self.arcs[order] // ARC_STEP)
        return order[np.searchsorted(ends, points[:, None] + np.arange(self.size) * TURN, side="right")]

    def _hits(self, lengths: Ints, members: Ints) -> Ints:
        """ceil(high 2^40 / arc) - ceil(low 2^40 / arc): the r of each member that fall into an interval of its arc."""
        number, point = self.edges // TURN, self.edges % TURN
        arcs = self.arcs[members] // ARC_STEP
        low = (point[:, None] - self.starts[number[:, None], members]) % TURN
        return first_draw(low + lengths[:, None], arcs) - first_draw(low, arcs)

    def lines(self) -> Lines:
        """A point is start + offset, less than two turns, so each order's line is listed for two turns."""
        starts = np.zeros((self.orders, 1 + self.m), dtype=np.int64)
        starts[:, 1:] = self.starts
        starts += np.arange(self.orders)[:, None] * 2 * TURN
        order, point = np.divmod(self.edges, TURN)
        twice = np.concatenate([order * 2 * TURN + point, (order * 2 + 1) * TURN + point])
        ranked = np.argsort(twice, kind="stable")
        sets = np.tile(self.sets.of_interval, 2)[ranked]
        return Lines(starts, np.append(TURN, self.arcs // ARC_STEP), twice[ranked], sets, self.orders * 2 * TURN)

    def code_table(self) -> dict[str, Ints]:
        """value, first, last: the ranges of codes whose sets hold the value.

        Along an order a value enters the sets where its arc begins and leaves them where it ends, so the codes of the
        sets that hold it are one range of each order, or two where its arc goes over the end of the turn: K m to 2 K m
        rows, where sets themselves would be K m lists of L values.

        >>> table = ArcDesign.of([1.0, 1.0, 1.0], size=1, truth=0.5).code_table()
        >>> table["value"][:2].tolist(), len(table["first"])
        ([0, 0], 192)
        """
        values = np.tile(np.arange(self.m), self.orders)
        order = np.repeat(np.arange(self.orders) * TURN, self.m)
        steps = np.tile(self.arcs // ARC_STEP, self.orders)
        begin = np.where(steps == TURN, 0, self.starts.ravel())  # who is always in has one range of each order
        end = begin + steps
        over = end > TURN
        pieces = [
            (values, order + begin, order + np.minimum(end, TURN)),
            (values[over], order[over], order[over] + end[over] - TURN),
        ]
        where, low, high = (np.concatenate(column) for column in zip(*pieces, strict=True))
        first, last = np.searchsorted(self.edges, low), np.searchsorted(self.edges, high) - 1
        ranked = np.lexsort((first, where))
        return {"value": where[ranked], "first": first[ranked], "last": last[ranked]}

    def integers(self) -> dict[str, Any]:
        return {"arcs": self.arcs.tolist(), "truth": self.truth, "orders": self.orders, "seed": self.seed}


def arc_problems(arcs: Ints, truth: int, orders: int, seed: int) -> list[str]:
    """What is wrong with the integers of a design."""
    wrong = []
    if len(arcs) < 2 or (arcs <= 0).any() or (arcs > SCALE).any() or (arcs % ARC_STEP).any():
        wrong.append("an arc of a line-up must be a multiple of 2^8, above 0 and at most 2^32, for two values or more")
    elif int(arcs.sum()) % SCALE or int(arcs.sum()) >= len(arcs) * SCALE:
        wrong.append("the arcs of a line-up must add up to a whole number of values, and less than all")
    return wrong + lineup.problems(len(arcs), int(arcs.sum()) // SCALE, truth, orders, seed)


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


def _indicator(members: Ints, m: int) -> Floats:
    """Sets as rows of zeros and ones, [sets, m]."""
    inside = np.zeros((len(members), m))
    inside[np.arange(len(members))[:, None], members] = 1.0
    return inside


# -- Line-ups that include all values alike, and every two of them almost equally often: shifted blocks (mathematics
# 12). The m values stand in a circle, in the order of the domain. Each public order gives a *block* of L places, where
# its first L values stand, and the set with shift s is the block turned by s places:
#
#     S = { (s + b) mod m : b in the block },    P(S | x) = t [x in S] / L + (1-t) / m    for each of the K blocks
#
# A row that is made around its value x draws one of the L places of the block and turns it until x stands there; all
# others draw the shift without looking:
#
#     s = (x - block_k[floor(r L / 2^40)]) mod m,    or floor(r m / 2^40) without looking
#
# Two values come together in as many shifts as the block has pairs of places that far apart. In a random block that is
# almost the same number for every distance, much more so than for neighbours along an arc, and J, a matrix that depends
# on the distance alone, is inverted by a Fourier transform.


@dataclass(frozen=True, eq=False)
class BlockDesign(LineUpDesign):
    """A design by blocks.

    Attributes:
        values: m, how many there are.
        block: L, how many of them a block has.

    >>> design = BlockDesign(values=7, block=3, truth=2**31, orders=2)
    >>> design.blocks.tolist()
    [[0, 4, 6], [2, 4, 6]]
    >>> len(design.sets.members), design.inclusion.round(3).tolist()[:2]
    (14, [0.429, 0.429])
    """

    values: int
    block: int
    truth: int
    orders: int = ORDERS
    seed: int = 0

    def __post_init__(self) -> None:
        for wrong in block_problems(self.values, self.block, self.truth, self.orders, self.seed):
            raise InternalError(wrong)

    @property
    def m(self) -> int:
        return self.values

    @property
    def size(self) -> int:
        return self.block

    @property
    def inclusion(self) -> Floats:
        return np.full(self.m, self.size / self.m)

    @cached_property
    def blocks(self) -> Ints:
        """The places of each order's block, ascending, [K, L]."""
        blocks = np.sort(np.stack([self.order(number)[: self.size] for number in range(self.orders)]), axis=1)
        blocks.setflags(write=False)
        return blocks

    @cached_property
    def sets(self) -> Sets:
        """All sets with their exact probabilities, at most K m of them: intervals are shifts."""
        members = (np.arange(self.m)[None, :, None] + self.blocks[:, None, :]) % self.m
        members = members.reshape(-1, self.size)
        by_value = np.argsort(members, axis=1)
        hits = _shares(self.size)[by_value]
        return Sets.of(np.take_along_axis(members, by_value, axis=1), np.tile(_shares(self.m), self.orders), hits)

    def joint(self) -> Floats:
        """Pairs of places by their distance; as if every shift were exactly as likely, which is true to 2^-40."""
        apart = (np.abs(np.fft.rfft(self._inside(), axis=1)) ** 2).sum(axis=0)
        pairs = np.rint(np.fft.irfft(apart, self.m))
        distance = np.subtract.outer(np.arange(self.m), np.arange(self.m)) % self.m
        joint: Floats = (pairs / (self.orders * self.m))[distance]
        return joint

    def _inside(self) -> Floats:
        """Blocks as rows of zeros and ones, [K, m]."""
        inside = np.zeros((self.orders, self.m))
        np.put_along_axis(inside, self.blocks, 1.0, axis=1)
        return inside

    def lines(self) -> Lines:
        """Every draw has a point of its own: all shifts of each order, and then, for each value, the block's places."""
        shifts = np.arange(self.orders * self.m).reshape(self.orders, self.m)
        turned = (np.arange(self.m)[None, :, None] - self.blocks[:, None, :]) % self.m  # [K, m, L]
        around = turned + np.arange(self.orders)[:, None, None] * self.m
        starts = np.concatenate([shifts[:, :1], shifts.size + shifts * self.size], axis=1)
        sets = self.sets.of_interval[np.concatenate([shifts.ravel(), around.ravel()])]
        return Lines(starts, np.append(self.m, np.full(self.m, self.size)), None, sets, len(sets))

    def code_table(self) -> dict[str, Ints]:
        """block, place: the set with code c holds (c + place) mod m, for the places of block floor(c / m)."""
        return {"block": np.repeat(np.arange(self.orders), self.size), "place": self.blocks.ravel()}

    def integers(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "size": self.block,
            "truth": self.truth,
            "orders": self.orders,
            "seed": self.seed,
        }


def block_problems(m: int, size: int, truth: int, orders: int, seed: int) -> list[str]:
    """What is wrong with the integers of a design."""
    wrong = [] if 0 < size < m < 2**24 else ["a block of line-ups has at least one value, and fewer than there are"]
    return wrong + lineup.problems(m, size, truth, orders, seed)


def _shares(parts: int) -> Ints:
    """How many r of 2^40 have floor(r parts / 2^40) = 0, 1, .., parts - 1."""
    return np.diff(first_draw(np.arange(parts + 1), np.full(parts + 1, parts)))


# -- Large line-ups as codes: a row names its set by a number, and a table beside the rows says which values stand in
# it. Intervals are numbered along the orders, one order after the other (``Sets.of_interval``), and a set's *code* is
# the number of the first interval that stands for it: one code for each set, so a code tells what the set tells and
# nothing else. The table follows from the design alone, whatever the rows are. By arcs it lists ranges, by blocks the
# blocks:
#
#     x stands in the set with code c  if and only if  first <= c <= last  in one of the rows of x
#     x stands in the set with code c  if and only if  x = (c + place) mod m  for a place of block floor(c / m)


# A list of 16 values takes up to 15 bytes a row in Parquet and some 200 in CSV; a code takes 2 to 3, and 7.
MOST_LISTED = 16


def is_coded(design: LineUpDesign) -> bool:
    """Whether rows name their sets by codes: sets of more than 16 values. Nothing but the design decides it."""
    return design.size > MOST_LISTED


def codes(design: LineUpDesign) -> Ints:
    """The code of each set, in the order of ``design.sets``.

    >>> design = ArcDesign.of([1.0, 1.0, 1.0], size=1, truth=0.5)
    >>> sorted(codes(design).tolist())
    [0, 1, 2]
    """
    return np.unique(design.sets.of_interval, return_index=True)[1].astype(np.int64)


def design_of(raw: Mapping[str, Any], m: int) -> LineUpDesign:
    """A design from JSON, for a domain of m values: by arcs, or by blocks of a size."""
    truth, orders, seed = raw["truth"], raw["orders"], raw["seed"]
    if "size" in raw:
        wrong = block_problems(m, raw["size"], truth, orders, seed)
        _refuse(wrong or ([] if raw["values"] == m else ["a line-up is of all values of its domain"]))
        return BlockDesign(m, raw["size"], truth, orders, seed)
    arcs = np.array(raw["arcs"], dtype=np.int64)
    wrong = arc_problems(arcs, truth, orders, seed)
    _refuse(wrong or ([] if len(arcs) == m else ["a line-up needs one arc for each value"]))
    return ArcDesign(arcs, truth, orders, seed)


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise ManifestError(f"manifest.json is damaged: {wrong[0]}.")
