"""The options that say which engine reads and counts the rows."""

from __future__ import annotations

from typing import Annotated

import typer

EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="What reads and counts the rows: local (this machine) or spark (tables on a cluster; extra 'spark').",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="With --engine spark: where it runs, e.g. yarn. Left out: as Spark is set up."),
]
