"""The decision that an owner signs: planted traps are named, each with its figure and a fix that helps; publish and
audit say the same; and nothing is written that must not be published."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner.decision import MOST, Decision, Point, decision_of, with_changes

ROWS = 3_000
CODES = [f"{letter}{number}" for letter in "ABCD" for number in range(5)]


def people(seed: int = 0, rows: int = ROWS, **more: Any) -> pa.Table:
    draw = np.random.default_rng(seed)
    made = {"sex": draw.choice(["F", "M"], rows), "age": draw.integers(2, 9, rows) * 10}
    return pa.table({**made, "code": draw.choice(CODES, rows), **more})


def decision(table: pa.Table, mechanism: str = "uniform", **options: Any) -> Decision:
    release = dn.publish(table, sensitive="code", privacy=dn.Privacy(rho2="1/3"), mechanism=mechanism, **options)
    assert isinstance(release.decision, Decision)
    return release.decision


def test_a_table_without_traps_may_be_published() -> None:
    for seed in range(4):
        made = decision(people(seed))
        assert made.verdict == "may be published", str(made)
        assert made.exit_code == 0


def days(draw: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(np.datetime64("2020-01-01") + draw.integers(0, 700, rows))


def trapped(trap: str) -> pa.Table:
    draw = np.random.default_rng(5)
    plain = people(1)
    code = plain["code"].to_pylist()
    if trap == "identifiers":
        return people(1, record=[f"r{number:06}" for number in draw.permutation(ROWS)])
    if trap == "exact dates":
        return people(1, onset=days(draw, ROWS))
    if trap == "same values in clear":
        return people(1, second=draw.choice(CODES, ROWS))
    if trap == "other sensitive columns":
        return people(1, salary=draw.integers(1, 9, ROWS) * 10_000)
    if trap == "values in public columns":
        return people(1, chapter=[value[0] for value in code])
    if trap == "rows of one person":
        first = people(1, rows=ROWS // 3, height=draw.integers(0, 40, ROWS // 3), patient_id=np.arange(ROWS // 3))
        return pa.concat_tables([first] * 3)
    if trap == "rows alone":
        return people(1, one=draw.integers(0, 40, ROWS), other=draw.integers(0, 40, ROWS))
    assert trap == "relatives"
    rows = 8 * ROWS
    home = np.arange(rows) // 3
    shared = draw.choice(CODES, rows // 3)[home]
    town, floor = draw.choice(["a", "b", "c"], rows // 3)[home], draw.integers(1, 5, rows // 3)[home]
    own = np.where(draw.random(rows) < 0.6, shared, draw.choice(CODES, rows))
    table = people(1, rows, household_id=home, town=town, floor=floor)
    return table.set_column(table.column_names.index("code"), "code", pa.array(own))


TRAPS = ("identifiers", "exact dates", "same values in clear", "other sensitive columns", "values in public columns",
         "rows of one person", "rows alone", "relatives")  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_is_named_by_publish_and_audit_alike_and_its_fix_helps(trap: str) -> None:
    table = trapped(trap)
    drop = ["household_id"] if trap == "relatives" else ["patient_id"] if trap == "rows of one person" else []
    release = dn.publish(
        table, sensitive="code", privacy=dn.Privacy(rho2="1/3"), mechanism="uniform", drop=drop, key=bytes(32)
    )
    points = {point.part: point for point in release.decision.open}
    assert trap in points, str(release.decision)
    assert points[trap].figure
    assert dn.audit(table, release).decision.points == release.decision.points
    if not points[trap].fix:
        return
    words = with_changes(["publish", *(word for name in drop for word in ("--drop", name))], points[trap].fix)
    after = decision(table, **arguments(words[1:]))
    assert trap not in {point.part for point in after.open}, str(after)


def arguments(words: list[str]) -> dict[str, Any]:
    """Options of the command as those of ``publish``."""
    given: dict[str, Any] = {"drop": [], "recode": {}}
    for name, value in zip(words[::2], words[1::2], strict=True):
        option = name.removeprefix("--")
        if option == "drop":
            given["drop"].append(value)
        elif option == "recode":
            column, _, how = value.partition("=")
            given["recode"][column] = how
        else:
            given[option] = value
    return {**given, "recode": given["recode"] or None}


def test_people_for_whom_a_question_was_not_asked_do_not_count() -> None:
    """Children have no occupation, and their age says so: a column as harmless as ages stays."""
    draw = np.random.default_rng(9)
    age = draw.integers(0, 8, ROWS) * 10
    code = np.where(age < 20, "Not in universe", draw.choice(CODES, ROWS))
    table = pa.table({"age": age, "sex": draw.choice(["F", "M"], ROWS), "code": code})
    for options in ({}, {"privacy": dn.Privacy(rho2="1/2", exempt=["Not in universe"])}):
        stated: dict[str, Any] = {"privacy": dn.Privacy(rho2="1/2"), **options}
        release = dn.publish(table, sensitive="code", mechanism="uniform", **stated)
        named = {point.part for point in release.decision.open}
        assert not {"values in public columns", "not covered"} & named, str(release.decision)


def test_a_copy_of_the_value_is_not_taken_for_rows_of_one_person() -> None:
    draw = np.random.default_rng(6)
    code = np.array(people(6)["code"].to_pylist())
    copy = np.where(draw.random(ROWS) < 0.9, code, draw.choice(CODES, ROWS))
    number = [CODES.index(value) for value in copy]
    (point,) = decision(people(6, ward=number)).open
    assert (point.part, point.columns, point.grade) == ("values in public columns", ("ward",), "never")


def test_as_many_are_asked_for_as_one_decides_at_once() -> None:
    points = [Point(f"part {place}", "decide", "So it is.", weight=place) for place in range(9)]
    made = decision_of([*points, Point("worst", "never", "Never.")])
    assert [point.part for point in made.decisions] == ["worst", "part 8", "part 7", "part 6", "part 5"]
    assert len(made.decisions) == MOST
    assert "Then five more: part 4, " in str(made)
    assert made.accepting("worst", "Because.").verdict == "must not be published"
    assert made.despite("Because.").verdict == "decide first"
