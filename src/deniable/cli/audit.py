"""`deniable audit`: what attackers learn from a release, for its owner."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console
from deniable.core.errors import OutputError

FOUND = 1  # the audit ran, and found something serious


@console.guarded
def audit(
    original: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table that was published: a CSV or Parquet file, or a pattern.")
    ],
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of the release.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the audit to this file (mode 0600) instead of the terminal."),
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """See, before anyone else does, what attackers learn from a release.

    The audit holds exact figures of the original table: keep it. It is never written into the folder of the release.
    Exit code 0: nothing serious. 1: something serious was found. 2: the audit could not be made.
    """
    from deniable.auditing import audit as run

    if out is not None:
        _refuse_inside(out, release)
    found = run(original, release)
    result = {"release": str(release), **found.to_dict()}
    if out is not None:
        _write(out, json.dumps(result, indent=2, ensure_ascii=False) if as_json else str(found))
        console.say(f"The audit is in {out}. It is for you alone.")
    elif as_json:
        console.emit(result)
    else:
        print(found)
    if found.serious:
        raise typer.Exit(FOUND)


def _refuse_inside(out: Path, release: Path) -> None:
    folder = release.resolve()
    if folder == out.resolve() or folder in out.resolve().parents:
        raise OutputError(
            f"out = {str(out)!r} is inside the release, and an audit must never be published. "
            "Fix: choose a file outside of the release folder."
        )


def _write(out: Path, text: str) -> None:
    """A file that only its owner can read."""
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text + "\n")
