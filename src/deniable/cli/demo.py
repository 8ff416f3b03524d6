"""`deniable demo`: all of it on a made-up table, in a minute."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import typer

from deniable.cli import console
from deniable.core.errors import OptionError, OutputError
from deniable.lab import made_up
from deniable.release.commit import cannot_write
from deniable.release.folder import read_manifest, write_file

RHO1, RHO2 = "1/13", "1/3"
NAME = "demo"  # of the release
LEAST_ROWS = 500  # from here on every occupation that is asked about occurs
DEGREES = ["Bachelor's degree", "Master's degree", "Doctorate"]
PROFESSIONS = ["School teacher", "Accountant", "Software developer", "Lawyer", "Physician", "Engineer", "Social worker"]
OUTDOORS = ["Truck driver", "Construction labourer", "Carpenter", "Electrician", "Gardener", "Farmer", "Plumber"]
QUESTIONS: tuple[tuple[str, dict[str, list[str]]], ...] = (
    ("How many people are secretaries or nurses?", {"occupation": ["Secretary", "Registered nurse"]}),
    ("How many of them are women?", {"occupation": ["Secretary", "Registered nurse"], "gender": ["Female"]}),
    ("How many people with a degree work in a profession?", {"education": DEGREES, "occupation": PROFESSIONS}),
    ("How many men work outdoors or on the road?", {"gender": ["Male"], "occupation": OUTDOORS}),
)


@dataclass(frozen=True)
class Answer:
    """A question, what the release says, and what is true: the table is made up, so nobody is harmed by showing it."""

    question: str
    estimate: float
    low: float
    high: float
    truth: int


def demo(
    rows: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many people to make up: 500 or more.")
    ] = made_up.ROWS,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to put people.csv and the folder release.")] = Path(
        "demo"
    ),
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Make up a census, publish it, verify the release and ask it questions. Takes less than a minute.

    Example: deniable demo --out demo
    """
    import deniable as dn
    from deniable.publishing.memory import nothing_remembered

    talk = not quiet and not as_json
    source, folder = out / "people.csv", out / "release"
    if rows < LEAST_ROWS:
        raise OptionError(
            f"--rows {rows} is too few: among fewer than {LEAST_ROWS} people, occupations that the demo asks about may "
            f"be missing. Fix: --rows {LEAST_ROWS} or more."
        )
    people = made_up.census(rows)
    text = _as_csv(people)
    _require_own(folder, source, text)
    _tell(talk, f"1. {rows:,} made-up people, with their occupation as the sensitive column, in {source}")
    write_file(source, text, table=True)
    with console.progress_bar(shown=talk) as progress, nothing_remembered():
        release = dn.publish(
            str(source),
            sensitive="occupation",
            privacy=dn.Privacy(RHO1, RHO2),
            domain=[name for name, *_ in made_up.OCCUPATIONS],
            out=folder,
            overwrite=True,
            name=NAME,
            progress=progress,
        )
    _tell(talk, f"2. Published in {folder}; how sure an attacker may become of a person's occupation (rho2): {RHO2}")
    for warning in release.warnings:
        console.warn(warning)
    if release.choice is not None:
        _tell(talk, f"   by {release.choice.chosen}")
    _tell(talk, "3. Verified: the guarantee, recomputed from the numbers in the release")
    verified = dn.verify(folder)
    _tell(talk, "4. Asked: estimates from the release beside the truth, which only a made-up table may show")
    answers = [_ask(release, people, question, where) for question, where in QUESTIONS]
    _show(folder, source, verified, answers, talk=talk, as_json=as_json)


def _ask(release: Any, people: pa.Table, question: str, where: dict[str, list[str]]) -> Answer:
    estimate = release.count(where=where)
    matches = pa.array([True] * people.num_rows)
    for column, values in where.items():
        matches = pc.and_(matches, pc.is_in(people[column].combine_chunks(), value_set=pa.array(values)))
    truth = pc.sum(matches.cast(pa.int64())).as_py()
    return Answer(question, float(estimate.value), float(estimate.low), float(estimate.high), int(truth))


def _show(folder: Path, source: Path, verified: Any, answers: list[Answer], *, talk: bool, as_json: bool) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if as_json:
        console.emit(
            {
                "table": str(source),
                "release": str(folder),
                "rows": manifest["rows"],
                "guarantee": manifest["guarantee"],
                "verified": verified.to_dict(),
                "answers": [asdict(answer) for answer in answers],
            }
        )
        return
    console.show(manifest["guarantee"]["sentence"])
    console.show_table(
        ("question", "estimate", "low", "high", "truth"),
        ((a.question, round(a.estimate), round(a.low), round(a.high), a.truth) for a in answers),
    )
    question = "SELECT gender, COUNT(*) AS n FROM release WHERE occupation = 'Secretary' GROUP BY gender"
    _tell(talk, "An interval contains the truth 95 times in 100.\n\nWhat to do next:")
    _tell(talk, f'  deniable query {folder} "{question}"')
    _tell(talk, f"  deniable verify {folder}")
    _tell(talk, f"  deniable publish {source} --sensitive occupation --rho1 1/13 --rho2 1/6 --out stricter/")
    _tell(talk, "  deniable publish YOUR.csv --sensitive COLUMN --rho2 1/3 --drop NAME --out release/")


def _tell(talk: bool, text: str) -> None:
    if talk:
        console.say(text)


def _as_csv(people: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(people, sink)
    return bytes(sink.getvalue().to_pybytes())


def _require_own(folder: Path, source: Path, text: bytes) -> None:
    """Make the folder of the demo; refused where its release would replace another one, or its table another table."""
    others = {source: source.exists() and source.read_bytes() != text}
    others[folder] = folder.exists() and read_manifest(folder).name != NAME
    for path, is_other in others.items():
        if is_other:
            raise OutputError(f"{str(path)!r} exists and is not the demo's: it is not overwritten. Fix: --out FOLDER.")
    try:
        source.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(source.parent, error) from None
