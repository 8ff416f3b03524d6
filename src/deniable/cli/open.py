"""`deniable open`: a release as a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console


def open_(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    duckdb: Annotated[Path, typer.Option("--duckdb", metavar="FILE", help="The DuckDB file to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Open a release in a database: one DuckDB file, in which SQL and BI tools count with weights.

    SUM(w) over weighed(COLUMN_in := [values]) is a count, and stderr(w) its standard error.

    Example: deniable open release/ --duckdb release.duckdb
    """
    import deniable as dn

    opened = dn.open_release(release)
    opened.to_duckdb(duckdb, overwrite=overwrite)
    if as_json:
        console.emit({"file": str(duckdb), "rows": opened.manifest.rows})
        return
    console.show(f"Wrote {opened.manifest.rows:,} rows and their weights to {duckdb}")
    if not quiet:
        name = opened.manifest.parts[0].columns[0]
        column = '"' + f"{name}_in".replace('"', '""') + '"'
        console.say(f"Try: SELECT SUM(w) AS n, stderr(w) FROM weighed({column} := ['a value'])")
