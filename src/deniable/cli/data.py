"""`deniable data`: tables to try things on."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from deniable.cli import console, openml

app = typer.Typer(cls=console.Group, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def data() -> None:
    """Fetch public tables to try things on."""


@app.command("adult")
def adult(
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to keep the table. Left out: the cache folder of your account."),
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Fetch UCI Adult (48,842 people, 15 columns) from OpenML, once, and print where it is.

    Example: deniable data adult
    """
    path = (cache or cache_folder()) / "adult.parquet"
    if not path.exists():
        if not quiet:
            console.say(f"Fetching UCI Adult from {openml.address()}")
        openml.fetch(openml.ADULT, path)
    about = pq.read_metadata(path)
    if as_json:
        console.emit({"file": str(path), "rows": about.num_rows, "columns": about.schema.to_arrow_schema().names})
        return
    console.show(path)
    if not quiet:
        console.say(f"{about.num_rows:,} rows. UCI Adult, B. Becker and R. Kohavi (1996), CC BY 4.0.")
        console.say(
            f"Next: deniable publish {shlex.quote(str(path))} --sensitive occupation --rho2 1/3 --out adult-release/"
        )


def cache_folder() -> Path:
    """The XDG cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "deniable"
