"""`deniable plan`: compare the mechanisms for a table, recommend one, and say why."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import console
from deniable.core.errors import OptionError, OutputError
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent, probability
from deniable.evaluation.planner import Comparison, compare, error_curve, strongest_rho2


@console.guarded
def plan(
    *,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The table: CSV or Parquet; several files, or a pattern.")
    ],
    sensitive: Annotated[list[str], typer.Option(metavar="COLUMN", help="The column to perturb.")],
    rho2: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="How sure an attacker may become of a person's value: 1/6, 0.17 or 17%."),
    ] = None,
    rho1: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="How strongly an attacker may believe it beforehand."),
    ] = None,
    adversary: Annotated[
        str, typer.Option(metavar="WHO", help="Who is held off: 'frequency' or 'any-prior'.")
    ] = "frequency",
    exempt: Annotated[
        list[str] | None, typer.Option(metavar="VALUE", help="A value that needs no protection. Repeat it.")
    ] = None,
    for_error: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Turn it round: the smallest rho2 that answers within this error, e.g. 5%."),
    ] = None,
    question: Annotated[
        str, typer.Option(metavar="SHARE", help="With --for-error and --chart: questions about this share of the rows.")
    ] = "1%",
    explain: Annotated[
        str | None, typer.Option(metavar="MECHANISM", help="Show this mechanism's cells as a table.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw error against rho2 for all mechanisms into this SVG file.")
    ] = None,
    cells_chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --explain: draw the cells into this SVG file.")
    ] = None,
    missing: Annotated[str, typer.Option(metavar="POLICY", help="Missing values: value, exempt or refuse.")] = "value",
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Compare the mechanisms for this table: what they promise, what they keep, how far off answers would be.

    Nothing is published, and nothing but the histogram of the sensitive column is looked at. The result describes the
    original table: it is for its owner.

    Example: deniable plan patients.csv --sensitive disease --rho2 1/6
    """
    from deniable.publishing import scan_table

    if (rho2 is None) == (for_error is None):
        raise OptionError(
            "Give either --rho2 (how sure an attacker may become) or --for-error (the accuracy you need)."
        )
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        histogram = scan_table(files[0] if len(files) == 1 else files, sensitive, missing=missing, progress=progress)
    size = float(probability(question, "question"))
    first = None if rho1 is None else probability(rho1, "rho1")
    if for_error is not None:
        _turned_round(histogram, float(probability(for_error, "for-error")), size, first, adversary, as_json)
        result: Comparison | None = None
    else:
        privacy = Privacy(rho1, rho2, adversary=adversary, exempt=_known(histogram, exempt or []))  # type: ignore[arg-type]
        result = compare(histogram, privacy)
        _show(result, explain, as_json)
    if chart is not None:
        from deniable.report.charts import error_against_rho2, to_svg

        _write(chart, to_svg(error_against_rho2(error_curve(histogram, size, rho1=first, adversary=adversary), size)))
    if cells_chart is not None and result is not None:
        from deniable.report.charts import cells_picture, to_svg

        _write(cells_chart, to_svg(cells_picture(_cell_shares(_plan_of(result, explain)))))


def _known(histogram: Histogram, texts: list[str]) -> list[Any]:
    """Values of the column that print as the given texts; an unknown text stays, and is then refused by name."""
    printed = {str(value): value for value in histogram.domain}
    return [printed.get(text, text) for text in texts]


def _show(result: Comparison, explain: str | None, as_json: bool) -> None:
    rows = _cell_rows(_plan_of(result, explain)) if explain is not None else []
    if as_json:
        console.emit({**result.to_dict(), **({"cells": rows} if explain is not None else {})})
        return
    errors = [f"error at {percent(share, 2)}" for share in result.selectivities]
    columns = ["mechanism", "cells", "coin", "rows kept", "epsilon", *errors, "reveals"]
    table = []
    for each in (candidate.to_dict() for candidate in result.candidates if candidate.plan is not None):
        shown = [percent(error, 2) if error is not None else "" for error in each["errors"]]
        epsilon = "unbounded" if each["epsilon"] is None else each["epsilon"]
        cells = [each["mechanism"], each["cells"], percent(each["coin"]), percent(each["kept"]), epsilon]
        table.append([*cells, *shown, each["reveals"]])
    console.show_table(columns, table)
    for candidate in result.candidates:
        if candidate.plan is None:
            print(f"\n{candidate.name} does not apply: {candidate.refusal}")
    print(f"\nTake {result.recommended.name}. {result.reason}")
    print(f"It promises: {result.recommended.plan.guarantee}")  # type: ignore[union-attr]
    if rows:
        print()
        console.show_table(list(rows[0]), [list(row.values()) for row in rows])


def _plan_of(result: Comparison, name: str | None) -> Plan:
    wanted = name or result.recommended.name
    for candidate in result.candidates:
        if candidate.name == wanted and candidate.plan is not None:
            return candidate.plan
    usable = ", ".join(candidate.name for candidate in result.candidates if candidate.plan is not None)
    raise OptionError(f"--explain {wanted} has no plan to show here. Choose one of: {usable}.")


def _cell_rows(made: Plan) -> list[dict[str, Any]]:
    """The cells of a plan, for the owner."""
    return [
        {
            "cell": number,
            "values": cell.channel.m,
            "share of rows": percent(Fraction(cell.size, max(made.histogram.rows, 1))),
            "coins": f"{percent(float(cell.channel.coins.min()))} to {percent(float(cell.channel.coins.max()))}",
            "gamma": round(cell.channel.gamma, 3),
            "first values": ", ".join(str(value)[:20] for value in cell.channel.values[:5]),
        }
        for number, cell in enumerate(made.cells)
    ]


def _cell_shares(made: Plan) -> list[dict[str, Any]]:
    return [
        {"cell": number, "value": str(value)[:40], "share": rows / max(cell.size, 1)}
        for number, cell in enumerate(made.cells)
        for value, rows in cell.rows.items()
        if rows
    ]


def _turned_round(
    histogram: Histogram, error: float, size: float, rho1: Fraction | None, adversary: str, as_json: bool
) -> None:
    found = strongest_rho2(histogram, error, size, rho1=rho1, adversary=adversary)
    if as_json:
        rows = [
            {"mechanism": f.mechanism, "rho2": None if f.rho2 is None else float(f.rho2), "error": f.error}
            for f in found
        ]
        console.emit({"error": error, "question": size, "strongest": rows})
        return
    table = [[f.mechanism, "none" if f.rho2 is None else f"{float(f.rho2):.4g}", percent(f.error, 3)] for f in found]
    console.show_table(["mechanism", "smallest rho2", f"error at {percent(size, 2)} of the rows"], table)
    best = found[0]
    if best.rho2 is None:
        print(f"\nNo mechanism answers questions about {percent(size, 2)} of the rows within {percent(error, 2)}.")
    else:
        print(f"\nThe strongest is {best.mechanism}: an attacker may become at most {percent(best.rho2)} sure.")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be written: {error.strerror}.") from None
    console.say(f"Wrote {path}.")
