"""`deniable reproduce`: the papers' tables and figures beside ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console
from deniable.core.errors import OptionError, OutputError, did_you_mean


@console.guarded
def reproduce(
    *,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="small-domain, fine-grain, splu or olap; several, or 'all'.")
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
        Path | None, typer.Option(metavar="FILE", help="Write everything as a Markdown page, verdicts first.")
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Repeat a paper's tables and figures: its figure, ours, whether they agree, and why not.

    The real tables are not part of deniable. What needs none (Zipf tables) runs without --data.

    Example: deniable reproduce fine-grain
    """
    from deniable.evaluation.papers import PAPERS, page

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
        try:
            out.write_text(page(made), encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{str(out)!r} cannot be written: {error.strerror}.") from None
        console.say(f"Wrote {out}.")
    if as_json:
        console.emit({"reproductions": [each.to_dict() for each in made]})
        return
    for each in made:
        print(f"\n{each.title}")
        for item in each.items:
            print(f"\n{item.name}: {item.verdict.upper()}\n{item.about}")
            console.show_table(item.columns, item.rows)
            print(item.why)
