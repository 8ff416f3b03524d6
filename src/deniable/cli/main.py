"""The command `deniable`: every command of the family is registered here, one line each."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from deniable.cli import audit, console, data, demo, evaluate, plan, publish, query, report, reproduce, verify

app = typer.Typer(
    name="deniable",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print local variables, and one of them may be the key
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"deniable {metadata.version('deniable')}")
        raise typer.Exit


@app.callback()
def deniable(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Publish tables about people so that every sensitive value stays deniable, and ask them questions.

    New here? Run `deniable demo`.
    """


app.command("plan")(plan.plan)
app.command("publish")(publish.publish)
app.command("verify")(verify.verify)
app.command("query")(query.query)
app.command("audit")(audit.audit)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")


def main() -> None:
    """The entry point of the program `deniable`."""
    try:
        app(prog_name="deniable")
    except KeyboardInterrupt:
        sys.exit(console.INTERRUPTED)
