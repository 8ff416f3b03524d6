"""Options that several commands take, said once, and what becomes of their texts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from deniable.core.bins import BinsLike, Quantiles
from deniable.core.errors import OptionError
from deniable.core.privacy import Privacy
from deniable.mechanisms import MECHANISMS, read_requirements

NAMES = ", ".join(MECHANISMS)

Files = Annotated[
    list[str], typer.Argument(metavar="FILE", help="The table: CSV or Parquet; several files, or a pattern.")
]
Rho2 = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="How sure an attacker may become of a person's value: 1/6, 0.17 or 17%."),
]
Rho1 = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="How strongly an attacker may believe it beforehand. Values more frequent than this are not protected. "
        "Left out: every value is.",
    ),
]
Adversary = Annotated[
    str,
    typer.Option(
        metavar="WHO",
        help="Who is held off: 'frequency' knows how frequent each value is; 'any-prior' may believe anything up to "
        "rho1.",
    ),
]
Exempt = Annotated[
    list[str] | None,
    typer.Option(metavar="VALUE", help="A value that needs no protection, for example 'healthy'. Repeat it."),
]
Requirements = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Each value its own requirement, for 'fine-grain': CSV with the columns value, rho1, rho2, or TOML.",
    ),
]
BinEdges = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=EDGES",
        help="For a sensitive number: publish intervals, e.g. salary=0,20000,50000,200000 or salary=quantiles:10.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to leave out, such as a name. Repeat it for several."),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="Missing sensitive values: 'value' (perturbed like any other), 'exempt' (published as missing) or "
        "'refuse'.",
    ),
]
POOL_HELP = (
    "'sdr' (200 random conditions, each with every value), 'splu' (5,000 small and 5,000 large counts), or a file with "
    "one SELECT COUNT(*) FROM release WHERE .. in each line."
)


def one_or_many(files: list[str]) -> str | list[str]:
    return files[0] if len(files) == 1 else files


def requirement(
    table: str | list[str],
    sensitive: Sequence[str],
    *,
    rho1: str | None,
    rho2: str | None,
    adversary: str,
    exempt: list[str] | None,
    requirements: Path | None,
    binned: bool,
) -> Privacy | None:
    """What the options require; None where they say nothing, and the mechanism decides whether it can do without."""
    stated = rho1 is not None or rho2 is not None or exempt
    if requirements is not None:
        if stated:
            raise OptionError(
                "--requirements excludes --rho1, --rho2 and --exempt: the file says it all, value by value."
            )
        return read_requirements(requirements, adversary=adversary)  # type: ignore[arg-type]
    if not stated:
        return None
    unprotected = _typed(exempt, table, sensitive) if exempt and not binned else list(exempt or [])
    return Privacy(rho1, rho2, adversary=adversary, exempt=unprotected)  # type: ignore[arg-type]


def _typed(values: list[str], table: str | list[str], sensitive: Sequence[str]) -> list[Hashable]:
    """Values as a shell has them, words, in the type of the sensitive column."""
    from deniable.engines.local.sources import open_source

    if len(sensitive) > 1:
        raise OptionError("--exempt goes with one sensitive column; with several, use exempt= of deniable.Privacy.")
    schema = open_source(table).schema
    if sensitive[0] not in schema.names:  # whoever reads the column says it better
        return list(values)
    kind: Any = schema.field(sensitive[0]).type
    try:
        return [pa.scalar(value).cast(kind).as_py() for value in values]
    except pa.ArrowInvalid:
        raise OptionError(f"--exempt {' '.join(values)} does not fit the column {sensitive[0]!r} ({kind}).") from None


def bins_of(texts: Sequence[str] | None) -> dict[str, BinsLike]:
    """``column=edge,edge,...`` or ``column=quantiles:10``."""
    found: dict[str, BinsLike] = {}
    for text in texts or ():
        column, _, edges = text.partition("=")
        try:
            kind, _, count = edges.partition(":")
            found[column] = Quantiles(int(count)) if kind == "quantiles" else [float(edge) for edge in edges.split(",")]
        except ValueError:
            raise OptionError(
                f"--bins {text} is not understood. Fix: COLUMN=EDGE,EDGE,EDGE with numbers, or COLUMN=quantiles:10."
            ) from None
    return found
