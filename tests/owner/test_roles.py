"""What columns hold is told by their values and names: every planted column is named, no harmless one is."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner.roles import Columns, forced, summary

ROWS = 6000
CODES = [f"{letter}{number:02d}" for letter in "ABCDEFGHIJ" for number in range(10)]


def people(**more: object) -> pa.Table:
    """Harmless columns of people, and a sensitive one of ICD codes."""
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "sex": draw.choice(["F", "M"], ROWS),
            "age": draw.integers(0, 95, ROWS),
            "children": draw.integers(0, 6, ROWS),
            "hours_per_week": draw.integers(0, 80, ROWS),
            "height": draw.normal(170, 9, ROWS),
            "body_weight": draw.normal(70, 12, ROWS),
            "marital": draw.choice(["single", "married", "widowed"], ROWS),
            "group_of_blood": draw.choice(["A", "B", "0", "AB"], ROWS),
            "smokes": draw.choice(["yes", "no", "unknown"], ROWS),
            "number_of_diagnoses": draw.integers(0, 9, ROWS),
            "disease": draw.choice(CODES, ROWS, p=draw.dirichlet(np.full(len(CODES), 2.0))),
            **more,
        }
    )


def kinds(table: pa.Table, sensitive: str = "disease") -> dict[str, tuple[str, str]]:
    return {one.column: (one.kind, one.role) for one in dn.roles(table, sensitive)}


DRAW = np.random.default_rng(11)
OWNER = np.repeat(np.arange(ROWS // 3), 3)[DRAW.permutation(ROWS)]
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(int(day)) for day in DRAW.integers(0, 360, ROWS)]
BIRTHS = [datetime.date(1930, 1, 1) + datetime.timedelta(int(day)) for day in DRAW.integers(0, 33_000, ROWS)]
PLANTED = {
    "a number of the case": ({"x": [f"c{number}" for number in range(ROWS)]}, ("identifier", "drop")),
    "dates of birth": ({"x": BIRTHS}, ("date of birth", "public")),
    "dates of an onset": ({"x": DAYS}, ("date", "public")),
    "dates as whole numbers": ({"x": [int(day.strftime("%Y%m%d")) for day in DAYS]}, ("date", "public")),
    "dates as texts": ({"x": [day.strftime("%d.%m.%Y") for day in DAYS]}, ("date", "drop")),
    "a postal code": ({"PLZ": DRAW.integers(1000, 9999, ROWS)}, ("place", "public")),
    "a survey weight": ({"survey_weight": DRAW.gamma(3, 400, ROWS)}, ("weight", "public")),
    "an income": ({"Monatslohn": DRAW.integers(2, 12, ROWS) * 1000, "gehalt": DRAW.integers(2, 12, ROWS)}, None),
    "a religion": ({"religion": DRAW.choice(["a", "b", "c"], ROWS)}, ("conviction, belief or the like", "public")),
    "other diagnoses": ({"x": DRAW.choice([f"{code}.1" for code in CODES], ROWS)}, ("diagnosis", "public")),
    "the same vocabulary": ({"x": DRAW.choice(CODES[::2], ROWS)}, ("same vocabulary", "drop")),
    "notes": (
        {
            "x": [
                f"came in the night of {day} with pain, born on {birth}"
                for day, birth in zip(DAYS, BIRTHS, strict=True)
            ]
        },
        ("free text", "drop"),
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_named_and_nothing_else_changes(planted: str) -> None:
    columns, expected = PLANTED[planted]
    got = kinds(people(**columns))
    named = list(columns)[-1]
    assert got[named] == (expected or ("income", "public"))
    assert {name: role for name, (_, role) in got.items() if name not in columns} == {
        **dict.fromkeys(people().column_names, "public"),
        "disease": "sensitive",
    }


def test_people_with_several_rows_and_households_are_told_apart_by_who_agrees_in_what() -> None:
    draw = np.random.default_rng(5)
    sex, town, birth = (draw.choice(["F", "M"], ROWS), draw.integers(0, 40, ROWS), draw.integers(1930, 2000, ROWS))
    of_people = {"x": OWNER, "sex": sex[OWNER], "birth_year": birth[OWNER]}
    assert kinds(people(**of_people))["x"] == ("person", "person")
    of_households = {"x": OWNER, "town": town[OWNER], "canton": town[OWNER] // 4}
    assert kinds(people(**of_households))["x"] == ("household", "drop")
    weights = {"x": draw.integers(0, ROWS // 3, ROWS)}  # rows of one value have nothing in common
    assert kinds(people(**weights))["x"] == ("category", "public")


def test_whole_numbers_share_a_vocabulary_only_where_they_are_codes() -> None:
    draw = np.random.default_rng(6)
    codes = draw.choice(draw.choice(90_000, 60, replace=False), (2, ROWS))
    table = people(job=codes[0], former=codes[1], ages=draw.integers(0, 50, ROWS), count=draw.integers(0, 50, ROWS))
    assert kinds(table, "job")["former"] == ("same vocabulary", "drop")
    assert kinds(table, "count")["ages"][1] == "public"
    twins = people(diag_1=draw.integers(0, 30, ROWS), diag_2=draw.integers(0, 30, ROWS))
    assert kinds(twins, "diag_1")["diag_2"] == ("same vocabulary", "drop")


def test_not_applicable_is_known_by_its_words_or_because_it_follows_from_another_column() -> None:
    draw = np.random.default_rng(8)
    age = draw.integers(0, 90, ROWS)
    job = np.where(age < 15, "N", draw.choice(["a", "b", "c", "N"], ROWS))
    hours = np.where(age < 15, 0, draw.integers(0, 60, ROWS))
    chance = draw.choice([0, 1, 2], ROWS)  # 0 means something here
    table = people(age=age, job=job, hours=hours, chance=chance, union=draw.choice(["yes", "Not in universe"], ROWS))
    nothing = {one.column: one.not_applicable for one in dn.roles(table, "disease") if one.not_applicable}
    assert nothing == {"job": ("N",), "hours": (0,), "union": ("Not in universe",)}


def test_what_another_column_forces_is_no_chance() -> None:
    codes = np.repeat([0, 1, 2], [100, 100, 8])
    has = np.r_[np.ones(100, bool), np.zeros(100, bool), np.ones(8, bool)]
    assert forced(codes, has)[:100].all()
    assert not forced(codes, has)[100:].any()  # eight alike may be chance


def test_without_a_sensitive_column_the_diagnosis_is_proposed() -> None:
    got = kinds(people(salary=np.arange(ROWS) % 50), sensitive=())  # type: ignore[arg-type]
    assert got["disease"][1] == "sensitive"


def test_the_proposals_take_a_line_each() -> None:
    lines = summary(dn.roles(people(), "disease"))
    assert lines[0].startswith("'disease': sensitive. ")
    assert lines[-1].startswith("Published as they are: 10 (")


def test_a_table_without_rows_has_roles() -> None:
    assert [one.role for one in dn.roles(people().slice(0, 0))] == ["public"] * len(people().column_names)


@pytest.mark.skipif("DENIABLE_DATA" not in os.environ, reason="DENIABLE_DATA names no folder of real tables")
def test_real_tables_have_the_roles_that_who_knows_them_would_give() -> None:
    home = Path(os.environ["DENIABLE_DATA"])
    left_out = {
        "adult": ("occupation", {}),
        "census_occ100k": ("occupation", {}),
        "census_income_kdd": ("detailed_occupation_recode", {}),
        "diabetes130": (
            "diag_1",
            {"encounter_id": "drop", "patient_nbr": "person", "diag_2": "drop", "diag_3": "drop"},
        ),
    }
    for name, (sensitive, others) in left_out.items():
        proposed = dn.roles(home / f"{name}.parquet", sensitive)
        assert {one.column: one.role for one in proposed if one.role != "public"} == {sensitive: "sensitive", **others}
    codes = Columns(pa.table({"age": [1, 2, 3]}))
    assert codes.values("age") == [1, 2, 3, None]
