"""Audits and certificates in one line, and as small tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner.assessment import FOR_OWNER, Audit
from deniable.owner.findings import Finding
from deniable_verify import Certificate, Check

HOSTILE = "<script>alert(1)</script>"
COLUMN = "<b>disease</b>"


@pytest.fixture(scope="module")
def audited() -> Audit:
    values = ["flu", "flu", HOSTILE, "hiv", "cold", "gout", "acne"]
    table = pa.table({"sex": ["F", "M"] * 350, COLUMN: values * 100})
    release = dn.publish(table, sensitive=COLUMN, privacy=dn.Privacy(rho2="1/2"), name=HOSTILE, mechanism="uniform")
    return dn.audit(table, release, attacks=True)


def test_an_audit_prints_in_one_line(audited):
    assert repr(audited).startswith(f"<Audit of {HOSTILE!r} by uniform: ")
    assert repr(Audit("r", "uniform", (), None)) == "<Audit of 'r' by uniform: may be published>"
    assert len(repr(Audit("n" * 10**6, "uniform", (), None))) < 200


def test_a_notebook_shows_findings_worst_values_and_attacks(audited, notebook):
    page = notebook(audited)
    assert page.paragraphs == [repr(audited)[1:-1], FOR_OWNER, str(audited.decision)]
    heads = [row[0] for row in page.rows if row[0] in ("grade", "column", "attack")]
    assert heads == ["grade", "column", "attack"]
    first = audited.findings[0]
    assert page.rows[1] == [first.grade, first.what, first.detail, first.advice]
    assert [COLUMN, repr(HOSTILE)] in [row[:2] for row in page.rows]
    assert [attack.name for attack in audited.attacks] == [row[0] for row in page.rows[-len(audited.attacks) :]]


def test_many_findings_are_not_all_shown(notebook):
    findings = tuple(Finding("info", f"finding {i}", HOSTILE, "") for i in range(100))
    page = notebook(Audit("r", "uniform", (), None, findings))
    assert len(page.rows) == 31
    assert page.paragraphs[-1] == "70 more findings are not shown."


def test_a_certificate_prints_in_one_line():
    checks = tuple(Check(f"check {i}", True, "") for i in range(3))
    assert repr(Certificate(checks)) == "<Certificate: all 3 checks hold>"
    unmade = Check("perturbation", None, "it needs the key")
    assert repr(Certificate((*checks, unmade))) == "<Certificate: all 3 checks hold, 1 more cannot be made>"
    assert str(Certificate((checks[0], unmade))).splitlines() == [
        "ok   check 0: ",
        "--   perturbation: NOT CHECKED: it needs the key",
    ]
    failed = tuple(Check(f"check {i}", False, "") for i in range(1000))
    assert repr(Certificate((*checks, *failed))) == (
        "<Certificate: 1,000 of 1,003 checks fail: check 0, check 1, check 2, check 3, check 4, ..>"
    )


def test_a_notebook_shows_what_fails_first(notebook):
    page = notebook(Certificate((Check("columns", True, "2"), Check(HOSTILE, False, f"{HOSTILE}: no"))))
    assert page.paragraphs == [f"Certificate: 1 of 2 checks fail: {HOSTILE[:19]}…"]
    assert page.rows == [
        ["", "check", "numbers"],
        ["FAILS", HOSTILE, f"{HOSTILE}: no"],
        ["holds", "columns", "2"],
    ]
