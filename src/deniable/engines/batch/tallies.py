"""Tallies: rows counted by group, class and state, with the moments of numeric columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """Of a numeric column, by [group, class, state]: rows that have a value, sum, sum of squares."""

    rows: Floats
    sums: Floats
    squares: Floats


@dataclass(frozen=True)
class Block:
    """Some groups and their rows, counted by [group, class, state]."""

    keys: Ints
    counts: Floats
    moments: Mapping[str, Moments] = field(default_factory=dict)


def add_moments(moment: Moments, key: Ints, number: Floats) -> None:
    """Add rows, sums and sums of squares of the numbers that are not missing."""
    there = ~np.isnan(number)
    if not there.all():
        key, number = key[there], number[there]
    total = len(moment.rows)
    moment.rows[:] += np.bincount(key, minlength=total)
    moment.sums[:] += np.bincount(key, weights=number, minlength=total)
    moment.squares[:] += np.bincount(key, weights=number * number, minlength=total)
