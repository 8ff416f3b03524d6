"""Linear estimates from tallies: counts, sums and averages share one path (SPEC 8, weights and calibration).

    count = sum w,   Var = sum (w^2 - w);      sum of v = sum v w,   Var = sum v^2 (w^2 - w)

Calibration subtracts what is known to be wrong with the whole table: est_R - beta (est_T - f~) with
beta = Cov(est_R, est_T) / (V_T + v). Since R is part of T, the covariance is sum over R of (w_S w_S* - w_{S and S*}),
which is V_R when both ask for the same values; the variance falls by Cov^2 / (V_T + v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.estimation.published import Bools, Floats, Moments
from deniable.estimation.weights import States

LAPLACE_TAIL = 0.3  # 1.96 sqrt(1.3 v) holds 95 % of discrete Laplace noise, 1.96 sqrt(v) only 93 %


@dataclass(frozen=True, eq=False)
class Control:
    """What the whole table says: its rows by state, and the published noisy histogram with its noise variance."""

    total: Floats
    counts: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Answers:
    """Estimates [groups, sets] with their variances and what is possible; ``raw`` is the variance uncalibrated."""

    value: Floats
    variance: Floats
    raw: Floats
    smallest: Floats
    largest: Floats

    @classmethod
    def joined(cls, parts: list[Answers], axis: int) -> Answers:
        names = ("value", "variance", "raw", "smallest", "largest")
        return cls(*(np.concatenate([getattr(part, name) for part in parts], axis=axis) for name in names))


@dataclass(frozen=True, eq=False)
class Weighing:
    """Weights of some value sets, ready to be multiplied with tallies.

    All arrays are [sets, classes x states]; ``error`` and ``noise`` are the control's, one per set.
    """

    weight: Floats
    spread: Floats  # w^2 - w
    possible: Floats
    certain: Floats
    shared: Floats | None  # w_S w_S* - w_{S and S*}
    error: Floats | None  # est_T(S*) - f~(S*)
    noise: Floats | None  # V_T(S*) + v |S*|
    tail: Floats | None  # what is added for the histogram's Laplace noise, whose tails are heavier than normal ones

    @classmethod
    def of(cls, states: States, sets: Bools, control: Control | None, rows: Floats) -> Weighing:
        """For sets [sets, classes, m]; ``rows`` by class chooses the class that the control follows."""
        number = len(sets)
        weight = states.weights(sets)
        spread = weight * weight - weight
        edges = states.slices()
        possible, certain = np.zeros_like(weight), np.zeros_like(weight)
        for part, positions in zip(edges, states.positions, strict=True):
            possible[..., part] = sets[..., positions].any(-1, keepdims=True)
            certain[..., part] = sets[..., positions].all(-1, keepdims=True)
        shared = error = noise = tail = None
        if control is not None:
            trivial = ~sets.any(-1) | sets.all(-1)
            followed = np.argmax(np.where(trivial, -1.0, rows[None, :]), axis=1)
            chosen = sets[np.arange(number), followed]
            follow = states.weights(chosen)
            shared = weight * follow[:, None, :] - states.weights(sets & chosen[:, None, :])
            error = follow @ control.total - chosen @ control.counts
            tail = LAPLACE_TAIL * control.variance * chosen.sum(-1)
            noise = (follow * follow - follow) @ control.total + control.variance * chosen.sum(-1)
            shared = shared.reshape(number, -1)
        weight, spread, possible, certain = (a.reshape(number, -1) for a in (weight, spread, possible, certain))
        return cls(weight, spread, possible, certain, shared, error, noise, tail)

    def counts(self, tally: Floats) -> Answers:
        """Estimated counts of a tally [groups, classes x states]."""
        value, raw = tally @ self.weight.T, tally @ self.spread.T
        value, variance = self._calibrated(value, raw, tally)
        return Answers(value, variance, raw, tally @ self.certain.T, tally @ self.possible.T)

    def _calibrated(self, value: Floats, raw: Floats, tally: Floats) -> tuple[Floats, Floats]:
        if self.shared is None or self.noise is None or self.error is None or self.tail is None:
            return value, raw
        common = tally @ self.shared.T
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = np.where(self.noise > 0, common / self.noise, 0.0)
        return value - beta * self.error, np.maximum(raw - beta * common, 0.0) + beta**2 * self.tail

    def sums(self, moments: Any, bounds: tuple[float, float]) -> Answers:
        """Estimated sums of a numeric column whose values lie within ``bounds``."""
        flat = _flat(moments)
        value, raw = flat.sums @ self.weight.T, flat.squares @ self.spread.T
        value, variance = self._calibrated(value, raw, flat.sums)
        ends = flat.sums @ self.certain.T, flat.sums @ self.possible.T
        if bounds[0] < 0 < bounds[1]:
            ends = np.full_like(value, -np.inf), np.full_like(value, np.inf)
        return Answers(value, variance, raw, np.minimum(*ends), np.maximum(*ends))

    def means(self, moments: Any, bounds: tuple[float, float], z: float) -> Answers:
        """Estimated averages: a ratio, by the delta method; where the count may be zero, anything is possible.

        Var(A/B) = (sum (v - A/B)^2 (w^2 - w) - Cov^2 / noise) / B^2, enlarged by 1 / (1 - g)^2 with
        g = z^2 Var(B) / B^2 (Fieller's), which is negligible unless B is uncertain itself.
        """
        flat = _flat(moments)
        total = self.sums(moments, bounds)
        number = self.counts(flat.rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = total.value / number.value
            raw = total.raw - 2 * ratio * (flat.sums @ self.spread.T) + ratio**2 * number.raw
            variance = raw
            if self.shared is not None and self.noise is not None:
                common = flat.sums @ self.shared.T - ratio * (flat.rows @ self.shared.T)
                variance = raw - np.where(self.noise > 0, common**2 / self.noise, 0.0)
            doubt = z**2 * number.variance / number.value**2
            grown = np.where(doubt < 1, 1 / (1 - doubt) ** 2, np.inf) / number.value**2
            variance, raw = (np.where(doubt < 1, np.maximum(x, 0.0) * grown, np.inf) for x in (variance, raw))
        unknown = (number.value <= 0) | ~np.isfinite(ratio)
        ratio = np.where(number.largest > 0, np.where(unknown, sum(bounds) / 2, np.clip(ratio, *bounds)), np.nan)
        variance = np.where(unknown, np.inf, variance)
        ends = np.full_like(ratio, bounds[0]), np.full_like(ratio, bounds[1])
        return Answers(ratio, variance, np.where(unknown, np.inf, raw), *ends)


@dataclass(frozen=True, eq=False)
class _Flat:
    rows: Floats
    sums: Floats
    squares: Floats


def _flat(moments: Moments) -> _Flat:
    return _Flat(*(a.reshape(len(a), a.shape[1] * a.shape[2]) for a in (moments.rows, moments.sums, moments.squares)))


def without_claim(answers: Answers) -> Answers:
    """Where a channel cannot be inverted no error can be stated: the interval becomes all that is possible."""
    unknown = np.where(answers.largest > answers.smallest, np.inf, 0.0)
    return Answers(answers.value, answers.variance + unknown, answers.raw + unknown, answers.smallest, answers.largest)
