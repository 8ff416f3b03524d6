"""Sums over the sets of a design, and the inverse of J: all that estimating from line-ups takes (mathematics 12).

By arcs, sets are a sparse matrix of zeros and ones. J is factored once where there are at most ``DENSE`` values; above
that it is never formed: conjugate gradients solve for each value set, and squared weights of all single values at once,
which would take m solutions, are refused.

By blocks, sets are one block turned around a circle, so every sum is a correlation and J a circulant matrix: Fourier
transforms do everything, for any number of values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from deniable.core.designs import BlockDesign, codes
from deniable.core.errors import QuestionError
from deniable.core.lineups import LineUpDesign
from deniable.core.values import Floats, Ints

FEW, DENSE = 512, 4096
BLOCK = 2**22  # entries of weights that are computed at a time
TOLERANCE, LOOSE, STEPS = 1e-12, 1e-8, 2000  # gradients go on to the first, and what ends above the second is refused
SINGULAR = 1e-9  # of the smallest pivot or eigenvalue of J, divided by pi
FORMS = 4  # questions of which squared weights are added up pair by pair: m^3 a question, whatever the number of sets
THIN = 8  # counts of which less than one in so many is not 0 are kept as sparse ones

Scores = Callable[[Floats], Floats]  # of value sets [sets, m], the scores of values whose sums over a set are weights


class Algebra(Protocol):
    """The linear algebra of a design; rows are questions, and columns values or sets."""

    @property
    def invertible(self) -> bool:
        """Whether J can be inverted: no value is always in, and no two values always go together."""

    def added(self, scores: Floats) -> Floats:
        """Scores of values added up over each set's members, [questions, m] -> [questions, sets]."""

    def holding(self, counts: Floats) -> Floats:
        """Numbers of sets added up over the sets that hold a value, [questions, sets] -> [questions, m]."""

    def solved(self, right: Floats) -> Floats:
        """J^-1 of each row."""

    def squares(self, counts: Floats, scores: Scores) -> Floats:
        """For each value the sum over sets of their counts times its squared weight, [questions, sets] -> .. m]."""


def algebra_of(design: LineUpDesign) -> Algebra:
    """The algebra of either kind of design."""
    return ByBlocks(design) if isinstance(design, BlockDesign) else BySets(design)


@dataclass(frozen=True, eq=False)
class BySets:
    """Any design, by its sets."""

    design: LineUpDesign

    @cached_property
    def invertible(self) -> bool:
        if self.design.m > DENSE:
            return bool((self.design.inclusion < 1).all())
        return self._factor is not None

    def added(self, scores: Floats) -> Floats:
        return np.asarray((self._members @ scores.T).T)

    def holding(self, counts: Floats) -> Floats:
        thin = _thin(counts)
        return np.asarray((self._members.T @ counts.T).T) if thin is None else (thin @ self._members).toarray()

    def solved(self, right: Floats) -> Floats:
        scale = 1 / np.sqrt(self.design.inclusion)
        if self.design.m > DENSE:
            return np.stack([self._iterated(row * scale) for row in right]) * scale
        if self.design.m <= FEW:
            return right @ self._inverse.T
        assert self._factor is not None
        return linalg.cho_solve(self._factor, (right * scale).T).T * scale

    def squares(self, counts: Floats, scores: Scores) -> Floats:
        if self.design.m > DENSE:
            raise QuestionError(
                f"All {self.design.m:,} values at once are more than line-ups can be estimated for ({DENSE:,}). "
                "Fix: ask for the values that you mean, in a condition."
            )
        step = max(1, BLOCK // self.design.m)
        if counts.shape[1] <= step:
            if "squared" not in self._kept:
                self._kept["squared"] = np.asarray(self._members @ scores(np.eye(self.design.m)).T) ** 2
            thin = _thin(counts)
            return np.asarray((counts if thin is None else thin) @ self._kept["squared"])
        own = scores(np.eye(self.design.m))
        if len(counts) <= FORMS:
            return np.stack([self._form(own, row) for row in counts])
        total = np.zeros((len(counts), self.design.m))
        shown = np.flatnonzero(counts.any(axis=0))  # others add nothing
        for first in range(0, len(shown), step):
            some = shown[first : first + step]
            total += counts[:, some] @ np.asarray(self._members[some] @ own.T) ** 2
        return total

    def _form(self, own: Floats, counts: Floats) -> Floats:
        """The sums of squares as quadratic forms, s' K s with K[x][y] the count of sets that hold both x and y."""
        pairs = (self._members.T @ sparse.diags_array(counts) @ self._members).toarray()
        return np.maximum(np.einsum("ax,ax->a", own @ pairs, own), 0.0)  # rounding may leave a little less

    @cached_property
    def _kept(self) -> dict[str, Floats]:
        """The squared weights of every set for every single value, [sets, m], once they were asked for."""
        return {}

    @cached_property
    def _members(self) -> sparse.csr_array:
        """Sets as sparse rows of zeros and ones, [sets, m]."""
        members = self.design.sets.members
        starts = np.arange(0, members.size + 1, members.shape[1])
        return sparse.csr_array((np.ones(members.size), members.ravel(), starts), shape=(len(members), self.design.m))

    @cached_property
    def _factor(self) -> tuple[Floats, bool] | None:
        """The Cholesky factor of J scaled to a diagonal of ones; None where it is singular."""
        scale = 1 / np.sqrt(self.design.inclusion)
        try:
            factor: tuple[Floats, bool] = linalg.cho_factor(self.design.joint() * np.outer(scale, scale))
        except linalg.LinAlgError:
            return None
        return factor if np.diag(factor[0]).min() ** 2 > SINGULAR else None

    @cached_property
    def _inverse(self) -> Floats:
        """J^-1 as a matrix, where there are few values: a product is much faster than solving."""
        assert self._factor is not None
        scale = 1 / np.sqrt(self.design.inclusion)
        return linalg.cho_solve(self._factor, np.diag(scale)) * scale[:, None]

    def _iterated(self, right: Floats) -> Floats:
        """Conjugate gradients for J scaled to a diagonal of ones, without forming it."""
        scale, members, chance = 1 / np.sqrt(self.design.inclusion), self._members, self.design.distribution
        x, left = np.zeros_like(right), right.copy()
        direction, size = left.copy(), float(left @ left)
        enough = TOLERANCE**2 * max(size, 1e-300)
        for _ in range(STEPS):
            if size <= enough:
                break
            applied = scale * (members.T @ (chance * (members @ (scale * direction))))
            step = size / float(direction @ applied)
            x += step * direction
            left -= step * applied
            before, size = size, float(left @ left)
            direction = left + size / before * direction
        if size > LOOSE**2 * enough / TOLERANCE**2:
            raise QuestionError(
                f"The {self.design.m:,} values of these line-ups can hardly be told apart: no estimate was reached in "
                f"{STEPS:,} steps. Fix: publish with larger truth, or with rare values joined."
            )
        return x


def _thin(counts: Floats) -> sparse.csr_array | None:
    """Counts of groups by set as a sparse matrix, where most sets are shown by no row of a group; else None."""
    return sparse.csr_array(counts) if np.count_nonzero(counts) * THIN < counts.size else None


Waves = npt.NDArray[np.complexfloating[Any, Any]]


@dataclass(frozen=True, eq=False)
class ByBlocks:
    """Shifted blocks: the set of block k and shift s holds x if and only if x - s is a place of the block.

        added      a_k(s) = sum over x of score(x) [x - s in block k]         a correlation with the block
        holding    c(x) = sum over k, s of n_k(s) [x - s in block k]          a convolution
        squares    q(x) = sum over k, s of n_k(s) w_k(s - x)^2                w_k(s): the weight of (k, s) for value 0

    Sets that several (k, s) stand for are at the first of them, their code.
    """

    design: BlockDesign

    @cached_property
    def invertible(self) -> bool:
        return bool(self._spectrum.min() > SINGULAR * self.design.size / self.design.m)

    def added(self, scores: Floats) -> Floats:
        result = np.empty((len(scores), len(self._places)))
        for rows in self._some(len(scores)):
            waves = np.fft.rfft(scores[rows], axis=1)[:, None, :] * self._blocks.conj()
            result[rows] = self._back(waves).reshape(len(waves), -1)[:, self._places]
        return result

    def holding(self, counts: Floats) -> Floats:
        result = np.empty((len(counts), self.design.m))
        for rows in self._some(len(counts)):
            result[rows] = self._back((self._waves(counts[rows]) * self._blocks).sum(axis=1))
        return result

    def solved(self, right: Floats) -> Floats:
        return self._back(np.fft.rfft(right, axis=1) / self._spectrum)

    def squares(self, counts: Floats, scores: Scores) -> Floats:
        first = np.zeros((1, self.design.m))
        first[0, 0] = 1.0
        weights = self._back(np.fft.rfft(scores(first), axis=1) * self._blocks.conj())  # [K, m]
        squared = np.fft.rfft(weights**2, axis=1).conj()
        result = np.empty((len(counts), self.design.m))
        for rows in self._some(len(counts)):
            result[rows] = self._back((self._waves(counts[rows]) * squared).sum(axis=1))
        return np.maximum(result, 0.0)  # rounding may leave a little less where nothing is shown

    @cached_property
    def _blocks(self) -> Waves:
        inside = np.zeros((self.design.orders, self.design.m))
        np.put_along_axis(inside, self.design.blocks, 1.0, axis=1)
        return np.fft.rfft(inside, axis=1)

    @cached_property
    def _spectrum(self) -> Floats:
        """The eigenvalues of J."""
        return (np.abs(self._blocks) ** 2).sum(axis=0) / (self.design.orders * self.design.m)

    @cached_property
    def _places(self) -> Ints:
        """Block and shift of each set, as one number."""
        return codes(self.design)

    def _waves(self, counts: Floats) -> Waves:
        """Counts by set as waves by block, [questions, sets] -> [questions, K, ..]."""
        by_shift = np.zeros((len(counts), self.design.orders * self.design.m))
        by_shift[:, self._places] = counts
        return np.fft.rfft(by_shift.reshape(len(counts), self.design.orders, self.design.m), axis=2)

    def _back(self, waves: Waves) -> Floats:
        return np.fft.irfft(waves, self.design.m, axis=-1)

    def _some(self, number: int) -> list[slice]:
        """Questions that are taken at a time."""
        step = max(1, BLOCK // (self.design.orders * self.design.m))
        return [slice(first, first + step) for first in range(0, number, step)]
