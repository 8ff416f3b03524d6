"""Coins that bring every posterior up to rho2, for a given replacing distribution (mathematics 5, "Designed channels").

With prior pi, coins p, replacing distribution r and S = sum_k pi_k (1-p_k), seeing x published means x with probability

    pi_x (p_x + (1-p_x) r_x) / (pi_x p_x + r_x S) <= rho2
    <=>  p_x <= c_x(S) = r_x (rho2 S - pi_x) / (pi_x (1 - r_x - rho2))

and seeing anything else at most with pi_x (1-p_x) / S, which is below rho2 whenever c_x(S) >= 0.

Everything is computed from a *cover*: counts that are coarse or noisy, never below the true ones where a value's own
bound relies on them, and no coin tells an exact count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from deniable.core.arrays import Bools, Counts, Floats
from deniable.core.histogram import Histogram
from deniable.mechanisms.view import OWN_MARGINS, coarse_counts, is_sparse, upper_counts

LARGEST_COIN = 1 - 2**-10
HALVINGS = 50
AT_ONCE = 2**18  # coins that are looked for at once: what a processor's cache holds


class Cover(NamedTuple):
    """What coins and replacements are computed from: coarse or noisy, so that it gives no exact count away.

    Attributes:
        prior: counts that are never below the true ones; a value's own coin relies on them.
        base: counts that the replacing distribution is made of.
        mass: shares of all values together, for S.
        tight: whether ``prior`` is the true counts or next to them; coins, which have three digits, then show shares to
            three digits.
    """

    prior: Counts
    base: Counts
    mass: Floats
    tight: bool = False


def covers(histogram: Histogram, public: Histogram | None = None) -> Iterator[Cover]:
    """Covers from safe to tight; a later one is for requirements that leave an earlier one no room.

    With ``public``, a noisy histogram, there is one, and no exact count enters it but through margins; without, an
    owner plans and publishes nothing: counts rounded up to multiples of 8 rows (fewer in small tables) and to 8 bits,
    then ever closer ones.
    """
    if public is not None:
        upper, rows = upper_counts(histogram, public), max(public.rows, 1)
        base = public.counts + OWN_MARGINS[0] if is_sparse(histogram) else upper
        mass = public.counts / rows if is_sparse(histogram) else upper / histogram.rows
        yield Cover(upper, base, mass)
        return
    step = row_step(histogram)
    coarse = coarse_counts(histogram.counts, step)
    for prior, tight in (
        (coarse, step == 1),
        (coarse_counts(histogram.counts, 1), True),
        (np.maximum(histogram.counts, 1), True),
    ):
        yield Cover(prior, coarse, prior / histogram.rows, tight)


def row_step(histogram: Histogram) -> int:
    """1, 2, 4 or 8 rows: at most a sixteenth of the average count, so that the cover stays close."""
    room = histogram.rows // (16 * histogram.m)
    return min(8, 1 << max(room.bit_length() - 1, 0))


class _Largest(NamedTuple):
    """c_x(S), the largest coins under which no posterior exceeds its limit (1: exempt), for a row of r each."""

    prior: Floats
    r: Floats
    limits: Floats
    slope: Floats  # 1 where the bound does not grow with the coin
    flat: Bools

    @classmethod
    def of(cls, prior: Floats, r: Floats, limits: Floats) -> _Largest:
        slope = prior * (1 - r - limits)
        return cls(prior, r, limits, np.where(slope > 0, slope, 1.0), (slope <= 0) | (limits >= 1))

    def __call__(self, unreplaced: Floats) -> Floats:
        """One S = ``unreplaced`` for each row of r; coins may be above 1."""
        room = self.limits * unreplaced - self.prior
        coins: Floats = self.r * room / self.slope
        if self.flat.any():
            coins = np.where(self.flat, np.where((room >= 0) | (self.limits >= 1), 1.0, 0.0), coins)
        return np.maximum(coins, 0.0)


def designed_coins(
    prior: Floats, r: Floats, limits: Floats, caps: Floats, mass: Floats | None = None
) -> list[Floats | None]:
    """The fixed points p = min(c(S), cap), S = 1 - sum_x pi_x p_x; None where it leaves some posterior above its limit.

    Several at once, as many as rows of ``r`` and of ``caps``. S + sum pi c(S) grows with S, so there is one fixed
    point, and halving finds it. ``mass`` is pi for S, where a value's own bound is computed with more than that.
    """
    at_once = max(AT_ONCE // len(prior), 1)
    return [
        coins
        for start in range(0, len(r), at_once)
        for coins in _some_coins(
            prior, r[start : start + at_once], limits, caps[start : start + at_once], prior if mass is None else mass
        )
    ]


def _some_coins(prior: Floats, r: Floats, limits: Floats, caps: Floats, mass: Floats) -> list[Floats | None]:
    caps = np.minimum(caps, LARGEST_COIN)
    largest = _Largest.of(prior, r, limits)
    low, high = np.zeros((len(r), 1)), np.ones((len(r), 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        # Not a product of vectors: its threads take longer than it does, and its last bits depend on their number.
        kept = (mass * np.minimum(largest(middle), caps)).sum(axis=1, keepdims=True)
        low, high = np.where(middle + kept > 1, (low, middle), (middle, high))
    coins = np.minimum(largest(low), caps)  # the lower end: S is not overstated
    protected = limits < 1
    enough = np.all(limits[protected] * low > prior[protected], axis=1) & np.all(coins > 0, axis=1)
    return [row if good else None for row, good in zip(coins, enough, strict=True)]


def constant_coin(prior: Floats, r: Floats, limits: Floats, mass: Floats | None = None) -> float:
    """The largest single coin for all values; with r = pi it is (rho2 - fmax/n) / (1 - fmax/n) (mathematics 5,
    identity).

    With S = 1 - p F, F = sum_k pi_k, both posteriors are at most rho2 when

        p <= r_x (rho2 - pi_x) / (rho2 r_x F + pi_x (1 - r_x - rho2)),    p <= (rho2 - pi_x) / (rho2 F - pi_x)
    """
    protected = limits < 1
    total = max(float((prior if mass is None else mass).sum()), 1.0)
    pi, drawn, rho2 = prior[protected], r[protected], limits[protected]
    if not (rho2 > pi).all():
        return 0.0
    same = drawn * (rho2 - pi) / (rho2 * drawn * total + pi * (1 - drawn - rho2))
    other = (rho2 - pi) / (rho2 * total - pi)
    return float(min(LARGEST_COIN, same.min(), other.min()))


def lowered(limits: Floats, slack: float) -> Floats:
    """Limits times ``slack``; exempt values stay so."""
    return np.where(limits >= 1, limits, limits * slack)


def as_limits(limits: Sequence[Fraction | None]) -> Floats:
    """Limits as floats rounded down; 1 for an exempt value."""
    shared = {id(limit): limit for limit in limits}  # most values share one limit
    known = {key: 1.0 if limit is None else np.nextafter(float(limit), 0) for key, limit in shared.items()}
    return np.array([known[id(limit)] for limit in limits])
