"""Weighted estimates from a sample: what the randomization did to them, and what drawing the sample did.

A row with survey weight w stands for w people. With the row's weight u for a condition (on average 1 where its original
satisfies it, 0 where not) and a number c, a total and a ratio are

    A = sum w c u,    R = A / B,    B = sum w u',    e = w (c u - R u') / B

(e = w c u for a total). People drawn with replacement, in strata h of n_h clusters whose e add up to E_hi, give

    Var = sum_h n_h / (n_h - 1) sum_i (E_hi - mean E_h)^2

which holds the randomization too, since u is random. The randomization alone, with rows drawn independently, is

    sum (w / B)^2 ((c u - R u')^2 - s),    s unbiased for (c z - R z')^2, which is linear in the conditions z

and what is left is the sampling. No correction is made for a sample that is a large part of its population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import stdtrit

from deniable.core.errors import OptionError, QuestionError
from deniable.core.values import Floats, Ints
from deniable.estimation.answering import row_numbers, row_weights
from deniable.estimation.estimate import Estimate, normal_quantile
from deniable.estimation.mapped import Mapped, plain
from deniable.estimation.model.columns import sensitive_values
from deniable.estimation.predicates import And, Predicate, Where, conjunction
from deniable.estimation.published import Published
from deniable.estimation.questions import as_numbers, require_column


@dataclass(frozen=True, repr=False)
class SurveyEstimate(Estimate):
    """An estimate about the population that a sample was drawn from; ``stderr`` holds both errors.

    Attributes:
        value, confidence, smallest, largest, method, uncalibrated, slope, cumulants, whole: as of ``Estimate``.
        stderr: of both draws together.
        randomization: the standard error over the randomization alone, as if the sample were all there is.
        sampling: the standard error over the drawing of the sample alone.

    >>> import deniable as dn
    >>> dn.SurveyEstimate(1200.0, 50.0, randomization=30.0, sampling=40.0)
    <Estimate 1,200 (95 %: 1,102 to 1,298)>
    """

    randomization: float = 0.0
    sampling: float = 0.0


@dataclass(frozen=True)
class _Rows:
    """What each row adds to a total: estimates of c z, of its square, and of the condition z' below the line."""

    numbers: Floats
    squares: Floats
    below: Floats


class Survey:
    """A release whose rows are a sample: see ``Release.survey``.

    Args:
        published: the release.
        weights, strata, clusters: the public columns of the design.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"w": [2.5] * 900, "sex": ["F", "M", "F"] * 300, "ill": ["yes", "no", "no"] * 300})
    >>> release = dn.publish(table, sensitive="ill", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", seed=1)
    >>> release.survey("w").count({"sex": "F"})
    <Estimate 1,500 (95 %: 1,431 to 1,569)>
    """

    def __init__(self, published: Published, weights: str, strata: str | None, clusters: str | None) -> None:
        self._published = published
        for part in published.manifest.parts:
            if part.swapped is not None or part.groups is not None:
                raise QuestionError(
                    "Values of this release were swapped among rows, which are not independent then, so the error of a "
                    f'weighted estimate is not known row by row. Fix: release.sql("SELECT SUM({weights}) ..."), whose '
                    "intervals cover the randomization."
                )
        self.weights = self._weights(weights)
        self._strata = self._codes(strata)
        self._clusters = self._codes(clusters)

    def count(self, where: Where | None = None, *, confidence: float = 0.95) -> SurveyEstimate:
        """How many people of the population satisfy a condition: the sum of the weights of those who do.

        Args:
            where: as for ``Release.count``.
            confidence: of the interval.
        """
        rows = self._condition(where)
        return self._estimate(_Rows(rows, rows, np.zeros_like(rows)), False, confidence, (0.0, math.inf))

    def share(self, where: Where, within: Where | None = None, *, confidence: float = 0.95) -> SurveyEstimate:
        """Of the people who satisfy ``within``, the share who satisfy ``where``.

        Args:
            where: the condition whose share is asked for.
            within: the people it is a share of; everyone when absent.
            confidence: of the interval.
        """
        both = row_weights(self._published, And((conjunction(where), conjunction(within))))
        return self._estimate(_Rows(both, both, self._condition(within)), True, confidence, (0.0, 1.0))

    def sum(self, column: str, where: Where | None = None, *, confidence: float = 0.95) -> SurveyEstimate:
        """What a column of numbers adds up to in the population.

        Args:
            column: public or sensitive; missing numbers add nothing.
            where, confidence: as for ``count``.
        """
        rows = self._numbers(column, where)
        totals = _Rows(rows.numbers, rows.squares, np.zeros_like(rows.numbers))
        return self._estimate(totals, False, confidence, (-math.inf, math.inf))

    def mean(self, column: str, where: Where | None = None, *, confidence: float = 0.95) -> SurveyEstimate:
        """The average of a column of numbers in the population.

        Args:
            column: public or sensitive; people whose number is missing are left out.
            where, confidence: as for ``count``.
        """
        return self._estimate(self._numbers(column, where), True, confidence, (-math.inf, math.inf))

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _condition(self, where: Where | None) -> Floats:
        return row_weights(self._published, conjunction(where))

    def _numbers(self, column: str, where: Where | None) -> _Rows:
        require_column(self._published.manifest, column)
        part, condition = self._published.manifest.part_of(column), conjunction(where)
        if part is None:
            numbers = row_numbers(self._published, column, missing=np.nan)
            there = np.isfinite(numbers) * row_weights(self._published, condition)
            numbers = np.nan_to_num(numbers)
            return _Rows(numbers * there, numbers**2 * there, there)
        if column in part.bins:
            raise QuestionError(f"{column!r} is published in bins, which have no numbers. Fix: ask for counts by bin.")
        as_numbers(plain(column), sensitive_values(self._published.manifest, column)[:0])
        return self._perturbed(column, condition)

    def _perturbed(self, column: str, condition: Predicate) -> _Rows:
        """Numbers of a sensitive column, their squares, and whether there is one: each a function of its values."""

        def added_up(name: str, power: int) -> Floats:
            def computed(values: pa.Array) -> pa.Array:
                return pc.power(pc.cast(values, pa.float64()), power)

            return row_weights(self._published, condition, Mapped(f"{name} of {column}", column, computed))

        return _Rows(added_up("number", 1), added_up("square", 2), added_up("presence", 0))

    def _weights(self, column: str) -> Floats:
        weights = row_numbers(self._published, column, missing=np.nan)
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise OptionError(
                f"weights = {column!r}: some rows have no weight, or a negative one. Fix: give each row a weight of 0 "
                "or more before publishing."
            )
        return weights

    def _codes(self, column: str | None) -> Ints | None:
        if column is None:
            return None
        require_column(self._published.manifest, column)
        if column in self._published.manifest.sensitive_columns:
            raise OptionError(f"{column!r} is sensitive: strata and clusters are public columns.")
        return self._published.counter().coded((column,), ()).keys[:, 0]

    # -- errors --------------------------------------------------------------------------------------------------------

    def _estimate(self, rows: _Rows, ratio: bool, confidence: float, ends: tuple[float, float]) -> SurveyEstimate:
        w, z = self.weights, normal_quantile(confidence)
        total, people = float(w @ rows.numbers), float(w @ rows.below)
        if ratio and people <= 0:
            raise QuestionError("By the estimate nobody satisfies the condition. Fix: ask about more people.")
        value, scale = (total / people, w / people) if ratio else (total, w)
        slope = value if ratio else 0.0
        off = rows.numbers - slope * rows.below
        squared = rows.squares - 2 * slope * rows.numbers + slope**2 * rows.below
        randomization = max(float(scale**2 @ (off**2 - squared)), 0.0)
        both, freedom = self._design(scale * off)
        both = max(both, randomization)
        stretch = -float(stdtrit(freedom, (1 - confidence) / 2)) / z
        return SurveyEstimate(
            value,
            math.sqrt(both) * stretch,
            confidence,
            *ends,
            randomization=math.sqrt(randomization),
            sampling=math.sqrt(both - randomization),
        )

    def _design(self, off: Floats) -> tuple[float, float]:
        """The variance of a sum over rows, drawn as the design says, and its degrees of freedom."""
        strata: Ints = np.zeros(len(off), np.int64) if self._strata is None else self._strata
        if self._clusters is not None:
            # A cluster is one within its stratum.
            pairs, unit = np.unique(np.stack([strata, self._clusters]), axis=1, return_inverse=True)
            off, strata = np.bincount(unit.ravel(), off).astype(np.float64), pairs[0]
        _, stratum = np.unique(strata, return_inverse=True)
        units = np.bincount(stratum)
        if (units < 2).any():
            raise QuestionError(
                "A stratum has one row or cluster only, which says nothing about how far others would differ. "
                "Fix: merge strata before publishing."
            )
        mean = np.bincount(stratum, off) / units
        spread = np.bincount(stratum, (off - mean[stratum]) ** 2)
        return float((units / (units - 1)) @ spread), float(len(off) - len(units))
