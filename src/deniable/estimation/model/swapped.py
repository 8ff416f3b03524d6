"""What rows owe each other when a column is swapped (mathematics 6): the replaced values are a permutation of
themselves.

Let n rows have the values x_i, a function f of the published value, and b the column's histogram as shares. A row alone
sees the channel p I + (1-p) b 1^T, as if its replacement were drawn from b. Two rows i and j share one pool: neither
can draw what the other keeps, nor what the other has drawn. With f~ = f - b.f, and up to terms of order 1/n^2,

    n Cov(f(y_i), g(y_j)) = -p (1-p) (f~(x_i) g~(x_i) + f~(x_j) g~(x_j)) - (1-p)^2 sum_v b_v f~(v) g~(v)

(with f = 1[y in S] and d = 1[x in S] - b: -p (1-p) (d_i^2 + d_j^2) - (1-p)^2 b (1-b), never positive). A question adds
up weights w = A^-T t; its other columns are independent of this one, so that their weights become the truth t_i(v)
whether row i would satisfy the question with the value v. With T(v) = sum_i t_i(v) the pairs of rows add

    -(1 / (n p^2)) (2 p (1-p) sum_i t~_i(x_i) T~(x_i) + (1-p)^2 sum_v b_v T~(v)^2)

to the variance that independent rows would have. Summed over all rows this leaves nothing: the histogram is exact.
The covariance of two questions has the same form, with the mean of t~ T'~ and t'~ T~ in its first sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.core.exact import SCALE
from deniable.estimation.model.tensor import Factor, Tensor
from deniable.estimation.published import Floats

Questioned = tuple[Floats, Floats]  # estimated originals, and which of them satisfy the question


def swapped_columns(manifest: Any) -> dict[str, int]:
    """The swapped columns, each with the number of rows among which it was swapped."""
    return {part.columns[0]: part.swapped for part in manifest.parts if part.swapped is not None}


@dataclass(frozen=True, eq=False)
class Swapped:
    """One swapped column of a question: where it stands, and its coin and masses.

    Attributes:
        axis: its place among the conditions' columns, or among the labels.
        rows: how many rows swapped with each other.
    """

    axis: int
    factor: Factor
    rows: int

    def _joined(self, first: Floats, second: Floats) -> Floats:
        p = self.factor.coin
        total: Floats = 2 * p * (1 - p) * first + (1 - p) ** 2 * second
        return -total / (self.rows * p * p)

    @property
    def rounding(self) -> float:
        """The variance below which nothing is claimed: masses are known to 2^-32."""
        return (self.rows / (SCALE * self.factor.coin)) ** 2

    def of_condition(self, cells: Floats, truth: Floats, other: Questioned | None = None) -> Floats:
        """What pairs of rows add for a column with conditions, to the variance of a question or to its covariance with
        another.

        Args:
            cells: the estimated originals [answers, outer, states of the conditions' columns ..].
            truth: which of them satisfy the question [outer, states ..].
            other: the same of another question; None for the variance.
        """
        b = self.factor.masses
        own, total = self._centred(cells, truth)
        its, whole = (own, total) if other is None else self._centred(*other)
        return self._joined(((own * whole).sum(-1) + (its * total).sum(-1)) / 2, (total * whole) @ b)

    def _centred(self, cells: Floats, truth: Floats) -> tuple[Floats, Floats]:
        """sum over rows i of t~_i(v) with x_i = v, and T~(v): [answers, values of this column]."""
        b = self.factor.masses
        n = np.moveaxis(cells, 2 + self.axis, -1)[..., : len(b)]
        t = np.moveaxis(truth, 1 + self.axis, -1)[..., : len(b)]
        others = tuple(range(1, n.ndim - 1))
        total = (n.sum(-1, keepdims=True) * t).sum(axis=others)  # T(v)
        centred = t - (t @ b)[..., None]
        return (n * centred).sum(axis=others), total - (total @ b)[:, None]

    def of_label(self, values: Floats, whole: Floats, other: tuple[Floats, Floats] | None = None) -> Floats:
        """The same for a column that is grouped by, for each label: from the estimates [groups, labels ..] and their
        sums over this column, and those of another question; None for the variance."""
        b = self._masses(values)
        its, its_whole = (values, whole) if other is None else other
        own = (whole * its + its_whole * values) / 2 * (1 - 2 * b) + whole * its_whole * b**2
        return np.where(b < 0, 0.0, self._joined(own, whole * its_whole * b * (1 - b)))

    def whole(self, values: Floats) -> Floats:
        """The sum over the column's swapped values, at each of them."""
        moving = np.where(self._masses(values) < 0, 0.0, values)
        return np.broadcast_to(moving.sum(1 + self.axis, keepdims=True), values.shape)

    def _masses(self, values: Floats) -> Floats:
        """The column's masses along its axis; -1 for states that are published as they are."""
        masses = np.append(self.factor.masses, [-1.0] * self.factor.fixed)
        return masses.reshape(-1, *[1] * (values.ndim - 2 - self.axis))


def swapped_in(tensor: Tensor, names: Sequence[str], swapped: Mapping[str, int]) -> list[Swapped]:
    """The swapped ones among the columns of a tensor."""
    return [
        Swapped(axis, factor, swapped[name])
        for axis, (name, factor) in enumerate(zip(names, tensor.factors, strict=True))
        if name in swapped and isinstance(factor, Factor) and 0 < factor.coin < 1
    ]
