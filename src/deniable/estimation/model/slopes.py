"""How the variance of a count grows with the count: what makes intervals of small counts lopsided."""

from __future__ import annotations

import numpy as np

from deniable.core.arrays import Floats

NEARLY = 1e-9


def slopes(weights: Floats, references: list[tuple[slice, Floats]]) -> Floats:
    """The regression of w^2 - w on w within cells, [sets, states] -> [sets]; 0 where all weights are the same."""
    above, below = np.zeros(len(weights)), np.zeros(len(weights))
    for part, often in references:
        w = weights[:, part]
        mass = often.sum(-1, keepdims=True)
        own = often / np.where(mass > 0, mass, 1.0)
        centred = w - (own * w).sum(-1, keepdims=True)
        above += (own * centred * (w**2 - w)).sum(-1)
        below += (own * centred**2).sum(-1)
    return ratio(above, below)


def ratio(common: Floats, variance: Floats) -> Floats:
    """The slope of a regression; 0 where weights differ by rounding alone."""
    differ = variance > NEARLY
    return np.where(differ, common / np.where(differ, variance, 1.0), 0.0)
