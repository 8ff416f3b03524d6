"""Shrinkage towards independence: empirical Bayes (mathematics 8).

    mu = N_R f~_x / n,    A = t mu^2 + mu,    k = A / (A + V),    shrunk = mu + k (est - mu)

A is how far true counts lie from independence: a relative variance t that falls with the number of rows N_R, and mu for
the chance of which rows happen to be there. t is fitted by moments over the release's own margins of one and two public
columns: E[(est - mu)^2] = A + V. A value whose own t is clearly larger gets the difference on top.

The interval has the mean squared error k^2 V + (1-k)^2 A. Where no histogram is published, mu comes from the same rows,
so their error is in both: 2 k (1-k) V N_R / n more. It covers on average over questions; what was measured, and on
which columns, is in docs/explanation/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from deniable.core.tally import Block
from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.aggregates import count_of
from deniable.estimation.calibration import Control
from deniable.estimation.model.one_part import SingleValues
from deniable.estimation.model.weighed import Answers

if TYPE_CHECKING:
    from deniable.estimation.asking import Asking

MARGIN_GROUPS = 4096  # margins with more groups say little about each
MARGIN_VALUES = 256  # values of the domain that take part, the most frequent ones
MARGINS = 40
LEAST_ROWS = 20
POINT_ERRORS, INTERVAL_ERRORS = 1.0, 2.0  # standard errors of the fit that are added to t
SLOPES = np.arange(0.0, 0.61, 0.05)


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The relative variance t(N) = c (N/n)^-b (1 - N/n)^2.

    The last factor is exact in one respect: what a group of rows has too much of, all other rows have too little of, so
    a group of almost all rows cannot be far from independence.

    Attributes:
        share: f~ / n.
        doubt: the variance of each share: the histogram's noise, or the error of its estimate where none is published.
        own: whether the shares were estimated from these very rows.
        rows: n.
        scale, error, slope: c, its standard error, and b.
        more: per value, how much larger its own c is, beyond doubt; zero for most.
    """

    share: Floats
    doubt: Floats
    own: bool
    rows: int
    scale: float
    error: float
    slope: float
    more: Floats

    def prior(self, rows: Floats, sets: Bools, errors: float = 0.0) -> Floats:
        """A = t mu^2 + mu of [groups, sets], with c so many standard errors up."""
        mu = rows @ (sets @ self.share).T
        extra = rows @ (sets @ (self.share * self.more)).T  # each value's own excess, weighted by its share
        shape = _shape(rows.sum(axis=1, keepdims=True), self.rows, self.slope)
        return shape * mu * ((self.scale + errors * self.error) * mu + extra) + mu

    def shrunk(self, linear: Answers, rows: Floats, sets: Bools) -> Answers:
        """Answers [groups, sets] drawn towards independence; rows [groups, classes], sets [sets, classes, m]."""
        mu = rows @ (sets @ self.share).T
        prior = self.prior(rows, sets, POINT_ERRORS)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.where(linear.variance > 0, prior / (prior + linear.variance), 1.0)
        value = mu + k * (linear.value - mu)
        # The interval must cover even if t was fitted too small, or if this count is visibly far from independence:
        # (est - mu)^2 - V estimates its own squared distance without bias.
        wide = self.prior(rows, sets, INTERVAL_ERRORS)
        wide = np.maximum(wide, (linear.value - mu) ** 2 - linear.variance)
        centre = (1 - k) * (rows @ np.sqrt(sets @ self.doubt).T)  # mu is not known exactly either
        known = np.isfinite(linear.variance)
        own = np.where(known, linear.variance, 0.0)
        variance = k**2 * own + (1 - k) ** 2 * wide + centre**2
        if self.own:
            variance += 2 * k * (1 - k) * own * rows.sum(axis=1, keepdims=True) / max(self.rows, 1)
        variance = np.where(known, variance, np.inf)
        return Answers(value, variance, linear.raw, linear.smallest, linear.largest, whole=linear.whole)


def _shape(rows: Floats, n: int, slope: float) -> Floats:
    part = np.clip(rows, 1.0, n) / max(n, 1)
    return part**-slope * (1 - part) ** 2


def fit_shrinkage(ask: Asking, control: Control | None) -> Shrinkage:
    """c and b by weighted least squares on the moments of margins of one and two public columns of the release.

    Each group of rows gives sum trust ((est - mu)^2 - V - mu) = t sum trust mu^2 up to noise. The trust, mu^2 / V^2
    with the V that independence predicts, minimises that noise, and does not depend on the group's own draws.
    """
    share = ask.distribution()
    chosen = _frequent(share)
    chosen = chosen[~ask.states.unknown(np.eye(len(share), dtype=bool)[chosen])]
    per_row = _variance_per_row(ask, chosen)
    rows, moment, weight = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    margins = _margins(ask)
    above, below = np.zeros(len(chosen)), np.full(len(chosen), 1e-300)
    for margin in margins:
        for count, estimates in _estimates(ask, margin, control, chosen):
            mu = count[:, None] * share[chosen]
            trust = (mu / np.maximum(count[:, None] * per_row, 1e-9)) ** 2
            total = np.maximum((trust * mu**2).sum(axis=1), 1e-300)
            rows.append(count)
            moment.append((trust * ((estimates.value - mu) ** 2 - estimates.variance - mu)).sum(axis=1) / total)
            weight.append(total)
            model = _shape(count, ask.manifest.rows, 0.0)[:, None] * mu**2
            noise = np.maximum(count[:, None] * per_row, 1e-9) ** 2
            above += (((estimates.value - mu) ** 2 - estimates.variance - mu) * model / noise).sum(axis=0)
            below += (model**2 / noise).sum(axis=0)
    effect = _overlap(ask, margins)
    fitted = _fit(np.concatenate(rows), np.concatenate(moment), np.concatenate(weight), ask.manifest.rows, effect)
    if control is not None:
        doubt = np.full(ask.states.m, control.variance / max(ask.manifest.rows, 1) ** 2)
    else:
        doubt = _variance_per_row(ask, np.arange(ask.states.m)) / max(ask.manifest.rows, 1)
    more = np.zeros(ask.states.m)
    more[chosen] = np.maximum(above / below - fitted[0] - np.sqrt(2 * effect / below), 0.0)
    return Shrinkage(share, doubt, ask.manifest.marginal is None, ask.manifest.rows, *fitted, more)


def _overlap(ask: Asking, margins: list[tuple[str, ...]]) -> float:
    """How many times larger the variance of the fit is because margins share their rows.

    Two margins a and b see the same noise in proportion to the pairs of rows that agree in all columns of both:
    sum over a, b of prod kappa over (a or b), divided by the sum over a of prod kappa over a, with kappa the chance
    that two rows agree in a column.
    """
    agree = {}
    for column in {name for margin in margins for name in margin}:
        blocks = ask.counter.tally((column,), (), np.zeros(1, np.int64))
        counts = np.concatenate([block.counts.sum(axis=(1, 2)) for block in blocks])
        agree[column] = float(((counts / max(counts.sum(), 1.0)) ** 2).sum())
    alone = sum(math.prod(agree[name] for name in one) for one in margins)
    both = sum(math.prod(agree[name] for name in {*one, *two}) for one in margins for two in margins)
    return both / alone if alone else 1.0


def _variance_per_row(ask: Asking, chosen: Ints) -> Floats:
    """What one row of the average kind adds to the variance of each value's count."""
    average, expected = ask.total / max(ask.total.sum(), 1.0), []
    for start in range(0, len(chosen), MARGIN_VALUES):  # in parts: m x states weights may not fit
        some = chosen[start : start + MARGIN_VALUES]
        weight = ask.states.weights(some[:, None] == np.arange(ask.states.m))  # one set per value
        expected.append((weight * weight - weight) @ average)
    return np.concatenate(expected)


def _fit(rows: Floats, moment: Floats, weight: Floats, n: int, effect: float) -> tuple[float, float, float]:
    """The scale c, its standard error and the slope b; a slope needs evidence: overlapping margins imitate one."""
    if not len(rows):
        return 1e-6, 0.0, 0.0
    best, least = (1e-6, 0.0, 0.0), np.inf
    for slope in SLOPES:
        shape = _shape(rows, n, slope)
        scale = 0.1
        for _ in range(4):  # groups differ in t itself, so a group's trust is bounded by that
            trust = 1 / (2 / weight + (scale * shape) ** 2)
            scale = max(float((trust * shape * moment).sum() / (trust * shape**2).sum()), 1e-6)
        trust = 1 / (2 / weight + (scale * shape) ** 2)
        loss = float((trust * (moment - scale * shape) ** 2 - np.log(trust)).sum())
        if loss < least - (4 * effect if slope else 0.0):
            error = math.sqrt(effect / float((trust * shape**2).sum()))
            best, least = (scale, error, float(slope)), loss
    return best


def _frequent(share: Floats) -> Ints:
    return np.sort(np.argsort(-share, kind="stable")[:MARGIN_VALUES])


def _margins(ask: Asking) -> list[tuple[str, ...]]:
    """Margins of one and two public columns with few enough groups, at most ``MARGINS`` of them."""
    sizes = {c: len(ask.counter.distinct(c)) + 1 for c in ask.manifest.public_columns}
    single = [(name,) for name, size in sizes.items() if size <= MARGIN_GROUPS]
    pairs = [(a, b) for (a,), (b,) in combinations(single, 2) if sizes[a] * sizes[b] <= MARGIN_GROUPS]
    margins: list[tuple[str, ...]] = [*single, *pairs]
    return margins[:: max(1, -(-len(margins) // MARGINS))]


def _estimates(
    ask: Asking, margin: tuple[str, ...], control: Control | None, values: Ints
) -> Iterator[tuple[Floats, Answers]]:
    """Rows and estimates [groups, values] of one margin."""
    every = np.ones((1, ask.states.m), bool)
    for block in ask.counter.tally(margin, (), np.zeros(1, np.int64), states=True):
        many = block.counts.sum(axis=(1, 2)) >= LEAST_ROWS
        if many.any():
            rows = SingleValues(ask, Block(block.keys[many], block.counts[many]), every, values, control)
            yield rows.counts.sum(axis=(1, 2)), count_of(rows)
