"""The public face of a release: rows, a manifest, and the questions one may ask.

It joins rooms that do not know each other (engines read rows, estimation looks back, audit verifies), which is why it
stands above them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable import estimation
from deniable.audit.verify.certificate import Certificate, Check, certificate
from deniable.audit.verify.groups import anatomy_checks, generalize_checks
from deniable.core.errors import VerificationError
from deniable.core.manifest import DataFile, Manifest
from deniable.engines.local import storage
from deniable.engines.local.counting import LocalCounter
from deniable.engines.local.shuffling import rechunked
from deniable.estimation import Estimate, cubes
from deniable.release.hidden_channels import asked_of
from deniable.release.readme import analyst_readme

ROW_GROUP = 2**18
OF_GROUPS = ("anatomy", "generalize")  # mechanisms whose releases have a second table


class Release:
    """What the public sees.

    Attributes:
        manifest: everything needed to estimate and to verify.
        warnings: what the owner was told when publishing; not part of the release.
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        table: pa.Table | None = None,
        folder: Path | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.manifest = manifest
        self.folder = folder
        self.warnings = tuple(warnings)
        self._table = table

    @cached_property
    def table(self) -> pa.Table:
        """The published rows."""
        if self._table is not None:
            return self._table
        assert self.folder is not None
        return storage.read_data(self.folder, self.manifest)

    # -- questions ----------------------------------------------------------------------------------------------------

    def counter(self) -> LocalCounter:
        """Counts published rows, for the estimators."""
        return self._counter

    @cached_property
    def _counter(self) -> LocalCounter:
        in_parquet = (
            self.folder is not None and self.manifest.data is not None and self.manifest.data.format == "parquet"
        )
        if self._table is None and in_parquet:
            assert self.folder is not None
            return LocalCounter(storage.data_path(self.folder, self.manifest), self.manifest)
        return LocalCounter(self.table, self.manifest)

    @cached_property
    def _asked(self) -> Any:
        """The release as estimation sees it."""
        return asked_of(self)

    def count(self, where: Mapping[str, Any] | None = None, **options: Any) -> Estimate:
        """How many rows satisfy ``where``: column -> value, list of values, ``between``, ``not_`` or None (missing).

        Options: ``method="inverse" | "mle" | "shrunk"``, or for decoy groups ``"four-state" | "four-state exact"``;
        ``calibrate=``, ``confidence=0.95``.
        """
        return estimation.count(self._asked, where, **options)

    def sum(self, column: str, where: Mapping[str, Any] | None = None, **options: Any) -> Estimate:
        """The sum of a public numeric column over the rows that satisfy ``where``."""
        return estimation.sum_of(self._asked, column, where, **options)

    def mean(self, column: str, where: Mapping[str, Any] | None = None, **options: Any) -> Estimate:
        """The average of a public numeric column over the rows that satisfy ``where``."""
        return estimation.mean(self._asked, column, where, **options)

    def group_by(
        self, columns: str | Sequence[str], where: Mapping[str, Any] | None = None, **options: Any
    ) -> pa.Table:
        """How many rows each group has, with intervals; columns may be public or sensitive."""
        return estimation.group_by(self._asked, columns, where, **options)

    def histogram(self, where: Mapping[str, Any] | None = None, **options: Any) -> pa.Table:
        """How many rows hold each sensitive value, among those that satisfy ``where``."""
        return estimation.histogram(self._asked, where, **options)

    def count_many(self, wheres: Sequence[Mapping[str, Any]], **options: Any) -> estimation.Pool:
        """Many counts in one array computation; ``every_value=True`` asks each condition with every sensitive value."""
        return estimation.count_many(self._asked, wheres, **options)

    def cube(
        self, columns: Mapping[str, Any] | Sequence[str], where: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Counts of all combinations: of the 2^k truths of conditions (a mapping), or of all values (a list)."""
        if isinstance(columns, Mapping):
            return cubes.cube(self._asked, columns, where=where, **options)
        return self.group_by(columns, where, **options)

    def sql(self, question: str, **options: Any) -> pa.Table:
        """Answer a question in SQL; every aggregate ``n`` comes with ``n_low`` and ``n_high``."""
        return estimation.sql(self._asked, question, **options)

    # -- keeping it ---------------------------------------------------------------------------------------------------

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False, format: str = "parquet") -> Release:
        """Write the release into a folder: the whole of it, or nothing."""
        folder = Path(out)
        with storage.new_folder(folder, overwrite) as partial:
            pieces = rechunked([self.table], self.table.schema, ROW_GROUP)
            manifest = finish_folder(partial, self.manifest, pieces, self.table.schema, format)
        return Release(manifest, folder=folder, warnings=self.warnings)

    def verify(self) -> Certificate:
        """Recompute the certificate; see ``deniable.verify``."""
        if self.folder is not None:
            return verify(self.folder)
        return _raise_unless_it_holds(certificate(self.manifest.to_dict()), "this release")

    def __repr__(self) -> str:
        sensitive = ", ".join(self.manifest.sensitive_columns)
        return f"<Release of {self.manifest.rows:,} rows, {sensitive} by {self.manifest.mechanism}>"


def verify(path: str | os.PathLike[str]) -> Certificate:
    """Recompute a release's certificate; raises ``VerificationError`` naming what does not hold."""
    folder = Path(path)
    manifest = storage.read_manifest(folder)
    found = certificate(manifest.to_dict())
    return _raise_unless_it_holds(Certificate((*found.checks, *_data_checks(folder, manifest))), str(folder))


def _data_checks(folder: Path, manifest: Manifest) -> list[Check]:
    path = storage.data_path(folder, manifest)
    if not path.exists():
        return [Check("data", False, f"{path.name} is missing")]
    assert manifest.data is not None
    same = storage.digest(path) == manifest.data.sha256
    checks = [Check("data", same, "SHA-256 as in the manifest" if same else f"{path.name} was changed: other SHA-256")]
    if same:
        names = storage.column_names(folder, manifest)
        expected = [column.name for column in manifest.columns]
        checks.append(Check("columns", names == expected, f"{len(names)} columns, {len(expected)} in the manifest"))
        rows = storage.row_count(folder, manifest)
        checks.append(Check("rows", rows == manifest.rows, f"{rows:,} rows, {manifest.rows:,} in the manifest"))
    return [*checks, *(_group_checks(folder, manifest) if manifest.mechanism in OF_GROUPS else ())]


def _group_checks(folder: Path, manifest: Manifest) -> list[Check]:
    """The second table of a release of groups: unchanged, and what it promises holds in both tables."""
    path = folder / "groups.parquet"
    if not path.exists() or storage.digest(path) != manifest.extra.get("groups_sha256"):
        return [Check("groups", False, f"{path.name} is missing or was changed")]
    groups = storage.read_groups(path)
    if manifest.mechanism == "generalize":
        return generalize_checks(manifest, storage.read_data(folder, manifest), groups)
    return anatomy_checks(manifest, groups)


def _raise_unless_it_holds(found: Certificate, what: str) -> Certificate:
    if not found.holds:
        lines = "\n".join(f"- {check.what}: {check.detail}" for check in found.failures)
        raise VerificationError(f"{what} does not hold what it promises:\n{lines}")
    return found


def finish_folder(
    partial: Path, manifest: Manifest, pieces: Iterable[pa.Table], schema: pa.Schema, form: str
) -> Manifest:
    """Write data, manifest and README into a folder that is not yet in place."""
    file = f"data.{form}"
    sha256 = storage.write_data(pieces, schema, partial / file, form)
    manifest = replace(manifest, data=DataFile(file=file, format=form, sha256=sha256))
    (partial / storage.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    (partial / storage.README).write_text(analyst_readme(manifest), encoding="utf-8")
    return manifest
