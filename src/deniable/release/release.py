"""The public face of a release: rows, a manifest, and who answers the questions one may ask.

It joins rooms that do not know each other (engines read rows, estimation looks back, audit verifies), which is why it
stands above them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.audit.verify.checks import Certificate
from deniable.core import html
from deniable.core.choice import Choice
from deniable.core.errors import ManifestError, OutputError, QuestionError, worded
from deniable.core.manifest import Manifest, with_sentence
from deniable.core.part import perturbed_names
from deniable.core.tally import Counter
from deniable.engines import Engine, engine_named
from deniable.engines.base import Dataset
from deniable.engines.batch.lineup_columns import code_table, coded_part
from deniable.engines.batch.parts import parts_of
from deniable.estimation.question import Answerer
from deniable.release import files
from deniable.release import folder as folders
from deniable.release.answerer import answerer_of
from deniable.release.export import export_rows
from deniable.release.modelling import Modelling
from deniable.release.questions import Questions
from deniable.release.signing_key import files_of_key, signer_of
from deniable.release.verify import verify, verify_manifest

NO_FILE = "manifest.json names no file of published rows: it is damaged. Fix: ask for the whole release."


def _no_rows(mechanism: str) -> str:
    instead = worded("leave out= out and ask the object", "ask it in Python (dn.publish)")
    return (
        f"mechanism {mechanism!r} publishes no rows: it answers count(where=...) from the original table, which stays "
        f"with its owner. Fix: {instead}, or publish with another mechanism."
    )


class Release(Questions, Modelling):
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
        warnings, choice: what the owner was told when publishing, and what the mechanism was chosen for; not part of
            the release.
        engine: what reads and counts the rows: a name, or an object.
        answerer: who answers questions; by default found from the manifest.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), mechanism="uniform", seed=1)
    >>> release
    <Release of 1,000 rows, disease by uniform>
    >>> release.count({"sex": "F", "disease": "flu"})  # in the table there are 300
    <Estimate 318 (95 %: 260 to 379)>
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
        self.choice: Choice | None = None
        self.engine = engine_named(engine)
        self._table = table
        self._groups = groups
        self._answerer = answerer

    @cached_property
    def table(self) -> pa.Table:
        """The published rows."""
        if self.manifest.form == "answers":
            raise QuestionError(_no_rows(self.manifest.mechanism))
        if self._table is not None:
            return self._table
        assert self.folder is not None
        if self.manifest.data is None:
            raise ManifestError(NO_FILE)
        path = files.unchanged_file(self.folder, self.manifest.data)
        table = self.engine.read(path, self.manifest.data, {c.name: c.type for c in self.manifest.columns})
        files.require_shape(table.column_names, table.num_rows, self.manifest)
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
        return kept and self.manifest.form != "answers" and data is not None and data.format == "parquet"

    def _rows_in_files(self) -> Dataset:
        return engine_named("local").open([str(part) for part in parts_of(self._file_of_rows())])

    def _file_of_rows(self) -> Path:
        """The file of the published rows, unchanged and of the shape that the manifest says."""
        assert self.folder is not None
        assert self.manifest.data is not None
        path = files.unchanged_file(self.folder, self.manifest.data)
        files.require_shape(*self.engine.describe(path, self.manifest.data, {}), self.manifest)
        return path

    @cached_property
    def groups(self) -> pa.Table:
        """The second table, of releases of groups."""
        if self._groups is not None:
            return self._groups
        if self.folder is None or self.manifest.groups is None:
            raise QuestionError(f"A release by {self.manifest.mechanism!r} has no table of groups.")
        path = files.unchanged_file(self.folder, self.manifest.groups)
        return self.engine.read(path, self.manifest.groups, {})

    @cached_property
    def lineups(self) -> pa.Table:
        """The table of line-ups, of releases whose rows show them by codes: which codes stand for sets that hold a
        value. It follows from the manifest alone."""
        coded = coded_part(self.manifest)
        if coded is None:
            raise QuestionError("The rows of this release show no codes of line-ups, so it has no table of them.")
        return code_table(coded)

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
            return self.engine.counter(self._file_of_rows(), self.manifest)
        return self.engine.counter(self.table, self.manifest)

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
        if self.manifest.form == "answers":
            raise OutputError(_no_rows(self.manifest.mechanism))
        folder = Path(out)
        signer = None if sign is None else signer_of(sign)
        with folders.new_folder(folder, overwrite, files_of_key(sign)) as partial:
            rows = self.manifest.form == "rows"
            stated = with_sentence(self.manifest) if rows else self.manifest  # an older format had other words
            groups = None if rows else [self.groups]
            manifest = folders.finish_folder(
                partial, stated, [self.table], self.table.schema, format, self.engine, groups, signer
            )
        saved = Release(manifest, folder=folder, groups=self._groups, warnings=self.warnings, engine=self.engine)
        saved.choice = self.choice
        return saved

    def export(self, out: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the published rows as a file of SPSS (``.sav``, ``.zsav``), Stata (``.dta``) or SAS (``.xpt``).

        Columns that came with labels of values go back to their codes, with the labels. Sensitive columns hold what is
        published, and say so in their own label: ``weights`` gives numbers to count them with.

        Args:
            out: the file; its suffix says for which program. Needs the extra ``files``.
            overwrite: replace the file that is there.
        """
        return export_rows(self, out, overwrite)

    def verify(self, *, signed_by: Any | None = None) -> Certificate:
        """Recompute the certificate, of its files where it has some; see ``deniable.verify``.

        Args:
            signed_by: the key that must have signed it.
        """
        if self.manifest.form == "answers":
            raise QuestionError(
                f"Answers of mechanism {self.manifest.mechanism!r} cannot be verified: whoever asks trusts the owner "
                "to add the noise. Fix: publish rows with another mechanism."
            )
        if self.folder is None:
            return verify_manifest(self.manifest, signed_by=signed_by)
        return verify(self.folder, signed_by=signed_by, engine=self.engine)

    def __repr__(self) -> str:
        if self.manifest.form == "answers" and self._answerer is not None:
            return repr(self._answerer)
        sensitive = perturbed_names(self.manifest.parts)
        return f"<Release of {self.manifest.rows:,} rows, {sensitive} by {self.manifest.mechanism}>"

    def _repr_html_(self) -> str:
        """For notebooks, with what its owner was told when it was published; no row is read for it."""
        warned = "".join(html.paragraph(f"Warning: {text}") for text in self.warnings)
        return html.title(repr(self)) + warned + self.manifest.columns_html()


def open_release(path: str | os.PathLike[str], *, engine: str | Engine = "local") -> Release:
    """The release in a folder; its rows are read when they are needed.

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
    return Release(folders.read_manifest(folder), folder=folder, engine=engine)
