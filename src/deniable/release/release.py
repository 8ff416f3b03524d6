"""The public face of a release: rows, a manifest, the questions one may ask, and models from its rows."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from deniable.core.errors import ManifestError, OptionError, QuestionError
from deniable.core.manifest import Manifest, with_sentence
from deniable.core.part import perturbed_names
from deniable.core.plan import Choice
from deniable.core.tally import Counter
from deniable.core.text import paragraph, title
from deniable.core.values import Floats
from deniable.estimation import many
from deniable.estimation.aggregates import Aggregate, Computed, Count, summed
from deniable.estimation.answering import answer, row_weights
from deniable.estimation.answers import group_by, item_counts, unambiguous
from deniable.estimation.asking import Method, Options, Simultaneous
from deniable.estimation.cubes import cube
from deniable.estimation.estimate import Estimate
from deniable.estimation.fitting import association
from deniable.estimation.fitting.association import ChiSquare
from deniable.estimation.fitting.design import Named
from deniable.estimation.fitting.regression import Regression, regression
from deniable.estimation.formula import Added, Ratio, Scaled
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.predicates import Where, conjunction
from deniable.estimation.pseudo import pseudo_table
from deniable.estimation.published import Published
from deniable.estimation.question import Question
from deniable.estimation.sql.answering import sql
from deniable.estimation.sql.weights import weights_of
from deniable.estimation.weighted_sample import Survey
from deniable.release import folder as folders
from deniable.release.commit import Commit
from deniable.release.database import write_database
from deniable.release.folder import require_shape, unchanged_file
from deniable.release.published import with_channels
from deniable.release.sign import files_of_key, signer_of
from deniable.release.verify import require_sound, verify
from deniable.tables import Engine, engine_named
from deniable.tables.base import Dataset
from deniable.tables.lineups import code_table, coded_part
from deniable.tables.storage import parts_of
from deniable_verify import Certificate

NULLABLE = ("Boolean", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)))  # types of pandas

# -- The questions one may ask a release, each handed to the estimators ------------------------------------------------


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
            where, method, calibrate, confidence: as for ``count``; combinations of conditions are never calibrated, so
                that they add up.
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
            question: a SELECT from ``release``: COUNT, SUM, AVG, STDDEV, VARIANCE, MEDIAN, QUANTILE_CONT, CORR, REGR_*,
                MIN and MAX, with WHERE, GROUP BY, HAVING, ORDER BY and LIMIT. MEDIAN and QUANTILE_CONT interpolate
                between public numbers as SQL does; of perturbed ones, or of rows that a perturbed value decides about,
                they are a number that occurs.
            tables: lookup tables that the question may join, by name: anything that Arrow reads.
            method, calibrate, confidence: as for ``count``.
            simultaneous: True: all intervals of a column hold together with the given confidence, whatever is picked of
                them afterwards; ``"selected"``: of those that HAVING and LIMIT leave, as many as the confidence says.
                Without it, a result that was picked by its estimates says so in its schema's metadata.
        """
        lookups = {name: pa.table(table) for name, table in (tables or {}).items()}
        return sql(self._rows, question, lookups, Options(method, calibrate, confidence, simultaneous))


# -- Models and tables for analysts, from the rows of a release --------------------------------------------------------


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


# -- The public face of a release: rows, a manifest, and who answers the questions one may ask -------------------------
# It joins rooms that do not know each other (engines read rows, estimation looks back, audit verifies), which is why it
# stands above them.


NO_FILE = "manifest.json names no file of published rows: it is damaged. Fix: ask for the whole release."


class Advice(Protocol):
    """What the owner of a release should know."""

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def choice(self) -> Choice | None: ...

    @property
    def decision(self) -> Any: ...

    def recalled(self, out: Path) -> Any: ...


@dataclass(frozen=True)
class Given:
    """Advice that was computed."""

    warnings: tuple[str, ...]
    choice: Choice | None
    decision: Any

    def recalled(self, out: Path) -> None:
        """Nothing: the table stayed where it was published."""


class Release(Questions, Modelling):
    """What the public sees, and the questions one may ask it.

    ``publish`` makes one, ``open_release`` reads one. Answers are linear in the published rows: in a question about the
    values S, a row that shows y counts with the weight

        w(y) = sum over x in S of P^-1[x][y]

    whose expectation is 1 for a row of S and 0 for any other, so estimates have no bias (mathematics 8).

    Attributes:
        manifest: everything needed to estimate and to verify.
        table: the published rows; left out where they are read from the folder when they are needed.
        folder: where it is kept; None while it is in memory.
        advice: what its owner should know, who has just published it; not part of the release.
        engine: what reads and counts the rows: a name, or an object.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), mechanism="uniform", seed=1)
    >>> release
    <Release of 1,000 rows, disease by uniform>
    >>> release.count({"sex": "F", "disease": "flu"})  # in the table there are 300
    <Estimate 318 (95 %: 260 to 378)>
    >>> release.sql("SELECT disease, COUNT(*) AS n FROM release GROUP BY disease").column_names
    ['disease', 'n', 'n_low', 'n_high']
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        table: pa.Table | None = None,
        folder: Path | None = None,
        advice: Advice | None = None,
        engine: str | Engine = "local",
    ) -> None:
        self.manifest = manifest
        self.folder = folder
        self.advice = advice
        self.engine = engine_named(engine)
        self._table = table

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner who has just published it should know, computed when it is read."""
        return () if self.advice is None else self.advice.warnings

    @property
    def choice(self) -> Choice | None:
        """How it was published, and why so, for the owner who has just done it."""
        return None if self.advice is None else self.advice.choice

    @property
    def decision(self) -> Any:
        """Whether it may be published, for the owner who has just made it: ``deniable.owner.decision.Decision``."""
        return None if self.advice is None else self.advice.decision

    def __getstate__(self) -> dict[str, Any]:
        """Copies in other places hold what was advised, and no longer the table that it was computed from."""
        given = None if self.advice is None else Given(self.warnings, self.choice, self.decision)
        return {**self.__dict__, "advice": given}

    @cached_property
    def table(self) -> pa.Table:
        """The published rows."""
        if self._table is not None:
            return self._table
        assert self.folder is not None
        if self.manifest.data is None:
            raise ManifestError(NO_FILE)
        path = unchanged_file(self.folder, self.manifest.data)
        table = self.engine.read(path, self.manifest.data, {c.name: c.type for c in self.manifest.columns})
        require_shape(table.column_names, table.num_rows, self.manifest)
        return table

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """The published rows in pieces; of a Parquet file no more than a piece is in memory.

        Args:
            columns: which columns, in this order.
            rows: how many rows a piece has at the most.
        """
        yield from (
            self._rows_in_files().batches(columns, rows)
            if self._in_files
            else (self.table.select(list(columns)).to_batches(max_chunksize=rows))
        )

    def published_schema(self) -> pa.Schema:
        """Names and types of the published columns."""
        return self._rows_in_files().schema if self._in_files else self.table.schema

    @property
    def _in_files(self) -> bool:
        """Whether rows can be read a part at a time."""
        data = self.manifest.data
        kept = self._table is None and "table" not in self.__dict__ and self.folder is not None
        return kept and data is not None and data.format == "parquet"

    def _rows_in_files(self) -> Dataset:
        return engine_named("local").open([str(part) for part in parts_of(self._file_of_rows())])

    def _file_of_rows(self) -> Path:
        """The file of the published rows, unchanged and of the shape that the manifest says."""
        assert self.folder is not None
        assert self.manifest.data is not None
        path = unchanged_file(self.folder, self.manifest.data)
        require_shape(*self.engine.describe(path, self.manifest.data, {}), self.manifest)
        return path

    @cached_property
    def lineups(self) -> pa.Table:
        """The table of line-ups, of releases whose rows show them by codes: which codes stand for sets that hold a
        value. It follows from the manifest alone."""
        coded = coded_part(self.manifest)
        if coded is None:
            raise QuestionError("The rows of this release show no codes of line-ups, so it has no table of them.")
        return code_table(coded)

    @cached_property
    def _rows(self) -> Published:
        """The rows and their channels, as estimators ask them."""
        return with_channels(self)

    def counter(self) -> Counter:
        """Who counts published rows, for the estimators."""
        return self._counter

    @cached_property
    def _counter(self) -> Counter:
        data = self.manifest.data
        from_file = self._table is None and self.folder is not None and data is not None and data.format == "parquet"
        rows = self._file_of_rows() if from_file else self.table
        if self.folder is not None:
            require_sound(self.folder, rows=True)
        return self.engine.counter(rows, self.manifest)

    def save(
        self, out: str | os.PathLike[str], *, overwrite: bool = False, format: str = "parquet", sign: Any | None = None
    ) -> Release:
        """Write the release into a folder, the whole of it or nothing, and open it from there.

        Args:
            out: the folder.
            overwrite: replace the release that is there.
            format: of the published table: ``"parquet"`` or ``"csv"``.
            sign: an Ed25519 private key, as in ``publish``. A signature is of files: those written here have none
                without it, whoever signed the folder that the release was opened from.
        """
        folder = Path(out)
        signer = None if sign is None else signer_of(sign)
        with Commit() as commit:
            new = folders.release_folder(commit, folder, overwrite, files_of_key(sign))
            stated = with_sentence(self.manifest)  # an older format had other words
            manifest = folders.finish_folder(new, stated, [self.table], self.table.schema, format, self.engine, signer)
            if self.advice is not None and (recall := self.advice.recalled(folder)) is not None:
                recall.save(commit)
        return Release(manifest, folder=folder, advice=self.advice, engine=self.engine)

    def to_pandas(self) -> Any:
        """The published rows as a pandas frame whose ``attrs["deniable"]`` is the manifest.

        Types stay: whole numbers and truth values that may be missing have pandas' nullable types, dates are dates.
        """
        pandas = _installed("pandas")
        kinds = {kind.name.lower(): kind for kind in (getattr(pandas, f"{name}Dtype")() for name in NULLABLE)}

        def read(column: pa.ChunkedArray) -> Any:
            nullable = kinds.get("boolean" if pa.types.is_boolean(column.type) else str(column.type))
            mapped = None if nullable is None or not column.null_count else (lambda _: nullable)
            return column.to_pandas(types_mapper=mapped, date_as_object=False)

        table = self.table
        frame = pandas.DataFrame({name: read(table[name]) for name in table.column_names})
        frame.attrs["deniable"] = self.manifest.to_dict()
        return frame

    def to_polars(self) -> Any:
        """The published rows as a polars frame; a frame of polars has no place for the manifest, which stays here."""
        return _installed("polars").from_arrow(self.table)

    def export(self, out: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the published rows as a file of SPSS (``.sav``, ``.zsav``), Stata (``.dta``) or SAS (``.xpt``).

        Columns that came with labels of values go back to their codes, with the labels. Sensitive columns hold what is
        published, and say so in their own label: ``weights`` gives numbers to count them with.

        Args:
            out: the file; its suffix says for which program. Needs the extra ``files``.
            overwrite: replace the file that is there.
        """
        from deniable.files.statistical import export_rows  # a house of its own, and an extra

        return export_rows(self, out, overwrite)

    def to_duckdb(self, out: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a DuckDB file for SQL and BI tools, in which rows are counted with their weights.

        It has the tables ``data`` (the published rows) and ``weights``; the macro ``weighed(disease_in := ['flu'])``,
        every row with its weight w for some values; ``stderr(w)``; and for each sensitive column a view ``by_disease``,
        every row once for each value, with its weight w and v, the variance of it.

        Args:
            out: the file.
            overwrite: replace the file that is there.
        """
        return write_database(self, out, overwrite)

    def verify(self, *, signed_by: Any | None = None) -> Certificate:
        """Recompute the certificate, of its files where it has some; see ``deniable.verify``.

        Args:
            signed_by: the key that must have signed it.
        """
        return verify(self, signed_by=signed_by)

    def __repr__(self) -> str:
        sensitive = perturbed_names(self.manifest.parts)
        return f"<Release of {self.manifest.rows:,} rows, {sensitive} by {self.manifest.mechanism}>"

    def _repr_html_(self) -> str:
        """For notebooks, with what its owner was told when it was published; no row is read for it."""
        warned = "".join(paragraph(f"Warning: {text}") for text in self.warnings)
        return title(repr(self)) + warned + self.manifest.columns_html()


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise OptionError(f"{name} is not installed. Fix: pip install {name}") from None


def open_release(path: str | os.PathLike[str], *, engine: str | Engine = "local") -> Release:
    """The release in a folder; its rows are read when they are needed.

    Nothing is answered from a release that would not verify: it is refused when it is opened for what its manifest
    shows (a signature included), and by the first question for what its rows show.

    Args:
        path: the folder.
        engine: what reads and counts the rows: a name, or an object.

    >>> import pyarrow as pa, tempfile
    >>> import deniable as dn
    >>> table = pa.table({"disease": ["flu", "cold", "hiv"] * 100})
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = dn.publish(table, sensitive="disease", privacy="1/2", mechanism="uniform", out=f"{home}/release")
    ...     dn.open_release(f"{home}/release")
    <Release of 300 rows, disease by uniform>
    """
    folder = Path(path)
    opened = Release(folders.read_manifest(folder), folder=folder, engine=engine)
    require_sound(folder, rows=False)
    return opened
