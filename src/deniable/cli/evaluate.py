"""`deniable evaluate`: how far off answers would be, measured on the owner's own table."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from deniable import report as reports
from deniable.cli import console, options
from deniable.core.errors import OptionError, counted
from deniable.core.values import percent
from deniable.lab.experiments import Result, run_experiment
from deniable.lab.rival import Setting, informed_by_setting, predicted_errors
from deniable.lab.settings import EVALUATED, STANDARD, Independent, setting_named
from deniable.mechanisms.requirement import require_exempt
from deniable.owner.risk import as_read
from deniable.planning.informed import SURE, Informed
from deniable.planning.pools import CodedTable, QuestionPool, pools_named
from deniable.planning.prediction import Errors, Spread
from deniable.release.folder import require_writable


def evaluate(
    *,
    files: options.Files,
    sensitive: Annotated[str, typer.Option(metavar="COLUMN", help="The column to perturb.")],
    rho2: options.Rho2 = None,
    rho1: options.Rho1 = None,
    epsilon: options.Epsilon = None,
    adversary: options.Adversary = "frequency",
    requirements: options.Requirements = None,
    exempt: options.Exempt = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"A mechanism to compare, with its options if it has any (decoys:c=5); repeat it. Without it: "
            f"{', '.join(EVALUATED)}.",
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="inverse, calibrated, shrunk or mle; repeat it. Without it: the first three."
        ),
    ] = None,
    pool: Annotated[str, typer.Option(metavar="POOL", help=f"What is asked: {options.POOL_HELP}")] = "sdr",
    bins: options.BinEdges = None,
    recode: options.RecodeSteps = None,
    rare: options.RareRows = None,
    suppress: options.SuppressRows = None,
    drop: options.Drop = None,
    draws: Annotated[int, typer.Option(metavar="N", help="How many releases are drawn of each mechanism.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the random questions and the draws.")] = 1,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep finished draws in this file and go on from it. One pool only."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes. Without it: as many as there are processors.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a page with charts, for you alone: .html (needs the extra 'report'), .md or .json.",
        ),
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Measure how far off answers would be: draw releases of this table, ask them questions, compare with the truth.

    Nothing is published. The result describes the original table: it is for its owner. The last row, independence, is
    what anyone can say without a release; a mechanism that does not beat it teaches nothing.

    Example: deniable evaluate patients.csv --sensitive disease --rho2 1/6 --drop name
    """
    form = None if out is None else _form(out)
    if out is not None:
        require_writable(out, inputs=files)
    if resume is not None:
        reports.refuse_inside(resume)
    binned, given = options.bins_of(bins), options.one_or_many(files)
    recoding = options.recoding_of(recode, rare, suppress)
    required = options.Required(rho2, rho1, adversary, requirements, exempt=exempt, epsilon=epsilon)
    privacy = required.privacy(given, [sensitive], binned)
    if privacy is None:
        raise OptionError("Nothing is required. Fix: --rho2 1/6, --epsilon 1, or --requirements FILE.")
    table = CodedTable.read(
        as_read(given, sensitive, tuple(drop or ()), binned, recoding), sensitive, drop=tuple(drop or ())
    )
    require_exempt(table.histogram, privacy)  # once, not by every mechanism
    estimators = tuple(dict.fromkeys(estimator or STANDARD))
    settings = [setting_named(name, privacy, estimators) for name in dict.fromkeys(mechanism or EVALUATED)]
    pools = pools_named(table, pool, seed)
    if resume is not None and len(pools) > 1:
        raise OptionError(
            f"--resume keeps the draws of one pool, and --pool {pool} is {len(pools)}. Fix: leave one out."
        )
    results = []
    for questions in pools:
        with console.progress_bar(shown=not quiet and not as_json) as progress:
            results.append(
                run_experiment(
                    questions,
                    settings,
                    draws=draws,
                    seed=seed,
                    workers=workers or os.cpu_count() or 1,
                    resume=resume,
                    progress=progress,
                )
            )
    described = [result.to_dict() for result in results]
    predictions = [_predictions(settings, questions) for questions in pools]
    for result, predicted in zip(described, predictions, strict=True):
        for row in result["rows"]:
            errors = predicted.get((row["setting"], row["estimator"]), ())
            row["predicted"] = [None if math.isnan(error) else error for error in errors]
    gained = informed_by_setting(settings, table)
    for result in described:
        result["rho2"] = None if privacy.rho2 is None else float(privacy.rho2)
        result["informed"] = {name: one.to_dict() for name, one in gained.items()}
    if out is not None and form is not None:
        reports.write(
            reports.evaluation_report(described, ", ".join(Path(file).name for file in files)),
            out,
            form,
            None,
            inputs=files,
        )
        console.say(f"Wrote {out}. It is for you alone: do not publish it.")
    if as_json:
        console.emit({"results": described})
        return
    for measured, predicted in zip(results, predictions, strict=True):
        _show(measured, predicted)
    _show_informed(gained)


def _predictions(settings: Sequence[Setting], pool: QuestionPool) -> dict[tuple[str, str], Errors]:
    """What each setting's errors should be, by setting and estimator, where there is a closed form."""
    return {
        (setting.label, estimator): errors
        for setting in (*settings, Independent())
        for estimator, errors in predicted_errors(setting, pool).items()
    }


def _form(out: Path) -> str:
    """The format by the file's name; what cannot be written is refused before anything is computed."""
    form = out.suffix.removeprefix(".").lower()
    if form not in reports.FORMATS:
        raise OptionError(f"--out {out} is no page. Fix: a name that ends in .{', .'.join(reports.FORMATS)}.")
    reports.refuse_inside(out)
    if form == "html":
        reports.charts.require()
    return form


def _show(result: Result, predicted: Mapping[tuple[str, str], Errors]) -> None:
    sizes = [
        f">= {percent(share, 2)} ({number:,})"
        for share, number in zip(result.selectivities, result.questions, strict=True)
    ]
    rows = []
    for row in result.rows:
        before = predicted.get((row.setting, row.estimator), (math.nan,) * len(result.selectivities))
        errors = [
            _error(row.numbers[f"relative {share:g}"], error)
            for share, error in zip(result.selectivities, before, strict=True)
        ]
        absolute = row.numbers[f"absolute {result.selectivities[0]:g}"].mean
        kept = percent(row.numbers["kept"].mean, 2) if "kept" in row.numbers else ""
        seconds = f"{row.numbers['draw seconds'].mean:.2f} + {row.numbers['answer seconds'].mean:.2f}"
        off = "" if math.isnan(absolute) else f"{absolute:,.1f}"
        reconstruction = percent(row.numbers["reconstruction"].mean, 2)
        rows.append([row.setting, row.estimator, *errors, off, reconstruction, kept, seconds])
    columns = ["mechanism", "estimator", *sizes, "rows off", "histogram", "rows kept", "seconds"]
    console.show(
        f"\nPool {result.pool}: mean relative error by selectivity (questions), ± deviation over "
        f"{counted(result.draws, 'draw')}; in brackets what was predicted"
    )
    console.show_table(columns, rows)
    for name, reason in result.refused.items():
        console.show(f"\n{name} does not apply: {reason}")


def _show_informed(gained: Mapping[str, Informed]) -> None:
    """What someone gains who has learnt from the public columns of other people, and sees a person's row."""
    if not gained:
        return
    print("\nThe informed attacker, who has learnt from other people which values go with which public columns:")
    rows = [[name, *one.after.texts()] for name, one in gained.items()]
    # Not every mechanism has a rho2 to compare beliefs with.
    before = min((one.before for one in gained.values()), key=lambda known: math.isnan(known.above_rho2))
    console.show_table(["mechanism", *SURE], [*rows, ["no release", *before.texts()]])
    print("right: the likeliest value is the true one; above: of so many people the truth is believed more than this.")


def _error(measured: Spread, predicted: float) -> str:
    if math.isnan(measured.mean):
        return ""
    deviation = f" ± {percent(measured.deviation, 1)}" if measured.draws > 1 else ""
    before = "" if math.isnan(predicted) else f" ({percent(predicted)})"
    return f"{percent(measured.mean)}{deviation}{before}"
