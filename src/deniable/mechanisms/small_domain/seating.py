"""From groups of values, planned for a noisy histogram, to cells that take the rows of the true one.

Each value's rows are split over its cells in the planned proportion. How frequent a value is in a cell is bounded by
its planned rows and a margin, over the planned rows of the cell; the promise is checked for the true ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress

import numpy as np

from deniable.core import exact
from deniable.core.arrays import Bools, Counts, Floats
from deniable.core.channel import Channel
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell
from deniable.mechanisms.singles import Covered, lowered_for_singles, most_frequent
from deniable.mechanisms.small_domain.balance import Group, joined
from deniable.mechanisms.small_domain.channels import ChannelKind, fine_grain_channel, uniform_channel
from deniable.mechanisms.view import OWN_MARGINS, too_close


@dataclass(frozen=True, eq=False)
class Seating:
    """What cells are made for.

    Attributes:
        histogram: the true one.
        noisy: whether groups were planned from another one.
        protected: the values that must stay below rho2.
        weights: of the values' variances, for fine-grain channels.
        covered: of columns that are perturbed together, the single values that must stay below rho2.
    """

    histogram: Histogram
    noisy: bool
    protected: Bools
    rho2: Fraction
    kind: ChannelKind
    weights: Floats
    covered: Covered

    def cells(self, groups: Sequence[Group]) -> tuple[list[Cell], list[Group]]:
        """The cells, and the groups as they were planned; groups that cannot be protected join a neighbour."""
        planned = list(groups)
        while True:
            rows = split(planned, self.histogram.counts)
            channels = []
            for group, counts in zip(planned, rows, strict=True):
                channel = self._channel(group, counts)
                if channel is None:
                    break
                channels.append(channel)
            if len(channels) == len(planned):
                break
            if len(planned) == 1:
                raise too_close(most_frequent(self.histogram, self.protected, self.covered), self.rho2)
            first = min(len(channels), len(planned) - 2)
            planned[first : first + 2] = [joined(planned[first : first + 2])]
        return [
            Cell(Histogram(channel.values, counts), channel) for channel, counts in zip(channels, rows, strict=True)
        ], planned

    def _channel(self, group: Group, counts: Counts) -> Channel | None:
        """The channel of a cell that takes these rows; None where it cannot be protected."""
        guarded = self.protected[group.positions]
        values = tuple(self.histogram.domain[position] for position in group.positions.tolist())
        size = max(group.size, 1)
        for margin in OWN_MARGINS if self.noisy else (0,):
            known = {count: Fraction(count + margin, size) for count in set(group.counts.tolist())}
            shares = [known[count] for count in group.counts.tolist()]
            if max(exact.different(compress(shares, guarded.tolist())), default=0) >= self.rho2:
                return None
            if self.kind == "uniform" or not guarded.any():
                channel = uniform_channel(values, shares, guarded, self.rho2)
            else:
                weights = self.weights[group.positions]
                channel = fine_grain_channel(values, shares, group.counts, guarded, self.rho2, weights)
            if self._keeps(channel, counts, guarded):
                return lowered_for_singles(channel, counts, group.positions, self.covered, self.rho2)
        return None

    def _keeps(self, channel: Channel, counts: Counts, guarded: Bools) -> bool:
        sure = exact.surest(channel.keep, channel.replace, counts)
        return all(belief <= self.rho2 for belief in exact.different(compress(sure, guarded.tolist())))


def split(groups: Sequence[Group], counts: Counts) -> list[Counts]:
    """Each value's rows over the groups that hold it, in proportion to what they were planned to take.

    >>> planned = [Group(np.array([0, 1]), np.array([4, 2])), Group(np.array([0]), np.array([2]))]
    >>> [taken.tolist() for taken in split(planned, np.array([7, 3]))]
    [[5, 3], [2]]
    """
    sizes = [len(group.positions) for group in groups]
    positions = np.concatenate([group.positions for group in groups])
    planned = np.concatenate([group.counts for group in groups]).astype(np.float64)
    total = np.zeros(len(counts))
    np.add.at(total, positions, planned)
    share = counts[positions] * planned / np.maximum(total[positions], 1)
    taken = np.floor(share).astype(np.int64)
    missing = counts.copy()
    np.subtract.at(missing, positions, taken)
    order = np.lexsort((np.arange(len(positions)), taken - share, positions))  # by value, largest remainder first
    rank = np.arange(len(order)) - np.searchsorted(positions[order], positions[order])
    taken[order] += rank < missing[positions[order]]
    return np.split(taken, np.cumsum(sizes)[:-1])
