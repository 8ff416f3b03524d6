"""Uncertainty: the variance of a model's count in any group of rows (mathematics 14.4).

The count of value s in a group G of rows, and the noisy entries Y, are jointly

    N_G = sum of e_k theta_k + chance_G + misfit_G        e_k = expected rows of G at level k
    Y_g = the same over the rows of g, plus noise of variance V_g

with theta ~ N(0, tau^2); chance: a table that follows the model still deviates, by sum p(1-p) over shared rows; misfit:
an effect of every pair of columns (a, b) on a cell that no measured table shows, relative variance c tau_a^2 tau_b^2.
So the variance of N_G given Y is its own less  cov' S^-1 cov,  S the covariance of Y: noise, shrinkage, chance that the
measured tables do not fix, and misfit, in one formula.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import sparse

from deniable.core.values import Floats, Ints
from deniable.learned.model import Fitted, Learner

PAIRED = 10  # columns whose pairs are taken to have an effect of their own: those with the largest tau
INTERACTION = 0.5  # c: a stated prior, what pairs add relative to the product of what their columns do


class Uncertainty:
    def __init__(self, learner: Learner, fitted: Fitted, interaction: float = INTERACTION) -> None:
        self.learner, self.fitted = learner, fitted
        rows = learner.design.rows.astype(np.float64)
        self.expected = learner.sums(fitted.theta)[0]
        strong = sorted(np.argsort(-fitted.tau[: len(learner.tables)], kind="stable")[:PAIRED].tolist())
        look, n = [], np.arange(len(rows))
        for i, j in itertools.combinations(strong, 2):
            one, two = learner.tables[i], learner.tables[j]
            kinds, codes = np.unique(one.codes * two.size + two.codes, return_inverse=True)
            effect = fitted.tau[i] * fitted.tau[j] * math.sqrt(interaction)
            look.append(sparse.csr_array((rows * effect, (codes, n)), (len(kinds), len(rows))))
        # cells of pairs x combinations
        self.cells = sparse.vstack(look).tocsr() if look else sparse.csr_array((0, len(rows)))
        design = learner.design
        seen = learner.seen
        count, width = len(rows), len(design.levels)
        codes = np.stack([one.codes + start for one, start in zip(design.levels, design.offsets, strict=False)], axis=1)
        starts = np.arange(0, count * width + 1, width)
        self.member = sparse.csr_array((np.ones(count * width), codes.ravel(), starts), (count, learner.K))
        self.of_levels = (self.cells @ self.member).tocsc()[:, seen]  # cells x measured levels: rows shared
        self.together = (self.of_levels.T @ self.of_levels).toarray()
        self.prior = np.repeat(fitted.tau**2, np.diff(design.offsets))
        self._solved: dict[int, tuple[Floats, Floats]] = {}

    def _of_value(self, s: int) -> tuple[Floats, Floats]:
        """The inverse of S, and J tau^2: what entries and parameters share."""
        if s not in self._solved:
            learner = self.learner
            jac = learner.jacobian(s, self.expected)
            share = self.expected[learner.seen, s] / np.maximum(learner.size[learner.seen], 1)
            both = jac * self.prior
            covariance = both @ jac.T
            covariance += jac[:, learner.seen]  # of the tables' own chance
            covariance += share[:, None] * self.together * share[None, :]
            covariance[np.diag_indices(len(covariance))] += 1 / learner.weight
            covariance = (covariance + covariance.T) / 2
            self._solved[s] = (
                np.asarray(np.linalg.inv(covariance), dtype=np.float64),
                np.asarray(both, dtype=np.float64),
            )
        return self._solved[s]

    def of_group(self, group: Ints, shares: Floats) -> tuple[Floats, Floats]:
        """Expected counts and variances of every value in a group of combinations with shares Pr[s | q]."""
        learner = self.learner
        seen, size = learner.seen, learner.size
        rows = learner.design.rows[group].astype(np.float64)
        weighted = shares.astype(np.float64) * rows[:, None]
        total, n = weighted.sum(axis=0), max(float(rows.sum()), 1.0)
        shared_rows = self.member[group].T @ rows
        inside, around = shared_rows >= n - 0.5, shared_rows >= size - 0.5
        in_cells = np.asarray(self.cells[:, group].sum(axis=1)).ravel()
        shared_cells = self.of_levels.T @ in_cells
        own_cells = float((in_cells**2).sum())
        variance = np.empty(learner.m)
        for s in range(learner.m):
            inverse, both = self._of_value(s)
            expected = self.expected[:, s]
            apart = shared_rows * (total[s] / n) * expected / np.maximum(size * np.exp(learner.base[s]), 1e-9)
            e = np.where(inside, total[s], np.where(around, expected, apart))
            e *= 1 - min(total[s] / n, 0.9)
            share = expected[seen] / np.maximum(size[seen], 1)
            mean = total[s] / n
            cov = both @ e + e[seen] + share * mean * shared_cells
            own = float((self.prior * e * e).sum()) + total[s] * (1 - mean) + mean**2 * own_cells
            variance[s] = max(own - float(cov @ inverse @ cov), 0.1 * min(total[s], 1.0))
        return total, variance
