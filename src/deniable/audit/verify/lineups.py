"""Promises about line-ups, recomputed: every set that a row may publish, with its probability, from the manifest alone.

Nothing here uses the code that planned or drew them: orders are made again from the public seed, each is walked point
by point, and for every set the numbers of draws that lead to it are counted in whole numbers, out of K 2^58:

    P(S | x) = T h_xS + (2^18 - T) l_S 2^16  inside S,    (2^18 - T) l_S 2^16  elsewhere
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

FULL, TURN, COINS, DRAWS = 2**32, 2**24, 2**18, 2**40
MOST = 2**23  # members of all sets that are walked through


class Line(NamedTuple):
    """One set: its members, the points without looking that stand for it, and the draws of each member."""

    members: tuple[int, ...]
    points: int
    draws: list[int]


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


def lines(design: Mapping[str, Any]) -> list[Line]:
    """All sets of a design, each once."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    arcs = [arc * TURN // FULL for arc in design["arcs"]]
    for number in range(design["orders"]):
        for members, points, draws in _walk(arcs, _order(design["seed"], number, len(arcs))):
            row = numbers.setdefault(members, [0] * (len(members) + 1))
            for place, count in enumerate((points, *draws)):
                row[place] += count
    return [Line(members, row[0], row[1:]) for members, row in numbers.items()]


def _order(seed: int, number: int, m: int) -> list[int]:
    """The public order: values by 64-bit numbers of SHAKE-256, little-endian."""
    stream = hashlib.shake_256(f"deniable line-ups {seed} {number}".encode()).digest(8 * m)
    return sorted(range(m), key=lambda x: (int.from_bytes(stream[8 * x : 8 * x + 8], "little"), x))


def _walk(arcs: list[int], order: list[int]) -> list[tuple[tuple[int, ...], int, list[int]]]:
    """Along one order: from each point at which the set changes to the next, who is hit, and by how many draws."""
    ends, end = [], 0
    for x in order:
        end += arcs[x]
        ends.append(end)
    changes = sorted({0, *(end % TURN for end in ends)})
    result = []
    for low, high in zip(changes, [*changes[1:], TURN], strict=True):
        hit = []
        for layer in range(0, end, TURN):
            place = bisect_right(ends, low + layer)
            x = order[place]
            begin = low + layer - (ends[place] - arcs[x])
            first, last = (-(-offset * DRAWS // arcs[x]) for offset in (begin, begin + high - low))
            hit.append((x, last - first))
        hit.sort()
        result.append((tuple(x for x, _ in hit), high - low, [draws for _, draws in hit]))
    return result


def amplification(design: Mapping[str, Any]) -> Fraction | None:
    """The largest P(S | x) / P(S | x') over all sets; None where a set rules values out."""
    return _amplification(lines(design), design["truth"] * COINS // FULL)


def _amplification(rows: list[Line], coin: int) -> Fraction | None:
    if coin == COINS:
        return None
    largest = max(Fraction(max(row.draws), row.points) for row in rows)
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
