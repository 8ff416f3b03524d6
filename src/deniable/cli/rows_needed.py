"""`deniable rows-needed`: how many rows make a share accurate, before anything is published."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from deniable.cli import console


def rows_needed(
    *,
    coins: Annotated[list[float], typer.Argument(metavar="COIN..", help="The coin p of each column asked about.")],
    error: Annotated[float, typer.Option(metavar="SHARE", help="How far off the share may be.")] = 0.01,
    masses: Annotated[
        list[float] | None,
        typer.Option(
            "--mass",
            metavar="SHARE",
            help="Of each column, the share of its replacements that is asked for. Without it: the worst.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="How often the answer must be as accurate.")
    ] = 0.95,
    boolean: Annotated[
        bool,
        typer.Option(
            "--boolean", help="For a yes or no: is the share above a threshold that it is at least --error away from?"
        ),
    ] = False,
    as_json: console.AsJson = False,
) -> None:
    """Say how many rows make a share accurate to plus or minus an error, before anything is collected.

    Example: deniable rows-needed 0.5 0.8 --error 0.01
    """
    import deniable as dn

    needed = dn.rows_needed(coins, error, masses=masses or None, confidence=confidence, boolean=boolean)
    if as_json:
        console.emit({"coins": coins, "error": error, "confidence": confidence, "boolean": boolean, **asdict(needed)})
        return
    rows = (
        ("variance", needed.variance, "what to plan with: the variance of the estimate, and the normal distribution"),
        ("certain", needed.certain, "for any table, by Hoeffding's inequality"),
        ("theorem", needed.theorem, "for any table, by OLAP Theorem 1; one column"),
    )
    shown = [(name, f"{number:,}", what) for name, number, what in rows if number is not None]
    console.show_table(("by", "rows", "holds"), shown)
