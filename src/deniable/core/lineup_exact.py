"""Exact arithmetic over a design's integers: what a line-up lets people believe, nothing rounded (mathematics 12).

With truth T out of 2^18, hits h and lengths l of a set S, every probability is a whole number out of K 2^58:

    P(S | x) = T h_xS + (2^18 - T) l_S 2^16  for x in S,    (2^18 - T) l_S 2^16  for all others

A maximum over sets is found among floating-point numbers, whose error is far below ``CLOSE``, and all that come that
close to the largest are compared in whole numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from deniable.core.arrays import Floats, Ints
from deniable.core.lineup import COIN, POINTS, TURN, LineUpDesign

BLIND = POINTS // TURN  # a point without looking stands for so many r
CLOSE = 1e-12


def likelihoods(design: LineUpDesign, state: int) -> tuple[list[int], int]:
    """P(S | x) for the members x of a set, in their order, and for everyone else, out of K 2^58."""
    sets, coin = design.sets, design.coin
    other = (COIN - coin) * int(sets.lengths[state]) * BLIND
    return [coin * hits + other for hits in sets.hits[state].tolist()], other


def amplification(design: LineUpDesign) -> Fraction | None:
    """max over S, x, x' of P(S | x) / P(S | x'); None where a set rules the values outside it out.

    Outside is always less likely than inside, and some value is outside, so it is 1 + max T h / ((2^18 - T) l 2^16).
    """
    if design.coin == COIN:
        return None
    sets = design.sets
    ratio = sets.hits.max(axis=1) / sets.lengths
    near = np.flatnonzero(ratio >= ratio.max() * (1 - CLOSE))
    largest = max(Fraction(int(sets.hits[place].max()), int(sets.lengths[place])) for place in near.tolist())
    return 1 + design.coin * largest / ((COIN - design.coin) * BLIND)


def surest(design: LineUpDesign, prior: Ints) -> list[Fraction]:
    """max over S of Pr[x | S] for each x, for who believes in x in proportion to ``prior``, whole numbers.

    Among the sets without x it is largest where P(S | elsewhere) / Pr[S] is, whichever x it is; and where that set
    holds x, x is likelier still.
    """
    sets, coin = design.sets, design.coin
    total = int(prior.sum())
    if total == 0:
        return [Fraction(0)] * design.m
    blind = (COIN - coin) * sets.lengths.astype(np.float64) * BLIND
    inside = coin * sets.hits.astype(np.float64)
    seen = (inside * prior[sets.members]).sum(axis=1) + blind * total
    return [
        max(member, outside)
        for member, outside in zip(
            _members(design, prior, inside + blind[:, None], seen), _outside(design, prior, blind, seen), strict=True
        )
    ]


def _members(design: LineUpDesign, prior: Ints, given: Floats, seen: Floats) -> list[Fraction]:
    """The largest posterior of each value over the sets that hold it."""
    members = design.sets.members
    with np.errstate(divide="ignore", invalid="ignore"):
        posterior = np.where(seen[:, None] > 0, given / seen[:, None], 0.0)
    largest = np.zeros(design.m)
    np.maximum.at(largest, members, posterior)
    state, slot = np.nonzero(posterior >= largest[members] * (1 - CLOSE))
    result = [Fraction(0)] * design.m
    for place, column in zip(state.tolist(), slot.tolist(), strict=True):
        x = int(members[place, column])
        if prior[x]:
            whole = likelihoods(design, place)[0][column]
            result[x] = max(result[x], Fraction(int(prior[x]) * whole, _seen(design, prior, place)))
    return result


def _outside(design: LineUpDesign, prior: Ints, blind: Floats, seen: Floats) -> list[Fraction]:
    """What each value is believed at, at the most, where it does not stand in the line-up."""
    if design.coin == COIN:
        return [Fraction(0)] * design.m
    ratio = blind / seen
    near = np.flatnonzero(ratio >= ratio.max() * (1 - CLOSE)).tolist()
    factor = max(Fraction(likelihoods(design, place)[1], _seen(design, prior, place)) for place in near)
    return [count * factor for count in prior.tolist()]


def _seen(design: LineUpDesign, prior: Ints, place: int) -> int:
    """Pr[S] times the prior's total, out of K 2^58."""
    inside, other = likelihoods(design, place)
    members = design.sets.members[place].tolist()
    own = sum(int(prior[x]) * (whole - other) for x, whole in zip(members, inside, strict=True))
    return own + other * int(prior.sum())


def posterior(design: LineUpDesign, prior: Ints, state: int) -> list[Fraction]:
    """Pr[x | S] of every value, exactly."""
    inside, other = likelihoods(design, state)
    seen = _seen(design, prior, state)
    given = [other] * design.m
    for x, whole in zip(design.sets.members[state].tolist(), inside, strict=True):
        given[x] = whole
    return [
        Fraction(count * likelihood, seen) if seen else Fraction(0)
        for count, likelihood in zip(prior.tolist(), given, strict=True)
    ]
