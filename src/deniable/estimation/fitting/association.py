"""Whether two columns go together: correlation of the originals, and the chi-square test of independence.

    r = S_xy / sqrt(S_xx S_yy),    Var(r) = sum over rows of the influence u v - r (u^2 + v^2) / 2, by its weights
    d_ab = sum (1[a] - p_a)(1[b] - p_b),    d^T (sum psi* psi*^T)^-1 d ~ chi-square with (r-1)(c-1) degrees

u and v are x and y from their means, in their standard deviations. The test is of the *population* that the table is
drawn from: in a table itself nothing is exactly independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from deniable.core.errors import QuestionError, counted
from deniable.estimation.asking import Options
from deniable.estimation.estimate import Estimate
from deniable.estimation.fitting.design import Named, Variable, categories, condition_atoms, numeric, said
from deniable.estimation.fitting.expanded import Block, Expanded
from deniable.estimation.fitting.model import number_of
from deniable.estimation.fitting.sums import summed
from deniable.estimation.predicates import Where
from deniable.estimation.published import Bools, Floats, Published

MOST_CONTRASTS = 400
ENOUGH = 1e-10  # of a direction's share in the covariance


@dataclass(frozen=True)
class ChiSquare:
    """A test of independence.

    Attributes:
        statistic: of chi-square distribution where the two are independent in the population.
        degrees: of freedom.
        p_value: how often chance, in drawing people and in perturbing them, makes a statistic as large.
        rows: how many rows it is about.
    """

    statistic: float
    degrees: int
    p_value: float
    rows: float

    def __str__(self) -> str:
        return (
            f"chi-square {self.statistic:.4g} with {counted(self.degrees, 'degree of freedom')}: p = {self.p_value:.3g}"
        )


class _Pair:
    """Two groups of variables, of the rows that satisfy a condition and have all of them."""

    def __init__(
        self, published: Published, one: Sequence[Variable], other: Sequence[Variable], where: Where | None
    ) -> None:
        self.one, self.other = one, other
        self.inside = Variable("where", condition_atoms(published, where))
        self.rows = Expanded(published, [atom for v in (*one, *other, self.inside) for atom in v.atoms])

    def at(self, block: Block) -> tuple[Floats, Floats, Floats]:
        """Which originals count, and both groups' numbers [kinds, combinations, variables]."""
        left, right = (
            np.stack([(number_of(v, block) - v.centre) / v.scale for v in side], axis=-1)
            for side in (self.one, self.other)
        )
        known: Bools = ~np.isnan(np.concatenate([left, right], axis=-1)).any(axis=-1)
        kept = np.where(known, number_of(self.inside, block), 0.0)
        return kept, np.where(known[..., None], left, 0.0), np.where(known[..., None], right, 0.0)


def correlation(
    published: Published, one: Named, other: Named, where: Where | None, population: bool, options: Options
) -> Estimate:
    """Pearson's correlation of two columns of numbers, or conditions as 0 and 1."""
    pair = _Pair(published, [numeric(published, one)], [numeric(published, other)], where)

    def powers(block: Block) -> Floats:
        kept, left, right = pair.at(block)
        x, y = left[..., 0], right[..., 0]
        return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1) * kept[..., None]

    n, x, y, xx, yy, xy = summed(pair.rows, powers, 6).total
    variances = (xx / n - (x / n) ** 2, yy / n - (y / n) ** 2) if n > 0 else (0.0, 0.0)
    if min(variances) <= 0:
        raise QuestionError(
            "By the estimate one of the two does not vary among these rows, so there is no correlation. Fix: ask about "
            "more rows."
        )
    means, deviations = (x / n, y / n), np.sqrt(variances)
    r = float((xy / n - means[0] * means[1]) / (deviations[0] * deviations[1]))

    def influence(block: Block) -> Floats:
        kept, left, right = pair.at(block)
        u, v = (left[..., 0] - means[0]) / deviations[0], (right[..., 0] - means[1]) / deviations[1]
        return ((u * v - r * (u * u + v * v) / 2) * kept)[..., None]

    sums = summed(pair.rows, influence, 1)
    variance = sums.covariance(population)[0, 0] / n**2
    r = min(max(r, -1.0), 1.0)
    return Estimate(r, float(np.sqrt(max(variance, 0.0))), options.confidence, -1.0, 1.0, "correlation")


def chi_square(published: Published, one: Named, other: Named, where: Where | None) -> ChiSquare:
    """A test of whether two columns, or conditions, are independent in the population."""
    left, right = categories(published, one), categories(published, other)
    size = len(left) * len(right)
    if size > MOST_CONTRASTS:
        names = [name if isinstance(name, str) else said(name) for name in (one, other)]
        raise QuestionError(
            f"{names[0]!r} and {names[1]!r} have {size:,} combinations of values, more than can be tested at once "
            f"({MOST_CONTRASTS}). Fix: name the values that matter as conditions, {{'column': [..]}}."
        )
    pair = _Pair(published, left, right, where)

    def single(block: Block) -> Floats:
        kept, first, second = pair.at(block)
        return np.concatenate([np.ones((*kept.shape, 1)), first, second], axis=-1) * kept[..., None]

    counted = summed(pair.rows, single, 1 + len(left) + len(right)).total
    n = float(counted[0])
    if n <= 0:
        raise QuestionError("By the estimate no row satisfies the condition. Fix: ask about more rows.")
    shares, others = counted[1 : 1 + len(left)] / n, counted[1 + len(left) :] / n

    def together(block: Block) -> Floats:
        kept, first, second = pair.at(block)
        product = (first - shares)[..., :, None] * (second - others)[..., None, :]
        return product.reshape(*kept.shape, size) * kept[..., None]

    sums = summed(pair.rows, together, size)
    scale = 1 / np.sqrt(np.maximum(np.diag(sums.everything), 1e-300))
    values, vectors = np.linalg.eigh(sums.everything * np.outer(scale, scale))
    used = values > ENOUGH * max(values[-1], 1e-300)
    along = vectors[:, used].T @ (sums.total * scale)
    if not used.any() or not np.diag(sums.everything).any():
        raise QuestionError(
            "By the estimate one of the two has a single value among these rows, so there is nothing to test. Fix: ask "
            "about more rows."
        )
    statistic, degrees = float((along**2 / values[used]).sum()), int(used.sum())
    return ChiSquare(statistic, degrees, float(chdtrc(degrees, statistic)), n)
