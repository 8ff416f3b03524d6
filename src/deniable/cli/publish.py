"""`deniable publish`: from a table to a release."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from deniable.cli import console
from deniable.core.bins import BinsLike, Quantiles
from deniable.core.errors import OptionError
from deniable.mechanisms import MECHANISMS, read_requirements


@console.guarded
def publish(
    *,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The table: CSV or Parquet; several files, or a pattern.")
    ],
    sensitive: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN", help="A column to perturb. Several are perturbed together, as one column of tuples."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write the release to.")],
    rho2: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="How sure an attacker may become of a person's value: 1/6, 0.17 or 17%."),
    ] = None,
    rho1: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="How strongly an attacker may believe it beforehand. Values more frequent than this are not "
            "protected. Left out: every value is.",
        ),
    ] = None,
    adversary: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            help="Who is held off: 'frequency' knows how frequent each value is; 'any-prior' may believe anything up "
            "to rho1.",
        ),
    ] = "frequency",
    requirements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Each value its own requirement, for 'fine-grain': CSV with the columns value, rho1, rho2, or TOML.",
        ),
    ] = None,
    exempt: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE", help="A value that needs no protection, for example 'healthy'. Repeat it."),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"How values are perturbed: auto (the planner's choice), {', '.join(MECHANISMS)}."
        ),
    ] = "uniform",
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=EDGES",
            help="For a sensitive number: publish intervals, e.g. salary=0,20000,50000,200000 or salary=quantiles:10.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out, such as a name. Repeat it for several."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="The format of the data: parquet or csv.")
    ] = "parquet",
    missing: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Missing sensitive values: 'value' (perturbed like any other), 'exempt' (published as missing) or "
            "'refuse'.",
        ),
    ] = "value",
    row_id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that names the row; it is not published. With the same key a row that comes back gets the "
            "same draw.",
        ),
    ] = None,
    no_shuffle: Annotated[
        bool, typer.Option("--no-shuffle", help="Keep the order of the rows, which may give values away.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the secret key from this file, to make the same release again. Whoever has it can "
            "undo the release.",
        ),
    ] = None,
    new_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Make a key and keep it in this new file (mode 0600), outside the release."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="For experiments only: anyone who guesses the seed can undo the release."),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="A name for the release; tables under one key need different ones.")
    ] = "release",
    no_marginals: Annotated[
        bool,
        typer.Option("--no-marginals", help="Do not publish the noisy histogram that makes answers more accurate."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a release that is already there.")] = False,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Publish a table: perturb its sensitive columns so that every value stays deniable.

    Without a key file the key is made by the operating system, kept in memory and forgotten. Nothing is written
    unless the whole release is.

    Example: deniable publish patients.csv --sensitive disease --rho2 1/6 --drop name --out release/
    """
    import deniable as dn

    _one_source_of_randomness(key_file, new_key_file, seed)
    table = files[0] if len(files) == 1 else files
    binned = _bins(bins or [])
    unprotected = _typed(exempt, table, sensitive) if exempt and not binned else list(exempt or [])
    # Without a requirement the mechanism decides whether it can do without one, and says so if not.
    required = rho1 is not None or rho2 is not None or exempt
    if requirements is not None and required:
        raise OptionError("--requirements excludes --rho1, --rho2 and --exempt: the file says it all, value by value.")
    privacy = dn.Privacy(rho1, rho2, adversary=adversary, exempt=unprotected) if required else None  # type: ignore[arg-type]
    if requirements is not None:
        privacy = read_requirements(requirements, adversary=adversary)  # type: ignore[arg-type]
    made = None if new_key_file is None else _new_key(new_key_file, out)
    try:
        with console.progress_bar(shown=not quiet and not as_json) as progress:
            release = dn.publish(
                table,
                sensitive=sensitive,
                privacy=privacy,
                mechanism=mechanism,
                drop=drop or (),
                out=out,
                key_file=made or key_file,
                seed=seed,
                row_id=row_id,
                shuffle=not no_shuffle,
                missing=missing,
                bins=binned,
                overwrite=overwrite,
                format=format_,
                name=name,
                marginals=False if no_marginals else None,
                progress=progress,
            )
    except BaseException:
        if made is not None:  # a key for a release that does not exist
            made.unlink(missing_ok=True)
        raise
    report(out, release.warnings, quiet=quiet, as_json=as_json)


def report(out: Path, warnings: Sequence[str], *, quiet: bool, as_json: bool) -> None:
    """Say what was published and what it promises, as its manifest has it."""
    for warning in warnings:
        console.warn(warning)
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    parts = {name: manifest[name] for name in ("rows", "mechanism", "guarantee", "randomness")}
    if as_json:
        console.emit({"release": str(out), **parts, "warnings": list(warnings)})
        return
    print(f"Published {manifest['rows']:,} rows in {out}")
    print(manifest["guarantee"]["sentence"])
    if not quiet:
        console.say("Not protected:")
        for line in manifest["guarantee"]["not_protected"]:
            console.say(f"  - {line}")
        console.say(f"Next: deniable verify {out}")


def _one_source_of_randomness(key_file: Path | None, new_key_file: Path | None, seed: int | None) -> None:
    given = {"--key-file": key_file, "--new-key-file": new_key_file, "--seed": seed}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise OptionError(f"{' and '.join(names)} contradict each other. Fix: give one of them, or none.")


def _typed(values: list[str], table: str | list[str], sensitive: list[str]) -> list[Hashable]:
    """Values as a shell has them, words, in the type of the sensitive column."""
    from deniable.engines.local.sources import open_source

    if len(sensitive) > 1:
        raise OptionError("--exempt goes with one sensitive column; with several, use exempt= of deniable.Privacy.")
    schema = open_source(table).schema
    if sensitive[0] not in schema.names:  # publish says it better
        return list(values)
    try:
        return [pa.scalar(value).cast(schema.field(sensitive[0]).type).as_py() for value in values]
    except pa.ArrowInvalid:
        kind = schema.field(sensitive[0]).type
        raise OptionError(f"--exempt {' '.join(values)} does not fit the column {sensitive[0]!r} ({kind}).") from None


def _new_key(path: Path, out: Path) -> Path:
    from deniable.engines.randomness import Secret

    Secret.generate().write(path, outside=out)
    return path


def _bins(texts: Sequence[str]) -> dict[str, BinsLike]:
    """``column=edge,edge,...`` or ``column=quantiles:10``."""
    found: dict[str, BinsLike] = {}
    for text in texts:
        column, _, edges = text.partition("=")
        try:
            kind, _, count = edges.partition(":")
            found[column] = Quantiles(int(count)) if kind == "quantiles" else [float(edge) for edge in edges.split(",")]
        except ValueError:
            raise OptionError(
                f"--bins {text} is not understood. Fix: COLUMN=EDGE,EDGE,EDGE with numbers, or COLUMN=quantiles:10."
            ) from None
    return found
