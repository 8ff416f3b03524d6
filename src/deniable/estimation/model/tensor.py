"""Independent channels as one tensor channel, applied and inverted factor by factor (mathematics 6, 8; OLAP 4).

    A = A_1 (x) .. (x) A_k,    A_r = p_r I + (1 - p_r) b_r 1^T

b_r is the replacing mass of each state of column r: (1 - b, b) for "does not satisfy, satisfies", or one mass per
category. A column of decoy groups has a matrix over its values instead, and a column of line-ups publishes sets: it has
more published states than true ones. A itself is never built: with n_1 .. n_k states an operation takes
O(k n_1 .. n_k), for predicates O(k 2^k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from deniable.core.errors import InternalError, QuestionError, option
from deniable.core.values import Floats
from deniable.estimation.model.fixed_point import Fit, fixed_point
from deniable.estimation.model.lineups import LineUpFactor
from deniable.estimation.model.moments import Moments, of_coins, of_values

Operation = Callable[[Floats], Floats]
WORTHLESS = 1e4
SINGULAR = 1e6  # matrices are published to six digits: beyond, an inverse would be made of their rounding
MERGED = 16  # states of factors that are multiplied out; never anywhere near the square of all states
PIECE = 1000


@dataclass(frozen=True, eq=False)
class Factor:
    """One column's channel over its states.

    Attributes:
        coin: p.
        masses: b, the replacing mass of each perturbed state; they add up to 1.
        fixed: how many further states are published as they are (missing values that are exempt).
    """

    coin: float
    masses: Floats
    fixed: int = 0

    @property
    def size(self) -> int:
        return len(self.masses) + self.fixed

    @property
    def published(self) -> int:
        return self.size

    def apply(self, x: Floats) -> Floats:
        """A x on the last axis: p x + (1-p) b sum(x)."""
        moving = x[..., : len(self.masses)]
        return self._with_fixed(self.coin * moving + (1 - self.coin) * self.masses * moving.sum(-1, keepdims=True), x)

    def transposed(self, z: Floats) -> Floats:
        """A^T z on the last axis: p z + (1-p) (b . z)."""
        moving = z[..., : len(self.masses)]
        return self._with_fixed(self.coin * moving + (1 - self.coin) * (moving @ self.masses)[..., None], z)

    def invert(self, y: Floats) -> Floats:
        """A^-1 y on the last axis: (y - (1-p) b sum(y)) / p."""
        self._require_coin()
        moving = y[..., : len(self.masses)]
        rest = (1 - self.coin) * self.masses * moving.sum(-1, keepdims=True)
        return self._with_fixed((moving - rest) / self.coin, y)

    def weights(self, t: Floats) -> Floats:
        """A^-T t on the last axis: what a published row in each state counts for, t telling which states are asked for.

        w_y = (t_y - (1-p) (b . t)) / p,    E[w | x] = t_x
        """
        self._require_coin()
        moving = t[..., : len(self.masses)]
        return self._with_fixed((moving - (1 - self.coin) * (moving @ self.masses)[..., None]) / self.coin, t)

    def squares(self, y: Floats) -> Floats:
        """sum_y (A^-1[x][y])^2 y_y on the last axis: the second moment of the weights that ask for each state x."""
        self._require_coin()
        moving = y[..., : len(self.masses)]
        off = ((1 - self.coin) * self.masses / self.coin) ** 2
        on = ((1 - (1 - self.coin) * self.masses) / self.coin) ** 2
        return self._with_fixed(on * moving + off * (moving.sum(-1, keepdims=True) - moving), y)

    def moments(self, often: Floats) -> Moments:
        """Of the weights of every single state."""
        p, r = np.full(self.size, self.coin), np.append(self.masses, np.zeros(self.fixed))
        p[len(self.masses) :] = 1.0
        return of_coins(p, r, often)

    @property
    def condition(self) -> float:
        """The condition number in the 1-norm: (1 + (1-p)(1 - 2 min b)) / p."""
        if self.coin <= 0:
            return math.inf
        return float((1 + (1 - self.coin) * (1 - 2 * self.masses.min())) / self.coin) if len(self.masses) > 1 else 1.0

    def _with_fixed(self, moved: Floats, x: Floats) -> Floats:
        return np.concatenate([moved, x[..., len(self.masses) :]], axis=-1) if self.fixed else moved

    def _require_coin(self) -> None:
        if self.coin <= 0:
            raise QuestionError("A column whose coin is 0 is always replaced: nothing about it can be estimated.")


@dataclass(frozen=True, eq=False)
class Dense:
    """One column's channel over all its values, as a matrix: that of a column whose cells are not published.

    Attributes:
        name: of the column, for what is said when it cannot be inverted.
        matrix: P[y][x].
        fixed: how many further states are published as they are.
    """

    name: str
    matrix: Floats
    fixed: int = 0

    @property
    def size(self) -> int:
        return len(self.matrix) + self.fixed

    @property
    def published(self) -> int:
        return self.size

    def apply(self, x: Floats) -> Floats:
        """P x on the last axis."""
        return self._times(self.matrix, x)

    def transposed(self, z: Floats) -> Floats:
        return self._times(self.matrix.T, z)

    def invert(self, y: Floats) -> Floats:
        return self._times(self._inverse, y)

    def weights(self, t: Floats) -> Floats:
        """P^-T t: w with sum_y P[y][x] w_y = t_x."""
        return self._times(self._inverse.T, t)

    def squares(self, y: Floats) -> Floats:
        """sum_y (P^-1[x][y])^2 y_y."""
        return self._times(self._inverse**2, y)

    def moments(self, often: Floats) -> Moments:
        """Of the weights of every single state."""
        every = np.eye(self.size)
        return of_values(self.apply(every).T, self.weights(every), often)

    @cached_property
    def condition(self) -> float:
        """The condition number in the 1-norm."""
        return float(np.linalg.cond(self.matrix, 1))

    @cached_property
    def _inverse(self) -> Floats:
        if not self.condition < SINGULAR:
            raise QuestionError(
                f"Some values of {self.name!r} cannot be told apart in this release: its channel has no inverse. Fix: "
                f"{option('method', 'four-state exact')}, or publish with Decoys(grouping='mixed')."
            )
        return np.linalg.inv(self.matrix).astype(np.float64)

    def _times(self, matrix: Floats, x: Floats) -> Floats:
        m = len(self.matrix)
        moved = x[..., :m] @ matrix.T
        return np.concatenate([moved, x[..., m:]], axis=-1) if self.fixed else moved


@dataclass(frozen=True, eq=False)
class Tensor:
    """The channel of several columns. Arrays hold one axis per factor, the first factor's first, after any others.

    Attributes:
        factors: one for each column.
        shape: the true states of each, which ``apply`` and ``weights`` take.
        published: the published states of each, which the others take; more than the true ones where sets are shown.

    >>> one = Factor(0.5, np.array([0.85, 0.15]))
    >>> t = Tensor((one, one))
    >>> bool(np.allclose(t.invert(t.apply(np.array([[4.0, 3.0], [2.0, 1.0]]))), [[4, 3], [2, 1]]))
    True
    """

    factors: tuple[Factor | Dense | LineUpFactor, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.size for factor in self.factors)

    @property
    def published(self) -> tuple[int, ...]:
        return tuple(factor.published for factor in self.factors)

    def apply(self, x: Floats) -> Floats:
        """A x: what is expected to be published."""
        return self._along_axes(x, [factor.apply for factor in self.factors], self.shape, self.published)

    def transposed(self, z: Floats) -> Floats:
        return self._along_axes(z, [factor.transposed for factor in self.factors], self.published, self.shape)

    def invert(self, y: Floats) -> Floats:
        """A^-1 y: unbiased, may be negative."""
        return self._along_axes(y, [factor.invert for factor in self.factors], self.published, self.shape)

    def weights(self, t: Floats) -> Floats:
        """A^-T t: the product of the columns' weights, summed over the states that t asks for."""
        return self._along_axes(t, [factor.weights for factor in self.factors], self.shape, self.published)

    def squares(self, y: Floats) -> Floats:
        """For each state the sum over rows of its squared weight."""
        return self._along_axes(y, [factor.squares for factor in self.factors], self.published, self.shape)

    def spread(self, y: Floats, axis: int) -> Floats:
        """For each state the sum of the weights times what one column's own weight is off by: w^2 - w along its axis,
        w along all others."""
        steps = [factor.squares if place == axis else factor.invert for place, factor in enumerate(self.factors)]
        return self._along_axes(y, steps, self.published, self.shape) - self.invert(y)

    @property
    def condition(self) -> float:
        """The product of the factors' condition numbers: it grows like p^-k."""
        return math.prod(factor.condition for factor in self.factors)

    def condition_in_words(self) -> str:
        """What the condition number means for an answer; empty where there is nothing to say."""
        if self.condition < WORTHLESS:
            return ""
        return (
            f"{len(self.factors)} perturbed columns together magnify the noise up to {self.condition:.2g} times: the "
            "answer is worth what its interval says, perhaps nothing. Fix: ask about fewer perturbed columns at once."
        )

    def likelihood(self, y: Floats) -> Floats:
        """The fixed point of the iterative Bayesian rule: counts >= 0 that make y likeliest (OLAP 4.3; mathematics 8).

        Axes before the factors' are a batch. How near the fixed point this is: see ``fixed_point``.
        """
        return self.fit(y).counts.reshape(*y.shape[: y.ndim - len(self.factors)], *self.shape)

    def fit(self, y: Floats) -> Fit:
        """The same with what it took, as [batch, states]."""
        lead = math.prod(y.shape[: y.ndim - len(self.factors)])
        forward = _steps(self.shape, [factor.apply for factor in self.factors])
        back = _steps(self.published, [factor.transposed for factor in self.factors])
        flat = y.reshape(lead, math.prod(self.published)).astype(np.float64)
        true, seen = math.prod(self.shape), math.prod(self.published)
        return fixed_point(partial(_through, forward, seen), partial(_through, back, true), flat, true)

    def _along_axes(
        self, x: Floats, operations: Sequence[Operation], before: tuple[int, ...], after: tuple[int, ...]
    ) -> Floats:
        lead = x.ndim - len(self.factors)
        if x.shape[lead:] != before:
            raise InternalError(f"an array of shape {x.shape} does not end in the states {before}")
        flat = np.asarray(x, dtype=np.float64).reshape(-1, math.prod(before))
        return _through(_steps(before, operations), math.prod(after), flat).reshape(*x.shape[:lead], *after)


def _steps(sizes: Sequence[int], operations: Sequence[Operation]) -> list[tuple[int, Operation]]:
    """Small neighbouring factors as one small matrix: fewer and faster passes over the states."""
    steps: list[tuple[int, Operation]] = []
    merged: list[Floats] = []
    for size, operation in zip(sizes, operations, strict=True):
        if merged and len(merged[0]) * size > MERGED:
            steps.append(_product(merged.pop()))
        if size > MERGED:
            steps.append((size, operation))
            continue
        matrix = operation(np.eye(size))  # row i is what state i becomes
        merged = [np.kron(merged[0], matrix).astype(np.float64) if merged else matrix]
    return [*steps, *map(_product, merged)]


def stochastic(matrix: npt.ArrayLike) -> Floats:
    """A matrix that was published rounded, its columns adding up to 1 again, as the weights of all values then do."""
    rounded = np.asarray(matrix, np.float64)
    return rounded / rounded.sum(axis=0)


def _product(matrix: Floats) -> tuple[int, Operation]:
    return len(matrix), partial(_times, matrix)


def _times(matrix: Floats, x: Floats) -> Floats:
    """x @ matrix, in pieces that are too small for threads, whose waiting for each other costs more than they save."""
    result = np.empty((len(x), matrix.shape[1]))
    for first in range(0, len(x), PIECE):
        np.matmul(x[first : first + PIECE], matrix, out=result[first : first + PIECE])
    return result


def _through(steps: Sequence[tuple[int, Operation]], width: int, flat: Floats) -> Floats:
    """Each step on its axis of [batch, states]; the axis goes to the end, which brings the next one to the front."""
    moved = flat.T
    for size, step in steps:
        moved = step(moved.reshape(size, -1).T)
    return moved.reshape(len(flat), width)
