"""`deniable risk`: who stands out in a table, before and after its columns are made coarser."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console, options
from deniable.core.errors import OptionError
from deniable.core.values import probability
from deniable.owner.decision import quoted

FORMS = {".csv": "csv", ".parquet": "parquet"}


def risk(
    *,
    files: options.Files,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="What an attacker may know of a person: age,sex,zip. May be repeated. Left out: what each column "
            "holds, and what is proposed to become of it.",
        ),
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that will be perturbed: what do the others say about it?"),
    ] = None,
    template: Annotated[
        str,
        typer.Option(metavar="NAME", help="Without --columns: propose what is usual for health, census, employees."),
    ] = "",
    propose: Annotated[
        bool,
        typer.Option(
            "--propose",
            help="Without --columns: also search for how coarse public columns must be so that few rows are alone in "
            "them, and print the options of publish.",
        ),
    ] = False,
    alone: Annotated[
        str, typer.Option(metavar="SHARE", help="With --propose: the share of the rows that may be alone.")
    ] = "5%",
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Without --columns: write the proposals to this project file, for publish --project. Of one that is "
            "there, columns that it does not know are added.",
        ),
    ] = None,
    recode: options.RecodeSteps = None,
    rare: options.RareRows = None,
    suppress: options.SuppressRows = None,
    suppress_to_k: Annotated[
        int | None,
        typer.Option(
            "--suppress-to-k",
            metavar="ROWS",
            help="Blank out single values so that every combination of the columns has so many rows.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the table, recoded and blanked out, to this .csv or .parquet file (mode 0600), to publish it. "
            "It holds the sensitive values.",
        ),
    ] = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """See who stands out in a table: k-anonymity, uniqueness and l-diversity, before and after --recode.

    Nothing is published. The result describes the original table: it is for its owner.

    Example: deniable risk patients.csv --columns age,sex,zip --recode age=bands:10 --suppress-to-k 5
    """
    from deniable.owner.risk import risk as look
    from deniable.release.folder import require_writable

    if columns is None:
        strange = {
            "--recode": recode,
            "--rare": rare,
            "--suppress": suppress,
            "--suppress-to-k": suppress_to_k,
            "--out": out,
        }
        given = [name for name, value in strange.items() if value is not None]
        if given:
            raise OptionError(f"{given[0]} goes with --columns. Fix: --columns age,sex,zip: what someone may know.")
        wanted = float(probability(alone, "alone")) if propose else None
        _propose(options.one_or_many(files), sensitive, template, project, wanted, as_json=as_json)
        return
    if template or propose or project is not None:
        over_all = "--template" if template else "--propose" if propose else "--project"
        raise OptionError(f"{over_all} goes over all columns. Fix: leave --columns out.")
    form = None if out is None else _form(out)
    recoding = options.recoding_of(recode, rare, suppress)
    names = [name.strip() for given in columns for name in given.split(",") if name.strip()]
    if out is not None and not recoding and suppress_to_k is None:
        raise OptionError("--out writes the table made coarser, and nothing does. Fix: --recode, --suppress-to-k.")
    if out is not None:
        require_writable(out, inputs=files, table=True)
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        figures = look(
            options.one_or_many(files),
            names,
            sensitive=sensitive,
            recode=recoding.columns,
            rare=recoding.rare,
            suppress=recoding.suppress,
            suppress_to_k=suppress_to_k,
            progress=progress,
        )
    if out is not None and form is not None:
        _write(figures.table(), out, form, files)
        console.say(f"The table is in {out}. It holds the sensitive values: it is for you alone.")
    if as_json:
        console.emit(figures.to_dict())
    else:
        console.show(figures)


def _propose(
    table: str | list[str],
    sensitive: str | None,
    template: str,
    place: Path | None,
    wanted: float | None,
    *,
    as_json: bool,
) -> None:
    """Say what each column holds and what is proposed, and keep it in a project file where one is named."""
    from deniable.owner.project import Project
    from deniable.owner.proposals import coarser
    from deniable.owner.roles import summary

    named = () if sensitive is None else (sensitive,)
    if place is not None and place.exists():
        if template or named:
            raise OptionError(f"The project {str(place)!r} is there already. Fix: change it, or name another file.")
        proposed = Project.read(place).completed(table)
    else:
        proposed = Project.proposed(table, named, template=template)
    searched, said = None, summary(proposed.columns)
    if wanted is not None:
        proposed, searched = coarser(table, proposed, wanted)
    if place is not None:
        proposed.write(place)
    if as_json:
        made = {} if searched is None else {"proposal": searched.to_dict()}
        roles = [one.to_dict() for one in proposed.columns]
        console.emit({"columns": roles, "requirement": proposed.requirement, **made})
        return
    for line in said:
        console.show(line)
    if searched is not None:
        console.show(searched)
    if searched is not None and place is None:
        named_files = [table] if isinstance(table, str) else table
        console.show("As options of publish:")
        console.show(f"  {quoted(['deniable', 'publish', *named_files, *proposed.words(), '--out', 'release'])}")
    if place is not None:
        console.say(f"Next: read {place}, change what is not right, then")
        console.say(f"  deniable publish TABLE --project {shlex.quote(str(place))} --out FOLDER")


def _form(out: Path) -> str:
    if out.suffix not in FORMS:
        raise OptionError(f"--out {out} has no form. Fix: a name that ends in {' or '.join(FORMS)}.")
    return FORMS[out.suffix]


def _write(table: object, out: Path, form: str, files: list[str]) -> None:
    from deniable.release.folder import write_file
    from deniable.tables import engine_named

    with tempfile.TemporaryDirectory() as home:  # mode 0700
        path = Path(home, "table")
        engine_named("local").write([table], table.schema, path, form)  # type: ignore[attr-defined]
        write_file(out, path.read_bytes(), inputs=files, private=True, table=True)
