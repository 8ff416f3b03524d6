"""`deniable report`: one page about a release, for its owner or for an analyst."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import console
from deniable.core.errors import OptionError
from deniable.core.text import small_text


def report(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    original: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The table that was published, for an audit and attacks in the owner's report. It is only read.",
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What 'deniable evaluate --json' printed, for its errors and charts in the owner's report.",
        ),
    ] = None,
    audience: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="WHO",
            help="Who reads it: 'owner' (privacy first; keep it) or 'analyst' (how to use the release). Left out: the "
            "owner with --original or --evaluation, otherwise an analyst.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write. Left out: report.html, .md or .json here.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="html (one file with charts), md or json. Left out: as the name of --out ends, otherwise html.",
        ),
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Write a report about a release: one file that needs no network and can be printed.

    The owner's report may hold facts about the original table: it is readable by you alone, and refuses to be written
    into the release. The analyst's holds only what the release holds.

    Example: deniable report release/ --original patients.csv --out report.html
    """
    from deniable import report as reports
    from deniable.owner.audit import audit
    from deniable.owner.report import Origin
    from deniable.publishing.request import check_choice, files_of
    from deniable.release.folder import require_writable

    who = audience or ("analyst" if original is None and evaluation is None else "owner")
    check_choice("for", who, reports.AUDIENCES)
    form = _form(out, format_)
    for option, given in (("--original", original), ("--evaluation", evaluation)):
        if who == "analyst" and given is not None:
            raise OptionError(
                f"{option} and --for analyst contradict each other: an analyst's report holds only what the release "
                "holds. Fix: leave one of them out."
            )
    place = out or Path(f"report.{form}")
    inputs = [str(given) for given in (original, evaluation) if given is not None]
    if who == "owner":
        reports.refuse_inside(place, release)
    require_writable(place, inputs=inputs)
    if form == "html":
        reports.charts.require()
    measured = None if evaluation is None else _read(evaluation)
    figures = None
    if original is not None:
        with console.progress_bar(shown=not quiet and not as_json) as progress:
            figures = audit(original, release, attacks=True, progress=progress).to_dict()
    origin = None
    if who == "owner":
        origin = Origin.of([] if original is None else files_of(original), ["deniable", *sys.argv[1:]])
    content = reports.document(release, audience=who, audit=figures, evaluation=measured, origin=origin)  # type: ignore[arg-type]
    reports.write(content, place, form, release, inputs=inputs)
    if as_json:
        grades = [] if figures is None else [finding["grade"] for finding in figures["findings"]]
        counts = {grade: grades.count(grade) for grade in ("serious", "caution", "info")}
        console.emit({"report": str(place), "for": who, "format": form, "findings": counts if figures else None})
    else:
        console.show(place)
        if not quiet:
            console.say("It is for you alone: do not publish it." if who == "owner" else "It may go with the release.")


def _form(out: Path | None, named: str | None) -> str:
    """The format that was named, or that the file's name ends in; a name that says another one is refused."""
    from deniable import report as reports
    from deniable.publishing.request import check_choice

    if named is not None:
        check_choice("format", named, reports.FORMATS)
    ending = "" if out is None else out.suffix.removeprefix(".").lower()
    contradicts = named is not None and ending in reports.FORMATS and ending != named
    if contradicts or (named is None and ending not in (*reports.FORMATS, "htm", "")):
        raise OptionError(
            f"--out {out} ends in .{ending}, and the report is {named or 'html, md or json'}. "
            f"Fix: a name that ends in .{named or 'html'}; a browser prints HTML as PDF."
        )
    return named or (ending if ending in reports.FORMATS else "html")


def _read(file: Path) -> dict[str, Any]:
    """The results of an evaluation."""
    from deniable.owner.evaluation import is_evaluation

    try:
        content = json.loads(small_text(file))
    except (OSError, ValueError, RecursionError):
        content = None
    if not is_evaluation(content):
        raise OptionError(
            f"--evaluation {str(file)!r} is not the result of an evaluation. "
            "Fix: what `deniable evaluate .. --json` printed."
        )
    return dict(content)
