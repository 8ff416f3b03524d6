"""How far chance takes sums of independent draws: bounds that are exceeded at most once in so many releases.

Rows are drawn independently, and a row changes a sum by at most b. With V the variance of the sum, Bernstein's
inequality and its form for a variance that is estimated from the rows themselves (Maurer & Pontil 2009) give

    |sum - mean| <= sqrt(2 V L) + b L / 3,     |sum - mean| <= sqrt(2 V' L) + 7 b L / 3      but for one case in e^L

The noise of a histogram is discrete Laplace, whose tails are those of an exponential, not of a normal distribution:
with q = e^-epsilon it has E e^(t z) = (1-q)^2 / ((1 - q e^t)(1 - q e^-t)), and Markov's inequality bounds sums of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from deniable.core.part import Marginal
from deniable.core.values import Floats

RARELY = math.log(1e9)  # an honest release fails once in so many
STEPS = np.arange(1, 200) / 200
SHELLS = 8


def by_chance(variance: ArrayLike, width: ArrayLike, often: float, *, seen: bool = False) -> Floats:
    """How far sums are off, but for one case in e^often: ``variance`` of the sum, ``width`` of what a row adds to it.

    ``seen``: the variance is the sum of squares that the rows themselves show.
    """
    reach: Floats = np.sqrt(2 * np.asarray(variance) * often) + np.asarray(width) * often * (7 if seen else 1) / 3
    return reach


@dataclass(frozen=True)
class Noise:
    """What the noise z of a histogram of m counts comes to at most.

    Attributes:
        single: |z_x|, of every count.
        total: |sum z_x|.
        shells: (rarity, length): the noise is longer than that of the shell before, sqrt(sum z_x^2) <= length, once in
            e^rarity. Lengths are bounded at once for all weights, so that |sum h_x z_x| <= |h| length holds also for
            weights that follow the histogram, as the integers of a plan do. Rows are drawn independently of the noise:
            where it was that rare, they need not be as rare again.
    """

    single: float
    total: float
    shells: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, marginal: Marginal, often: float, more: float = 0.0) -> Noise:
        """But for one case in e^often; rows that were left out make it longer by ``more``."""
        pooled = max(round(marginal.variance / _variance(marginal.epsilon)), 1)
        return _noise(len(marginal.counts), marginal.epsilon, pooled, often, more)


@lru_cache(maxsize=64)
def _noise(m: int, epsilon: float, pooled: int, often: float, more: float) -> Noise:
    apart = often + math.log(2)
    rarities = np.linspace(0, apart, SHELLS + 1)
    reaches = [_single(m, pooled, epsilon, rarity + math.log(2)) for rarity in rarities[1:]]
    lengths = [
        _length(m, pooled, epsilon, single, rarity + math.log(2)) + more
        for single, rarity in zip(reaches, rarities[1:], strict=True)
    ]
    total = _reached(m * pooled, epsilon, apart + math.log(2)) + more
    return Noise(reaches[-1], total, tuple(zip(rarities[:-1].tolist(), lengths, strict=True)))


def _single(m: int, pooled: int, epsilon: float, often: float) -> int:
    """No count of m is further off, but for one case in e^often."""
    return math.floor(_reached(pooled, epsilon, often + math.log(2 * m))) + 1


def _variance(epsilon: float) -> float:
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def _reached(count: int, epsilon: float, often: float) -> float:
    """A sum of so many draws is above (count log E e^(t z) + often) / t once in e^often, whatever t is."""
    t, q = epsilon * STEPS, math.exp(-epsilon)
    moments = 2 * math.log1p(-q) - np.log1p(-q * np.exp(t)) - np.log1p(-q * np.exp(-t))
    return float(((count * moments + often) / t).min())


def _length(m: int, pooled: int, epsilon: float, single: int, often: float) -> float:
    """The same for sum z^2, with z no larger than ``single``: (m log E e^(s z^2) + often) / s, whatever s is."""
    z = np.arange(-single, single + 1)
    one = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
    chances = one
    for _ in range(pooled - 1):
        chances = np.convolve(chances, one, mode="same")
    s = epsilon / single * STEPS[:, None]
    logarithms = np.log(chances) + s * z.astype(np.float64) ** 2
    top = logarithms.max(axis=1, keepdims=True)
    moments = np.maximum(top[:, 0] + np.log(np.exp(logarithms - top).sum(axis=1)), 0.0)
    return math.sqrt(float(((m * moments + often) / s[:, 0]).min()))
