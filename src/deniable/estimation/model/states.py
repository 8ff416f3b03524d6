"""Weights: an estimate as a sum over published rows (mathematics 8).

    w(c, y) = sum over x in S of P_c^-1[x][y],    E[w | x] = 1[x in S]

so the sum of w over rows is an unbiased count, and the sum of w^2 - w an unbiased estimate of its variance. A *state*
is a cell and a published value of it; weights of a value set S are one number per state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from deniable.core.channels import Channel
from deniable.core.errors import QuestionError, option
from deniable.core.values import Ints
from deniable.estimation.model.tensor import SINGULAR, stochastic
from deniable.estimation.model.weighed import regressed, slopes
from deniable.estimation.published import Bools, Floats, OnePart


@dataclass(frozen=True, eq=False)
class States:
    """The states of a release: which values each cell has, and how its channel is inverted.

    Attributes:
        m: the size of the table's domain.
        channels, positions: of each cell.
        mixture: for unpublished cells the m x m channel of the whole release; None when every cell is published.
    """

    m: int
    channels: tuple[Channel, ...]
    positions: tuple[Ints, ...]
    mixture: Floats | None = None

    @classmethod
    def of(cls, manifest: OnePart) -> States:
        """The states of a release, from its manifest."""
        m = len(manifest.domain)
        positions = tuple(np.asarray(p, np.int64) for p in manifest.cell_positions)
        if manifest.cells_published or len(positions) == 1:
            return cls(m, tuple(manifest.channels), positions)
        mixture = manifest.mixture
        if mixture is None:
            raise QuestionError(
                "This release does not publish the cells of its rows, nor the channel of the whole table: questions "
                "about the sensitive column cannot be answered from it so. Fix: "
                f"{option('method', 'four-state exact')}."
            )
        return cls(m, (), (np.arange(m),), stochastic(mixture))

    @cached_property
    def count(self) -> int:
        """How many states there are."""
        return sum(len(p) for p in self.positions)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each cell's states are."""
        edges = accumulate((len(p) for p in self.positions), initial=0)
        return tuple(slice(a, b) for a, b in pairwise(edges))

    @cached_property
    def unbiased(self) -> bool:
        """Whether every channel can be inverted. Where one cannot (all values redrawn), its rows are estimated from
        the replacing distribution alone, and no interval is claimed."""
        if self.mixture is not None:
            return self._mixture_inverse is not None
        return all(channel.invertible for channel in self.channels)

    def weights(self, chosen: Bools | Floats) -> Floats:
        """w over states, for value sets given as rows of booleans over the domain: [..., m] -> [..., states]; or for
        numbers v, one for each value: then E[w | x] = v_x."""
        if self.mixture is not None:
            weights = chosen.reshape(-1, self.m).astype(np.float64) @ self._inverse
            return _certain(chosen, weights.reshape(chosen.shape))
        parts = []
        for channel, positions in zip(self.channels, self.positions, strict=True):
            inside = chosen[..., positions]
            if channel.invertible:
                weights = channel.weights(inside)
            else:  # the share of the replacing distribution, whatever was published: all that such a channel tells
                share = (inside * channel.replacing).sum(-1, keepdims=True)
                weights = np.broadcast_to(share, inside.shape).astype(np.float64)
            parts.append(_certain(inside, weights))
        return np.concatenate(parts, axis=-1)

    def invert(self, counts: Floats) -> Floats:
        """Counts by state as counts by value, what a published row counts for added up: [..., states] -> [..., m]."""
        return self._by_value(counts, Channel.invert, lambda inverse: inverse)

    def squares(self, counts: Floats) -> Floats:
        """The same with squared weights."""
        return self._by_value(counts, Channel.squares, lambda inverse: inverse**2)

    def _by_value(
        self, counts: Floats, of_channel: Callable[[Channel, Floats], Floats], of_inverse: Callable[[Floats], Floats]
    ) -> Floats:
        if self.mixture is not None:
            flat = counts.reshape(-1, self.m) @ of_inverse(self._inverse).T
            return flat.reshape(counts.shape).astype(np.float64)
        total = np.zeros((*counts.shape[:-1], self.m))
        for channel, positions, part in zip(self.channels, self.positions, self.slices, strict=True):
            here = counts[..., part]
            if channel.invertible:
                total[..., positions] += here if channel.m == 1 else of_channel(channel, here)
            else:
                total[..., positions] += here.sum(-1, keepdims=True) * of_inverse(channel.replacing)
        return total

    def references(self, chosen: Bools | Floats) -> list[tuple[slice, Floats]]:
        """For each cell how often its states are published: half from replacements, half from the values asked for."""
        parts = []
        for number, (part, positions) in enumerate(zip(self.slices, self.positions, strict=True)):
            replaced = self.mixture.mean(axis=1) if self.mixture is not None else self.channels[number].replacing
            inside = np.abs(chosen[..., positions].astype(np.float64))
            total = inside.sum(-1, keepdims=True)
            parts.append((part, replaced / 2 + inside / np.where(total > 0, 2 * total, np.inf)))
        return parts

    @cached_property
    def value_slopes(self) -> Floats:
        """w+ + w- - 1 of every single value; where it stands in several cells, by how far apart its weights are."""
        if self.mixture is not None:
            every = np.eye(self.m, dtype=bool)
            return slopes(self.weights(every), self.references(every))
        above, below = np.zeros(self.m), np.zeros(self.m)
        for channel, positions in zip(self.channels, self.positions, strict=True):
            if channel.invertible and channel.m > 1:
                common, variance = _value_moments(channel)
                above[positions] += common
                below[positions] += variance
        return regressed(above, below)

    @cached_property
    def _inverse(self) -> Floats:
        """Of the mixture; where it has none, published rows count for what they show."""
        return np.eye(self.m) if self._mixture_inverse is None else self._mixture_inverse

    @cached_property
    def _mixture_inverse(self) -> Floats | None:
        """Computed once for all questions; none where the mixture is nearly singular."""
        return None if self.mixture is None else inverse_of(self.mixture)


def inverse_of(matrix: Floats) -> Floats | None:
    """The inverse, or none where the condition number in the 2-norm reaches ``SINGULAR``.

    |A|_F |A^-1|_F is at least that number and at most m times as large, and it costs no more than the inverse itself:
    singular values, which take twenty times as long, are computed only where it does not decide.
    """
    try:
        inverse: Floats = np.linalg.inv(matrix).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    most = float(np.linalg.norm(matrix) * np.linalg.norm(inverse))
    if most < SINGULAR:
        return inverse
    return inverse if most < len(matrix) * SINGULAR and np.linalg.cond(matrix) < SINGULAR else None


def _value_moments(channel: Channel) -> tuple[Floats, Floats]:
    """Of every single value's weights: the covariance of w^2 - w with w, and the variance of w, as ``slopes`` has them.

    A row that shows another value y counts for -s g_y, g = (1-p) / p: moments of g under r serve all values at once.
    """
    if (channel.keep == 0).any():
        every = np.eye(channel.m)
        w, own = channel.weights(every), channel.replacing / 2 + every / 2
        first, second, third = ((own * w**power).sum(-1) for power in (1, 2, 3))
    else:
        p, r = channel.coins, channel.replacing
        g, often = (1 - p) / p, (1 + r) / 2
        s = (r / p) / (1 + (r * g).sum())
        shown = (1 - (1 - p) * s) / p
        first, second, third = (
            often * shown**power + (-s) ** power * ((r * g**power).sum() - r * g**power) / 2 for power in (1, 2, 3)
        )
    return third - second - first * (second - first), second - first**2


def _certain(inside: Bools | Floats, weights: Floats) -> Floats:
    """Exactly 1 and 0 where the cell lies wholly inside or outside S: such rows carry no error. Of numbers, the number
    that all values of the cell share."""
    least, most = inside.min(-1, keepdims=True), inside.max(-1, keepdims=True)
    return np.where(least == most, most.astype(np.float64), weights)
