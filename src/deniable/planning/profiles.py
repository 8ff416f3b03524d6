"""What the planner predicts errors for: counts by their selectivity, or a pool of someone's own questions.

Mechanisms with channels are unbiased, and their error follows from the variance (``prediction``). Rivals are not:
where an answer has a bias b and a variance v, its mean absolute error is that of a normal number,

    E|N(b, v)| = sqrt(2v/pi) exp(-b^2 / 2v) + b (1 - 2 Phi(-b / sqrt v))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.evaluation.drawing import stream_of
from deniable.evaluation.metrics import mean_between
from deniable.evaluation.pools import QuestionPool
from deniable.mechanisms import Anatomy
from deniable.planning.independence import independence
from deniable.planning.prediction import NORMAL_MEAN, pool_variance, predicted_error, predicted_relative_error
from deniable.rivals.anatomy.groups import anatomy_groups

Floats = npt.NDArray[np.float64]
Errors = tuple[float, ...]
SELECTIVITIES = (0.001, 0.005, 0.01)
LAPLACE_QUESTIONS = 100  # that a budget is divided among, where no pool says how many there are


class Profile(Protocol):
    """Questions by size, and the predicted mean relative error of each mechanism's answers to them."""

    @property
    def selectivities(self) -> tuple[float, ...]: ...

    @property
    def questions(self) -> int:
        """How many questions a budget has to pay for."""
        ...

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors: ...

    def redraw(self) -> Errors: ...

    def anatomy(self, l: int) -> Errors: ...

    def noise(self, mean: float) -> Errors:
        """Of answers whose noise has this mean absolute value."""
        ...


@dataclass(frozen=True)
class BySelectivity:
    """Counts about a share a of all rows, if public columns tell nothing about the value (the planner's assumption).

    A question about x takes the share q = a n / f_x of the rows of every value. Rivals that assume just this have no
    bias here; on real questions they do, which a pool shows.
    """

    histogram: Histogram
    selectivities: tuple[float, ...] = SELECTIVITIES
    questions: int = LAPLACE_QUESTIONS

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors:
        found = predicted_relative_error(plan, self.histogram, self.selectivities, marginal_variance=marginal_variance)
        return tuple(found.tolist())

    def redraw(self) -> Errors:
        """N_R redrawn values: Var = N_R pi_x (1 - pi_x) = a n (1 - pi_x)."""
        return self._errors(lambda share, _: 1 - share)

    def anatomy(self, l: int) -> Errors:
        """Each of the f_x groups with x is off by a row that matches with q: Var = f_x q (1-q) (1 - 1/l)."""
        return self._errors(lambda _, q: (1 - q) * (1 - 1 / l))

    def noise(self, mean: float) -> Errors:
        largest = float(self.histogram.relative.max())
        return tuple(mean / (a * self.histogram.rows) if a <= largest else math.nan for a in self.selectivities)

    def _errors(self, variance_per_row: VariancePerRow) -> Errors:
        """Mean over the values that are frequent enough of sqrt(2/pi a n v) / (a n)."""
        errors = []
        for a in self.selectivities:
            share = self.histogram.relative[self.histogram.relative >= a]
            each = NORMAL_MEAN * np.sqrt(variance_per_row(share, a / share) / (a * self.histogram.rows))
            errors.append(float(each.mean()) if len(share) else math.nan)
        return tuple(errors)


class VariancePerRow(Protocol):
    """The variance of an answer divided by the true answer, from the values' shares and the questions' shares."""

    def __call__(self, share: Floats, question: Floats, /) -> Floats: ...


@dataclass(frozen=True, eq=False)
class ByPool:
    """A pool's own questions, by their true size; a selectivity of 0 takes all that have an answer above 0."""

    pool: QuestionPool
    selectivities: tuple[float, ...] = (0.0, *SELECTIVITIES)

    @property
    def questions(self) -> int:
        return len(self.pool)

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors:
        variance = pool_variance(plan, self.pool.profile, marginal_variance=marginal_variance)
        return self._by_size(predicted_error(variance))

    @cached_property
    def _independent(self) -> Floats:
        return independence(self.pool.condition_rows, self.pool.table.histogram.counts, self.pool.sets)

    def sizes(self) -> tuple[int, ...]:
        """How many questions each selectivity takes."""
        truth, rows = self.pool.truth, self.pool.table.rows
        return tuple(int(((truth > 0) & (truth >= share * rows)).sum()) for share in self.selectivities)

    def independence(self) -> Errors:
        return self.measured(self._independent)

    def redraw(self) -> Errors:
        share = self._independent / np.maximum(self.pool.condition_rows, 1.0)[:, None]
        return self._biased(self._independent - self._true, self._independent * (1 - share))

    def anatomy(self, l: int) -> Errors:
        """est - act = sum_i M_i (c_g/|g| - 1[v_i in S]): row i of group g matches (M_i = 1) with q_v = N_Rv / f_v.

        Which values share groups is seen in one grouping of the table; the rest is closed form.
        """
        counts = np.maximum(self.pool.table.histogram.counts, 1)
        q = self.pool.by_value / counts
        first, second = self._group_moments(l)
        return self._biased(q @ first.T, (q * (1 - q)) @ second.T)

    def noise(self, mean: float) -> Errors:
        return self._by_size(np.full(len(self.pool), mean))

    def measured(self, answers: Floats) -> Errors:
        """Of answers [conditions, sets] that were given."""
        return self._by_size(np.abs(self.pool.pick(answers) - self.pool.truth))

    @property
    def _true(self) -> Floats:
        true: Floats = self.pool.by_value @ self.pool.sets.T
        return true

    def _group_moments(self, l: int) -> tuple[Floats, Floats]:
        """For each value set and value: the sums over its rows of c_g/|g| - 1[v in S], and of its square."""
        table = self.pool.table
        suppressed = Anatomy(l).suppressed(table.histogram)
        group = anatomy_groups(table.codes, table.m, l, stream_of(0, 0, "planner").subkey("groups"), suppressed)
        there = group >= 0
        codes, group = table.codes[there].astype(np.int64), group[there]
        size = np.maximum(np.bincount(group), 1)
        first, second = np.zeros(self.pool.sets.shape), np.zeros(self.pool.sets.shape)
        for place, values in enumerate(self.pool.sets):
            inside = values[codes].astype(np.float64)
            off = (np.bincount(group, inside, len(size)) / size)[group] - inside
            first[place] = np.bincount(codes, off, table.m)
            second[place] = np.bincount(codes, off**2, table.m)
        # A suppressed row is missing from every answer: it is off by -1 where it matches, and never anything else.
        first -= self.pool.sets * suppressed
        second += self.pool.sets * suppressed
        return first, second

    def _biased(self, bias: Floats, variance: Floats) -> Errors:
        return self._by_size(folded_mean(self.pool.pick(bias), self.pool.pick(variance)))

    def _by_size(self, error: Floats) -> Errors:
        truth, rows = self.pool.truth, self.pool.table.rows
        relative = np.divide(error, truth, out=np.full(len(truth), np.nan), where=truth > 0)
        return tuple(mean_between(relative, truth, share * rows) for share in self.selectivities)


def folded_mean(bias: Floats, variance: Floats) -> Floats:
    """E|N(b, v)|.

    >>> folded_mean(np.array([3.0, 0.0]), np.array([0.0, 1.0])).round(4).tolist()
    [3.0, 0.7979]
    """
    sd = np.sqrt(np.maximum(variance, 0.0))
    z = np.divide(bias, sd, out=np.full(np.shape(bias), np.inf), where=sd > 0)
    inside = np.array([math.erf(each / math.sqrt(2)) for each in np.abs(z).ravel()]).reshape(np.shape(z))
    mean: Floats = sd * NORMAL_MEAN * np.exp(-np.minimum(z**2, 1400) / 2) + np.abs(bias) * inside
    return mean


def profile_of(
    histogram: Histogram, pool: QuestionPool | None = None, selectivities: Sequence[float] | None = None
) -> BySelectivity | ByPool:
    """A pool's questions where there is a pool, else counts by selectivity."""
    if pool is not None:
        return ByPool(pool) if selectivities is None else ByPool(pool, tuple(selectivities))
    return BySelectivity(histogram) if selectivities is None else BySelectivity(histogram, tuple(selectivities))
