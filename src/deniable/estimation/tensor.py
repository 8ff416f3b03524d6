"""Independent channels as one tensor channel, applied and inverted factor by factor (SPEC 6, 8; OLAP 4).

    A = A_1 (x) .. (x) A_k,    A_r = p_r I + (1 - p_r) b_r 1^T

b_r is the replacing mass of each state of column r: (1 - b, b) for "does not satisfy, satisfies", or one mass per
category. A itself is never built: with n_1 .. n_k states an operation takes O(k n_1 .. n_k), for predicates O(k 2^k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.core.errors import InternalError, QuestionError

Floats = npt.NDArray[np.float64]
MOST_STEPS = 5000
PRECISE = 1e-7  # of the rows: how little a step may still move before the fixed point is taken as reached
WORTHLESS = 1e4


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
class Tensor:
    """The channel of several columns. Arrays hold one axis per factor, the first factor's first, after any others.

    >>> one = Factor(0.5, np.array([0.85, 0.15]))
    >>> t = Tensor((one, one))
    >>> bool(np.allclose(t.invert(t.apply(np.array([[4.0, 3.0], [2.0, 1.0]]))), [[4, 3], [2, 1]]))
    True
    """

    factors: tuple[Factor, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.size for factor in self.factors)

    def apply(self, x: Floats) -> Floats:
        """A x: what is expected to be published."""
        return self._each(x, [factor.apply for factor in self.factors])

    def transposed(self, z: Floats) -> Floats:
        return self._each(z, [factor.transposed for factor in self.factors])

    def invert(self, y: Floats) -> Floats:
        """A^-1 y: unbiased, may be negative."""
        return self._each(y, [factor.invert for factor in self.factors])

    def weights(self, t: Floats) -> Floats:
        """A^-T t: the product of the columns' weights, summed over the states that t asks for."""
        return self._each(t, [factor.weights for factor in self.factors])

    def squares(self, y: Floats) -> Floats:
        """For each state the sum over rows of its squared weight."""
        return self._each(y, [factor.squares for factor in self.factors])

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
        """The fixed point of the iterative Bayesian rule: counts >= 0 that make y likeliest (OLAP 4.3; SPEC 8).

            x <- x * A^T (y / A x)

        accelerated by squared extrapolation, which never accepts a less likely point. Axes before the factors' are a
        batch.
        """
        k = len(self.factors)
        lead = y.shape[: y.ndim - k]
        flat = y.reshape(-1, *self.shape)
        total = flat.sum(axis=tuple(range(1, k + 1)), keepdims=True)
        x = np.broadcast_to(total / math.prod(self.shape), flat.shape).copy()
        x = np.maximum(self.invert(flat), 0.1 * x)
        x *= total / np.maximum(x.sum(axis=tuple(range(1, k + 1)), keepdims=True), 1e-300)
        for _ in range(MOST_STEPS // 3):
            x, moved = self._accelerated(x, flat, total)
            if moved <= PRECISE * max(float(total.max(initial=0.0)), 1.0):
                break
        result: Floats = x.reshape(*lead, *self.shape)
        return result

    def _step(self, x: Floats, y: Floats) -> Floats:
        seen = self.apply(x)
        ratio = np.divide(y, seen, out=np.zeros_like(y, dtype=np.float64), where=seen > 0)
        return x * self.transposed(ratio)

    def _accelerated(self, x: Floats, y: Floats, total: Floats) -> tuple[Floats, float]:
        axes = tuple(range(1, x.ndim))
        one = self._step(x, y)
        two = self._step(one, y)
        r, v = one - x, two - 2 * one + x
        size = np.sqrt((v * v).sum(axis=axes, keepdims=True))
        length = np.sqrt((r * r).sum(axis=axes, keepdims=True)) / np.maximum(size, 1e-300)
        length = np.where(size > 0, np.maximum(length, 1.0), 1.0)
        far = np.maximum(x + 2 * length * r + length**2 * v, 0.1 * two)
        far *= total / np.maximum(far.sum(axis=axes, keepdims=True), 1e-300)
        better = self._log_likelihood(far, y) >= self._log_likelihood(two, y)
        chosen = np.where(better.reshape(-1, *[1] * len(axes)), far, two)
        return chosen, float(np.abs(chosen - x).max(initial=0.0))

    def _log_likelihood(self, x: Floats, y: Floats) -> Floats:
        seen = self.apply(x)
        logs = np.log(np.where((y > 0) & (seen > 0), seen, 1.0))
        result: Floats = (y * logs).sum(axis=tuple(range(1, x.ndim)))
        return result

    def _each(self, x: Floats, operations: Sequence[Callable[[Floats], Floats]]) -> Floats:
        if x.shape[x.ndim - len(self.factors) :] != self.shape:
            raise InternalError(f"an array of shape {x.shape} does not end in the states {self.shape}")
        result = np.asarray(x, dtype=np.float64)
        for place, operation in enumerate(operations):
            axis = x.ndim - len(operations) + place
            result = np.moveaxis(operation(np.moveaxis(result, axis, -1)), -1, axis)
        return result


def rows_needed(coin: float, error: float, delta: float = 0.05) -> int:
    """Rows that make a one-column share accurate to +-error with probability 1 - delta (OLAP Thm 1).

        n >= 4 ln(2/delta) / (p error)^2

    >>> rows_needed(0.5, 0.01)
    590221
    """
    return math.ceil(4 * math.log(2 / delta) / (coin * error) ** 2)
