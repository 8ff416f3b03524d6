"""SQUAREM: the fixed point of a slow rule, by extrapolating from two of its steps; many questions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.core.arrays import Floats


def squarem(rule: Callable[[Floats], Floats], x: Floats, steps: int, nearly: float) -> Floats:
    """The fixed point of a rule, from x [questions, values], by SQUAREM's extrapolation; done when nothing moves more.

    A leap that would make a count negative is not taken.
    """
    for _ in range(steps):
        first = rule(x)
        second = rule(first)
        one, two = first - x, second - 2 * first + x
        size = np.linalg.norm(two, axis=1, keepdims=True)
        length = -np.linalg.norm(one, axis=1, keepdims=True) / np.maximum(size, 1e-300)
        length = np.minimum(np.where(size > 0, length, -1.0), -1.0)
        leap = x - 2 * length * one + length**2 * two
        moved = rule(np.where((leap > 0).all(axis=1, keepdims=True), leap, second))
        done = np.abs(moved - x).max(initial=0.0) <= nearly
        x = moved
        if done:
            break
    return x
