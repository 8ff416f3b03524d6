"""Promises about line-ups, recomputed: every set that a row may publish, with its probability, from the manifest alone.

Nothing here uses the code that planned or drew them: orders are made again from the public seed, each is walked point
by point, and for every set the numbers of draws that lead to it are counted in whole numbers, out of K 2^58:

    P(S | x) = T h_xS + (2^18 - T) l_S 2^16  inside S,    (2^18 - T) l_S 2^16  elsewhere
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from deniable.core.arrays import Ints

FULL, TURN, COINS, DRAWS = 2**32, 2**24, 2**18, 2**40
MOST = 2**23  # members of all sets that are walked through


class Line(NamedTuple):
    """One set: its members, the points without looking that stand for it, and the draws of each member."""

    members: tuple[int, ...]
    points: int
    draws: list[int]


class Sets(NamedTuple):
    """Several of them: members [sets, L], points [sets], draws [sets, L]."""

    members: Ints
    points: Ints
    draws: Ints


def is_design(design: Mapping[str, Any], m: int) -> bool:
    """Whether the integers are a design at all: whole arcs, whole sets, a truth that a coin can have."""
    arcs, truth, orders = design["arcs"], design["truth"], design["orders"]
    return (
        len(arcs) == m >= 2
        and all(0 < arc <= FULL and arc % (FULL // TURN) == 0 for arc in arcs)
        and sum(arcs) % FULL == 0
        and 0 < sum(arcs) < m * FULL
        and 0 < truth <= FULL
        and truth % (FULL // COINS) == 0
        and orders in (1, 2, 4, 8, 16, 32, 64)
        and orders * m * (sum(arcs) // FULL) <= MOST
    )


def lines(design: Mapping[str, Any]) -> Iterator[Line]:
    """All sets of a design, each once."""
    sets = _all_sets(tuple(design["arcs"]), design["orders"], design["seed"])
    for members, points, draws in zip(*sets, strict=True):
        yield Line(tuple(members.tolist()), int(points), draws.tolist())


@lru_cache(maxsize=2)
def _all_sets(arcs: tuple[int, ...], orders: int, seed: int) -> Sets:
    """The same as arrays; what several intervals lead to is added up. The truth does not matter for it."""
    walks = [_walk(arcs, _order(seed, number, len(arcs))) for number in range(orders)]
    members, points, draws = (np.concatenate(pieces) for pieces in zip(*walks, strict=True))
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(row.tobytes(), len(first)) for row in members])
    if len(first) == len(members):
        return Sets(members, points, draws)
    added = Sets(np.empty((len(first), members.shape[1]), np.int64), *(_zeros(len(first), a) for a in (points, draws)))
    added.members[place] = members
    np.add.at(added.points, place, points)
    np.add.at(added.draws, place, draws)
    return added


def _zeros(rows: int, like: Ints) -> Ints:
    return np.zeros((rows, *like.shape[1:]), np.int64)


def _order(seed: int, number: int, m: int) -> list[int]:
    """The public order: values by 64-bit numbers of SHAKE-256, little-endian."""
    stream = hashlib.shake_256(f"deniable line-ups {seed} {number}".encode()).digest(8 * m)
    return sorted(range(m), key=lambda x: (int.from_bytes(stream[8 * x : 8 * x + 8], "little"), x))


def _walk(arcs: Sequence[int], order: list[int]) -> Sets:
    """Along one order: from each point at which the set changes to the next, who is hit, and by how many draws."""
    values = np.array(order)
    steps = np.array([arcs[x] * TURN // FULL for x in order])
    ends = np.cumsum(steps)
    low = np.unique(np.append(ends % TURN, 0))
    high = np.append(low[1:], TURN)
    at = low[:, None] + np.arange(0, int(ends[-1]), TURN)  # [intervals, L]
    place = np.searchsorted(ends, at, side="right")
    begin = at - (ends - steps)[place]
    arc = steps[place]
    draws = _draws_before(begin + (high - low)[:, None], arc) - _draws_before(begin, arc)
    by_value = np.argsort(values[place], axis=1)
    sorted_by = partial(np.take_along_axis, indices=by_value, axis=1)
    return Sets(sorted_by(values[place]), high - low, sorted_by(draws))


def _draws_before(offset: Ints, arc: Ints) -> Ints:
    """ceil(offset 2^40 / arc): how many draws fall before an offset of an arc; nothing exceeds 64 bits."""
    inside = np.minimum(offset, arc - 1).astype(np.uint64) * np.uint64(DRAWS)
    whole, rest = np.divmod(inside, arc.astype(np.uint64))
    return np.where(offset >= arc, DRAWS, (whole + (rest > 0)).astype(np.int64))


def code_ranges(design: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """For each value the codes of the sets that hold it, as (value, first, last): intervals are numbered along the
    orders, one after the other, and a range ends with its order."""
    arcs, listed, code = design["arcs"], [], 0
    for number in range(design["orders"]):
        begun: dict[int, int] = {}
        for members in _walk(arcs, _order(design["seed"], number, len(arcs))).members:
            here = dict.fromkeys(members.tolist(), code)
            listed += [(x, begun.pop(x), code - 1) for x in begun.keys() - here.keys()]
            begun = here | begun
            code += 1
        listed += [(x, first, code - 1) for x, first in begun.items()]
    return sorted(listed)


def amplification(design: Mapping[str, Any]) -> Fraction | None:
    """The largest P(S | x) / P(S | x') over all sets; None where a set rules values out."""
    coin = design["truth"] * COINS // FULL
    if coin == COINS:
        return None
    sets = _all_sets(tuple(design["arcs"]), design["orders"], design["seed"])
    pairs = zip(sets.draws.max(axis=1).tolist(), sets.points.tolist(), strict=True)
    largest = max(Fraction(draws, points) for draws, points in pairs)
    return 1 + Fraction(coin, COINS - coin) * largest * Fraction(TURN, DRAWS)


def surest_at_least(design: Mapping[str, Any], counts: list[int], slack: int) -> list[Fraction]:
    """For each value the largest posterior over the sets that hold it, if its count is lower and all others higher.

    No counts within the slack give less; so what exceeds a limit here exceeds it for the true counts as well.
    """
    coin = design["truth"] * COINS // FULL
    total = sum(count + slack for count in counts)
    worst = [Fraction(0)] * len(counts)
    for members, points, draws in lines(design):
        blind = (COINS - coin) * points * (DRAWS // TURN)
        others = blind * total + sum((counts[x] + slack) * coin * own for x, own in zip(members, draws, strict=True))
        for x, own in zip(members, draws, strict=True):
            given = coin * own + blind
            mine = max(counts[x] - slack, 0) * given
            seen = mine + others - (counts[x] + slack) * given
            if mine * worst[x].denominator > worst[x].numerator * seen:
                worst[x] = Fraction(mine, seen)
    return worst
