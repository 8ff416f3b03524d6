"""The public face of a release: rows, a manifest, and the questions one may ask.

It joins rooms that do not know each other (engines read rows, estimation looks back, audit verifies), which is why it
stands above them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.verify.checks import Certificate
from deniable.core import html
from deniable.core.arrays import Floats
from deniable.core.errors import OutputError, QuestionError
from deniable.core.manifest import Manifest
from deniable.core.tally import Counter
from deniable.engines import Engine, engine_named
from deniable.estimation import answers, cubes, many
from deniable.estimation.aggregates import Aggregate, Computed, Count, Mean, Sum
from deniable.estimation.answering import row_weights
from deniable.estimation.asking import Method, Options
from deniable.estimation.estimate import Estimate
from deniable.estimation.formula import Added, Ratio, Scaled
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.predicates import Where, conjunction
from deniable.estimation.published import Published
from deniable.estimation.question import Answerer, Question
from deniable.estimation.sql.answering import sql
from deniable.release import folder as folders
from deniable.release.answerer import answerer_of
from deniable.release.verify import verify, verify_manifest

NO_ROWS = (
    "mechanism {!r} publishes no rows: it answers count(where=...) from the original table, which stays with its "
    "owner. Fix: leave out= out and ask the object, or publish with another mechanism."
)


class Release:
    """What the public sees, and the questions one may ask it.

    ``publish`` makes one, ``open_release`` reads one. Answers are linear in the published rows: in a question about the
    values S, a row that shows y counts with the weight

        w(y) = sum over x in S of P^-1[x][y]

    whose expectation is 1 for a row of S and 0 for any other, so estimates have no bias (mathematics 8).

    Attributes:
        manifest: everything needed to estimate and to verify.
        table: the published rows; left out where they are read from the folder when they are needed.
        groups: the second table, of releases of groups.
        folder: where it is kept; None while it is in memory.
        warnings: what the owner was told when publishing; not part of the release.
        engine: what reads and counts the rows: a name, or an object.
        answerer: who answers questions; by default found from the manifest.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), seed=1)
    >>> release
    <Release of 1,000 rows, disease by uniform>
    >>> release.count({"sex": "F", "disease": "flu"})  # in the table there are 300
    <Estimate 294 (95 %: 235 to 354)>
    >>> release.sql("SELECT disease, COUNT(*) AS n FROM release GROUP BY disease").column_names
    ['disease', 'n', 'n_low', 'n_high']
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        table: pa.Table | None = None,
        groups: pa.Table | None = None,
        folder: Path | None = None,
        warnings: Sequence[str] = (),
        engine: str | Engine = "local",
        answerer: Answerer | None = None,
    ) -> None:
        self.manifest = manifest
        self.folder = folder
        self.warnings = tuple(warnings)
        self.engine = engine_named(engine)
        self._table = table
        self._groups = groups
        self._answerer = answerer

    @cached_property
    def table(self) -> pa.Table:
        """The published rows."""
        if self.manifest.form == "answers":
            raise QuestionError(NO_ROWS.format(self.manifest.mechanism))
        if self._table is not None:
            return self._table
        assert self.folder is not None
        assert self.manifest.data is not None
        path = folders.file_path(self.folder, self.manifest.data)
        return self.engine.read(path, self.manifest.data, {c.name: c.type for c in self.manifest.columns})

    @cached_property
    def groups(self) -> pa.Table:
        """The second table, of releases of groups."""
        if self._groups is not None:
            return self._groups
        if self.folder is None or self.manifest.groups is None:
            raise QuestionError(f"A release by {self.manifest.mechanism!r} has no table of groups.")
        return self.engine.read(folders.file_path(self.folder, self.manifest.groups), self.manifest.groups, {})

    # -- questions ----------------------------------------------------------------------------------------------------

    @cached_property
    def answerer(self) -> Answerer:
        """Who answers questions about this release."""
        return self._answerer or answerer_of(self)

    def counter(self) -> Counter:
        """Who counts published rows, for the estimators."""
        return self._counter

    @cached_property
    def _counter(self) -> Counter:
        data = self.manifest.data
        if self._table is None and self.folder is not None and data is not None and data.format == "parquet":
            return self.engine.counter(folders.file_path(self.folder, data), self.manifest)
        return self.engine.counter(self.table, self.manifest)

    def _ask(self, where: Where | None, aggregate: Aggregate, options: Options) -> Estimate:
        question = Question(conjunction(where), aggregates=(aggregate,), options=options)
        refusal = self.answerer.refusal(question)
        if refusal is not None:
            raise QuestionError(refusal)
        return self.answerer.answer(question).estimate()

    @property
    def _rows(self) -> Published:
        """Perturbed rows, which only some releases have."""
        if self.answerer.published is None:
            raise QuestionError(
                f"A release by {self.manifest.mechanism!r} answers count(where=...) only: it is here to be compared "
                "with. Fix: publish with another mechanism for sums, averages, group-bys, weights and SQL."
            )
        return self.answerer.published

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
        """The sum of a public numeric column over the rows that satisfy a condition.

        Args:
            column: the public column.
            where, calibrate, confidence: as for ``count``.
        """
        return self._ask(where, Sum(column), Options("inverse", calibrate, confidence))

    def mean(
        self, column: str, where: Where | None = None, *, calibrate: bool | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The average of a public numeric column over the rows that satisfy a condition.

        Args:
            column: the public column.
            where, calibrate, confidence: as for ``count``.
        """
        average = self._ask(where, Mean(column), Options("inverse", calibrate, confidence))
        if np.isnan(average.value):
            raise QuestionError(f"No row can satisfy the condition, so {column!r} has no average.")
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
    ) -> pa.Table:
        """How many rows each group has: its columns, then value, stderr, value_low and value_high.

        Args:
            columns: one or several, public or sensitive; a group is a combination of their values.
            where, method, calibrate, confidence: as for ``count``.
        """
        return answers.group_by(self._rows, columns, where, method=method, calibrate=calibrate, confidence=confidence)

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
        return answers.histogram(self._rows, where, method=method, calibrate=calibrate, confidence=confidence)

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
        return many.count_many(
            self._rows, wheres, every_value=every_value, method=method, calibrate=calibrate, confidence=confidence
        )

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
        if isinstance(columns, Mapping):
            return cubes.cube(self._rows, columns, where, method=method, calibrate=calibrate, confidence=confidence)
        return answers.group_by(self._rows, columns, where, method=method, calibrate=calibrate, confidence=confidence)

    def weights(self, where: Where | None = None) -> Floats:
        """One weight a row, in the order of ``table``, for other tools: 1 or 0 on average, as the row satisfies or not.

            sum w = count(where, calibrate=False),    sum (w^2 - w) = its variance (independent rows)

        Weights may be negative and larger than 1; rows that are certain have exactly 0 or 1 (mathematics 8).

        Args:
            where: the condition, as for ``count``; all rows when absent.
        """
        return row_weights(self._rows, conjunction(where))

    def sql(
        self, question: str, *, method: Method = "inverse", calibrate: bool | None = None, confidence: float = 0.95
    ) -> pa.Table:
        """Answer a question in SQL; every aggregate ``n`` comes with ``n_low`` and ``n_high``.

        Args:
            question: a SELECT from ``release``: COUNT, SUM and AVG, with WHERE, GROUP BY, HAVING, ORDER BY and LIMIT.
            method, calibrate, confidence: as for ``count``.
        """
        return sql(self._rows, question, method=method, calibrate=calibrate, confidence=confidence)

    # -- keeping it ---------------------------------------------------------------------------------------------------

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False, format: str = "parquet") -> Release:
        """Write the release into a folder, the whole of it or nothing, and open it from there.

        Args:
            out: the folder.
            overwrite: replace the release that is there.
            format: of the published table: ``"parquet"`` or ``"csv"``.
        """
        if self.manifest.form == "answers":
            raise OutputError(NO_ROWS.format(self.manifest.mechanism))
        folder = Path(out)
        with folders.new_folder(folder, overwrite) as partial:
            groups = None if self.manifest.form == "rows" else [self.groups]
            manifest = folders.finish_folder(
                partial, self.manifest, [self.table], self.table.schema, format, self.engine, groups
            )
        return Release(manifest, folder=folder, groups=self._groups, warnings=self.warnings, engine=self.engine)

    def verify(self) -> Certificate:
        """Recompute the certificate, of its files where it has some; see ``deniable.verify``."""
        if self.manifest.form == "answers":
            raise QuestionError(
                f"Answers of mechanism {self.manifest.mechanism!r} cannot be verified: whoever asks trusts the owner "
                "to add the noise. Fix: publish rows with another mechanism."
            )
        return verify(self.folder, engine=self.engine) if self.folder is not None else verify_manifest(self.manifest)

    def __repr__(self) -> str:
        if self.manifest.form == "answers" and self._answerer is not None:
            return repr(self._answerer)
        sensitive = ", ".join(self.manifest.sensitive_columns)
        return f"<Release of {self.manifest.rows:,} rows, {sensitive} by {self.manifest.mechanism}>"

    def _repr_html_(self) -> str:
        """For notebooks; no row is read for it."""
        return html.title(repr(self)) + self.manifest.columns_html()
