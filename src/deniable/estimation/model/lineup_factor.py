"""A column of line-ups beside other perturbed columns: a factor with more published states (sets) than true ones.

    P[S][x] = D(S) (t [x in S] / pi_x + 1 - t),    P^-1 as in ``lineups``

Every operation works on the last axis, as those of the other factors do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.core.arrays import Floats
from deniable.estimation.model.lineups import LineUpStates


@dataclass(frozen=True, eq=False)
class LineUpFactor:
    """The channel from values to sets; missing values that are exempt are published as they are."""

    states: LineUpStates

    @property
    def size(self) -> int:
        """True states."""
        return self.states.m

    @property
    def published(self) -> int:
        """Published states: sets."""
        return self.states.count

    def apply(self, x: Floats) -> Floats:
        """P x: how often each set is shown."""
        return self.states.shown(x)

    def transposed(self, z: Floats) -> Floats:
        """P^T z: what a value expects of its sets."""
        own = len(self.states.design.sets.lengths)
        flat = z.reshape(-1, self.published)
        expected = self.states.expected(flat[:, :own])
        return np.concatenate([expected, flat[:, own:]], axis=1).reshape(*z.shape[:-1], self.size)

    def invert(self, y: Floats) -> Floats:
        """Counts of sets as counts of values."""
        return self.states.invert(y)

    def weights(self, t: Floats) -> Floats:
        """w with E[w(S) | x] = t_x, for any t."""
        return self.states.weights_for(t)

    def squares(self, y: Floats) -> Floats:
        """For each value the sum over rows of its squared weight."""
        return self.states.squares(y)

    @cached_property
    def condition(self) -> float:
        """max |w| summed over the values a set speaks about: how far noise is magnified, in the 1-norm."""
        own = len(self.states.design.sets.lengths)
        return float(np.abs(self.states.weights_for(np.eye(self.size)))[:, :own].sum(axis=0).max())
