"""Models and tables for analysts, from the rows of a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from deniable.estimation.asking import Options
from deniable.estimation.estimate import Estimate
from deniable.estimation.fitting import association
from deniable.estimation.fitting.association import ChiSquare
from deniable.estimation.fitting.design import Named
from deniable.estimation.fitting.regression import Regression, regression
from deniable.estimation.predicates import Where
from deniable.estimation.pseudo import pseudo_table
from deniable.estimation.published import Published


class Modelling(ABC):
    """Models of the originals behind a release's rows; public and perturbed columns may stand anywhere in them."""

    @property
    @abstractmethod
    def _rows(self) -> Published:
        """Perturbed rows, which only some releases have."""

    def linear(
        self,
        outcome: Named,
        regressors: Sequence[Named],
        where: Where | None = None,
        *,
        population: bool = False,
        confidence: float = 0.95,
    ) -> Regression:
        """Least squares of a number on others, as the original table has them, with standard errors.

        Rows in which a column of the model is missing are left out.

        Args:
            outcome: a column of numbers or truth values, or a condition (1 where it holds, 0 where it does not).
            regressors: columns and conditions. Numbers enter as they are, other columns as indicators of all values
                but the first; an intercept is added.
            where: the rows that the model is about, as for ``count``.
            population: whether errors are to hold the sampling of people as well as the randomization.
            confidence: of the intervals.

        >>> import pyarrow as pa
        >>> import deniable as dn
        >>> table = pa.table({"age": [20, 30, 40, 50] * 500, "ill": ["no", "no", "yes", "no", "yes"] * 400})
        >>> release = dn.publish(table, sensitive="ill", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", seed=1)
        >>> list(release.linear({"ill": "yes"}, ["age"]))
        ['intercept', 'age']
        """
        options = Options(confidence=confidence)
        return regression(self._rows, "linear", outcome, regressors, where, population, options)

    def logit(
        self,
        outcome: Named,
        regressors: Sequence[Named],
        where: Where | None = None,
        *,
        population: bool = False,
        confidence: float = 0.95,
    ) -> Regression:
        """Logistic regression of what holds or does not, as the original table has it: log odds.

        Args:
            outcome: a condition, or a column of truth values or of 0 and 1.
            regressors, where, population, confidence: as for ``linear``.
        """
        options = Options(confidence=confidence)
        return regression(self._rows, "logit", outcome, regressors, where, population, options)

    def correlation(
        self,
        one: Named,
        other: Named,
        where: Where | None = None,
        *,
        population: bool = False,
        confidence: float = 0.95,
    ) -> Estimate:
        """Pearson's correlation of two columns of numbers, or of conditions as 0 and 1.

        Args:
            one, other: columns of numbers or truth values, or conditions.
            where, population, confidence: as for ``linear``.
        """
        options = Options(confidence=confidence)
        return association.correlation(self._rows, one, other, where, population, options)

    def chi_square(self, one: Named, other: Named, where: Where | None = None) -> ChiSquare:
        """A test of independence of two columns, in the population that the table's people are drawn from.

        Args:
            one, other: columns, of which every value is a category, or conditions.
            where: the rows that the test is about, as for ``count``.
        """
        return association.chi_square(self._rows, one, other, where)

    def pseudo_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows with a column ``weight``, by which every one- and two-way margin is that of the originals.

        Sums of weights by one or two columns are ``group_by(.., calibrate=False)``; means, covariances and linear
        models without interactions need no more. Weights may be negative. What three columns do together is not kept.

        Args:
            columns: the columns to keep; all of them when left out.

        >>> import pyarrow as pa
        >>> import deniable as dn
        >>> table = pa.table({"age": [20, 30, 40, 50] * 50, "ill": ["no", "no", "yes", "no", "yes"] * 40})
        >>> release = dn.publish(table, sensitive="ill", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", seed=1)
        >>> release.pseudo_table().column_names
        ['age', 'ill', 'weight']
        """
        return pseudo_table(self._rows, columns)
