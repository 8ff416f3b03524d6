"""`deniable reproduce`: the papers' tables and figures beside ours, by the program `reproduction/` of a checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import console
from deniable.core.errors import ExtraMissingError, OptionError, did_you_mean

if TYPE_CHECKING:
    from reproduction import Reproduction

ROOT = Path(__file__).resolve().parents[3]  # of a checkout: src/deniable/cli/reproduce.py


def reproduce(
    *,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="small-domain, fine-grain, splu, olap, planner or open-problems; several, or 'all'."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder with census_occ100k, adult, diabetes130 and census_income_kdd as .parquet. Without it: "
            "DENIABLE_DATA.",
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

    It works from a checkout of deniable: the experiments are no part of the installed package. The real tables are not
    part of deniable either. What needs none (Zipf tables) runs without --data.

    Example: deniable reproduce fine-grain
    """
    _require_checkout()
    from reproduction import PAPERS, repeated

    wanted = list(PAPERS) if names == ["all"] else names
    for name in wanted:
        if name not in PAPERS:
            raise OptionError(
                f"{name!r} is no reproduction.{did_you_mean(name, PAPERS)} Fix: one of {', '.join(PAPERS)}, all."
            )
    if draws is not None and draws < 2:
        raise OptionError(f"--draws {draws} is too few: a spread needs at least 2. Fix: --draws 5.")
    options = {} if draws is None else {"draws": draws}
    todo = [PAPERS[name](data, **options) for name in wanted]
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        papers = repeated(todo, workers=os.cpu_count() or 1, progress=progress)
    if out is not None:
        _write(out, papers)
    if as_json:
        console.emit({"reproductions": [paper.to_dict() for paper in papers]})
        return
    for paper in papers:
        console.show(f"\n{paper.title}")
        for item in paper.items:
            console.show(f"\n{item.name}: {item.verdict.upper()}\n{item.about}")
            console.show_table(item.columns, item.rows)
            console.show(item.why)


def _require_checkout() -> None:
    """Put the checkout that this file stands in on the path: ``reproduction`` is there, and is never installed."""
    if not (ROOT / "reproduction" / "__init__.py").is_file():
        raise OptionError(
            "`deniable reproduce` works from a checkout, where the folder reproduction/ stands beside src/; the "
            "installed package does not hold it. Fix: in a checkout of deniable, pip install -e '.[report,learn]', and "
            "run the command again."
        )
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))


def _write(out: Path, papers: list[Reproduction]) -> None:
    """The page, and its charts where they can be drawn; without them the page says so."""
    from deniable.release.folder import write_file
    from deniable.report import charts
    from deniable.report.charts import svg, write_all
    from reproduction import page

    folder: Path | None = out.with_name(f"{out.stem}-charts")
    try:
        charts.require()
    except ExtraMissingError as missing:
        folder = None
        console.say(f"No charts: {missing}")
    if folder is not None:
        items = [item for paper in papers for item in paper.items]
        write_all(folder, {item.slug: svg(item.chart) for item in items if item.chart is not None})
    write_file(out, page(papers, None if folder is None else folder.name))
    console.say(f"Wrote {out}{'' if folder is None else f' and {folder}'}.")
