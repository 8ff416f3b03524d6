"""Columns that name people are warned of, whether or not every value is different; categories never are."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.lab.made_up import census
from deniable.tables.dataset import LocalEngine
from deniable.tables.inspection import identifier_warnings, what_people

ROWS = 8000
FIRST = [
    a + b for a in ("An", "Be", "Cla", "Da", "Em", "Fre", "Ga", "He", "In", "Jo") for b in ("na", "rt", "ra", "il")
]
LAST = [
    a + b for a in ("Mei", "Schu", "Web", "Wag", "Bau", "Kel", "Hof", "Lan") for b in ("er", "mann", "s", "li", "ó")
]
FIRST_DAY = datetime.date(1935, 1, 1)
NOTES = ("complained about pain in the left knee", "was sent home after two days", "lives alone and has no relatives")


def column(make: Callable[[random.Random], Any], rows: int = ROWS) -> list[Any]:
    draw = random.Random(5)
    return [make(draw) for _ in range(rows)]


def day(draw: random.Random, days: int = 29_000) -> datetime.date:
    return FIRST_DAY + datetime.timedelta(draw.randrange(days))


def full_name(draw: random.Random) -> str:
    return f"{draw.choice(FIRST)} {draw.choice(LAST)}"


def number(draw: random.Random, digits: int) -> str:
    return "".join(draw.choice("0123456789") for _ in range(digits))


def repeated(make: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
    """Of some 2,000 people who have several rows."""
    return lambda draw: make(random.Random(draw.randrange(2000)))


PLANTED = {
    "names": ("x", full_name, "names of people, by its values"),
    "names, surname first": ("x", lambda d: f"{d.choice(LAST)}, {d.choice(FIRST)}", "names of people, by its values"),
    "surnames": ("Surname", lambda d: d.choice(LAST) + d.choice(LAST), "names of people, by its name"),
    "Vorname": ("Vorname", lambda d: d.choice(FIRST) + d.choice(FIRST), "names of people, by its name"),
    "apellidos": ("apellidos_paciente", lambda d: d.choice(LAST) + d.choice(LAST), "names of people, by its name"),
    "e-mail": ("x", repeated(lambda d: f"{number(d, 6)}@mail.org"), "e-mail addresses, by its values"),
    "telephones": ("x", repeated(lambda d: f"+41 79 {number(d, 3)} {number(d, 4)}"), "telephone numbers, by its"),
    "iban": ("x", repeated(lambda d: f"CH93 {number(d, 4)} {number(d, 4)} {number(d, 4)} 9"), "bank accounts, by its"),
    "ssn": ("x", repeated(lambda d: f"{number(d, 3)}-{number(d, 2)}-{number(d, 4)}"), "numbers of people, by its"),
    "patientId": ("patientId", repeated(lambda d: int(number(d, 6))), "numbers of people, by its name"),
    "as pandas has it": ("patient_nbr", repeated(lambda d: float(number(d, 6))), "numbers of people, by its name"),
    "street": ("Straße", repeated(lambda d: f"Weg {number(d, 4)}"), "addresses, by its name"),
    "days": ("x", day, "dates of birth: its days are spread over decades"),
    "times at midnight": ("x", lambda d: datetime.datetime.combine(day(d), datetime.time()), "dates of birth: its"),
    "local days": ("x", lambda d: f"{day(d):%d.%m.%Y}", "dates of birth: its days are spread over decades"),
    "whole numbers": ("x", lambda d: int(f"{day(d):%Y%m%d}"), "dates of birth: its days are spread over decades"),
    "dob": ("date_of_birth", lambda d: day(d, 3000), "dates of birth, by its name"),
    "notes": ("x", repeated(lambda d: f"{full_name(d)} {d.choice(NOTES)}"), "free text, in which people may be named"),
}  # fmt: skip
HARMLESS: dict[str, tuple[str, Callable[[random.Random], Any]]] = {
    "answers by mail": ("mail", lambda d: d.choice(["yes", "no"])),
    "years of birth": ("birth_year", lambda d: d.randrange(1930, 2010)),
    "weights at birth": ("birth_weight", lambda d: round(d.gauss(3400, 500))),
    "years as days": ("born", lambda d: datetime.date(d.randrange(1930, 2010), 1, 1)),
    "months as days": ("born", lambda d: datetime.date(d.randrange(1930, 2010), d.randrange(1, 13), 1)),
    "admissions": ("admitted", lambda d: day(d, 3000)),
    "times": ("seen", lambda d: datetime.datetime.combine(day(d), datetime.time(d.randrange(24), d.randrange(60)))),
    "drugs": ("drug_name", lambda d: f"Drug {d.randrange(400)}"),
    "models": ("phone_model", lambda d: f"Model {d.randrange(400)}"),
    "towns": ("town", lambda d: f"{d.choice(['New', 'Old', 'East'])} {d.choice(LAST)}"),
    "diagnoses": ("diagnosis", lambda d: f"{d.choice('ABCDEFGH')}{d.randrange(100):02}.{d.randrange(10)}"),
    "occupations": ("x", lambda d: f"Senior {d.choice(LAST)} of a title with many long words"),
    "new towns": ("x", lambda d: f"{d.choice(['New', 'Old', 'Bad', 'East'])} {d.choice(FIRST)}{d.choice(LAST)}"),
    "zip codes": ("zip", lambda d: d.randrange(1000, 9999)),
    "amounts": ("cost", lambda d: d.random() * 1000),
    "children": ("number_of_children", lambda d: d.randrange(60)),
    "codes of drugs": ("ndc", lambda d: f"{d.randrange(900, 999)}-{d.randrange(100, 120)}"),
    "clinics": ("email", lambda d: f"clinic{d.randrange(8)}@health.org"),
    "names of wards": ("name", lambda d: f"Ward {d.choice('ABCDEF')}"),
    "missing": ("name", lambda d: None),
    "truth": ("patient_id", lambda d: d.random() < 0.5),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_what_names_people_is_warned_of(kind: str) -> None:
    name, make, looks = PLANTED[kind]
    table = pa.table({name: column(make), "disease": column(lambda d: d.choice("abc"))})
    (warning,) = identifier_warnings(LocalEngine().open(table), table.column_names)
    assert warning.startswith(f"The column {name!r} looks like {looks}")
    assert f"Fix: drop={name!r}" in warning
    folded = pa.table({name: table[name].combine_chunks().dictionary_encode()})
    assert identifier_warnings(LocalEngine().open(folded), [name]) == [warning]


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_names_nobody_is_not(kind: str) -> None:
    name, make = HARMLESS[kind]
    table = pa.table({name: column(make)})
    assert not identifier_warnings(LocalEngine().open(table), [name])


def test_a_telling_name_is_enough_in_a_table_of_thirty_rows() -> None:
    assert what_people("Last name", pa.chunked_array([[f"{a}{b}" for a in LAST[:6] for b in LAST[:5]]]))
    assert what_people("Last name", pa.chunked_array([["Meier", "Weber"] * 15])) is None
    assert what_people("x", pa.chunked_array([[f"{a} {b}" for a in FIRST[:6] for b in LAST[:5]]])) is None


def test_publish_warns_an_owner_who_forgot_to_drop_a_name() -> None:
    table = pa.table({"name": column(full_name), "born": column(day), "disease": column(lambda d: d.choice("abcdef"))})
    release = dn.publish(table, sensitive="disease", privacy="1/2", mechanism="uniform")
    names, days, *_ = release.warnings
    assert names.startswith("Public columns may name people: 'name' ")
    assert names.endswith("Fix: drop=['name'].")
    assert days.startswith("Exact days are published: 'born'.")
    assert days.endswith("Fix: recode={'born': 'year'}.")
    assert str(release.decision).startswith("It must not be published")
    coarse = dn.publish(
        table, sensitive="disease", privacy="1/2", mechanism="uniform", drop="name", recode={"born": "year"}
    )
    assert not [warning for warning in coarse.warnings if "name people" in warning or "Exact days" in warning]


def test_a_made_up_census_has_no_such_column() -> None:
    for rows in (300, 20_000):
        people = census(rows)
        assert not identifier_warnings(LocalEngine().open(people), people.column_names)


@pytest.mark.skipif("DENIABLE_DATA" not in os.environ, reason="DENIABLE_DATA names no folder of tables")
@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("adult", []),
        ("census_occ100k", []),
        ("census_income_kdd", []),
        ("diabetes130", ["encounter_id", "patient_nbr"]),
    ],
)
def test_tables_of_the_field_are_not_flooded(name: str, named: list[str]) -> None:
    path = Path(os.environ["DENIABLE_DATA"], f"{name}.parquet")
    columns = pq.read_schema(path).names
    assert [warning.split("'")[1] for warning in identifier_warnings(LocalEngine().open(path), columns)] == named
