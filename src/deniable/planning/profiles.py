"""What the planner predicts errors for: counts by their selectivity, or a pool of someone's own questions.

Mechanisms with channels are unbiased, and their error follows from the variance (``prediction``). Rivals are not:
where an answer has a bias b and a variance v, its mean absolute error is that of a normal number,

    E|N(b, v)| = sqrt(2v/pi) exp(-b^2 / 2v) + b (1 - 2 Phi(-b / sqrt v))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.probability import percent
from deniable.core.profile import SELECTIVITIES
from deniable.planning.accuracy import mean_between, relative_to
from deniable.planning.pools import QuestionPool
from deniable.planning.prediction import NORMAL_MEAN, pool_variance, predicted_error, predicted_relative_error

Errors = tuple[float, ...]
LAPLACE_QUESTIONS = 100  # that a budget is divided among, where no pool says how many there are


class Moments(Protocol):
    """A way to answer without channels: how far off it is on average, and how much that varies."""

    def variance_per_row(self, share: Floats, question: Floats, /) -> Floats:
        """An answer's variance divided by the truth, from the values' shares and the questions' shares of their rows.

        For questions whose public columns tell nothing about the value, where there is no bias.
        """
        ...

    def moments(self, pool: QuestionPool, /) -> tuple[Floats, Floats]:
        """Bias and variance of every answer to a pool, [conditions, sets]."""
        ...


class Profile(Protocol):
    """Questions by size, and the predicted mean relative error of each mechanism's answers to them."""

    @property
    def selectivities(self) -> tuple[float, ...]: ...

    @property
    def questions(self) -> int:
        """How many questions a budget has to pay for."""
        ...

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """How many questions each selectivity takes; None where it stands for all that could be asked.

        Only questions that are known show a bias.
        """
        ...

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors: ...

    def errors_of(self, answering: Moments) -> Errors:
        """Of answers that may be biased."""
        ...

    def noise(self, mean: float) -> Errors:
        """Of answers whose noise has this mean absolute value."""
        ...

    def in_words(self, share: float) -> str:
        """Which questions a selectivity stands for."""
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

    @property
    def sizes(self) -> None:
        return None

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors:
        errors = predicted_relative_error(plan, self.histogram, self.selectivities, marginal_variance=marginal_variance)
        return tuple(errors.tolist())

    def errors_of(self, answering: Moments) -> Errors:
        """Mean over the values that are frequent enough of sqrt(2/pi a n v) / (a n), v the variance per row."""
        means = []
        for a in self.selectivities:
            share = self.histogram.relative[self.histogram.relative >= a]
            errors = NORMAL_MEAN * np.sqrt(answering.variance_per_row(share, a / share) / (a * self.histogram.rows))
            means.append(float(errors.mean()) if len(share) else math.nan)
        return tuple(means)

    def noise(self, mean: float) -> Errors:
        largest = float(self.histogram.relative.max())
        return tuple(mean / (a * self.histogram.rows) if a <= largest else math.nan for a in self.selectivities)

    def in_words(self, share: float) -> str:
        return f"at {percent(share, 2)} of the rows"


@dataclass(frozen=True, eq=False)
class ByPool:
    """A pool's own questions, by their true size; a selectivity of 0 takes all that have an answer above 0."""

    pool: QuestionPool
    selectivities: tuple[float, ...] = (0.0, *SELECTIVITIES)

    @property
    def questions(self) -> int:
        return len(self.pool)

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.pool.sizes(self.selectivities)

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors:
        variance = pool_variance(plan, self.pool.profile, marginal_variance=marginal_variance)
        return self._by_size(predicted_error(variance))

    def errors_of(self, answering: Moments) -> Errors:
        bias, variance = answering.moments(self.pool)
        return self._by_size(folded_mean(self.pool.pick(bias), self.pool.pick(variance)))

    def noise(self, mean: float) -> Errors:
        return self._by_size(np.full(len(self.pool), mean))

    def in_words(self, share: float) -> str:
        return f"where the answer is {percent(share, 2)} of the rows or more" if share else "over the whole pool"

    def _by_size(self, errors: Floats) -> Errors:
        truth, rows = self.pool.truth, self.pool.table.rows
        relative = relative_to(errors, truth)
        return tuple(mean_between(relative, truth, share * rows) for share in self.selectivities)


def folded_mean(bias: Floats, variance: Floats) -> Floats:
    """E|N(b, v)|.

    >>> folded_mean(np.array([3.0, 0.0]), np.array([0.0, 1.0])).round(4).tolist()
    [3.0, 0.7979]
    """
    sd = np.sqrt(np.maximum(variance, 0.0))
    z = np.abs(np.divide(bias, sd, out=np.full(np.shape(bias), np.inf), where=sd > 0))
    inside = np.array([math.erf(number / math.sqrt(2)) for number in z.ravel()]).reshape(np.shape(z))
    mean: Floats = sd * NORMAL_MEAN * np.exp(-np.minimum(z**2, 1400) / 2) + np.abs(bias) * inside
    return mean


def profile_of(
    histogram: Histogram, pool: QuestionPool | None = None, selectivities: Sequence[float] | None = None
) -> Profile:
    """A pool's questions where there is a pool, else counts by selectivity."""
    if pool is not None:
        return ByPool(pool) if selectivities is None else ByPool(pool, tuple(selectivities))
    return BySelectivity(histogram) if selectivities is None else BySelectivity(histogram, tuple(selectivities))
