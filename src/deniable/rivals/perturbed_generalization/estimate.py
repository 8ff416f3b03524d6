"""Estimates from one perturbed row of each box.

With y_g the value that box g shows, n_g its rows, s_g the share of it that a condition covers, and the weights of a
value set (mathematics 8), w(y) = sum over x in it of P^-1[x][y],

    sum over boxes of n_g s_g w(y_g)

is unbiased over draws and samples if rows lie evenly in their boxes. Boxes are independent of each other. What one of
them says is compared with what all say on average, so the variance is too large rather than too small where boxes
differ; how many rows of a box satisfy the condition is uncertain too, as for generalization.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.channel import Channel


@dataclass(frozen=True, eq=False)
class BoxSample:
    """What is published of all boxes.

    Attributes:
        channel: by which values were perturbed.
        shown: the perturbed value of each box, as a position in the domain.
        rows: how many rows each box has.
    """

    channel: Channel
    shown: Ints
    rows: Ints

    def by_value(self, share: Floats) -> Floats:
        """The estimated count of every value, among rows that lie in this share of each box."""
        observed = np.bincount(self.shown, weights=self.rows * share, minlength=self.channel.m)
        return self.channel.invert(observed)

    def count(self, share: Floats, wanted: Bools) -> tuple[float, float]:
        """The estimated count of a value set, and its variance.

        >>> sample = BoxSample(Channel.of(("a", "b"), 0.5), np.array([0, 0, 1, 0]), np.array([10, 10, 10, 10]))
        >>> value, variance = sample.count(np.ones(4), np.array([True, False]))
        >>> round(value, 6), round(variance, 6)
        (40.0, 400.0)
        """
        weight = self.channel.weights(wanted)[self.shown]
        size = self.rows * share
        total, boxes = float(size.sum()), int((size > 0).sum())
        value = float((size * weight).sum())
        mean = value / total if total > 0 else 0.0
        spread = float((size**2 * (weight - mean) ** 2).sum())
        if boxes > 1:
            spread *= boxes / (boxes - 1)
        elif boxes == 1:  # one box tells nothing about itself: what its weights can be at the most
            spread = total**2 * float(np.abs(self.channel.weights(wanted)).max()) ** 2
        inside = min(max(mean, 0.0), 1.0) * float((size * (1 - share)).sum())
        return value, spread + inside
