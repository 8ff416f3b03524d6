"""How well sets of equal inclusion tell values apart, for any size, without making the sets (mathematics 12).

The error of counts follows from the mean of 1/lambda over the eigenvalues of J. In one order with equal arcs J is
circulant: with d = x L / m modulo 1, the distance of two arcs on the turn,

    J_0x = max(0, pi - d) + max(0, pi - (1 - d)),    pi = L / m

and its Fourier transform is the spectrum. A few directions have most of it: values that stand a turn apart come
together, and values beside each other never do. J of the design is the mean of K such matrices in independent random
orders, whose spectrum is that of K free copies. The mean of 1/lambda is -G(omega) at the fixed point of

    omega = (1 - 1/K) / G(omega),    G(omega) = mean of 1 / (omega - lambda / K),    omega < 0

by subordination (Belinschi and Bercovici 2007). It agrees with J itself to a few hundredths. The best size is smaller
than m / (gamma + 1), which is right for sets drawn from all sets of a size, and, where there are many values, has no
divisor in common with m: otherwise orders repeat themselves after m / divisor sets.
"""

from __future__ import annotations

import numpy as np

from deniable.core.arrays import Floats

STEPS, CLOSE = 400, 1e-6


def one_order(m: int, size: int) -> Floats:
    """The eigenvalues of J of one order, but for the first, whose vector is that of ones.

    >>> one_order(4, 1).round(3).tolist()
    [0.25, 0.25, 0.25]
    """
    inclusion, apart = size / m, np.arange(m) * size % m / m
    together = np.maximum(0.0, inclusion - apart) + np.maximum(0.0, inclusion - (1 - apart))
    spectrum: Floats = np.maximum(np.fft.fft(together).real[1:], 0.0)
    return spectrum


def mean_inverse(spectrum: Floats, orders: int) -> float:
    """The mean of 1/lambda of the mean of so many free copies; very large where it has eigenvalues of 0.

    >>> round(mean_inverse(one_order(4, 1), 64), 1)
    4.0
    """
    own = spectrum / orders
    omega = -float(own.mean())
    for _ in range(STEPS):
        before, omega = omega, (1 - 1 / orders) / float(np.mean(1 / (omega - own)))
        if abs(omega - before) <= CLOSE * abs(omega):
            break
    return -float(np.mean(1 / (omega - own)))


def equal_inverse(m: int, size: int, orders: int) -> float:
    """The mean of (J^-1)_xx of a design of equal inclusion: 1/L^2 from the vector of ones, and all others.

    >>> round(equal_inverse(4, 1, 64), 1)
    4.0
    """
    if orders < 2:
        return float("inf")
    return 1 / size**2 + (m - 1) / m * mean_inverse(one_order(m, size), orders)


def balanced_inverse(m: int, size: int) -> float:
    """The same if all eigenvalues but the first were alike, as of all sets of a size; no design has less.

    >>> round(balanced_inverse(4, 1), 3)
    4.0
    """
    return 1 / size**2 + (m - 1) / m * (m - 1) / (size - size**2 / m)
