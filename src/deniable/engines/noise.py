"""Noise in counts: discrete Laplace, drawn in whole numbers from a keystream."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

from deniable.core.arrays import Ints, Words
from deniable.core.errors import OptionError
from deniable.engines.randomness import Keystream

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-4, 20.0


def discrete_laplace(keystream: Keystream, size: int, epsilon: float) -> Ints:
    """Discrete Laplace noise, P(k) = (1-a)/(1+a) a^|k| with a = e^-epsilon, as the difference of two geometric draws.

    A draw is the number of k >= 1 with u < a^k 2^64, u a 64-bit word: P(G >= k) is a^k up to 2^-64 for each k, and the
    noise within 90/epsilon 2^-64 of P in total variation (that much delta, beside epsilon).
    """
    thresholds = _geometric_thresholds(epsilon)
    words = keystream.words(0, 2 * size)
    draws = len(thresholds) - np.searchsorted(thresholds, words, side="right")
    noise: Ints = (draws[0::2] - draws[1::2]).astype(np.int64)
    return noise


def discrete_laplace_variance(epsilon: float) -> float:
    """The variance of discrete Laplace noise, 2 a / (1-a)^2 with a = e^-epsilon.

    >>> round(discrete_laplace_variance(1.0), 4)
    1.8413
    """
    _check_epsilon(epsilon)
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


@lru_cache(maxsize=8)
def _geometric_thresholds(epsilon: float) -> Words:
    """floor(a^k 2^64) for k = 1, 2, ... until it is 0, in rising order; whole numbers with 64 guard bits."""
    _check_epsilon(epsilon)
    with localcontext() as context:
        context.prec = 60
        ratio = int((-Decimal(epsilon)).exp() * 2**128)
    thresholds = []
    power = ratio
    while power >> 64:
        thresholds.append(power >> 64)
        power = power * ratio >> 128
    return np.array(thresholds[::-1], dtype=np.uint64)


def _check_epsilon(epsilon: float) -> None:
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise OptionError(
            f"epsilon = {epsilon} is not allowed for noise: choose {SMALLEST_EPSILON} to {LARGEST_EPSILON:g}."
        )
