"""Weights: an estimate as a sum over published rows (mathematics 8).

    w(c, y) = sum over x in S of P_c^-1[x][y],    E[w | x] = 1[x in S]

so the sum of w over rows is an unbiased count, and the sum of w^2 - w an unbiased estimate of its variance. A *state*
is a cell and a published value of it; weights of a value set S are one number per state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from deniable.core.channels import Channel
from deniable.core.errors import QuestionError, option
from deniable.core.values import Ints
from deniable.estimation.model.moments import Moments, of_coins, of_sets, of_values
from deniable.estimation.model.tensor import SINGULAR, stochastic
from deniable.estimation.published import Bools, Floats, OnePart

UNREACHED = 1e-4  # of a value, by which the expectation of weights may miss it: matrices have six digits


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

    def unknown(self, chosen: Bools | Floats) -> Bools:
        """Which value sets no weights tell of, [..., m] -> [...]: their values cannot be told apart from others.

        Weights w with P^T w = t exist where t lies in the space of P's rows.
        """
        lost = np.zeros(chosen.shape[:-1], bool)
        if self.unbiased:
            return lost
        if self.mixture is not None:
            reached = chosen.astype(np.float64) @ self._pseudo @ self.mixture
            return np.asarray(np.abs(reached - chosen).max(axis=-1) > UNREACHED)
        for channel, positions in zip(self.channels, self.positions, strict=True):
            if not channel.invertible:
                lost |= chosen[..., positions].min(-1) != chosen[..., positions].max(-1)
        return lost

    def weights(self, chosen: Bools | Floats) -> Floats:
        """w over states, for value sets given as rows of booleans over the domain: [..., m] -> [..., states]; or for
        numbers v, one for each value: then E[w | x] = v_x."""
        if self.mixture is not None:
            flat = chosen.reshape(-1, self.m).astype(np.float64)
            weights = flat @ self._pseudo
            if not self.unbiased:  # what nothing is known of counts as it is shown
                weights = np.where(self.unknown(flat)[:, None], flat, weights)
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

    def set_moments(self, weights: Floats, sets: Bools, often: Sequence[Floats]) -> list[Moments]:
        """Of value sets [.., m], cell by cell, from how often each cell has its values."""
        if self.mixture is not None:
            mixture = self.mixture
            return [of_sets(lambda z: np.asarray(z @ mixture), weights, sets, often[0])]
        cells = zip(self.channels, self.slices, self.positions, often, strict=True)
        return [of_sets(c.expected, weights[..., part], sets[..., at], own) for c, part, at, own in cells]

    def value_moments(self, often: Sequence[Floats]) -> list[Moments] | None:
        """Of every single value, cell by cell."""
        if self.mixture is not None:
            return [of_values(self.mixture, self._inverse, often[0])]
        if not all(channel.keep.all() for channel in self.channels):
            return None
        return [of_coins(c.coins, c.replacing, own) for c, own in zip(self.channels, often, strict=True)]

    @cached_property
    def _inverse(self) -> Floats:
        """The weights of every single value in a mixture [values, states]."""
        return self._pseudo if self.unbiased else self.weights(np.eye(self.m, dtype=bool))

    @cached_property
    def _pseudo(self) -> Floats:
        """The inverse of the mixture; where it has none, one for all value sets that can be told apart."""
        if self._mixture_inverse is None:
            assert self.mixture is not None
            return np.linalg.pinv(self.mixture, rcond=1 / SINGULAR).astype(np.float64)
        return self._mixture_inverse

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


def _certain(inside: Bools | Floats, weights: Floats) -> Floats:
    """Exactly 1 and 0 where the cell lies wholly inside or outside S: such rows carry no error. Of numbers, the number
    that all values of the cell share."""
    least, most = inside.min(-1, keepdims=True), inside.max(-1, keepdims=True)
    return np.where(least == most, most.astype(np.float64), weights)
