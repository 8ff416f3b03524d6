"""`deniable breach`: what a release lets others believe about some values or ranges."""

from __future__ import annotations

import datetime
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli import console
from deniable.core.errors import OptionError, did_you_mean, listing

if TYPE_CHECKING:
    from deniable.core.manifest import Manifest

BROKEN = 1  # the belief can grow to rho2 or more


def breach(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    where: Annotated[
        list[str],
        typer.Argument(
            metavar="COLUMN=VALUES..",
            help="Perturbed columns and what is believed of them: job=judge, job=judge,cook, age=20..30 or "
            "born=1980-01-01..1985-12-31.",
        ),
    ],
    rho1: Annotated[str, typer.Option(metavar="SHARE", help="How sure someone is before seeing a row.")] = "1/10",
    rho2: Annotated[str, typer.Option(metavar="SHARE", help="How sure they must not become.")] = "95/100",
    as_json: console.AsJson = False,
) -> None:
    """Say how sure someone can become of values or ranges of columns that were perturbed one by one.

    Nothing of the rows is looked at. Exit code 0: rho2 is not reached. 1: it can be.

    Example: deniable breach release job=judge age=20..30 --rho1 1/10 --rho2 1/2
    """
    import deniable as dn

    manifest = dn.open_release(release).manifest
    about = dn.breach(manifest, _conditions(manifest, where), rho1=rho1, rho2=rho2)
    if as_json:
        figures = {"seen": about.seen, "posterior": about.posterior, "limit": about.limit, "covered": about.covered}
        columns = [
            {"column": name, "coin": coin, "mass": mass}
            for name, coin, mass in zip(about.columns, about.coins, about.masses, strict=True)
        ]
        console.emit({"release": str(release), "holds": about.holds, "columns": columns, **figures})
    else:
        print(about)
    if not about.holds:
        raise typer.Exit(BROKEN)


def _conditions(manifest: Manifest, where: list[str]) -> dict[str, Any]:
    """column -> what is asked, as ``dn.breach`` takes it; values are those of the column whose text is the same."""
    import deniable as dn

    conditions: dict[str, Any] = {}
    for text in where:
        column, equals, values = text.partition("=")
        if not equals or not column or not values:
            raise OptionError(f"{text!r} is not COLUMN=VALUES. Fix: job=judge, job=judge,cook or age=20..30.")
        if column in conditions:
            raise OptionError(f"{column!r} is named twice. Fix: {column}=.. once, with all its values.")
        low, dots, high = values.partition("..")
        if dots:
            conditions[column] = dn.between(_end(column, low), _end(column, high))
        else:
            conditions[column] = [_value(manifest, column, value) for value in values.split(",")]
    return conditions


def _end(column: str, text: str) -> float | datetime.date:
    """An end of a range: a number or a day."""
    for read in (float, datetime.date.fromisoformat):
        with suppress(ValueError):
            return read(text)
    raise OptionError(
        f"{text!r} is no end of a range of {column!r}. Fix: {column}=20..30, or {column}=1980-01-01..1985-12-31."
    )


def _value(manifest: Manifest, column: str, text: str) -> Any:
    """The value of a perturbed column that is written so; anything is left to ``dn.breach`` where there is none."""
    part = next((part for part in manifest.parts if part.columns == (column,)), None)
    if part is None or not part.domain:
        with suppress(ValueError):
            return float(text)  # of a range of numbers
        return text
    written = {str(value): value for value in part.domain}
    if text not in written:
        hint = did_you_mean(text, written) or f" Fix: one of {listing(list(written))}."
        raise OptionError(f"{text!r} is no value of {column!r}.{hint}")
    return written[text]
