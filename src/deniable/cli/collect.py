"""`deniable collect`: surveys whose answers are changed at random before they leave the respondent's device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console

app = typer.Typer(
    help="Ask people in private: check a survey, serve it, try it with made-up respondents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def collect() -> None:
    """Ask people in private: check a survey, serve it, try it with made-up respondents."""


SurveyFile = Annotated[Path, typer.Argument(metavar="SURVEY", help="The survey: a TOML file.")]


@app.command()
@console.guarded
def check(survey: SurveyFile, as_json: console.AsJson = False) -> None:
    """See what every answer and the whole sheet reveal, how many respondents are needed, and what identifies people."""
    from deniable.collection.checking import ERROR, check
    from deniable.collection.sheet import Sheet
    from deniable.collection.survey_file import read_survey
    from deniable.collection.wire import Responses

    responses = Responses(Sheet.of(read_survey(survey)))
    checked = check(responses.sheet, responses.fingerprint)
    if as_json:
        console.emit(checked.to_dict())
        return
    console.show_table(
        ["column", "how", "epsilon", *(f"belief {before}" for before in checked.grows), f"for +-{ERROR:.0%}"],
        [
            (one.column, one.how, f"{one.epsilon:.3g}", *one.grows.values(), f"{one.respondents:,}")
            for one in checked.revealed
        ],
    )
    print()
    whole = ", ".join(f"{before} to {after}" for before, after in checked.grows.items())
    print(f"The whole sheet has epsilon {checked.epsilon:.3g}: a belief about all answers can grow from {whole}.")
    print(f"Sent as they are: {', '.join(checked.public) or 'none'}.")
    print(f"Fingerprint: {checked.fingerprint}")
    for warning in checked.warnings:
        console.warn(warning)
