"""Rows of a release as files of other programs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from deniable.core.errors import OutputError, listing, option
from deniable.engines.exporting import export, program_of
from deniable.release.folder import write_file

if TYPE_CHECKING:
    from deniable.release.release import Release

NOTE = "Columns that say so were changed at random: see README.md of the release."  # SPSS takes 80 letters


def export_rows(release: Release, out: str | os.PathLike[str], overwrite: bool) -> Path:
    """Write the published rows into a file of SPSS, Stata or SAS."""
    path, manifest = Path(out), release.manifest
    program_of(path)
    lineups = [column for part in manifest.parts if part.lineups is not None for column in part.columns]
    if lineups:
        raise OutputError(
            f"{listing(lineups)}: each row shows several values (a line-up), and a column of {program_of(path)} holds "
            "one. Fix: release.pseudo_table() gives rows with weights, or save the release as CSV."
        )
    if path.exists() and not overwrite:
        raise OutputError(
            f"The output {str(path)!r} exists already. Fix: choose another name, or {option('overwrite', True)}."
        )
    remarks = {name: f"{name} (changed at random: see the notes)" for name in manifest.sensitive_columns}
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, f"rows{path.suffix.lower()}")
        export(release.table, manifest.labels, remarks, NOTE, written)
        write_file(path, written.read_bytes(), table=True)
    return path
