"""The dependence check of publish and audit: planted columns are named, random ones never, and the fix works."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner.decision import Decision, Point

PRIVACY = dn.Privacy(rho2="1/3")
ROWS = 4_000
CODES = [f"{letter}{number}" for letter in "ABCD" for number in range(5)]


def people(seed: int = 0, rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": draw.choice(["F", "M"], rows),
            "age": draw.integers(18, 90, rows),
            "zip": draw.integers(10_000, 99_999, rows),
            "income": draw.normal(50_000, 9_000, rows),
            "code": draw.choice(CODES, rows),
        }
    )


def planted(rows: int = ROWS) -> pa.Table:
    table = people(rows=rows)
    return table.append_column("chapter", pa.array([code[0] for code in table["code"].to_pylist()]))


def warned(decision: Decision) -> list[Point]:
    return [point for point in decision.open if point.part == "values in public columns"]


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain", "designed", "lineup"])
def test_a_chapter_beside_a_code_is_decided_on_alike_by_publish_and_audit(mechanism: str) -> None:
    table = planted()
    release = dn.publish(table, sensitive="code", privacy=PRIVACY, mechanism=mechanism)
    (point,) = warned(release.decision)
    assert "'chapter' tells part of 'code' (each sensitive value has one of its values)" in point.says
    assert point.fix == (("drop", "chapter"),)
    assert point.in_words() in release.warnings
    report = dn.audit(table, release)
    assert warned(report.decision) == [point]
    assert report.to_dict()["dependence"][0]["columns"][0]["column"] == "chapter"


@pytest.mark.parametrize("seed", range(4))
def test_random_columns_are_no_warning_and_no_finding(seed: int) -> None:
    table = people(seed)
    release = dn.publish(table, sensitive="code", privacy=PRIVACY, mechanism="uniform")
    assert warned(release.decision) == []
    report = dn.audit(table, release)
    assert warned(report.decision) == []
    assert report.dependence == ()


def test_dropping_or_recoding_the_culprit_is_the_fix() -> None:
    table = planted()
    for options in ({"drop": ["chapter"]}, {"recode": {"chapter": dn.hierarchy(dict.fromkeys("ABCD", "any"))}}):
        release = dn.publish(table, sensitive="code", privacy=PRIVACY, **{"mechanism": "uniform", **options})
        assert warned(release.decision) == []
        assert dn.audit(table, release).serious == ()


def test_numbers_are_learnt_from_in_classes_where_single_ones_are_too_rare() -> None:
    draw = np.random.default_rng(9)
    salary = draw.normal(50_000, 9_000, ROWS)
    level = np.searchsorted([40_000, 50_000, 60_000], salary)
    table = pa.table({"salary": salary, "level": level})
    release = dn.publish(table, sensitive="level", privacy=dn.Privacy(rho2="1/2"), mechanism="uniform")
    (point,) = warned(release.decision)
    assert point.columns == ("salary",)
    assert point.grade == "never"


def test_nothing_of_the_check_is_in_the_release() -> None:
    plain, checked = (
        dn.publish(planted(), sensitive="code", privacy=PRIVACY, key=bytes(32), mechanism="uniform") for _ in range(2)
    )
    assert plain.manifest.to_json() == checked.manifest.to_json()
    assert "give values away" not in checked.manifest.to_json()


def test_risk_says_what_columns_tell_before_and_after() -> None:
    found = dn.risk(
        planted(), ["chapter", "sex"], sensitive="code", recode={"chapter": dn.hierarchy(dict.fromkeys("ABCD", "any"))}
    )
    assert found.tells[0] is not None
    assert found.tells[0].columns[0].column == "chapter"
    assert found.tells[1] is None
    assert "each sensitive value has one of its values" in str(found)
    assert found.to_dict()["tells"][1] is None


def test_the_owner_report_shows_the_table(tmp_path) -> None:
    from deniable import report

    table = planted()
    release = dn.publish(table, sensitive="code", privacy=PRIVACY, out=tmp_path / "r", mechanism="uniform")
    text = report.document(tmp_path / "r", audience="owner", audit=dn.audit(table, release).to_dict(), evaluation=None)
    assert "What public columns give away" in str(text)


def salaries(seed: int = 0, missing: bool = False) -> pa.Table:
    draw = np.random.default_rng(seed)
    numbers = draw.integers(20_000, 120_000, ROWS)
    unknown = draw.random(ROWS) < 0.1 if missing else np.zeros(ROWS, bool)
    table = people(seed).select(["sex", "age", "zip"])
    return table.append_column("salary", pa.array(numbers, mask=unknown))


@pytest.mark.parametrize("how", ["retention:salary=0.5@0..200000", "retention:salary=20000:1/4:2/3@0..200000"])
@pytest.mark.parametrize("missing", ["value", "exempt"])
def test_a_grade_beside_perturbed_numbers_is_decided_on_alike_by_publish_and_audit(how: str, missing: str) -> None:
    table = salaries(missing=missing == "exempt")
    grade = [None if salary is None else salary // 4_000 for salary in table["salary"].to_pylist()]
    planted = table.append_column("grade", pa.array(grade))
    release = dn.publish(planted, mechanism=how, missing=missing)
    (point,) = warned(release.decision)
    assert point.fix == (("drop", "grade"),)
    assert warned(dn.audit(planted, release).decision) == [point]


@pytest.mark.parametrize("seed", range(4))
def test_random_columns_beside_perturbed_numbers_are_no_warning(seed: int) -> None:
    assert warned(dn.publish(salaries(seed), mechanism="retention:salary=0.5@0..200000").decision) == []
