"""`deniable export`: a release's rows for SPSS, Stata or SAS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console


def export(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    out: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write: .sav or .zsav (SPSS), .dta (Stata), .xpt (SAS).")
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Write a release's rows as a file of SPSS, Stata or SAS, with the labels that its table came with.

    Sensitive columns hold what is published, so counts of them are no estimates: `deniable query` gives those.

    Example: deniable export release/ rows.sav
    """
    import deniable as dn

    opened = dn.open_release(release)
    opened.export(out, overwrite=overwrite)
    if as_json:
        console.emit({"file": str(out), "rows": opened.manifest.rows})
        return
    console.show(f"Wrote {opened.manifest.rows:,} rows to {out}")
    if not quiet:
        names = ", ".join(opened.manifest.sensitive_columns)
        console.say(f"{names}: changed at random, so counts of it in that file are no estimates.")
        console.say(f'Estimates: deniable query {release} "SELECT ..."')
