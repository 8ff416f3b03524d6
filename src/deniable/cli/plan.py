"""`deniable plan`: compare the mechanisms for a table, recommend one, and say why."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import console, options
from deniable.cli.options import exempted
from deniable.core import values
from deniable.core.errors import OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.sentence import SHOWN_BELIEFS
from deniable.core.transforms import require_fixed
from deniable.core.values import percent, probability
from deniable.owner.risk import asked_table, one_pool
from deniable.planning.budgets import EpsilonNeeded, epsilon_needed, error_chart, error_curve, read_error
from deniable.planning.candidates import Candidate, Chart, belief_chart, lineup_rows, value_rows
from deniable.planning.comparison import USUAL, Comparison
from deniable.planning.outlook import limit_for
from deniable.planning.planner import Rivals, Strongest, compare, strongest_rho2
from deniable.planning.pools import QuestionPool
from deniable.publishing.request import as_names, public_columns, scan_table
from deniable.release.folder import require_writable, write_file
from deniable.tables import engine_named

# -- What `deniable plan` prints beside its comparison: one mechanism explained, and the smallest rho2 for an error.


LINED_UP = ("share", "stands in", "believed at most")
SHARES = ("share", "coin", "kept", "rho1", "grows to", "rho2", "falls to")


def explained(made: Plan) -> dict[str, list[dict[str, Any]]]:
    """A plan for its owner: its cells, and value by value where there is one cell only, or line-ups."""
    if made.parts[0].lineups is not None:
        return {"line-ups": [{**row, "value": values.to_json(row["value"])} for row in lineup_rows(made)]}
    tables = {"cells": cell_rows(made)}
    if len(made.cells) == 1:
        tables["values"] = [{**row, "value": values.to_json(row["value"])} for row in value_rows(made)]
    return tables


def show_explained(tables: dict[str, list[dict[str, Any]]]) -> None:
    console.show()
    if "line-ups" in tables:
        rows = [[row["value"], *(percent(row[name]) for name in LINED_UP)] for row in tables["line-ups"]]
        console.show_table(["value", *LINED_UP], rows)
        return
    console.show_table(list(tables["cells"][0]), [list(row.values()) for row in tables["cells"]])
    if "values" not in tables:
        return
    columns = ["value", *SHARES]
    rows = [[row["value"], *(percent(row[name]) if name in row else "" for name in SHARES)] for row in tables["values"]]
    console.show()
    console.show_table(columns, rows)
    required = [row for row in tables["values"] if "rho1" in row]
    holding = sum(row["downward"] for row in required)
    console.show(
        f"Upward: whoever believes a value at up to its rho1 becomes at most as sure as 'grows to' says, for every "
        f"protected value ({len(required):,}). Downward: whoever believes it at rho2 or more stays at 'falls to' or "
        f"above, which is not below rho1 for {holding:,} of them."
    )


def cell_rows(made: Plan) -> list[dict[str, Any]]:
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


def cell_shares(made: Plan) -> list[dict[str, Any]]:
    return [
        {"cell": number, "value": str(value)[:40], "share": rows / max(cell.size, 1)}
        for number, cell in enumerate(made.cells)
        for value, rows in cell.rows.items()
        if rows
    ]


def show_needed(needed: Sequence[EpsilonNeeded], accuracy: tuple[float, float], table: str, *, as_json: bool) -> None:
    """The epsilon that an error needs, by mechanism, and what beliefs become by it."""
    if as_json:
        console.emit({"question": accuracy[0], "within": accuracy[1], "needed": [one.to_dict() for one in needed]})
        return
    heads = ["mechanism", "epsilon", *(f"{percent(belief)} becomes" for belief in SHOWN_BELIEFS)]
    rows = [
        [one.mechanism, "none", *[""] * len(SHOWN_BELIEFS), percent(one.error, 3)]
        if one.epsilon is None
        else [one.mechanism, f"{one.epsilon:.3g}", *map(percent, one.beliefs), percent(one.error, 3)]
        for one in needed
        if not one.refusal
    ]
    console.show_table([*heads, f"error at {percent(accuracy[0], 2)}"], rows)
    for one in needed:
        if one.refusal:
            console.show(f"\n{one.mechanism} does not apply: {one.refusal}")
    best = needed[0]
    if best.epsilon is None:
        console.show(
            f"\nNothing answers counts of {percent(accuracy[0], 2)} of the rows within {percent(accuracy[1], 2)}."
        )
        return
    console.show(
        f"\nThe strongest promise against any attacker with which counts of {percent(accuracy[0], 2)} of the rows are "
        f"within {percent(accuracy[1], 2)}: epsilon {best.epsilon:g}, by {best.mechanism}."
    )
    console.show(
        f"Next: deniable publish {table} --mechanism {best.mechanism} --epsilon {best.epsilon:g} --out release/"
    )


def show_strongest(strongest: Sequence[Strongest], error: float, size: float, *, as_json: bool) -> None:
    """For each mechanism the smallest rho2 that answers within the error, or why there is none."""
    if as_json:
        console.emit({"error": error, "question": size, "strongest": [_described(one) for one in strongest]})
        return
    table = [
        [one.mechanism, "none" if one.rho2 is None else f"{float(one.rho2):.4g}", percent(one.error, 3)]
        for one in strongest
        if not one.refusal
    ]
    console.show_table(["mechanism", "smallest rho2", f"error at {percent(size, 2)} of the rows"], table)
    for one in strongest:
        if one.refusal:
            console.show(f"\n{one.mechanism} does not apply: {one.refusal}")
    best = strongest[0]
    if best.rho2 is None:
        console.show(
            f"\nNo mechanism answers questions about {percent(size, 2)} of the rows within {percent(error, 2)}."
        )
    else:
        console.show(f"\nThe strongest is {best.mechanism}: an attacker may become at most {percent(best.rho2)} sure.")


def _described(one: Strongest) -> dict[str, Any]:
    return {
        "mechanism": one.mechanism,
        "rho2": None if one.rho2 is None else float(one.rho2),
        "error": one.error if math.isfinite(one.error) else None,
        **({"refused": one.refusal} if one.refusal else {}),
    }


# -- `deniable plan`: compare the mechanisms for a table, recommend one, and say why -----------------------------------


ONE_SIZE = 0.01  # of a question, where one size is asked about and none is given


def plan(
    *,
    files: options.Files,
    sensitive: Annotated[list[str], typer.Option(metavar="COLUMN", help="The column to perturb.")],
    rho2: options.Rho2 = None,
    rho1: options.Rho1 = None,
    epsilon: options.Epsilon = None,
    epsilon_limit: options.EpsilonLimit = "3",
    adversary: options.Adversary = "frequency",
    requirements: options.Requirements = None,
    tolerance: options.Tolerance = None,
    exempt: options.Exempt = None,
    small_sums: options.SmallTerms = None,
    large_sums: options.LargeTerms = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="POOL", help=f"Predict the errors of these questions. {options.ONE_POOL_HELP}"),
    ] = None,
    drop: options.Drop = None,
    for_error: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Turn it round: the smallest rho2 that answers within this error, e.g. 5%."),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE within ERROR",
            help="What epsilon against any attacker counts need to be so accurate, and what beliefs become by it: "
            "'1% within 5%' means counts of 1 % of the rows, off by 5 % on average.",
        ),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE",
            help="Predict the errors of counts about this share of the rows; repeat it for several. With --pool: of "
            "its questions that large. With --for-error and --chart: one. Default: 0.1%, 0.5% and 1%; 1% where it is "
            "one. Without --wide the last is shown.",
        ),
    ] = None,
    explain: Annotated[
        str | None, typer.Option(metavar="MECHANISM", help="Show this mechanism's cells, and its values one by one.")
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw error against epsilon for all mechanisms into this SVG file."),
    ] = None,
    beliefs_chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw what beliefs can become against what they were, for all mechanisms, into this SVG file.",
        ),
    ] = None,
    cells_chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --explain: draw the cells into this SVG file.")
    ] = None,
    rivals: Annotated[
        bool,
        typer.Option(
            "--rivals/--no-rivals",
            help="List what others do under the same requirement, too: Anatomy, generalization, Laplace noise, .. "
            "They are compared, and nobody publishes them.",
        ),
    ] = True,
    bins: options.BinEdges = None,
    recode: options.RecodeSteps = None,
    rare: options.RareRows = None,
    suppress: options.SuppressRows = None,
    missing: options.Missing = "value",
    wide: Annotated[
        bool, typer.Option("--wide", help="All that is known of each mechanism, instead of three numbers.")
    ] = False,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Compare the mechanisms for this table: what they promise, what they keep, how far off answers would be.

    Nothing is published. The histogram of the sensitive column is looked at; with --pool all rows. The result describes
    the original table: it is for its owner.

    How strong a promise an error allows: --error "1% within 5%".

    Example: deniable plan patients.csv --sensitive disease --rho2 1/6
    """
    _require_places([chart, beliefs_chart, cells_chart], files)
    table, binned = options.one_or_many(files), options.bins_of(bins)
    recoding = options.recoding_of(recode, rare, suppress)
    if tolerance is not None:
        require_fixed(binned, "--tolerance")
    bounds = (rho2, epsilon, requirements, tolerance, small_sums, large_sums)
    turned = [name for name, given in (("--for-error", for_error), ("--error", error)) if given is not None]
    if any(stated is not None for stated in bounds) + len(turned) != 1:
        raise OptionError(
            "Give either --rho2 (how sure an attacker may become) or --error '1% within 5%' (the accuracy you need); "
            "--for-error 5% asks for rho2 instead of epsilon."
        )
    accuracy = None if error is None else read_error(error)
    if pool is not None and for_error is not None:
        raise OptionError("--pool goes with --rho2: --for-error asks about questions of one size. Fix: --question 1%.")
    if len(sensitive) > 1 and pool is not None:
        raise OptionError("--pool goes with one sensitive column. Fix: name one.")
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        histogram, questions = _known(
            table, sensitive, pool, drop or [], progress, missing=missing, bins=binned, recoding=recoding
        )
    opened = engine_named("local").open(table)
    columns = len(public_columns(opened, as_names(sensitive), tuple(drop or ())))
    shares = [float(probability(share, "question")) for share in question or ()]
    if len(shares) > 1 and (for_error is not None or chart is not None):
        raise OptionError("--for-error and --chart ask about questions of one size. Fix: give --question once.")
    size = shares[0] if shares else ONE_SIZE if accuracy is None else accuracy[0]
    all_but_rho2: dict[str, Any] = {
        "rho1": None if rho1 is None else probability(rho1, "rho1"),
        "adversary": adversary,
        "exempt": exempted(exempt, table, sensitive, binned=bool(binned)),
    }
    result: Comparison | None = None
    privacy: Privacy | None = None
    if accuracy is not None:
        needed = epsilon_needed(histogram, f"{accuracy[0]:.6g}", f"{accuracy[1]:.6g}", columns=columns)
        show_needed(needed, accuracy, f"{shlex.join(files)} --sensitive {shlex.join(sensitive)}", as_json=as_json)
    elif for_error is not None:
        most = float(probability(for_error, "for-error"))
        show_strongest(strongest_rho2(histogram, most, size, **all_but_rho2), most, size, as_json=as_json)
    else:
        required = options.Required(
            rho2, rho1, adversary, requirements, tolerance, exempt, small_sums, large_sums, epsilon
        )
        privacy = required.privacy(table, sensitive, binned, lambda: histogram)
        assert privacy is not None
        with console.progress_bar(shown=not quiet and not as_json) as progress:
            result = compare(
                histogram,
                privacy,
                pool=questions,
                selectivities=shares or None,
                rivals=_rivals() if rivals else None,
                limit=limit_for(privacy, options.epsilon_limit_of(epsilon_limit)),
                columns=columns,
                progress=progress,
            )
        _show(result, explain, as_json, wide=wide)
    if chart is not None:
        curve = error_curve(histogram, size, privacy, columns=columns)
        if not curve:
            raise OptionError(
                f"--chart: no mechanism has a predicted error for counts about {percent(size, 2)} of the rows. "
                "Fix: --question with a smaller share."
            )
        _draw(chart, error_chart(curve, size), files)
    if beliefs_chart is not None and result is not None:
        every = (*result.candidates, *result.rivals)
        _draw(beliefs_chart, belief_chart({one.label: one.beliefs for one in every if one.beliefs}), files)
    if cells_chart is not None and result is not None:
        from deniable.report.charts import cells_picture, to_svg

        _write(cells_chart, to_svg(cells_picture(cell_shares(_plan_of(result, explain)))), files)


def _known(
    table: str | list[str],
    sensitive: list[str],
    pool: str | None,
    drop: list[str],
    progress: console.Report,
    **as_read: Any,
) -> tuple[Histogram, QuestionPool | None]:
    """What is planned from: the histogram, and with a pool its questions."""
    if pool is not None:
        read = asked_table(table, sensitive[0], drop=drop, **as_read)
        return read.histogram, one_pool(read, pool)
    return scan_table(table, sensitive, **as_read, progress=progress), None


def _rivals() -> Rivals:
    """The rivals of the lab, which is imported by whoever wants to see them."""
    from deniable.lab import rival_candidates

    return rival_candidates


def _show(result: Comparison, explain: str | None, as_json: bool, *, wide: bool) -> None:
    cells = explained(_plan_of(result, explain)) if explain is not None else {}
    if as_json:
        console.emit({**result.to_dict(), **cells})
        return
    heads, row = (result.columns, result.row) if wide else (result.narrow_columns, result.narrow_row)
    console.show_table(heads, [row(one) for one in result.candidates if one.guarantee is not None])
    if result.rivals:
        console.show("\nRivals, for comparison:")
        others = [row(one) for one in result.rivals if one.guarantee is not None]
        if result.independence is not None:
            nothing = result.row_of_independence()
            others.append(nothing if wide else [nothing[0], "0", percent(USUAL), nothing[-2]])
        console.show_table(heads, others)
    console.show(
        "sure: how sure of a protected value an attacker can become, who knew how frequent each value is; and who "
        f"believed it at {result.starting_belief} beforehand, whatever else they knew."
        if wide
        else "epsilon, and what a belief of 10 % becomes at the most: of any attacker, whatever they know. More with "
        "--wide."
    )
    if any(one.biased for one in result.rivals):
        console.show(
            "+ bias: systematically off where public columns say something about the value; --pool shows how far."
        )
    for name, refusal in dict.fromkeys((one.name, one.refusal) for one in result.refused if wide or not one.rival):
        console.show(f"\n{name} does not apply: {refusal}")
    passed_over = [one for one in result.withheld if one is not result.recommended]
    alike: dict[str, list[Candidate]] = {}
    for candidate in passed_over:
        alike.setdefault(re.sub(r"[0-9.]+|unbounded", "", candidate.withheld), []).append(candidate)
    for likely, *more in alike.values():
        likewise = f"; likewise {', '.join(one.label for one in more)}" if more else ""
        console.show(f"Not recommended: {likely.label}, because {likely.withheld}{likewise}.")
    console.show(f"Take {result.recommended.label}. {result.reason}")
    if result.recommended.withheld:
        console.show(f"Mind that {result.recommended.withheld}.")
    promised = result.recommended.guarantee
    console.show(f"It promises: {promised}")
    for line in () if promised is None else promised.also:
        console.show(line)
    if cells:
        show_explained(cells)


def _plan_of(result: Comparison, name: str | None) -> Plan:
    wanted = name or result.recommended.name
    for candidate in result.candidates:
        if candidate.name == wanted and candidate.plan is not None:
            return candidate.plan
    usable = dict.fromkeys(candidate.name for candidate in result.candidates if candidate.plan is not None)
    raise OptionError(
        f"--explain {wanted} has no plan to show here.{did_you_mean(wanted, usable)} Fix: one of {', '.join(usable)}."
    )


def _require_places(pictures: list[Path | None], inputs: list[str]) -> None:
    """Before anything is read: what cannot be written need not be drawn."""
    for path in pictures:
        if path is not None:
            require_writable(path, inputs=inputs)


def _draw(path: Path, chart: Chart, inputs: list[str]) -> None:
    from deniable.report.charts import svg

    _write(path, svg(chart), inputs)


def _write(path: Path, text: str, inputs: list[str]) -> None:
    write_file(path, text, inputs=inputs)
    console.say(f"Wrote {path}.")
