"""`deniable commit`: what a receiver is told before it names a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console


def commit(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table that will be published.")],
    project: Annotated[Path, typer.Option(metavar="FILE", help="Its project file: roles, recodes, requirement.")],
    key_file: Annotated[Path, typer.Option(metavar="FILE", help="The key that the release will be drawn with.")],
    as_json: console.AsJson = False,
) -> None:
    """Commit to a table, its project and a key, before a receiver chooses the name of the release.

    Example: deniable commit patients.csv --project deniable.toml --key-file my.key
    """
    from deniable.owner.confirming import commitment
    from deniable.owner.decision import quoted
    from deniable.owner.project import Project
    from deniable.tables.keys import Secret

    made = commitment(table, Project.read(project), Secret.read(key_file))
    if as_json:
        console.emit({"commitment": made})
        return
    console.show(made)
    console.say("Send it to the receiver, who answers with a name that ends in random digits. Then:")
    words = ["deniable", "publish", table, "--project", str(project), "--key-file", str(key_file)]
    console.say(f"  {quoted(words)} --name NAME --out FOLDER")
