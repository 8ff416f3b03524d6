"""Uncertainty: how far counts of published rows may be off the table's (mathematics 14.4).

The rows of a group G with value s, in the table, and the noisy entries Y are jointly

    N_G = sum of e_k theta_k + chance_G + misfit_G        e_k = expected rows of G at level k
    Y_g = the same over the rows of g, plus noise of variance V_g

with theta ~ N(0, tau^2); chance: a table that follows the model still deviates, by sum v v' p over shared rows; misfit:
an effect of every pair of columns (a, b) on a cell that no measured table shows, relative variance c tau_a^2 tau_b^2.
So the covariance of N_G and N_G' given Y is their own less  cov' S^-1 cov,  S the covariance of Y: noise, shrinkage,
chance that the measured tables do not fix, and misfit, in one formula. Values are independent so far; that all of them
together are the group's rows, which are public, is applied by whoever asks (``estimation.model.learned``).

Rows are dealt so that the measured tables are the model's, and otherwise deviate like chance: by the share 1 - R^2 of
it, R^2 that of the group's rows which their levels explain.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from deniable.core.values import Floats
from deniable.learned.model import Fitted, Learner

PAIRED = 10  # columns whose pairs are taken to have an effect of their own: those with the largest tau
INTERACTION = 0.5  # c: a stated prior, what pairs add relative to the product of what their columns do
ANY_SHARE = 1.0  # standard deviation of the logarithm of a value's share, about which no table need tell anything
KEPT = 50_000_000  # numbers that are kept of values that were asked about, 8 bytes each


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows, some for each group [groups, sums]: of ones, or of numbers.

    Attributes:
        of: what each public combination adds [groups x sums, combinations].
        groups: how many groups.
        cells: the squares and products of what cells of pairs add [groups, sums, sums].
        shared: what cells of pairs share with measured levels [groups, sums, levels].
        at: what the rows of each level add [groups, sums, levels].
    """

    of: sparse.csr_array
    groups: int
    cells: Floats
    shared: Floats
    at: Floats


class Uncertainty:
    """Covariances of errors, one value after the other.

    Args:
        learner, fitted: the model, and the noisy tables that it was learned from.
        interaction: what pairs add.
    """

    def __init__(self, learner: Learner, fitted: Fitted, interaction: float = INTERACTION) -> None:
        self.learner, self.fitted = learner, fitted
        design = learner.design
        rows = design.rows.astype(np.float64)
        _, self.expected, self.joint, _ = learner.at(fitted.theta, keep=False)
        self.normal = self._logarithms()
        effects, n = [], np.arange(len(rows))
        together = [set(table.columns) for table in learner.tables]
        self.pairs: list[tuple[int, int, float]] = []  # of levels, and the effect of their cells
        for (i, effect), (j, its) in itertools.combinations(self._columns(), 2):
            one, two = design.levels[i], design.levels[j]
            if any({*one.columns, *two.columns} <= columns for columns in together):
                continue
            kinds, codes = np.unique(one.codes * two.size + two.codes, return_inverse=True)
            both = effect * its * math.sqrt(interaction)
            self.pairs.append((i, j, both))
            effects.append(sparse.csr_array((np.full(len(rows), both), (codes.ravel(), n)), (len(kinds), len(rows))))
        # cells of pairs x combinations
        self.cells = sparse.vstack(effects).tocsr() if effects else sparse.csr_array((0, len(rows)))
        count, width = len(rows), len(design.levels)
        codes = np.stack([one.codes + start for one, start in zip(design.levels, design.offsets, strict=False)], axis=1)
        codes = np.concatenate([codes, np.full((count, 1), learner.K)], axis=1)  # the last level: all rows
        starts = np.arange(0, count * (width + 1) + 1, width + 1)
        shape = (count, learner.K + 1)
        self.member = sparse.csr_array((np.ones(codes.size), codes.ravel(), starts), shape)
        weighed = sparse.diags_array(rows) @ self.member
        self.of_levels = (self.cells @ weighed).tocsc()[:, learner.seen]  # cells x measured levels: rows shared
        self.in_cells = self.cells.T.tocsr()
        self.together = (self.of_levels.T @ self.of_levels).toarray()
        self.size = np.append(learner.size, rows.sum())
        self.prior = np.append(np.repeat(fitted.tau**2, np.diff(design.offsets)), ANY_SHARE**2)
        self.explains = np.linalg.pinv(learner.share[np.ix_(learner.seen, learner.seen)], hermitian=True)
        self._solved: dict[int, tuple[Floats, Floats]] = {}

    def _columns(self) -> list[tuple[int, float]]:
        """Where the finest levels of each column stand, and the standard deviation of its effect: the largest ones."""
        of: dict[tuple[int, ...], list[int]] = {}
        for place, levels in enumerate(self.learner.design.levels):
            of.setdefault(levels.columns, []).append(place)
        known = [
            (
                max(places, key=lambda place: self.learner.design.levels[place].size),
                math.hypot(*self.fitted.tau[places]),
            )
            for columns, places in of.items()
            if len(columns) == 1
        ]
        return sorted(known, key=lambda part: -part[1])[:PAIRED]

    def _logarithms(self) -> Floats:
        """log Z of every public combination."""
        design, base = self.learner.design, self.learner.base.astype(np.float32)
        normal = np.empty(len(design.rows))
        for first, last, look, _ in design.chunks:
            z = look @ self.joint
            z += base
            most = z.max(axis=1)
            normal[first:last] = most + np.log(np.exp(z - most[:, None]).sum(axis=1))
        return normal

    def shares_of(self, s: int) -> Floats:
        """Pr[s | q] of every public combination."""
        look = self.learner.design.look @ self.joint[:, s]
        return np.exp(look + self.learner.base[s] - self.normal).astype(np.float64)

    def sums(self, of: sparse.csr_array, groups: int) -> Sums:
        """What is needed of some sums, whatever value is asked about.

        Args:
            of: what each public combination adds to each sum of each group [groups x sums, combinations].
            groups: how many groups.
        """
        in_cells = of @ self.in_cells
        shared = (in_cells @ self.of_levels).toarray()
        at = (of @ self.member).toarray()
        number = of.shape[0] // max(groups, 1)
        cells = np.zeros((groups, number, number))
        for one, other in itertools.combinations_with_replacement(range(number), 2):
            product = in_cells[one::number].multiply(in_cells[other::number]).sum(axis=1)
            cells[:, one, other] = cells[:, other, one] = np.asarray(product).ravel()
        return Sums(of, groups, cells, shared.reshape(groups, number, -1), at.reshape(groups, number, -1))

    def dealt(self, sums: Sums, squares: Floats) -> Floats:
        """The share of chance that dealt rows have on their own [groups, sums].

        Args:
            sums: over some groups of rows.
            squares: what their squares add up to [groups, sums].
        """
        at = sums.at[:, :, self.learner.seen]
        explained = np.einsum("gtk,kl,gtl->gt", at, self.explains, at, optimize=True)
        left: Floats = 1 - np.divide(explained, squares, out=np.ones_like(squares), where=squares > 0)
        return np.clip(left, 0.0, 1.0)

    def of_value(self, s: int, sums: Sums) -> tuple[Floats, Floats]:
        """Expected sums of rows with a value [groups, sums], and the covariances of what the model may be off by
        [groups, sums, sums], without the chance of the table's own rows, but less what the noisy tables tell of it."""
        number = sums.of.shape[0] // max(sums.groups, 1)
        weighed = sums.of.multiply(self.shares_of(s)[None, :]).tocsr()
        e = (weighed @ self.member).toarray().reshape(sums.groups, number, -1)
        inverse, both = self._of_value(s)
        seen = self.learner.seen
        share = self.expected[seen, s] / np.maximum(self.size[seen], 1)
        total, rows = e[:, :, -1], sums.at[:, :, -1]
        mean = np.divide(total, rows, out=np.zeros_like(total), where=np.abs(rows) > 0)
        flat = e.reshape(-1, e.shape[-1])  # one product for all groups
        cov = (flat @ both.T).reshape(*e.shape[:2], -1) + e[:, :, seen] + share * mean[:, :, None] * sums.shared
        known = (cov.reshape(-1, len(inverse)) @ inverse).reshape(cov.shape) @ cov.transpose(0, 2, 1)
        own = (e * self.prior) @ e.transpose(0, 2, 1) + mean[:, :, None] * mean[:, None, :] * sums.cells
        return total, own - known

    def _of_value(self, s: int) -> tuple[Floats, Floats]:
        """The inverse of S, and J tau^2: what entries and parameters share."""
        if s not in self._solved:
            learner = self.learner
            weighed = sparse.diags_array(learner.design.rows * self.shares_of(s)) @ self.member
            jac = (self.member.T @ weighed).toarray()[learner.seen]  # how entries move with theta: M(g and k)
            share = self.expected[learner.seen, s] / np.maximum(self.size[learner.seen], 1)
            both = jac * self.prior
            covariance = both @ jac.T
            covariance += jac[:, learner.seen]  # of the tables' own chance
            covariance += share[:, None] * self.together * share[None, :]
            covariance[np.diag_indices(len(covariance))] += 1 / learner.weight
            covariance = (covariance + covariance.T) / 2
            solved = np.asarray(np.linalg.inv(covariance), np.float64), np.asarray(both, np.float64)
            if (len(self._solved) + 1) * both.size * 2 > KEPT:
                self._solved.clear()
            self._solved[s] = solved
        return self._solved[s]
