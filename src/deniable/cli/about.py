"""Options that say who publishes a release, and what its columns mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.core.about import About, dictionary

Publisher = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who publishes it, for the README of the release and its citation.")
]
Contact = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Where questions about the release go: an address, a page.")
]
Dictionary = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="A data dictionary, for the README of the release: a CSV file with the fields column and description.",
    ),
]


def about_of(publisher: str | None, contact: str | None, described: Path | None) -> About:
    """What the options say of a release."""
    return About(publisher, contact, columns={} if described is None else dictionary(described))
