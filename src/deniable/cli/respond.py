"""`deniable respond`: perturb one's own row, with the coins of a release."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import console
from deniable.core.errors import OptionError


def respond(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    row: Annotated[
        str,
        typer.Argument(
            metavar="ROW", help="The row, a JSON object of column and value; '-': one in each line of the input."
        ),
    ],
    as_json: console.AsJson = False,
) -> None:
    """Perturb your own row as the rows of a release were, before it leaves this machine.

    What is printed may be handed over: one JSON object for each row. The row itself is neither stored nor printed.

    Example: deniable respond release '{"town": "Ulm", "smokes": "yes"}'
    """
    import deniable as dn

    opened = dn.open_release(release)
    answers = [dn.respond(original, opened) for original in _rows(row)]
    if as_json:
        console.emit({"release": str(release), "rows": answers})
        return
    for answer in answers:
        print(console.in_json(answer))


def _rows(text: str) -> Iterator[dict[str, Any]]:
    """The rows, one by one; a message about them names the line, never what stands in it."""
    lines = sys.stdin.read().splitlines() if text == "-" else [text]
    for number, line in enumerate(lines, start=1):
        if text == "-" and not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise OptionError(f"""Row {number} is no JSON object. Fix: '{{"town": "Ulm", "smokes": "yes"}}'.""")
        yield row
