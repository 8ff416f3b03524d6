"""`deniable evaluate`: how far off answers would be, measured on the owner's own table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from deniable.cli import console
from deniable.core.errors import OptionError, did_you_mean
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.engines.local.sources import open_source
from deniable.evaluation.experiment import Result, run_experiment
from deniable.evaluation.pools import QuestionPool, large_pool, sdr_pool, small_pool, sql_pool
from deniable.evaluation.settings import STANDARD, setting_named
from deniable.evaluation.tables import CodedTable

POOLS = ("sdr", "splu", "FILE.sql")
MECHANISMS = ("uniform", "small-domain", "identity", "designed", "anatomy")
BATCH_ROWS = 2**17


@console.guarded
def evaluate(
    *,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The table: CSV or Parquet; several files, or a pattern.")
    ],
    sensitive: Annotated[str, typer.Option(metavar="COLUMN", help="The column to perturb.")],
    rho2: Annotated[
        str,
        typer.Option(metavar="SHARE", help="How sure an attacker may become of a person's value: 1/6, 0.17 or 17%."),
    ],
    rho1: Annotated[
        str | None, typer.Option(metavar="SHARE", help="How strongly an attacker may believe it beforehand.")
    ] = None,
    adversary: Annotated[
        str, typer.Option(metavar="WHO", help="Who is held off: 'frequency' or 'any-prior'.")
    ] = "frequency",
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"A mechanism to compare; repeat it. Without it: {', '.join(MECHANISMS)}."),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="inverse, calibrated, shrunk or mle; repeat it. Without it: the first three."
        ),
    ] = None,
    pool: Annotated[
        str,
        typer.Option(
            metavar="POOL",
            help="What is asked: 'sdr' (200 random conditions, each with every value), 'splu' (5,000 small and 5,000 "
            "large counts), or a file with one SELECT COUNT(*) FROM release WHERE .. in each line.",
        ),
    ] = "sdr",
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that would not be published. Repeat it.")
    ] = None,
    draws: Annotated[int, typer.Option(metavar="N", help="How many releases are drawn of each mechanism.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the random questions and the draws.")] = 1,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep finished draws in this file and go on from it. One pool only."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes. Without it: as many as there are processors.")
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Measure how far off answers would be: draw releases of this table, ask them questions, compare with the truth.

    Nothing is published. The result describes the original table: it is for its owner. The last row, independence, is
    what anyone can say without a release; a mechanism that does not beat it teaches nothing.

    Example: deniable evaluate patients.csv --sensitive disease --rho2 1/6 --drop name
    """
    privacy = Privacy(rho1, rho2, adversary=adversary)  # type: ignore[arg-type]
    table = CodedTable.of(_read(files), sensitive, drop=tuple(drop or ()))
    estimators = tuple(dict.fromkeys(estimator or STANDARD))
    settings = [setting_named(name, privacy, estimators) for name in dict.fromkeys(mechanism or MECHANISMS)]
    pools = _pools(table, pool, seed)
    if resume is not None and len(pools) > 1:
        raise OptionError(f"--resume keeps the draws of one pool, and --pool {pool} is {len(pools)}: leave one out.")
    results = []
    for asked in pools:
        with console.progress_bar(shown=not quiet and not as_json) as progress:
            results.append(
                run_experiment(
                    asked,
                    settings,
                    draws=draws,
                    seed=seed,
                    workers=workers or os.cpu_count() or 1,
                    resume=resume,
                    progress=progress,
                )
            )
    if as_json:
        console.emit({"results": [result.to_dict() for result in results]})
        return
    for result in results:
        _show(result)


def _read(files: list[str]) -> pa.Table:
    source = open_source(files[0] if len(files) == 1 else files)
    return pa.Table.from_batches(source.batches(list(source.names), BATCH_ROWS), schema=source.schema)


def _pools(table: CodedTable, name: str, seed: int) -> list[QuestionPool]:
    if name == "sdr":
        return [sdr_pool(table, seed=seed)]
    if name == "splu":
        return [small_pool(table, seed=seed), large_pool(table, seed=seed)]
    path = Path(name)
    if not path.exists():
        raise OptionError(
            f"--pool {name} is neither a known pool nor a file.{did_you_mean(name, POOLS[:2])} "
            f"Choose one of: {', '.join(POOLS)}."
        )
    return [sql_pool(table, path.read_text(encoding="utf-8"), name=path.name)]


def _show(result: Result) -> None:
    sizes = [
        f">= {percent(share, 2)} ({number:,})"
        for share, number in zip(result.selectivities, result.questions, strict=True)
    ]
    rows = []
    for row in result.rows:
        errors = [_spread(row.numbers[f"relative {share:g}"]) for share in result.selectivities]
        absolute = row.numbers[f"absolute {result.selectivities[0]:g}"].mean
        kept = percent(row.numbers["kept"].mean, 2) if "kept" in row.numbers else ""
        seconds = f"{row.numbers['draw seconds'].mean:.2f} + {row.numbers['answer seconds'].mean:.2f}"
        reconstruction = f"{row.numbers['reconstruction'].mean:.3f}"
        rows.append([row.setting, row.estimator, *errors, f"{absolute:,.1f}", reconstruction, kept, seconds])
    columns = ["mechanism", "estimator", *sizes, "rows off", "histogram", "rows kept", "seconds"]
    print(
        f"\nPool {result.pool}: mean relative error by selectivity (questions), ± deviation over {result.draws} draws"
    )
    console.show_table(columns, rows)
    for name, reason in result.refused.items():
        print(f"\n{name} does not apply: {reason}")


def _spread(found: object) -> str:
    return "" if str(found).startswith("nan") else str(found)
