"""Learning: a log-linear model of Pr[value | public columns] from noisy tables (mathematics 14.2).

    Pr[s | q] = e^(o_s + sum_c theta_c[g_c(q), s]) / Z_q,    M[g, s] = sum of n_q Pr[s | q] over q in g

theta minimises  F = sum_g,s (M[g, s] - Y[g, s])^2 / (2 V_g)  +  sum_c |theta_c|^2 / (2 tau_c^2):  noisy tables Y with
variances V_g, a variance tau_c^2 for every block of parameters, found by empirical Bayes. A block is a measured table,
or bands of an ordered one: sums of coarse and fine parameters are a smooth prior, and cost no budget. The curvature at
each value, K x K numbers from how many rows levels share, scales the steps, gives tau, and is the posterior covariance.

F has valleys that lead nowhere, and entries of five orders of size. So the descent starts where a convex problem ends,
M - Y + V theta = 0 (of all models whose tables are about Y, the one nearest to independence), which is solved for more
noise than there is first, and then for less and less of it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import threadpool_limits

from deniable.core.errors import OptionError
from deniable.core.values import Floats, Ints
from deniable.learned.measuring import Levels

Single = npt.NDArray[np.float32]
CHUNK = 4096  # combinations at a time: float32 sums stay short, and a chunk stays near the processor
JOINT = 4096  # joint levels of a pack, at most
CURVED = 100_000_000  # numbers of curvature kept, 4 bytes each; of a larger model its diagonal
KEPT = 200_000_000  # probabilities kept from one pass to the next, 4 bytes each; more are computed twice
ROUNDED = 2.0**-16  # theta is published in multiples of it
START, LEAST, MOST = 1.0, 0.01, 3.0  # tau
NEARER, NEAREST, STEADY = 3, 8, 0.05  # Newton steps under more noise than there is, and under as much; rest, by value
TURNS, POLISH = 10, 20  # Gauss-Newton steps while tau is found, and after that
COARSE, FINELY, EXACT = 15, 30, 0.1  # conjugate gradients of each; the share of a gradient that is left
REST, RESTLESS, LITTLE = 1 / 400, 1 / 200, 50  # of F and a little: what it may still fall by at rest, or at all
TRIES = 6
CLEAR = 10.0  # square of an entry by its variance
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
    """

    base: Floats
    theta: Floats
    tau: Floats


class Point(NamedTuple):
    """Parameters, the tables that they make, and what the way back needs."""

    theta: Floats
    expected: Floats
    joint: Single
    kept: list[Single]


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
        self.share = self.design.overlap()
        self.size = np.diag(self.share).copy()

    def at(self, theta: Floats, *, keep: bool = True) -> Point:
        """The tables that some parameters make."""
        design, m = self.design, self.m
        joint = (design.stands @ theta).astype(np.float32)
        total = np.zeros(joint.shape)
        kept: list[Single] = []
        keep = keep and len(design.rows) * m <= KEPT
        for first, last, look, looked in design.chunks:
            z = self._expected(first, last, look, joint)
            total += looked @ z
            if keep:
                kept.append(z)
        return Point(theta, design.stood @ total, joint, kept)

    def moved(self, at: Point, by: Floats) -> Floats:
        """How expected entries move with theta, of as many levels as ``by`` is given for; since that is symmetric, also
        theta's gradient from that of entries."""
        design, stands = self.design, self.design.stands[:, : len(by)]
        joint_by = (stands @ by).astype(np.float32)
        total = np.zeros(at.joint.shape)
        for place, (first, last, look, looked) in enumerate(design.chunks):
            z = at.kept[place] if at.kept else self._expected(first, last, look, at.joint)
            g = look @ joint_by
            g -= (np.einsum("qs,qs->q", z, g) / np.maximum(design.rows[first:last], 1))[:, None]
            g *= z
            total += looked @ g
        return design.stood @ total

    def _expected(self, first: int, last: int, look: Any, joint: Single) -> Single:
        z = shares(look, joint, self.base)
        z *= self.design.rows[first:last, None]
        return z

    def curvature(self, at: Point, tau: Floats) -> Single:
        """m x K x K inverses of the Gauss-Newton curvature at each value, J' W J + 1 / tau^2; where these are too many,
        m x K of its diagonal, about. J says how entries at a value move with theta at that value, M(g and k) less
        squares: summed over combinations where an entry stands out of its noise, and ``_apart`` where none does."""
        design, seen, rows = self.design, self.seen, np.maximum(self.design.rows, 1)
        precision = np.repeat(1 / tau**2, np.diff(design.offsets))
        whole = self.m * self.K**2 <= CURVED and bool(at.kept)
        inverse = np.empty((self.m, self.K, self.K) if whole else (self.m, self.K), dtype=np.float32)
        looked, z = design.look.T.tocsr(), np.concatenate(at.kept).T if whole else None
        stands_out = (at.expected[seen] ** 2 / self.variance).max(axis=0) > CLEAR
        for s in range(self.m):
            if z is not None and stands_out[s]:
                moved = looked @ sparse.diags_array(z[s] * (1 - z[s] / rows)) @ design.look
                jac = (design.stood[seen] @ moved @ design.stands).toarray()
            else:
                jac = self._apart(s, at.expected)
            jac /= np.sqrt(self.variance[:, s : s + 1])
            if whole:
                h = jac.T @ jac
                h[np.diag_indices(self.K)] += precision
                inverse[s] = np.linalg.inv(h)
            else:
                inverse[s] = 1 / (np.einsum("gk,gk->k", jac, jac) + precision)
        return inverse

    def _apart(self, s: int, expected: Floats) -> Floats:
        """J of one value, about: M(g and k) (1 - M(g) / n_g), the columns of two levels taken to be independent."""
        size, share = self.size, self.share[self.seen]
        pi = np.exp(self.base[s])
        ratio = expected[:, s] / np.maximum(size * pi, 1e-9)
        jac = share * (pi * ratio[self.seen, None] * ratio[None, :])
        inside, around = share >= size[self.seen][:, None] - 0.5, share >= size[None, :] - 0.5
        jac = np.where(inside, expected[self.seen, s][:, None], np.where(around, expected[None, :, s], jac))
        return jac * (1 - np.minimum(expected[self.seen, s] / np.maximum(size[self.seen], 1), 0.9))[:, None]

    def fit(self) -> Fitted:
        """The model. Values too rare for any table to tell of share their parameters: no table is summed for them. One
        thread does it all: several add up in another order, and the same key is to give the same release."""
        counts = np.exp(self.base) * self.design.rows.sum()
        rare = counts < RARE / math.sqrt(self.weight.max())
        learner, column = self, np.arange(self.m)
        if rare.sum() > 1:
            learner = copy.copy(self)
            column = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1)
            together = np.zeros((self.m, int(column.max()) + 1))
            together[np.arange(self.m), column] = 1
            learner.m = together.shape[1]
            learner.noisy, learner.variance = self.noisy @ together, self.variance @ together
            learner.base = np.log(np.exp(self.base) @ together)
        with threadpool_limits(1, user_api="blas"):
            fitted = learner._fit()
        return dataclasses.replace(fitted, base=self.base, theta=fitted.theta[:, column])

    def _fit(self) -> Fitted:
        """The descent, by Gauss and Newton. After each of the first steps tau is found anew, from how many of a block's
        parameters the tables tell about: the sum of 1 - posterior / prior variance."""
        off = self.design.offsets
        tau = np.full(len(self.design.levels), START)
        at = self._convex()
        for _ in range(TURNS):
            inverse = self.curvature(at, tau)
            at, _ = self._step(at, tau, inverse, COARSE)
            left = np.einsum("skk->k", inverse) if inverse.ndim == 3 else inverse.sum(axis=0)
            known = np.add.reduceat(self.m - left / np.repeat(tau**2, np.diff(off)), off[:-1])
            squares = np.add.reduceat((at.theta**2).sum(axis=1), off[:-1])
            tau = np.clip(np.sqrt(squares / np.maximum(known, 1e-3)), LEAST, MOST)
        for _ in range(POLISH):
            before, inverse = at, self.curvature(at, tau)
            at, fall = self._step(at, tau, inverse, FINELY)
            if fall <= REST or at is before:
                break
        if fall > RESTLESS:
            raise OptionError(
                f"The model of these noisy tables does not come to rest: it could still be {fall:.0%} nearer to them. "
                "Fix: a smaller epsilon, or fewer public columns (drop=.., or tables=.. of some of them)."
            )
        theta = np.round(at.theta / ROUNDED) * ROUNDED
        return Fitted(self.base, theta, tau)

    def _convex(self) -> Point:
        """theta of measured tables with M - Y + V theta = 0, the lowest point of a convex function, by Newton's method:
        for V times a power of ten first under which theta is small, and from there for smaller ones."""
        at = self.at(np.zeros((self.K, self.m)))
        most = max((self.size[self.seen, None] * np.exp(self.base) / self.variance).max(), 1)
        for power in range(math.ceil(math.log10(most)), -1, -1):
            for _ in range(NEARER if power else NEAREST):
                at, slope = self._newton(at, 10.0**power * self.variance)
                if slope <= STEADY * self.m:
                    break
        return at

    def _newton(self, at: Point, slack: Floats) -> tuple[Point, float]:
        """One step to where M - Y + slack theta = 0, and its slope. Scaled by the curvature at each value, about: what
        two levels share, by the root of p_g (1 - p_g) p_k (1 - p_k)."""
        seen, k, size = self.seen, len(self.seen), self.size[self.seen, None]
        share = np.clip(at.expected[seen] / np.maximum(size, 1), 0, 1)
        spread = share * np.maximum(1 - share, 0.05)
        if self.m * k**2 > CURVED:
            inverse: Single = (1 / (size * spread + slack + 1e-6)).T.astype(np.float32)
        else:
            inverse = np.empty((self.m, k, k), dtype=np.float32)
            for s, root in enumerate(np.sqrt(spread).T):
                h = self.share[:k, :k] * np.outer(root, root)
                h[np.diag_indices(k)] += slack[:, s] + 1e-6
                inverse[s] = np.linalg.inv(h)
        rest = at.expected[seen] - self.noisy + slack * at.theta[seen]
        toward = _solved(lambda by: self.moved(at, by)[seen] + slack * by, rest, inverse, FINELY)
        slope, length = float((toward * rest).sum()), 1.0
        for _ in range(TRIES):
            theta = at.theta.copy()
            theta[seen] -= length * toward
            after = self.at(theta)
            then = float((toward * (after.expected[seen] - self.noisy + slack * theta[seen])).sum())
            if then >= -0.9 * slope:  # not far beyond the lowest point on the way
                break
            length *= max(slope / (slope - then), 0.1)
        return after, slope

    def _step(self, at: Point, tau: Floats, inverse: Single, most: int) -> tuple[Point, float]:
        """One step of Gauss and Newton, shortened until it descends, and by which part of itself F was to fall."""
        seen, precision = self.seen, np.repeat(1 / tau**2, np.diff(self.design.offsets))[:, None]

        def value_of(point: Point) -> float:
            misses = (point.expected[seen] - self.noisy) ** 2 / self.variance
            return 0.5 * float(misses.sum() + (precision * point.theta**2).sum())

        value = value_of(at)
        gradient = self.moved(at, (at.expected[seen] - self.noisy) / self.variance) + precision * at.theta
        variance = self.variance
        toward = _solved(
            lambda by: self.moved(at, self.moved(at, by)[seen] / variance) + precision * by, gradient, inverse, most
        )
        slope, length = float((toward * gradient).sum()), 1.0
        for _ in range(TRIES):
            after = self.at(at.theta - length * toward)
            lower = value_of(after)
            if lower <= value - 1e-4 * length * slope:
                return after, slope / 2 / (value + LITTLE)
            length = max(0.5 * slope * length**2 / max(lower - value + slope * length, 1e-300), 0.1 * length)
        return at, slope / 2 / (value + LITTLE)


def _solved(curved: Callable[[Floats], Floats], gradient: Floats, inverse: Single, most: int) -> Floats:
    """A curvature's inverse times a gradient, by conjugate gradients until a tenth of the gradient is left."""
    result, rest = np.zeros_like(gradient), gradient
    along = _scaled(rest, inverse)
    first = product = float((rest * along).sum())
    for _ in range(most):
        if product <= EXACT**2 * first:
            break
        bent = curved(along)
        length = product / float((along * bent).sum())
        result, rest = result + length * along, rest - length * bent
        scaled = _scaled(rest, inverse)
        before, product = product, float((rest * scaled).sum())
        along = scaled + product / before * along
    return result


def _scaled(direction: Floats, inverse: Single) -> Floats:
    """A gradient times the inverse curvature of each value, less what a level's parameters have in common: that moves
    nothing, and is 0 where F is least."""
    if inverse.ndim == 2:
        scaled: Floats = direction * inverse.T
    else:
        scaled = np.matmul(inverse, direction.T[:, :, None].astype(np.float32))[:, :, 0].T.astype(np.float64)
    return scaled - scaled.mean(axis=1, keepdims=True)


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
