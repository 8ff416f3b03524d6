"""`deniable desk`: a page on the owner's own machine, from a table to a signed release."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console


def desk(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="The table to publish: a file, or a pattern for several. Left out: chosen on the first page.",
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The project file: taken up where it is there, and written. Left out: deniable.toml beside the table.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="The port to listen at; 0: any that is free.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the browser; print the address only.")
    ] = False,
    language: Annotated[
        str, typer.Option("--lang", metavar="NAME", help="Language of the pages: en or de. Left out: the browser's.")
    ] = "",
    as_json: console.AsJson = False,
) -> None:
    """Publish a table in seven steps, on a page that this machine serves to itself: from the table to a signed release.

    The page is for whoever has the address that is printed, on this machine. Nothing is sent anywhere. What is decided
    is kept in the project file, and the last page shows the command that does the same. Stops at Ctrl-C or SIGTERM.

    Example: deniable desk patients.csv
    """
    from deniable.core.errors import extra_missing
    from deniable.publishing.request import check_choice

    try:
        from deniable.desk.server import Serving
    except ModuleNotFoundError as lacking:
        raise extra_missing(str(lacking.name), "desk") from None
    from deniable.desk.desk import Desk
    from deniable.desk.texts import LANGUAGES

    if language:
        check_choice("lang", language, LANGUAGES)
    made = Desk(home=Path.cwd(), file=project, language=language)
    if table is not None:
        made.open(table)
    serving = Serving(made, port)

    def ready(address: str) -> None:
        if as_json:
            print(
                json.dumps({"desk": address}), file=sys.__stdout__, flush=True
            )  # now: a server's result is not its end
            return
        console.say(f"The desk: {address}")
        console.say("The address holds a secret: it is for you alone. Ctrl-C ends the desk.")

    serving.run(ready, browser=not no_browser)
