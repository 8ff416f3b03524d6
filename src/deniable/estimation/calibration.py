"""Calibration: what is known to be wrong with the whole table is subtracted from its parts (mathematics 8).

    est_R - beta (est_T - f~),   beta = Cov(est_R, est_T) / (V_T + v)

Since R is part of T, the covariance is sum over R of (w_S w_S* - w_{S and S*}), which is V_R when both ask for the same
values. In beta it is taken as rows of T have it on average, so that beta does not move with R's own draws; the variance
is V_R - 2 beta Cov + beta^2 (V_T + v), lower by Cov^2 / (V_T + v) where R is like T.

How many rows there are is public, so the noise of the histogram is made to add up to nothing: of the noise of m counts
of variance v, v |S| (1 - |S| / m) remains for a set S, the same for its complement. So what is estimated for S and for
the rest adds up to the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.model.states import States

LAPLACE_TAIL = 0.3  # 1.96 sqrt(1.3 v) holds 96 % of discrete Laplace noise of epsilon 1/2, 1.96 sqrt(v) only 94 %


@dataclass(frozen=True, eq=False)
class Control:
    """What the whole table says: its rows by state, and the noisy histogram, adding up to the rows.

    Attributes:
        total: the rows by state.
        counts: f~ of every value.
        variance: v, of one count's noise as it was published.
        noisy: which values' counts have noise.
    """

    total: Floats
    counts: Floats
    variance: float
    noisy: Bools

    @classmethod
    def of(cls, total: Floats, published: Floats, variance: float, noisy: Bools) -> Control:
        """The published histogram, its noise made to add up to nothing."""
        off = (total.sum() - published.sum()) / max(int(noisy.sum()), 1)
        return cls(total, published + off * noisy, variance, noisy)

    def noise(self, one: Bools | Floats, other: Bools | Floats) -> Floats:
        """The covariance of the noise of two value sets' counts, or sums of numbers: v (|S and S'| - |S| |S'| / m)."""
        first, second = one * self.noisy, other * self.noisy
        left = (first * second).sum(-1) - first.sum(-1) * second.sum(-1) / max(int(self.noisy.sum()), 1)
        return self.variance * left


@dataclass(frozen=True, eq=False)
class Calibration:
    """For some labels: what the table's estimate is off by, and how uncertain that is; one number per label.

    Attributes:
        error: est_T(S*) - f~(S*).
        noise: the variance of that.
        tail: what is added for the histogram's Laplace noise, whose tails are heavier than normal ones.
    """

    error: Floats
    noise: Floats
    tail: Floats

    def slope(self, common: Floats) -> Floats:
        """beta, given the covariance of an estimate with the error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            beta: Floats = np.where(self.noise > 0, common / self.noise, 0.0)
        return beta

    def picked(self, labels: Ints) -> Calibration:
        """Some of the labels."""
        return Calibration(self.error[labels], self.noise[labels], self.tail[labels])


@dataclass(frozen=True, eq=False)
class SetControl:
    """The controls of value sets S* [labels, m], or of numbers, with their weights over states."""

    states: States | LineUpStates
    known: Control
    chosen: Bools | Floats
    weights: Floats

    def with_other(self, other: SetControl) -> Calibration:
        """The errors of these sets, and their covariances with those of others."""
        same = other is self and self.chosen.dtype == bool
        both = self.weights if same else self.states.weights(self.chosen * other.chosen)
        noise = self.known.noise(self.chosen, other.chosen)
        spread = (self.weights * other.weights - both) @ self.known.total + noise
        error = self.weights @ self.known.total - self.chosen @ self.known.counts
        return Calibration(error, spread, LAPLACE_TAIL * noise)


def of_values(states: States | LineUpStates, known: Control) -> Calibration:
    """The calibration of every single value."""
    estimated, squares = states.invert(known.total), states.squares(known.total)
    left = known.variance * (1 - 1 / max(int(known.noisy.sum()), 1))
    noise = np.where(known.noisy, left, 0.0)
    return Calibration(estimated - known.counts, squares - estimated + noise, LAPLACE_TAIL * noise)
