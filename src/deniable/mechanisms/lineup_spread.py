"""How well sets of equal inclusion tell values apart, for any size, without making the sets (mathematics 12).

The error of counts follows from the mean of 1/lambda over the eigenvalues of J. J of shifted blocks is circulant, so
they are the squared Fourier transforms of the blocks, a mean over blocks:

    lambda_j = sum over k of |sum over b in block k of e^(2 pi i j b / m)|^2 / (K m)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from deniable.core.arrays import Ints
from deniable.core.lineup import orders_for, public_order

SINGULAR = 1e-12  # of an eigenvalue, against the mean of all


def equal_inverse(m: int, size: int, orders: int) -> float:
    """(J^-1)_xx of a design by blocks, the same for all values: 1/L^2 from the vector of ones, and all others; infinite
    where J cannot be inverted.

    >>> round(equal_inverse(4, 1, 64), 1)
    4.0
    """
    spectrum = np.zeros(m)
    for order in _orders(m, orders_for(m, 1))[:orders]:
        block = np.zeros(m)
        block[order[:size]] = 1.0
        spectrum += np.abs(np.fft.fft(block)) ** 2
    spectrum = spectrum[1:] / (orders * m)
    if spectrum.min() <= SINGULAR * spectrum.mean():
        return float("inf")
    return 1 / size**2 + float(np.sum(1 / spectrum)) / m


@lru_cache(maxsize=1)
def _orders(m: int, orders: int) -> tuple[Ints, ...]:
    """All public orders, which many sizes share."""
    return tuple(public_order(0, number, m) for number in range(orders))


def balanced_inverse(m: int, size: int) -> float:
    """The same if all eigenvalues but the first were alike, as of all sets of a size; no design has less.

    >>> round(balanced_inverse(4, 1), 3)
    4.0
    """
    return 1 / size**2 + (m - 1) / m * (m - 1) / (size - size**2 / m)
