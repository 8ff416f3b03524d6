"""`deniable collect`: surveys whose answers are changed at random before they leave the respondent's device."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import console

if TYPE_CHECKING:
    from deniable.collection.collected import Compared
    from deniable.collection.wire import Responses

app = typer.Typer(
    cls=console.Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SurveyFile = Annotated[Path, typer.Argument(metavar="SURVEY", help="The survey: a TOML file.")]
StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="Where responses are kept: a path for SQLite, or postgresql://user@host/database. "
        "Left out: the survey's name with .db, beside it.",
    ),
]


@app.callback()
def collect() -> None:
    """Ask people in private: check a survey, serve it, try it with made-up respondents.

    New here? Run `deniable collect new survey.toml`.
    """


def _responses(survey: Path) -> Responses:
    from deniable.collection.sheet import Sheet
    from deniable.collection.survey import read_survey
    from deniable.collection.wire import Responses

    return Responses(Sheet.of(read_survey(survey)))


def _address(survey: Path, store: str | None) -> str:
    return str(survey.with_suffix(".db")) if store is None else store


@app.command()
def new(survey: SurveyFile, as_json: console.AsJson = False) -> None:
    """Write an example survey to begin with: questions of your own take the place of its.

    Example: deniable collect new survey.toml
    """
    from importlib import resources

    from deniable.core.errors import OutputError
    from deniable.release.folder import write_file

    if survey.exists():
        raise OutputError(f"{str(survey)!r} exists already. Fix: choose another name.")
    example = resources.files("deniable.collection").joinpath("example.toml").read_text(encoding="utf-8")
    write_file(survey, example)
    if as_json:
        console.emit({"survey": str(survey)})
    else:
        print(f"Wrote {survey}. Next: deniable collect check {shlex.quote(str(survey))}")


@app.command()
def check(survey: SurveyFile, as_json: console.AsJson = False) -> None:
    """See what every answer and the whole sheet reveal, how many respondents are needed, and what identifies people.

    Example: deniable collect check survey.toml
    """
    from deniable.collection.sheet import ERROR, check

    responses = _responses(survey)
    checked = check(responses.sheet, responses.fingerprint)
    if as_json:
        console.emit(checked.to_dict())
        return
    whole = ", ".join(f"{before} to {after}" for before, after in checked.grows.items())
    print(f"The whole sheet has epsilon {checked.epsilon:.3g}: a belief about all answers can grow from {whole}.")
    console.show_table(
        ["column", "how", "epsilon", *(f"belief {before}" for before in checked.grows), f"for +-{ERROR:.0%}"],
        [
            (one.column, one.how, f"{one.epsilon:.3g}", *one.grows.values(), f"{one.respondents:,}")
            for one in checked.revealed
        ],
    )
    print()
    print(f"Sent as they are: {', '.join(checked.public) or 'none'}.")
    print(f"Fingerprint: {checked.fingerprint}")
    for warning in checked.warnings:
        console.warn(warning)


@app.command()
def serve(
    survey: SurveyFile,
    store: StoreAddress = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="The port to listen at.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with the token that results need. Left out: made at the first start, and told once.",
        ),
    ] = None,
    rate: Annotated[
        int, typer.Option(metavar="N", min=0, help="Responses a minute from one place; 0: any number.")
    ] = 600,
    as_json: console.AsJson = False,
) -> None:
    """Serve a survey: its page, the responses, and results for whoever has the token. Stops at Ctrl-C or SIGTERM.

    Example: deniable collect serve survey.toml --port 8000
    """
    from deniable.collection.store import store_at
    from deniable.core.errors import extra_missing

    try:
        from deniable.collection.server.serving import require_free, results_token, serve, token_in
    except ModuleNotFoundError as lacking:
        raise extra_missing(str(lacking.name), "collect") from None
    responses = _responses(survey)
    require_free(host, port)
    given = None if token_file is None else token_in(token_file)  # before a store is made
    kept = store_at(_address(survey, store))
    token_hash, token = results_token(kept, given)

    def ready() -> None:
        base = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        if as_json:
            addresses = {"survey": f"{base}#{responses.fingerprint}", "results": f"{base}results.html", "token": token}
            print(json.dumps(addresses), file=sys.__stdout__, flush=True)  # now: a server's result is not its end
            return
        console.say(f"Survey:  {base}#{responses.fingerprint}")
        console.say(f"Results: {base}results.html")
        if token is not None:
            console.say(f"Token:   {token}   (told once; only its hash is kept)")

    serve(responses, kept, token_hash, host=host, port=port, rate=rate, ready=ready)


@app.command()
def codes(
    survey: SurveyFile,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", min=1, max=1_000_000, help="How many.")],
    store: StoreAddress = None,
    as_json: console.AsJson = False,
) -> None:
    """Make one-time codes for invitations: each lets one person answer once, and is never tied to a response.

    Example: deniable collect codes survey.toml --number 200
    """
    from deniable.collection.store import store_at
    from deniable.collection.wire import hashed, new_codes
    from deniable.core.errors import OptionError

    responses = _responses(survey)
    if not responses.sheet.survey.codes:
        raise OptionError("The survey takes no one-time codes. Fix: codes = true in its file, before anyone answers.")
    kept = store_at(_address(survey, store))
    kept.open_for(responses.fingerprint)
    made = new_codes(number)
    kept.add_codes([hashed(code) for code in made])
    kept.close()
    if as_json:
        console.emit({"codes": made})
    else:
        print("\n".join(made))


@app.command()
def simulate(
    survey: SurveyFile,
    respondents: Annotated[
        int, typer.Option("--respondents", "-n", metavar="N", min=1, max=1_000_000, help="How many made-up people.")
    ] = 1000,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Send them to a server that runs this survey, too.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write what they sent as a release.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The same seed makes the same people.")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Try a survey with made-up respondents: every count beside the truth, before anyone is asked.

    Example: deniable collect simulate survey.toml --respondents 1000 --out release/
    """
    from deniable.collection.collected import Respondents, release_of

    responses = _responses(survey)
    people = Respondents(responses, respondents, seed)
    if url is not None:
        from deniable.collection.client import Client

        done = Client(url, fingerprint=responses.fingerprint).submit(people.answers, keys=people.keys)
        console.say(f"{done.sent:,} responses sent, {done.queued:,} not.")
    release = release_of(responses.sheet, [json.dumps(list(row.values())) for row in people.sent()])
    if out is not None:
        release.save(out)
    _show(list(people.compared(release)), respondents, as_json=as_json)


def _show(compared: list[Compared], respondents: int, *, as_json: bool) -> None:
    covered = sum(one.covered for one in compared)
    if as_json:
        counts = [{**vars(one), "covered": one.covered} for one in compared]
        console.emit({"respondents": respondents, "counts": counts, "covered": covered})
        return
    console.show_table(
        ["column", "answer", "true", "estimate", "low", "high"],
        [(o.column, o.value, o.truth, round(o.count), round(o.low), round(o.high)) for o in compared],
    )
    print(f"\n{covered} of {len(compared)} intervals hold the true count; 95 in 100 should.")
