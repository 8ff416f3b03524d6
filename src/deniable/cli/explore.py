"""`deniable explore`: a release as one page that anyone asks in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console


def explore(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")],
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="NAMES", help="Public columns that the page has, with commas; else all."),
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Write a page in which anyone asks a release: one file, without a server, a network or anything to install.

    Whoever opens it filters rows, groups them and asks for values, and sees counts and shares with their intervals.

    Example: deniable explore release/ --out explore.html
    """
    import deniable as dn
    from deniable.analyst import explore as pages

    opened = dn.open_release(release)
    named = None if columns is None else [name.strip() for name in columns.split(",")]
    written = pages.write(opened, out, named)
    size = written.stat().st_size
    if as_json:
        console.emit({"page": str(out), "bytes": size, "rows": opened.manifest.rows})
        return
    console.show(out)
    if not quiet:
        console.say(f"{size / 2**20:,.1f} MB. It holds the published rows: it may go wherever the release may.")
