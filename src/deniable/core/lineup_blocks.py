"""Line-ups that include all values alike, and every two of them almost equally often: shifted blocks (mathematics 12).

The m values stand in a circle, in the order of the domain. Each public order gives a *block* of L places, where its
first L values stand, and the set with shift s is the block turned by s places:

    S = { (s + b) mod m : b in the block },    P(S | x) = t [x in S] / L + (1-t) / m    for each of the K blocks

A row that is made around its value x draws one of the L places of the block and turns it until x stands there; all
others draw the shift without looking:

    s = (x - block_k[floor(r L / 2^40)]) mod m,    or floor(r m / 2^40) without looking

Two values come together in as many shifts as the block has pairs of places that far apart. In a random block that is
almost the same number for every distance, much more so than for neighbours along an arc, and J, a matrix that depends
on the distance alone, is inverted by a Fourier transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable.core import lineup
from deniable.core.arrays import Floats, Ints
from deniable.core.errors import InternalError
from deniable.core.lineup import ORDERS, Lines, LineUpDesign, Sets, first_draw


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
        for wrong in problems(self.values, self.block, self.truth, self.orders, self.seed):
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


def problems(m: int, size: int, truth: int, orders: int, seed: int) -> list[str]:
    """What is wrong with the integers of a design."""
    wrong = [] if 0 < size < m < 2**24 else ["a block of line-ups has at least one value, and fewer than there are"]
    return wrong + lineup.problems(m, size, truth, orders, seed)


def _shares(parts: int) -> Ints:
    """How many r of 2^40 have floor(r parts / 2^40) = 0, 1, .., parts - 1."""
    return np.diff(first_draw(np.arange(parts + 1), np.full(parts + 1, parts)))
