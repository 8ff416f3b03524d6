"""`deniable plan`: compare the mechanisms for a table, recommend one, and say why."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import console, options
from deniable.core.bins import BinsLike
from deniable.core.errors import OptionError, OutputError
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.probability import percent, probability
from deniable.evaluation.candidates import Candidate
from deniable.evaluation.planner import Comparison, compare, error_curve, strongest_rho2
from deniable.evaluation.pools import QuestionPool
from deniable.profiling import asked_table, one_pool
from deniable.publishing import scan_table


@console.guarded
def plan(
    *,
    files: options.Files,
    sensitive: Annotated[list[str], typer.Option(metavar="COLUMN", help="The column to perturb.")],
    rho2: options.Rho2 = None,
    rho1: options.Rho1 = None,
    adversary: options.Adversary = "frequency",
    requirements: options.Requirements = None,
    exempt: options.Exempt = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="POOL", help=f"Predict the errors of these questions. {options.POOL_HELP}"),
    ] = None,
    drop: options.Drop = None,
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
    bins: options.BinEdges = None,
    missing: options.Missing = "value",
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Compare the mechanisms for this table: what they promise, what they keep, how far off answers would be.

    Nothing is published, and nothing but the histogram of the sensitive column is looked at, unless --pool asks
    questions. The result describes the original table: it is for its owner.

    Example: deniable plan patients.csv --sensitive disease --rho2 1/6
    """
    table, binned = options.one_or_many(files), options.bins_of(bins)
    if (rho2 is None and requirements is None) == (for_error is None):
        raise OptionError(
            "Give either --rho2 (how sure an attacker may become) or --for-error (the accuracy you need)."
        )
    if pool is not None and for_error is not None:
        raise OptionError("--pool goes with --rho2: --for-error asks about questions of one size. Fix: --question 1%.")
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        asked = None if pool is None else _asked(pool, table, sensitive, drop or [], binned, missing)
        histogram = scan_table(table, sensitive, missing=missing, bins=binned, progress=progress)
    size = float(probability(question, "question"))
    first = None if rho1 is None else probability(rho1, "rho1")
    if for_error is not None:
        _turned_round(histogram, float(probability(for_error, "for-error")), size, first, adversary, as_json)
        result: Comparison | None = None
    else:
        privacy = options.requirement(
            table,
            sensitive,
            rho1=rho1,
            rho2=rho2,
            adversary=adversary,
            exempt=exempt,
            requirements=requirements,
            binned=bool(binned),
        )
        assert privacy is not None
        result = compare(histogram if asked is None else asked.table.histogram, privacy, pool=asked)
        _show(result, explain, as_json)
    if chart is not None:
        from deniable.report.charts import error_against_rho2, to_svg

        _write(chart, to_svg(error_against_rho2(error_curve(histogram, size, rho1=first, adversary=adversary), size)))
    if cells_chart is not None and result is not None:
        from deniable.report.charts import cells_picture, to_svg

        _write(cells_chart, to_svg(cells_picture(_cell_shares(_plan_of(result, explain)))))


def _asked(
    pool: str, table: str | list[str], sensitive: list[str], drop: list[str], binned: dict[str, BinsLike], missing: str
) -> QuestionPool:
    if len(sensitive) > 1:
        raise OptionError("--pool goes with one sensitive column. Fix: name one.")
    return one_pool(asked_table(table, sensitive[0], drop=drop, bins=binned, missing=missing), pool)


def _show(result: Comparison, explain: str | None, as_json: bool) -> None:
    rows = _cell_rows(_plan_of(result, explain)) if explain is not None else []
    if as_json:
        console.emit({**result.to_dict(), **({"cells": rows} if explain is not None else {})})
        return
    columns = ["mechanism", "cells", "coin", "rows kept", "at most sure", "epsilon", *_sizes(result), "reveals"]
    console.show_table(columns, [_row(each) for each in result.candidates if each.guarantee is not None])
    if result.rivals:
        print("\nRivals, for comparison:")
        others = [_row(each) for each in result.rivals if each.guarantee is not None]
        if result.independence is not None:
            others.append(["no release at all", "", "", "", "", "", *map(_error, result.independence), ""])
        console.show_table(columns, others)
    if any(each.biased for each in result.rivals):
        print("+ bias: systematically off where public columns say something about the value; --pool shows how far.")
    for candidate in (*result.candidates, *result.rivals):
        if candidate.guarantee is None:
            print(f"\n{candidate.name} does not apply: {candidate.refusal}")
    print(f"\nTake {result.recommended.name}. {result.reason}")
    print(f"It promises: {result.recommended.guarantee}")
    if rows:
        print()
        console.show_table(list(rows[0]), [list(row.values()) for row in rows])


def _sizes(result: Comparison) -> list[str]:
    if result.questions is None:
        return [f"error at {percent(share, 2)}" for share in result.selectivities]
    return [
        f"error, all ({number:,})" if share == 0 else f">= {percent(share, 2)} ({number:,})"
        for share, number in zip(result.selectivities, result.questions, strict=True)
    ]


def _row(candidate: Candidate) -> list[Any]:
    each = candidate.to_dict()
    bias = " + bias" if candidate.biased else ""
    shown = [f"{_error(error)}{bias}" if not math.isnan(error) else "" for error in candidate.errors]
    epsilon = "unbounded" if each["epsilon"] is None else each["epsilon"]
    channel = [each["cells"], percent(each["coin"]), percent(each["kept"])] if candidate.plan else ["", "", ""]
    return [each["mechanism"], *channel, percent(each["worst"]), epsilon, *shown, each["reveals"]]


def _error(error: float) -> str:
    return "" if math.isnan(error) else percent(error, 2)


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
