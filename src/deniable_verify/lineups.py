"""Promises about line-ups, recomputed: every set that a row may publish, with its probability, from the manifest alone.

Nothing here uses the code that planned or drew them: orders are made again from the public seed, each is walked point
by point, or its block turned place by place, and for every set the numbers of draws that lead to it are counted in
whole numbers, out of K 2^58:

    P(S | x) = T h_xS + (2^18 - T) l_S  inside S,    (2^18 - T) l_S  elsewhere
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

FULL, TURN, COINS, DRAWS = 2**32, 2**24, 2**18, 2**40
MOST = 2**23  # members of all sets that are walked through
AT_ONCE = 2**22  # numbers that are held at a time
MOST_LISTED = 16  # members of a set that rows list


class Line(NamedTuple):
    """One set: its members, the draws without looking that lead to it, and the draws of each member."""

    members: tuple[int, ...]
    blind: int
    draws: list[int]


class Sets(NamedTuple):
    """Several of them: members [sets, L], blind [sets], draws [sets, L], and the first number that stands for each."""

    members: Ints
    blind: Ints
    draws: Ints
    codes: Ints


def is_design(design: Mapping[str, Any], m: int) -> bool:
    """Whether the integers are a design at all: whole arcs, whole sets, a truth that a coin can have."""
    truth, orders = design["truth"], design["orders"]
    return (
        0 < _size(design, m) < m
        and 0 < truth <= FULL
        and truth % (FULL // COINS) == 0
        and orders in (1, 2, 4, 8, 16, 32, 64)
        and orders * m * _size(design, m) <= MOST
    )


def _size(design: Mapping[str, Any], m: int) -> int:
    """How many values a set has; 0 where these are no blocks or arcs of m values."""
    if "size" in design:
        size: int = design["size"]
        return size if design["values"] == m else 0
    arcs = design["arcs"]
    sound = len(arcs) == m >= 2 and all(0 < arc <= FULL and arc % (FULL // TURN) == 0 for arc in arcs)
    return sum(arcs) // FULL if sound and sum(arcs) % FULL == 0 else 0


def size_of(design: Mapping[str, Any]) -> int:
    """How many values a set of a sound design has."""
    size: int = design["size"] if "size" in design else sum(design["arcs"]) // FULL
    return size


def is_coded(design: Mapping[str, Any]) -> bool:
    """Whether rows name their sets by codes: sets of more than 16 values."""
    return size_of(design) > MOST_LISTED


def lines(design: Mapping[str, Any]) -> Iterator[Line]:
    """All sets of a design, each once."""
    for members, blind, draws, _ in zip(*sets_of(design), strict=True):
        yield Line(tuple(members.tolist()), int(blind), draws.tolist())


def sets_of(design: Mapping[str, Any]) -> Sets:
    """The same as arrays."""
    shape = (design["values"], design["size"]) if "size" in design else tuple(design["arcs"])
    return _all_sets("size" in design, shape, design["orders"], design["seed"])


@lru_cache(maxsize=2)
def _all_sets(by_blocks: bool, shape: tuple[int, ...], orders: int, seed: int) -> Sets:
    """What several intervals lead to is added up. The truth does not matter for it."""
    m = shape[0] if by_blocks else len(shape)
    every = [_order(seed, number, m) for number in range(orders)]
    walks = [_turned(order, shape[1]) if by_blocks else _walk(shape, order) for order in every]
    members, blind, draws = (np.concatenate(pieces) for pieces in zip(*walks, strict=True))
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(row.tobytes(), len(first)) for row in members])
    codes = np.unique(place, return_index=True)[1].astype(np.int64)
    if len(first) == len(members):
        return Sets(members, blind, draws, codes)
    added_blind, added_draws = np.zeros(len(first), np.int64), np.zeros((len(first), members.shape[1]), np.int64)
    np.add.at(added_blind, place, blind)
    np.add.at(added_draws, place, draws)
    return Sets(members[codes], added_blind, added_draws, codes)


def _order(seed: int, number: int, m: int) -> list[int]:
    """The public order: values by 64-bit numbers of SHAKE-256, little-endian."""
    stream = hashlib.shake_256(f"deniable line-ups {seed} {number}".encode()).digest(8 * m)
    return sorted(range(m), key=lambda x: (int.from_bytes(stream[8 * x : 8 * x + 8], "little"), x))


def _walk(arcs: Sequence[int], order: list[int]) -> tuple[Ints, Ints, Ints]:
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
    return sorted_by(values[place]), (high - low) * (DRAWS // TURN), sorted_by(draws)


def _draws_before(offset: Ints, arc: Ints) -> Ints:
    """ceil(offset 2^40 / arc): how many draws fall before an offset of an arc; nothing exceeds 64 bits."""
    inside = np.minimum(offset, arc - 1).astype(np.uint64) * np.uint64(DRAWS)
    whole, rest = np.divmod(inside, arc.astype(np.uint64))
    return np.where(offset >= arc, DRAWS, (whole + (rest > 0)).astype(np.int64))


def _turned(order: list[int], size: int) -> tuple[Ints, Ints, Ints]:
    """The first places of an order, turned by every number of places: who stands there, and by how many draws."""
    m, block = len(order), sorted(order[:size])
    share = [-(-(j + 1) * DRAWS // size) + (-j * DRAWS // size) for j in range(size)]
    blind = [-(-(s + 1) * DRAWS // m) + (-s * DRAWS // m) for s in range(m)]
    shift = np.arange(m)[:, None]
    moved = (shift + np.array(block)) % m
    # Those that pass the end of the list come first again, and all of them stay in the order of their places.
    over = np.searchsorted(np.array(block), m - shift[:, 0])
    slots = (np.arange(size) + over[:, None]) % size
    return np.take_along_axis(moved, slots, axis=1), np.array(blind), np.array(share)[slots]


def code_rows(design: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """The rows of the table by which codes are read: (value, first, last) by arcs, (block, place) by blocks."""
    if "size" not in design:
        return _code_ranges(design)
    every = (_order(design["seed"], number, design["values"]) for number in range(design["orders"]))
    return [(number, place) for number, order in enumerate(every) for place in sorted(order[: design["size"]])]


def _code_ranges(design: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """For each value the codes of the sets that hold it, as (value, first, last): intervals are numbered along the
    orders, one after the other, and a range ends with its order."""
    arcs, code = design["arcs"], 0
    listed: list[tuple[int, ...]] = []
    for number in range(design["orders"]):
        begun: dict[int, int] = {}
        for members in _walk(arcs, _order(design["seed"], number, len(arcs)))[0]:
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
    sets = sets_of(design)
    pairs = set(zip(sets.draws.max(axis=1).tolist(), sets.blind.tolist(), strict=True))  # most sets are alike
    largest = max(Fraction(draws, blind) for draws, blind in pairs)
    return 1 + Fraction(coin, COINS - coin) * largest


def stays_at_most(design: Mapping[str, Any], counts: list[int], slack: int) -> Fraction:
    """The smallest share that a set leaves of the belief in a value outside it, if its members' counts are lower and
    all others higher.

    No counts within the slack give more; so a promise of more than this is broken by the true counts as well.
    """
    coin = design["truth"] * COINS // FULL
    total = sum(count + slack for count in counts)
    least = 1 - Fraction(coin, COINS)  # it is so on average over sets
    for members, unseen, draws in lines(design):
        blind = (COINS - coin) * unseen * total
        looked = sum(max(counts[x] - slack, 0) * coin * own for x, own in zip(members, draws, strict=True))
        if (blind + looked) * least.numerator > blind * least.denominator:
            least = Fraction(blind, blind + looked)
    return least


def surest_at_least(design: Mapping[str, Any], counts: list[int], slack: int) -> list[Fraction]:
    """For each value the largest posterior over the sets that hold it, if its count is lower and all others higher.

    No counts within the slack give less; so what exceeds a limit here exceeds it for the true counts as well.
    """
    coin = design["truth"] * COINS // FULL
    total = sum(count + slack for count in counts)
    worst = [Fraction(0)] * len(counts)
    for members, unseen, draws in lines(design):
        blind = (COINS - coin) * unseen
        others = blind * total + sum((counts[x] + slack) * coin * own for x, own in zip(members, draws, strict=True))
        for x, own in zip(members, draws, strict=True):
            given = coin * own + blind
            mine = max(counts[x] - slack, 0) * given
            seen = mine + others - (counts[x] + slack) * given
            if mine * worst[x].denominator > worst[x].numerator * seen:
                worst[x] = Fraction(mine, seen)
    return worst


def surest(design: Mapping[str, Any], counts: list[int]) -> list[Fraction]:
    """For each value the largest posterior over all sets, for who believes in values in proportion to their counts."""
    coin = design["truth"] * COINS // FULL
    total, outside = sum(counts), Fraction(0)
    worst = [Fraction(0)] * len(counts)
    for members, unseen, draws in lines(design):
        blind = (COINS - coin) * unseen
        seen = blind * total + sum(counts[x] * coin * own for x, own in zip(members, draws, strict=True))
        if blind * outside.denominator > outside.numerator * seen:
            outside = Fraction(blind, seen)
        for x, own in zip(members, draws, strict=True):
            mine = counts[x] * (coin * own + blind)
            if mine * worst[x].denominator > worst[x].numerator * seen:
                worst[x] = Fraction(mine, seen)
    return [max(inside, count * outside) for inside, count in zip(worst, counts, strict=True)]


def sums(design: Mapping[str, Any], weights: Any, shown: Any, counts: Any, most: Any) -> tuple[Any, Any, Any, Any]:
    """What rows that show sets add up to with the weights of their members, a row adding w(S) = sum over x in S of w_x:
    the sum that is seen, its mean by true value, its variance for the largest counts, and by how much a row changes it.

        E[c] = B f,   B[x][v] = sum over sets with x of P(S | v)
    """
    coin, sets = design["truth"] * COINS // FULL, sets_of(design)
    norm, m = float(COINS * DRAWS * design["orders"]), weights.shape[1]
    seen, blind, squares = (np.zeros(len(weights)) for _ in range(3))
    means, least, largest = np.zeros((len(weights), m)), np.full(len(weights), np.inf), np.full(len(weights), -np.inf)
    step = max(AT_ONCE // (len(weights) * sets.members.shape[1]), 1)
    for start in range(0, len(sets.blind), step):
        members, unseen, draws, _ = (column[start : start + step] for column in sets)
        of_sets = weights[:, members].sum(axis=2)  # [sums, sets]
        around, without = draws * (coin / norm), unseen * ((COINS - coin) / norm)
        seen += of_sets @ shown[start : start + step]
        for slot in range(members.shape[1]):
            np.add.at(means.T, members[:, slot], (of_sets * around[:, slot]).T)
        blind += of_sets @ without
        squares += of_sets**2 @ ((around * most[members]).sum(axis=1) + without * most.sum())
        least, largest = np.minimum(least, of_sets.min(axis=1)), np.maximum(largest, of_sets.max(axis=1))
    means += blind[:, None]
    return seen, means, np.maximum(squares - means**2 @ most, 0), largest - least
