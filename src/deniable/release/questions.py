"""The questions one may ask a release, each handed to the estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Floats
from deniable.core.errors import QuestionError
from deniable.core.manifest import Manifest
from deniable.estimation import many
from deniable.estimation.aggregates import Aggregate, Computed, Count, summed
from deniable.estimation.answering import answer, row_weights
from deniable.estimation.answers import group_by, item_counts, unambiguous
from deniable.estimation.asking import Method, Options, Simultaneous
from deniable.estimation.cubes import cube
from deniable.estimation.estimate import Estimate
from deniable.estimation.formula import Added, Ratio, Scaled
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.predicates import Where, conjunction
from deniable.estimation.published import Published
from deniable.estimation.question import Question
from deniable.estimation.sql.answering import sql
from deniable.estimation.sql.weights import weights_of
from deniable.estimation.weighted_sample import Survey


class Questions(ABC):
    """What a release can be asked."""

    manifest: Manifest

    @property
    @abstractmethod
    def _rows(self) -> Published:
        """The rows and their channels, as estimators ask them."""

    def _ask(self, where: Where | None, aggregate: Aggregate, options: Options) -> Estimate:
        return answer(self._rows, Question(conjunction(where), aggregates=(aggregate,), options=options)).estimate()

    def count(
        self,
        where: Where | None = None,
        *,
        method: Method = "inverse",
        calibrate: bool | None = None,
        confidence: float = 0.95,
    ) -> Estimate:
        """How many rows satisfy a condition.

        Args:
            where: column -> value, list of values, ``between``, ``not_`` or None (missing); all of them must hold. Left
                out: every row.
            method: ``"inverse"``, without bias; ``"mle"``, never negative; ``"shrunk"``, the smallest error; for decoy
                groups also ``"four-state"`` and ``"four-state exact"``.
            calibrate: whether to use the noisy histogram of the manifest; left out: where there is one.
            confidence: of the interval.
        """
        return self._ask(where, Count(), Options(method, calibrate, confidence))

    def sum(
        self, column: str, where: Where | None = None, *, calibrate: bool | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The sum of a numeric column, public or sensitive, over the rows that satisfy a condition.

        Args:
            column: the column; of a sensitive one in bins, every number counts as the middle of its bin, and the
                interval is wider by how far that may be off.
            where, calibrate, confidence: as for ``count``.
        """
        total, _ = summed(column, self.manifest.part_of(column))
        return self._ask(where, Computed(total), Options("inverse", calibrate, confidence))

    def mean(
        self, column: str, where: Where | None = None, *, calibrate: bool | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The average of a numeric column, public or sensitive, over the rows that satisfy a condition.

        Args:
            column: the column, as for ``sum``.
            where, calibrate, confidence: as for ``count``.
        """
        total, present = summed(column, self.manifest.part_of(column))
        aggregate = Computed(Ratio(total, present, (total,)))
        average = self._ask(where, aggregate, Options("inverse", calibrate, confidence))
        if np.isnan(average.value):
            raise QuestionError(
                f"By the estimate no row satisfies the condition, so {column!r} has no average. "
                "Fix: ask about more rows."
            )
        return average

    def share(
        self,
        where: Where,
        within: Where | None = None,
        *,
        calibrate: bool | None = None,
        confidence: float = 0.95,
    ) -> Estimate:
        """Of the rows that satisfy ``within``, the share that satisfies ``where``, by the delta method.

            Var(A/B) = (Var A - 2 R Cov(A, B) + R^2 Var B) / B^2,    R = A/B

        Args:
            where: the condition whose share is asked for.
            within: the rows it is a share of; all rows when absent.
            calibrate, confidence: as for ``count``.
        """
        narrowed = Narrowed(conjunction(where))
        aggregate = Computed(Ratio(Term("rows", None, narrowed), Term()))
        share = self._ask(within, aggregate, Options("inverse", calibrate, confidence))
        if np.isnan(share.value):
            raise QuestionError(
                "By the estimate no row satisfies within, so there is no share of it. Fix: ask about more rows."
            )
        return share

    def difference(
        self,
        where: Where,
        other: Where,
        *,
        calibrate: bool | None = None,
        confidence: float = 0.95,
    ) -> Estimate:
        """How many more rows satisfy ``where`` than ``other``; rows may satisfy both.

            Var(A - B) = Var A - 2 Cov(A, B) + Var B

        Args:
            where: the condition whose rows count +1.
            other: the condition whose rows count -1.
            calibrate, confidence: as for ``count``.
        """
        counts = [Term("rows", None, Narrowed(conjunction(condition))) for condition in (where, other)]
        aggregate = Computed(Added(counts[0], Scaled(-1.0, counts[1])))
        return self._ask(None, aggregate, Options("inverse", calibrate, confidence))

    def group_by(
        self,
        columns: str | Sequence[str],
        where: Where | None = None,
        *,
        method: Method = "inverse",
        calibrate: bool | None = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> pa.Table:
        """How many rows each group has: its columns, then value, stderr, value_low and value_high.

        Args:
            columns: one or several, public or sensitive; a group is a combination of their values.
            where, method, calibrate, confidence: as for ``count``.
            simultaneous: whether all intervals hold together with the given confidence: for picking groups by them.
        """
        return unambiguous(group_by(self._rows, columns, where, Options(method, calibrate, confidence, simultaneous)))

    def histogram(
        self,
        where: Where | None = None,
        *,
        method: Method = "inverse",
        calibrate: bool | None = None,
        confidence: float = 0.95,
    ) -> pa.Table:
        """How many rows hold each sensitive value: ``group_by`` of the sensitive columns.

        Args:
            where, method, calibrate, confidence: as for ``count``.
        """
        return self.group_by(
            self.manifest.sensitive_columns, where, method=method, calibrate=calibrate, confidence=confidence
        )

    def items(self, where: Where | None = None, *, pairs: bool = False, confidence: float = 0.95) -> pa.Table:
        """Of a column of lists, how many rows have each item: item, value, stderr, value_low and value_high.

        Args:
            where, confidence: as for ``count``.
            pairs: count the rows that have both of two items instead, for all pairs (columns item and other).
        """
        count = partial(self.count, confidence=confidence)
        return item_counts(self.manifest, where, count, pairs)

    def count_many(
        self,
        wheres: Sequence[Where | None],
        *,
        every_value: bool = False,
        method: Method = "inverse",
        calibrate: bool | None = None,
        confidence: float = 0.95,
    ) -> many.Counts:
        """Many counts in one array computation.

        Args:
            wheres: the conditions, each as for ``count``.
            every_value: ask each condition, on public columns only, with every sensitive value.
            method, calibrate, confidence: as for ``count``.
        """
        options = Options(method, calibrate, confidence)
        return many.count_many(self._rows, wheres, options, every_value=every_value)

    def cube(
        self,
        columns: Mapping[str, Any] | Sequence[str],
        where: Where | None = None,
        *,
        method: Method = "inverse",
        calibrate: bool | None = None,
        confidence: float = 0.95,
    ) -> pa.Table:
        """Counts of all combinations, as ``group_by`` has them.

        Args:
            columns: a mapping of k columns to conditions: the 2^k combinations of what holds and what does not; or a
                list of columns: all combinations of their values.
            where, method, calibrate, confidence: as for ``count``.
        """
        options = Options(method, calibrate, confidence)
        if isinstance(columns, Mapping):
            return unambiguous(cube(self._rows, columns, where, options))
        return unambiguous(group_by(self._rows, columns, where, options))

    def weights(self, where: Where | str | None = None) -> Floats:
        """One weight a row, in the order of ``table``, for other tools: 1 or 0 on average, as the row satisfies or not.

            sum w = count(where, calibrate=False),    sum (w^2 - w) = its variance (independent rows)

        Weights may be negative and larger than 1; rows that are certain have exactly 0 or 1 (mathematics 8). Of a
        number, a row weighs on average what its original has: 0 where that is missing.

        Args:
            where: a condition, as for ``count``; or a condition or number in SQL, ``"ill = 'flu' AND age > 40"``
                or ``"age * 12"``; all rows when absent.
        """
        return weights_of(self._rows, where) if isinstance(where, str) else row_weights(self._rows, conjunction(where))

    def survey(self, weights: str, *, strata: str | None = None, clusters: str | None = None) -> Survey:
        """The release as a sample: weighted counts, shares, sums and means, with the errors of both draws.

        Args:
            weights: the public column that says for how many people each row stands.
            strata: the public column of the strata that people were drawn from, if there were some.
            clusters: the public column of what was drawn first (households, schools), if anything was.

        >>> import pyarrow as pa
        >>> import deniable as dn
        >>> table = pa.table({"w": [1.0, 3.0] * 500, "ill": ["yes", "no", "no", "yes", "no"] * 200})
        >>> release = dn.publish(table, sensitive="ill", privacy=dn.Privacy(rho2="4/5"), mechanism="uniform", seed=1)
        >>> ill = release.survey(weights="w").share({"ill": "yes"})
        >>> 0.3 < ill.value < 0.5, ill.stderr**2 >= ill.randomization**2
        (True, True)
        """
        return Survey(self._rows, weights, strata, clusters)

    def sql(
        self,
        question: str,
        *,
        tables: Mapping[str, Any] | None = None,
        method: Method = "inverse",
        calibrate: bool | None = None,
        confidence: float = 0.95,
        simultaneous: Simultaneous = False,
    ) -> pa.Table:
        """Answer a question in SQL; every aggregate ``n`` comes with ``n_low`` and ``n_high``.

        Args:
            question: a SELECT from ``release``: COUNT, SUM, AVG, STDDEV, VARIANCE, MEDIAN, QUANTILE_CONT, MIN and MAX,
                with WHERE, GROUP BY, HAVING, ORDER BY and LIMIT. MEDIAN and QUANTILE_CONT interpolate between public
                numbers as SQL does; of perturbed ones, or of rows that a perturbed value decides about, they are a
                number that occurs.
            tables: lookup tables that the question may join, by name: anything that Arrow reads.
            method, calibrate, confidence: as for ``count``.
            simultaneous: True: all intervals of a column hold together with the given confidence, whatever is picked of
                them afterwards; ``"selected"``: of those that HAVING and LIMIT leave, as many as the confidence says.
                Without it, a result that was picked by its estimates says so in its schema's metadata.
        """
        lookups = {name: pa.table(table) for name, table in (tables or {}).items()}
        return sql(self._rows, question, lookups, Options(method, calibrate, confidence, simultaneous))
