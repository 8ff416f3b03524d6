"""`deniable reproduce`: the papers' tables and figures beside ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import console
from deniable.core.errors import ExtraMissingError, OptionError, OutputError, did_you_mean

if TYPE_CHECKING:
    from deniable.evaluation.papers import Reproduction


@console.guarded
def reproduce(
    *,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="small-domain, fine-grain, splu, olap or planner; several, or 'all'."),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder with census_occ100k.parquet and adult.parquet. Without it: DENIABLE_DATA.",
        ),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(metavar="N", help="Draws of each experiment. Without it: 20; for splu 3.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write everything as a Markdown page, verdicts first, with its charts in a folder FILE-charts beside "
            "it (needs the extra 'report').",
        ),
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Repeat a paper's tables and figures: its figure, ours, whether they agree, and why not.

    The real tables are not part of deniable. What needs none (Zipf tables) runs without --data.

    Example: deniable reproduce fine-grain
    """
    from deniable.evaluation.papers import PAPERS

    wanted = list(PAPERS) if names == ["all"] else names
    for name in wanted:
        if name not in PAPERS:
            raise OptionError(
                f"{name!r} is no reproduction.{did_you_mean(name, PAPERS)} Choose among: {', '.join(PAPERS)}, all."
            )
    if draws is not None and draws < 2:
        raise OptionError(f"--draws {draws} is too few: a spread needs at least 2.")
    made = []
    for name in wanted:
        with console.progress_bar(shown=not quiet and not as_json) as progress:
            options = {} if draws is None else {"draws": draws}
            made.append(PAPERS[name](data, workers=os.cpu_count() or 1, progress=progress, **options))
    if out is not None:
        _write(out, made)
    if as_json:
        console.emit({"reproductions": [each.to_dict() for each in made]})
        return
    for each in made:
        print(f"\n{each.title}")
        for item in each.items:
            print(f"\n{item.name}: {item.verdict.upper()}\n{item.about}")
            console.show_table(item.columns, item.rows)
            print(item.why)


def _write(out: Path, made: list[Reproduction]) -> None:
    """The page, and its charts where they can be drawn; without them the page says so."""
    from deniable.evaluation.papers import page
    from deniable.report import charts, figures

    folder: Path | None = out.with_name(f"{out.stem}-charts")
    try:
        charts.require()
    except ExtraMissingError as missing:
        folder = None
        console.say(f"No charts: {missing}")
    if folder is not None:
        items = [item for each in made for item in each.items]
        figures.write_all(folder, {item.slug: figures.svg(item.chart) for item in items if item.chart is not None})
    try:
        out.write_text(page(made, None if folder is None else folder.name), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{str(out)!r} cannot be written: {error.strerror}.") from None
    console.say(f"Wrote {out}{'' if folder is None else f' and {folder}'}.")
