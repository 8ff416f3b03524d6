"""What a published row says: Pr[what it shows | its true value], which every attacker reads off the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Codes, Floats
from deniable.core.channel import Channel


@dataclass(frozen=True, eq=False)
class Evidence:
    """A channel from values to views, and what was believed before.

    Attributes:
        likelihood: one row per view, one column per value: Pr[view | value].
        prior: the attacker's belief in each value; the frequencies, unless they know more.
    """

    likelihood: Floats
    prior: Floats

    @classmethod
    def as_published(cls, prior: npt.ArrayLike) -> Evidence:
        """Values that are published as they are: the view is the value. Anatomy, generalization, no protection."""
        belief = np.asarray(prior, dtype=np.float64)
        return cls(np.eye(len(belief)), belief / belief.sum())

    @classmethod
    def of_channels(
        cls,
        prior: npt.ArrayLike,
        channels: Sequence[Channel],
        positions: Sequence[Codes],
        dealt: Sequence[npt.ArrayLike] | None = None,
        *,
        cells_shown: bool = True,
    ) -> Evidence:
        """A manifest's channels. View number: cell * m + position of the published value (``views_of``); where rows do
        not show their cells the view is the published value, and the channel their mixture.

        ``dealt`` holds, for each cell, how many rows of each of its values it took (in proportion); with several cells
        they are needed, because the cell is evidence too.
        """
        belief = np.asarray(prior, dtype=np.float64)
        m = len(belief)
        share = shares_of(positions, dealt, m)
        likelihood = np.zeros(((len(channels) if cells_shown else 1) * m, m))
        for cell, (channel, place) in enumerate(zip(channels, positions, strict=True)):
            views = np.asarray(place) + (cell * m if cells_shown else 0)
            likelihood[np.ix_(views, place)] += channel.matrix() * share[cell, place]
        return cls(likelihood, belief / belief.sum())

    @property
    def exact(self) -> bool:
        """Whether rows show their true values."""
        square = self.likelihood.shape == (len(self.prior), len(self.prior))
        return square and bool((self.likelihood == np.eye(len(self.prior))).all())

    @cached_property
    def posterior(self) -> Floats:
        """Pr[value | view], one row per view; the prior where a view never occurs."""
        joint = self.likelihood * self.prior
        seen = joint.sum(1, keepdims=True)
        result: Floats = np.where(seen > 0, joint / np.where(seen > 0, seen, 1.0), self.prior)
        return result

    @cached_property
    def weights(self) -> Floats:
        """One row per view, one column per value: E[weight of x | value k] = 1[x = k] where the channel allows it."""
        possible = self.likelihood.any(axis=1)
        weights = np.zeros_like(self.likelihood)
        weights[possible] = np.linalg.pinv(self.likelihood[possible]).T
        return weights


def shares_of(positions: Sequence[Codes], dealt: Sequence[npt.ArrayLike] | None, m: int) -> Floats:
    """Of each value's rows the share that each cell took, cells x values."""
    share = np.zeros((len(positions), m))
    for cell, place in enumerate(positions):
        share[cell, place] = 1.0 if dealt is None else np.asarray(dealt[cell], dtype=np.float64)
    total = share.sum(0)
    return np.divide(share, total, out=np.zeros_like(share), where=total > 0)


def views_of(published: Codes, m: int, cells: Codes | None = None) -> Codes:
    """The view that each row shows: its value, or its cell and its value."""
    return published if cells is None else cells.astype(np.int64) * m + published
