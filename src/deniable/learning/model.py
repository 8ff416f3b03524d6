"""Learning: a log-linear model of Pr[value | public columns] from noisy tables (mathematics 14.2).

    Pr[s | q] = e^(o_s + sum_c theta_c[g_c(q), s]) / Z_q,    M[g, s] = sum of n_q Pr[s | q] over q in g

theta minimises  sum_g,s (M[g, s] - Y[g, s])^2 / (2 V_g)  +  sum_c |theta_c|^2 / (2 tau_c^2):  noisy tables Y with
variances V_g, a variance tau_c^2 for every block of parameters, found by empirical Bayes. A block is a measured table,
or bands of an ordered one: sums of coarse and fine parameters are a smooth prior, and cost no budget. The curvature at
each value, K x K numbers from how many rows levels share, scales the steps, gives tau, and is the posterior covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.core.arrays import Floats, Ints

Single = npt.NDArray[np.float32]
CHUNK = 4096  # combinations at a time: float32 sums stay short, and a chunk stays near the processor
KEPT = 200_000_000  # probabilities kept from one pass to the next, 4 bytes each; more are computed twice
CURVED = 60_000_000  # numbers of curvature kept; a larger model is scaled cell by cell
ROUNDED = 2.0**-16  # theta is published in multiples of it
START, LEAST, MOST = 0.4, 0.01, 3.0  # tau


@dataclass(frozen=True)
class Levels:
    """A function g of the public columns: the level of each public combination.

    Attributes:
        name: for people.
        codes: the level of every combination.
        size: how many levels there are.
    """

    name: str
    codes: Ints
    size: int


class Design:
    """Sums over levels for many values at once: levels are packed into a few columns of joint levels, so that each
    combination is looked up a few times however many tables there are."""

    def __init__(self, rows: Ints, levels: Sequence[Levels]) -> None:
        self.rows = rows.astype(np.float32)
        self.levels = list(levels)
        self.offsets = np.cumsum([0, *(one.size for one in levels)])
        limit = max(len(rows) // 16, 256)
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
        self.chunks = []
        for first in range(0, n, CHUNK):
            part = columns[first : first + CHUNK]
            ones = np.ones(part.size, np.float32)
            look = sparse.csr_matrix((ones, part.ravel(), np.arange(0, part.size + 1, width)), (len(part), starts[-1]))
            self.chunks.append((first, first + len(part), look, look.T.tocsr()))
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

    def overlap(self) -> Floats:
        """How many rows two levels share, for all pairs of levels."""
        codes = np.stack([one.codes + start for one, start in zip(self.levels, self.offsets, strict=False)], axis=1)
        n, width = codes.shape
        look = sparse.csr_matrix((np.ones(n * width), codes.ravel(), np.arange(0, n * width + 1, width)), (n, self.offsets[-1]))
        return (look.T @ sparse.diags_array(self.rows.astype(np.float64)) @ look).toarray()


@dataclass(frozen=True)
class Fitted:
    """A learned model.

    Attributes:
        base: o_s, the logarithm of each value's share.
        theta: K x m parameters, rounded as they are published.
        tau: of each block.
        covariance: m x K x K posterior covariances of theta, one for each value; None where the model is too large.
        evaluations: how often the tables were summed.
    """

    base: Floats
    theta: Floats
    tau: Floats
    covariance: Any
    evaluations: int


class Learner:
    def __init__(self, rows: Ints, blocks: Sequence[Levels], measured: Sequence[int], noisy: Floats, variance: Floats, base: Floats) -> None:
        """``measured`` are the places of the measured tables among ``blocks``; ``noisy`` their entries one below the
        other; ``variance`` of each level."""
        self.design = Design(rows, blocks)
        off = self.design.offsets
        self.seen = np.concatenate([np.arange(off[i], off[i + 1]) for i in measured])
        self.noisy, self.weight, self.base = noisy, 1 / variance, base
        self.K, self.m = int(off[-1]), noisy.shape[1]
        self.evaluations = 0
        self.now = np.repeat(self.weight[:, None], self.m, axis=1)
        self.share = self.design.overlap()
        self.size = np.diag(self.share).copy()

    def sums(self, theta: Floats, back: bool = False, tau: Floats | None = None) -> Any:
        design, m = self.design, self.m
        self.evaluations += 1
        joint = (design.stands @ theta).astype(np.float32)
        base = self.base.astype(np.float32)
        total = np.zeros(joint.shape)
        kept: list[Single] = []
        keep = len(design.rows) * m <= KEPT
        for first, last, look, looked in design.chunks:
            z = self._shares(look, joint, base)
            z *= design.rows[first:last, None]
            total += looked @ z
            if keep:
                kept.append(z)
        expected = design.stood @ total
        if not back:
            return expected
        miss = expected[self.seen] - self.noisy
        pull = np.zeros((self.K, m))
        pull[self.seen] = self.now * miss
        value = 0.5 * float((pull[self.seen] * miss).sum())
        joint_pull = (design.stands @ pull).astype(np.float32)
        gradient = np.zeros(joint.shape)
        for place, (first, last, look, looked) in enumerate(design.chunks):
            if keep:
                z = kept[place]
            else:
                z = self._shares(look, joint, base)
                z *= design.rows[first:last, None]
            g = look @ joint_pull
            middle = np.einsum("qs,qs->q", z, g) / np.maximum(design.rows[first:last], 1)
            g -= middle[:, None]
            g *= z
            gradient += looked @ g
        return value, design.stood @ gradient, expected

    @staticmethod
    def _shares(look: Any, joint: Single, base: Single) -> Single:
        z: Single = look @ joint
        z += base
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
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

    def curvature(self, expected: Floats, tau: Floats) -> Any:
        """m x K x K inverses of the Gauss-Newton curvature, J' W J + 1 / tau^2."""
        precision = np.repeat(1 / tau**2, np.diff(self.design.offsets))
        inverse = np.empty((self.m, self.K, self.K), dtype=np.float32)
        for s in range(self.m):
            jac = self.jacobian(s, expected) * np.sqrt(self.now[:, s : s + 1])
            h = jac.T @ jac
            h[np.diag_indices(self.K)] += precision
            inverse[s] = np.linalg.inv(h)
        return inverse

    def fit(self, outer: int = 5, inner: int = 6, loose: Sequence[float] = (0.3, 0.1, 0.03, 0.01), theta: Floats | None = None, tau: Floats | None = None, verbose: bool = False) -> Fitted:
        off, blocks = self.design.offsets, self.design.levels
        tau = np.full(len(blocks), START) if tau is None else tau
        theta = np.zeros((self.K, self.m)) if theta is None else theta
        expected = self.sums(theta)
        for turn in range(outer):
            floor = loose[turn] if turn < len(loose) else 0.0
            self.now = 1 / (1 / self.weight[:, None] + (floor * expected[self.seen]) ** 2)
            inverse = self.curvature(expected, tau)
            lam = np.repeat(1 / tau**2, np.diff(off))[:, None]

            def f(t: Floats) -> Any:
                value, gradient, expected = self.sums(t, back=True)
                return value + 0.5 * float((lam * t * t).sum()), gradient + lam * t, expected

            def scaled(g: Floats) -> Floats:
                return np.matmul(inverse, g.T[:, :, None].astype(np.float32))[:, :, 0].T.astype(np.float64)

            theta, expected, story = minimised(f, theta, scaled, inner)
            if verbose:
                print("  ", turn, self.evaluations, [f"{x:.6g}" for x in story], {b.name: round(float(x), 3) for b, x in zip(blocks, tau, strict=True)}, flush=True)
            if turn < outer - 1:
                diagonal = np.einsum("skk->ks", inverse)
                for i in range(len(blocks)):
                    at = slice(off[i], off[i + 1])
                    known = max(float((1 - diagonal[at] / tau[i] ** 2).sum()), 1e-3)
                    tau[i] = np.clip(np.sqrt((theta[at] ** 2).sum() / known), LEAST, MOST)
        theta = np.round(theta / ROUNDED) * ROUNDED
        return Fitted(self.base, theta, tau, inverse, self.evaluations)


def minimised(f: Any, x: Floats, scaled: Any, steps: int, memory: int = 8) -> Any:
    """L-BFGS around a given scaling, a fixed number of steps, halved where one does not descend."""
    value, gradient, expected = f(x)
    story, pairs = [value], []
    for _ in range(steps):
        d = gradient.copy()
        alphas = []
        for s, y, rho in reversed(pairs):
            a = rho * float((s * d).sum())
            alphas.append(a)
            d -= a * y
        d = scaled(d)
        for (s, y, rho), a in zip(pairs, reversed(alphas), strict=True):
            d += s * (a - rho * float((y * d).sum()))
        slope = float((d * gradient).sum())
        step = 1.0
        for _ in range(6):
            after = x - step * d
            new, new_gradient, new_expected = f(after)
            if new <= value - 1e-4 * step * slope:
                break
            step /= 2.5
        else:
            break
        s, y = after - x, new_gradient - gradient
        product = float((s * y).sum())
        if product > 0:
            pairs = [*pairs[-memory + 1 :], (s, y, 1 / product)]
        x, value, gradient, expected = after, new, new_gradient, new_expected
        story.append(value)
    return x, expected, story
