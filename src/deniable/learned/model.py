"""Learning: a log-linear model of Pr[value | public columns] from noisy tables (mathematics 14.2).

    Pr[s | q] = e^(o_s + sum_c theta_c[g_c(q), s]) / Z_q,    M[g, s] = sum of n_q Pr[s | q] over q in g

theta minimises  sum_g,s (M[g, s] - Y[g, s])^2 / (2 V_g)  +  sum_c |theta_c|^2 / (2 tau_c^2):  noisy tables Y with
variances V_g, a variance tau_c^2 for every block of parameters, found by empirical Bayes. A block is a measured table,
or bands of an ordered one: sums of coarse and fine parameters are a smooth prior, and cost no budget. The curvature at
each value, K x K numbers from how many rows levels share, scales the steps, gives tau, and is the posterior covariance.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.core.values import Floats, Ints
from deniable.learned.measuring import Levels

Single = npt.NDArray[np.float32]
CHUNK = 4096  # combinations at a time: float32 sums stay short, and a chunk stays near the processor
JOINT = 4096  # joint levels of a pack, at most
CURVED = 100_000_000  # numbers of curvature kept, 4 bytes each; of a larger model its diagonal
KEPT = 200_000_000  # probabilities kept from one pass to the next, 4 bytes each; more are computed twice
ROUNDED = 2.0**-16  # theta is published in multiples of it
START, LEAST, MOST = 0.4, 0.01, 3.0  # tau
STAGES = ((0.3, 12), (0.1, 12), (0.03, 12), (0.01, 12), (0.0, 30))  # share of an entry that is forgiven; steps at most
ENOUGH = 2e-4  # of the objective: a smaller descent ends a stage
TRIES = 5
RARE = 2.0  # standard deviations of an entry: a value of fewer rows is learned together with the other rare ones


class Design:
    """Sums over levels for many values at once: levels are packed into a few columns of joint levels, so that each
    combination is looked up a few times however many tables there are."""

    def __init__(self, rows: Ints, levels: Sequence[Levels]) -> None:
        self.rows = rows.astype(np.float32)
        self.levels = list(levels)
        self.offsets = np.cumsum([0, *(one.size for one in levels)])
        limit = min(max(len(rows) // 16, 256), JOINT)
        packs: list[tuple[Ints, int]] = []
        self.pack_of: list[int] = []
        for one in levels:
            for place, (codes, _) in enumerate(packs):
                joint = np.unique(codes * one.size + one.codes, return_inverse=True)
                if len(joint[0]) <= limit:
                    packs[place] = joint[1].astype(np.int64), len(joint[0])
                    self.pack_of.append(place)
                    break
            else:
                packs.append((one.codes, one.size))
                self.pack_of.append(len(packs) - 1)
        starts = np.cumsum([0, *(size for _, size in packs)])
        columns = np.stack([codes + start for (codes, _), start in zip(packs, starts, strict=False)], axis=1)
        n, width = columns.shape
        ones = np.ones(columns.size, np.float32)
        self.look = sparse.csr_matrix((ones, columns.ravel(), np.arange(0, columns.size + 1, width)), (n, starts[-1]))
        self.chunks = []
        for first in range(0, n, CHUNK):
            look = self.look[first : first + CHUNK]
            self.chunks.append((first, first + look.shape[0], look, look.T.tocsr()))
        where, what = [], []  # which levels each joint level stands for
        for place, one in enumerate(levels):
            codes, size = packs[self.pack_of[place]]
            of = np.zeros(size, dtype=np.int64)
            of[codes] = one.codes
            where.append(np.arange(size) + starts[self.pack_of[place]])
            what.append(of + self.offsets[place])
        rows_, columns_ = np.concatenate(where), np.concatenate(what)
        self.stands = sparse.csr_matrix((np.ones(len(rows_)), (rows_, columns_)), (starts[-1], self.offsets[-1]))
        self.stood = self.stands.T.tocsr()

    def shares(self, fitted: Fitted, combinations: Ints) -> Single:
        """Pr[s | q] of some combinations under a model."""
        joint = (self.stands @ fitted.theta).astype(np.float32)
        return shares(self.look[combinations], joint, fitted.base)

    def overlap(self) -> Floats:
        """How many rows two levels share, for all pairs of levels."""
        codes = np.stack([one.codes + start for one, start in zip(self.levels, self.offsets, strict=False)], axis=1)
        n, width = codes.shape
        look = sparse.csr_matrix(
            (np.ones(n * width), codes.ravel(), np.arange(0, n * width + 1, width)), (n, self.offsets[-1])
        )
        return (look.T @ sparse.diags_array(self.rows.astype(np.float64)) @ look).toarray()


@dataclass(frozen=True)
class Fitted:
    """A learned model.

    Attributes:
        base: o_s, the logarithm of each value's share.
        theta: K x m parameters, rounded as they are published.
        tau: of each block.
        known: how many parameters of each block the tables tell about, sum of 1 - posterior / prior variance.
        evaluations: how often the tables were summed.
    """

    base: Floats
    theta: Floats
    tau: Floats
    known: Floats
    evaluations: int


class Learner:
    """One fit: the objective, its curvature, and the way down."""

    def __init__(
        self,
        rows: Ints,
        tables: Sequence[Levels],
        noisy: Sequence[Ints],
        variances: Sequence[float],
        smooth: Sequence[Levels] = (),
    ) -> None:
        """What is known: ``rows`` of every public combination, tables of level by value with noise of known variance.

        ``smooth`` are levels that have parameters and no table of their own.
        """
        self.tables = list(tables)
        self.design = Design(rows, [*tables, *smooth])
        self.seen = np.arange(sum(table.size for table in tables))
        self.noisy = np.concatenate(noisy).astype(np.float64)
        self.weight = 1 / np.repeat(variances, [table.size for table in tables])
        self.K, self.m = int(self.design.offsets[-1]), self.noisy.shape[1]
        self.base = np.log(_first_shares(noisy, variances))
        self.variance = np.repeat(1 / self.weight[:, None], self.m, axis=1)
        self.now = 1 / self.variance
        self.evaluations = 0
        self.share = self.design.overlap()
        self.size = np.diag(self.share).copy()

    def sums(self, theta: Floats, *, keep: bool = True) -> tuple[Floats, Single, list[Single]]:
        """M of every level, and what the way back needs: parameters of joint levels, and rows times Pr[s | q]."""
        design, m = self.design, self.m
        self.evaluations += 1
        joint = (design.stands @ theta).astype(np.float32)
        total = np.zeros(joint.shape)
        kept: list[Single] = []
        keep = keep and len(design.rows) * m <= KEPT
        for first, last, look, looked in design.chunks:
            z = self._expected(first, last, look, joint)
            total += looked @ z
            if keep:
                kept.append(z)
        return design.stood @ total, joint, kept

    def back(self, pull: Floats, joint: Single, kept: list[Single]) -> Floats:
        """The gradient of theta from that of M."""
        design = self.design
        joint_pull = (design.stands @ pull).astype(np.float32)
        gradient = np.zeros(joint.shape)
        for place, (first, last, look, looked) in enumerate(design.chunks):
            z = kept[place] if kept else self._expected(first, last, look, joint)
            g = look @ joint_pull
            g -= (np.einsum("qs,qs->q", z, g) / np.maximum(design.rows[first:last], 1))[:, None]
            g *= z
            gradient += looked @ g
        return design.stood @ gradient

    def _expected(self, first: int, last: int, look: Any, joint: Single) -> Single:
        z = shares(look, joint, self.base)
        z *= self.design.rows[first:last, None]
        return z

    def jacobian(self, s: int, expected: Floats) -> Floats:
        """How the entries of measured tables at one value move with theta, M(g and k) (1 - M(g) / n_g), where the
        columns of two levels are taken to be independent given the value."""
        size, share = self.size, self.share[self.seen]
        pi = np.exp(self.base[s])
        ratio = expected[:, s] / np.maximum(size * pi, 1e-9)
        jac = share * (pi * ratio[self.seen, None] * ratio[None, :])
        inside, around = share >= size[self.seen][:, None] - 0.5, share >= size[None, :] - 0.5
        jac = np.where(inside, expected[self.seen, s][:, None], np.where(around, expected[None, :, s], jac))
        return jac * (1 - np.minimum(expected[self.seen, s] / np.maximum(size[self.seen], 1), 0.9))[:, None]

    def curvature(self, expected: Floats, tau: Floats) -> Single:
        """m x K x K inverses of the Gauss-Newton curvature, J' W J + 1 / tau^2; m x K where these are too many."""
        precision = np.repeat(1 / tau**2, np.diff(self.design.offsets))
        whole = self.m * self.K**2 <= CURVED
        inverse = np.empty((self.m, self.K, self.K) if whole else (self.m, self.K), dtype=np.float32)
        for s in range(self.m):
            jac = self.jacobian(s, expected) * np.sqrt(self.now[:, s : s + 1])
            if whole:
                h = jac.T @ jac
                h[np.diag_indices(self.K)] += precision
                inverse[s] = np.linalg.inv(h)
            else:
                inverse[s] = 1 / (np.einsum("gk,gk->k", jac, jac) + precision)
        return inverse

    def fit(self) -> Fitted:
        """The model. Values too rare for any table to tell of share their parameters: no table is summed for them."""
        counts = np.exp(self.base) * self.design.rows.sum()
        rare = counts < RARE / math.sqrt(self.weight.max())
        if rare.sum() < 2:
            return self._fit()
        column = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1)
        together = np.zeros((self.m, int(column.max()) + 1))
        together[np.arange(self.m), column] = 1
        pooled = copy.copy(self)
        pooled.m = together.shape[1]
        pooled.noisy, pooled.variance = self.noisy @ together, self.variance @ together
        pooled.base = np.log(np.exp(self.base) @ together)
        fitted = pooled._fit()
        return dataclasses.replace(fitted, base=self.base, theta=fitted.theta[:, column])

    def _fit(self) -> Fitted:
        """The descent: weights that forgive a share of each entry at first, and then less and less, since a fit by
        least squares whose entries span five orders of size goes nowhere from far away."""
        off = self.design.offsets
        tau = np.full(len(self.design.levels), START)
        theta = np.zeros((self.K, self.m))
        expected = self.sums(theta)[0]
        inverse: Single = np.zeros(0, dtype=np.float32)
        for turn, (forgiven, steps) in enumerate(STAGES):
            self.now = 1 / (self.variance + (forgiven * expected[self.seen]) ** 2)
            if turn:
                squares = np.add.reduceat((theta**2).sum(axis=1), off[:-1])
                tau = np.clip(np.sqrt(squares / np.maximum(self._known(inverse, tau), 1e-3)), LEAST, MOST)
            inverse = self.curvature(expected, tau)
            theta, expected = self._descend(theta, np.repeat(1 / tau**2, np.diff(off))[:, None], inverse, steps)
        theta = np.round(theta / ROUNDED) * ROUNDED
        return Fitted(self.base, theta, tau, self._known(inverse, tau), self.evaluations)

    def _known(self, inverse: Any, tau: Floats) -> Floats:
        off = self.design.offsets
        left = np.einsum("skk->k", inverse) if inverse.ndim == 3 else inverse.sum(axis=0)
        remaining = left / np.repeat(tau**2, np.diff(off))
        return np.add.reduceat(self.m - remaining, off[:-1])

    def _descend(self, theta: Floats, precision: Floats, inverse: Any, steps: int) -> tuple[Floats, Floats]:
        """A few steps of L-BFGS, scaled by the curvature, each shortened until it descends."""

        def value_of(theta: Floats) -> tuple[float, Floats, Floats, tuple[Single, list[Single]]]:
            expected, joint, kept = self.sums(theta)
            pull: Floats = np.zeros((self.K, self.m))
            miss = expected[self.seen] - self.noisy
            pull[self.seen] = self.now * miss
            value = 0.5 * float((pull[self.seen] * miss).sum() + (precision * theta * theta).sum())
            return value, expected, pull, (joint, kept)

        value, expected, pull, way = value_of(theta)
        gradient = self.back(pull, *way) + precision * theta
        pairs: list[tuple[Floats, Floats, float]] = []
        for step in range(steps):
            d, along = gradient.copy(), []
            for s, y, rho in reversed(pairs):
                along.append(rho * float((s * d).sum()))
                d -= along[-1] * y
            d = _scaled(d, inverse)
            for (s, y, rho), a in zip(pairs, reversed(along), strict=True):
                d += s * (a - rho * float((y * d).sum()))
            slope, length = float((d * gradient).sum()), 1.0
            for _ in range(TRIES):
                after = theta - length * d
                new, expected_then, pull, way = value_of(after)
                if new <= value - 1e-4 * length * slope:
                    break
                length = max(0.5 * slope * length**2 / max(new - value + slope * length, 1e-300), 0.1 * length)
            else:
                break
            done = value - new < ENOUGH * value or step == steps - 1
            theta, value, expected, s = after, new, expected_then, after - theta
            if done:
                break
            new_gradient = self.back(pull, *way) + precision * theta
            y = new_gradient - gradient
            product, gradient = float((s * y).sum()), new_gradient
            if product > 0:
                pairs.append((s, y, 1 / product))
        return theta, expected


def _scaled(direction: Floats, inverse: Single) -> Floats:
    """A gradient times the inverse curvature of each value."""
    if inverse.ndim == 2:
        return direction * inverse.T
    return np.matmul(inverse, direction.T[:, :, None].astype(np.float32))[:, :, 0].T.astype(np.float64)


def shares(look: Any, joint: Single, base: Floats) -> Single:
    """Pr[s | q] of some combinations."""
    z: Single = look @ joint
    z += base.astype(np.float32)
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def _first_shares(noisy: Sequence[Ints], variances: Sequence[float]) -> Floats:
    """The values' shares from all tables, each of which sums to the histogram; none below a third of its noise."""
    weights = [1 / (len(table) * variance) for table, variance in zip(noisy, variances, strict=True)]
    counts = sum(weight * table.sum(axis=0) for weight, table in zip(weights, noisy, strict=True)) / sum(weights)
    counts = np.maximum(counts, 0.3 / np.sqrt(sum(weights)))
    return counts / counts.sum()
