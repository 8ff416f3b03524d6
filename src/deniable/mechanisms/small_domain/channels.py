"""The channel of a cell: uniform at the cell's own gamma, or fine-grain with a gamma for each of its values.

Coins depend on the data, so they go on the coarse grid, rounded down (mathematics 11.6). Both channels satisfy, exactly
and for every protected value x of the cell with relative frequency pi_x there,

    P[x][x] / P[x][k] <= rho2 (1-pi_x) / (pi_x (1-rho2))  for all k != x.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from itertools import compress
from typing import Literal

import numpy as np

from deniable.core.arrays import Bools, Counts, Floats
from deniable.core.channel import Channel, coarsened
from deniable.core.exact import different, different_pairs, own_amplifications
from deniable.core.privacy import amplification_limit
from deniable.mechanisms.fine_grain_solver import solve_coins
from deniable.mechanisms.small_domain.cost import value_variances

ChannelKind = Literal["uniform", "fine-grain"]
CHANNELS: tuple[ChannelKind, ...] = ("uniform", "fine-grain")
MIXTURES = (0.25, 0.5, 0.75, 1.0)  # how much of the fine-grain coins, the rest uniform
Shares = list[Fraction]  # of the rows of a cell, each value's


def uniform_channel(values: tuple[Hashable, ...], shares: Shares, protected: Bools, rho2: Fraction) -> Channel:
    """One coin at gamma_i = rho2 (1-rho1_i) / (rho1_i (1-rho2)), rho1_i the largest share of a protected value.

    Without a protected value there is nothing to hide, and the coin is that of the average share.
    """
    guarded = different(compress(shares, protected.tolist()))
    rho1 = max(guarded) if guarded else Fraction(1, len(values))
    return Channel.uniform(values, gamma=amplification_limit(rho1, rho2), coarse=True)


def fine_grain_channel(
    values: tuple[Hashable, ...], shares: Shares, counts: Counts, protected: Bools, rho2: Fraction, weights: Floats
) -> Channel:
    """A coin for each value: gamma_x from its own share of the cell, exempt values without a limit (mathematics 4, 5).

    The coins that keep most rows may starve rare values, down to channels that cannot be inverted. The limits are
    linear in the coins, so every mixture with the uniform coin meets them too: the mixture with the smallest weighted
    variance is taken, and fine-grain is never worse than uniform.
    """
    uniform = uniform_channel(values, shares, protected, rho2)
    known = {id(share): amplification_limit(share, rho2) for share in different(compress(shares, protected.tolist()))}
    limits = [known[id(share)] if guarded else None for share, guarded in zip(shares, protected.tolist(), strict=True)]
    rounded = {id(limit): np.inf if limit is None else float(limit) for limit in different(limits)}
    gammas = np.array([rounded[id(limit)] for limit in limits])
    coins = np.clip(solve_coins(counts / counts.sum(), gammas), 0, 1)
    mixtures = [_rounded(values, share * coins + (1 - share) * uniform.coins, limits) for share in MIXTURES]
    return min((uniform, *mixtures), key=lambda channel: float(weights @ value_variances(counts, channel)))


def _rounded(values: tuple[Hashable, ...], coins: Floats, limits: list[Fraction | None]) -> Channel:
    """The channel with these coins, rounded down until every limit holds exactly."""
    channel = Channel.of(values, coins, coarse=True)
    while not _within(channel, limits):
        # The solver's last bits, or a replacement one part in 2^32 short of 1/m: one step down the grid for every coin.
        channel = Channel(channel.values, coarsened(np.maximum(channel.keep - 1, 0)), channel.replace)
    return channel


def _within(channel: Channel, limits: list[Fraction | None]) -> bool:
    own = own_amplifications(channel.keep, channel.replace)
    return all(limit is None or (gamma is not None and gamma <= limit) for gamma, limit in different_pairs(own, limits))
