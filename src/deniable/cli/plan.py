"""`deniable plan`: compare the mechanisms for a table, recommend one, and say why."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from deniable.cli import console, options
from deniable.cli.plan_tables import cell_shares, explained, show_explained, show_strongest
from deniable.core.bins import BinsLike, require_fixed
from deniable.core.errors import OptionError, OutputError
from deniable.core.plan import Plan
from deniable.core.privacy import Adversary
from deniable.core.probability import percent, probability
from deniable.evaluation.pools import QuestionPool
from deniable.owner.profile import asked_table, one_pool
from deniable.planning.beliefs import belief_chart
from deniable.planning.candidates import Candidate
from deniable.planning.planner import Comparison, compare, error_chart, error_curve, strongest_rho2
from deniable.publishing.publish import scan_table

ONE_SIZE = 0.01  # of a question, where one size is asked about and none is given


class _Turned(NamedTuple):
    """All of a requirement but rho2."""

    rho1: Fraction | None
    adversary: Adversary
    exempt: tuple[Hashable, ...]


@console.guarded
def plan(
    *,
    files: options.Files,
    sensitive: Annotated[list[str], typer.Option(metavar="COLUMN", help="The column to perturb.")],
    rho2: options.Rho2 = None,
    rho1: options.Rho1 = None,
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
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE",
            help="Predict the errors of counts about this share of the rows; repeat it for several. With --pool: of "
            "its questions that large. With --for-error and --chart: one. Default: 0.1%, 0.5% and 1%; 1% where it is "
            "one.",
        ),
    ] = None,
    explain: Annotated[
        str | None, typer.Option(metavar="MECHANISM", help="Show this mechanism's cells, and its values one by one.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw error against rho2 for all mechanisms into this SVG file.")
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
    if tolerance is not None:
        require_fixed(binned, "--tolerance")
    required = any(stated is not None for stated in (rho2, requirements, tolerance, small_sums, large_sums))
    if required == (for_error is not None):
        raise OptionError(
            "Give either --rho2 (how sure an attacker may become) or --for-error (the accuracy you need)."
        )
    if pool is not None and for_error is not None:
        raise OptionError("--pool goes with --rho2: --for-error asks about questions of one size. Fix: --question 1%.")
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        asked = None if pool is None else _asked(pool, table, sensitive, drop or [], binned, missing)
        histogram = scan_table(table, sensitive, missing=missing, bins=binned, progress=progress)
    shares = [float(probability(each, "question")) for each in question or ()]
    if len(shares) > 1 and (for_error is not None or chart is not None):
        raise OptionError("--for-error and --chart ask about questions of one size. Fix: give --question once.")
    size = shares[0] if shares else ONE_SIZE
    turned = _Turned(
        None if rho1 is None else probability(rho1, "rho1"),
        adversary,  # type: ignore[arg-type]
        tuple(options.exempted(exempt, table, sensitive, binned=bool(binned))),
    )
    result: Comparison | None = None
    if for_error is not None:
        error = float(probability(for_error, "for-error"))
        show_strongest(strongest_rho2(histogram, error, size, **turned._asdict()), error, size, as_json=as_json)
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
            tolerance=tolerance,
            histogram=lambda: histogram,
            small_sums=small_sums,
            large_sums=large_sums,
        )
        assert privacy is not None
        counts = histogram if asked is None else asked.table.histogram
        result = compare(counts, privacy, pool=asked, selectivities=shares or None)
        _show(result, explain, as_json)
    if chart is not None:
        from deniable.report.figures import svg

        found = error_curve(histogram, size, rivals=True, **turned._asdict())
        if not found:
            raise OptionError(
                f"--chart: no mechanism has a predicted error for counts about {percent(size, 2)} of the rows. "
                "Fix: --question with a smaller share, and --rho1 with --adversary any-prior."
            )
        _write(chart, svg(error_chart(found, size)))
    if beliefs_chart is not None and result is not None:
        from deniable.report.figures import svg

        every = (*result.candidates, *result.rivals)
        _write(beliefs_chart, svg(belief_chart({each.name: each.beliefs for each in every if each.beliefs})))
    if cells_chart is not None and result is not None:
        from deniable.report.charts import cells_picture, to_svg

        _write(cells_chart, to_svg(cells_picture(cell_shares(_plan_of(result, explain)))))


def _asked(
    pool: str, table: str | list[str], sensitive: list[str], drop: list[str], binned: dict[str, BinsLike], missing: str
) -> QuestionPool:
    if len(sensitive) > 1:
        raise OptionError("--pool goes with one sensitive column. Fix: name one.")
    return one_pool(asked_table(table, sensitive[0], drop=drop, bins=binned, missing=missing), pool)


def _show(result: Comparison, explain: str | None, as_json: bool) -> None:
    told = explained(_plan_of(result, explain)) if explain is not None else {}
    if as_json:
        console.emit({**result.to_dict(), **told})
        return
    belief = result.recommended.beliefs
    start = percent(0.0 if belief is None else belief.rho1)
    sure = ["sure: frequency", f"sure: from {start}"]
    columns = ["mechanism", "cells", "coin", "rows kept", *sure, "epsilon", *_sizes(result), "reveals"]
    console.show_table(columns, [_row(each) for each in result.candidates if each.guarantee is not None])
    if result.rivals:
        print("\nRivals, for comparison:")
        others = [_row(each) for each in result.rivals if each.guarantee is not None]
        if result.independence is not None:
            others.append(["no release at all", *[""] * 6, *map(_error, result.independence), ""])
        console.show_table(columns, others)
    print(
        "sure: how sure of a protected value an attacker can become, who knew how frequent each value is; and who "
        f"believed it at {start} beforehand, whatever else they knew."
    )
    if any(each.biased for each in result.rivals):
        print("+ bias: systematically off where public columns say something about the value; --pool shows how far.")
    for candidate in (*result.candidates, *result.rivals):
        if candidate.guarantee is None:
            print(f"\n{candidate.name} does not apply: {candidate.refusal}")
    print(f"\nTake {result.recommended.name}. {result.reason}")
    promised = result.recommended.guarantee
    print(f"It promises: {promised}")
    for line in () if promised is None else promised.also:
        print(line)
    if told:
        show_explained(told)


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
    known = candidate.beliefs
    sure = ["", ""] if known is None else [percent(known.frequency), percent(known.any_prior)]
    return [each["mechanism"], *channel, *sure, epsilon, *shown, each["reveals"]]


def _error(error: float) -> str:
    return "" if math.isnan(error) else percent(error, 2)


def _plan_of(result: Comparison, name: str | None) -> Plan:
    wanted = name or result.recommended.name
    for candidate in result.candidates:
        if candidate.name == wanted and candidate.plan is not None:
            return candidate.plan
    usable = ", ".join(candidate.name for candidate in result.candidates if candidate.plan is not None)
    raise OptionError(f"--explain {wanted} has no plan to show here. Choose one of: {usable}.")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be written: {error.strerror}.") from None
    console.say(f"Wrote {path}.")
