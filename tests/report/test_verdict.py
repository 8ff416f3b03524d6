"""The owner's report begins with a verdict and ends with a record that can be signed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deniable as dn
from deniable import report
from deniable.analyst.evidence import Evidence, from_release
from deniable.owner import report as giveaways
from deniable.owner.audit import audit
from deniable.owner.decision import Point, decision_of
from deniable.owner.report import TO_FILL, Origin, verdict
from deniable.report.page import Facts, Note
from deniable.report.tables import Table

TABLE = pa.table({"sex": ["F", "M"] * 2000, "disease": (["flu"] * 5 + ["cold", "gout", "hiv", "tb", "mumps"]) * 400})


@pytest.fixture(scope="module")
def release() -> dn.Release:
    privacy = dn.Privacy(rho1="1/8", rho2="1/2")
    return dn.publish(TABLE, sensitive="disease", privacy=privacy, mechanism="designed", key=bytes(32))


@pytest.fixture(scope="module")
def audited(release: dn.Release) -> dict[str, Any]:
    return audit(TABLE, release, attacks=True).to_dict()


@pytest.fixture(scope="module")
def for_the_owner(release: dn.Release, audited: dict[str, Any]) -> report.page.Document:
    return report.document(release, audience="owner", audit=audited)


def decided(release: dn.Release, *grades: str) -> Evidence:
    points = [Point(f"part {place}", grade, f"{grade}: so it is.") for place, grade in enumerate(grades)]  # type: ignore[arg-type]
    audited = {"findings": [], "parts": [], "decision": decision_of(points).to_dict()}
    return dataclasses.replace(from_release(release), audit=audited)


def test_the_report_gives_the_decision_of_the_audit(release: dn.Release) -> None:
    assert verdict(decided(release, "fine"))[::2] == ("good", [])
    assert verdict(decided(release, "fine"))[1].startswith("It may be published")
    grade, sentence, reasons = verdict(decided(release, "decide", "fine", "decide"))
    assert (grade, sentence) == ("caution", "Decide first: two decisions.")
    assert reasons == ["decide: so it is."] * 2
    grade, sentence, reasons = verdict(decided(release, "decide", "never"))
    assert (grade, sentence) == ("serious", "It must not be published: one reason, and one decision.")
    assert reasons == ["never: so it is.", "decide: so it is."]


def test_a_broken_certificate_a_seed_and_no_audit_are_reasons(release: dn.Release) -> None:
    sound = decided(release)
    broken = dataclasses.replace(sound, certificate={"holds": False, "checks": []})
    assert verdict(broken)[0] == "serious"
    seeded = dataclasses.replace(
        sound.manifest, randomness=dataclasses.replace(sound.manifest.randomness, source="seed", seed=1)
    )
    assert "seed" in verdict(dataclasses.replace(sound, manifest=seeded, audit=None))[2][0]
    assert "not audited" in verdict(dataclasses.replace(sound, audit=None))[2][0]


def test_values_that_are_not_protected_are_reasons_and_stand_out(for_the_owner: report.page.Document) -> None:
    content = for_the_owner
    assert content.sections[0].name == "verdict"
    note, reasons = content.sections[0].blocks
    assert isinstance(note, Note)
    assert any("nothing is promised about" in reason and "'flu'" in reason for reason in reasons.items)  # type: ignore[union-attr]
    (attackers,) = [section for section in content.sections if section.name == "attackers"]
    values = next(block for block in attackers.blocks if isinstance(block, Table))
    assert {values.rows[place][0] for place in values.marked} == {"flu"}
    page = report.render(content)
    assert page.count('<tr class="exposed">') == 1
    assert "var(--serious)" in page[page.index("<figure") :]


def test_beliefs_of_others_stand_beside_the_promise(
    release: dn.Release, audited: dict[str, Any], for_the_owner: report.page.Document
) -> None:
    (facts,) = [block for block in for_the_owner.sections[1].blocks if isinstance(block, Facts)]
    figures = {label: figure for label, figure, _ in facts.items}
    gamma = float(release.manifest.parts[0].channels[0].gamma)
    grown = 0.1 * gamma / (0.9 + 0.1 * gamma)
    assert float(figures["From a hunch of 10 %"].removesuffix(" %")) == pytest.approx(100 * grown, abs=0.06)
    right = max(one["after"]["right"] for one in audited["informed"])
    assert float(figures["An informed attacker"].removesuffix(" %")) == pytest.approx(100 * right, abs=0.06)
    assert figures["Promised (rho2)"] == "50 %"


def test_the_record_says_what_was_published_from_what(release: dn.Release, tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    file.write_bytes(b"sex,disease\n")
    origin = Origin.of([str(file)], ["deniable", "report", "my release"])
    content = json.loads(report.render(report.document(release, audience="owner", origin=origin), "json"))
    record = content["sections"][-1]
    assert record["name"] == "record"
    about, columns, to_fill = (block for block in record["blocks"] if block["kind"] == "table")
    entries = dict(about["rows"])
    assert entries[f"Table {file}"] == f"SHA-256 {hashlib.sha256(b'sex,disease' + bytes([10])).hexdigest()}"
    assert entries["Command"] == "deniable report 'my release'"
    assert entries["Required"] == "rho1 = 1/8, rho2 = 1/2; adversary frequency"
    assert "deniable " in entries["Versions"]
    assert [row[:2] for row in columns["rows"]] == [["sex", "public"], ["disease", "sensitive"]]
    assert [row[0] for row in to_fill["rows"]] == list(TO_FILL)


def test_nothing_of_the_record_is_in_an_analyst_s_report(release: dn.Release) -> None:
    text = report.render(report.document(release, audience="analyst"), "md")
    assert "Approved by" not in text
    assert "Verdict" not in text


def test_attackers_above_rho2_get_a_sentence(release: dn.Release, audited: dict[str, Any]) -> None:
    def sentences(success: float) -> list[Note]:
        attack = {"name": "linking", "success": success, "low": success - 0.01, "high": success + 0.01}
        told = {**audited, "attacks": [{**attack, "baseline": 0.5, "trials": 100, "note": "by all columns"}]}
        content = report.document(release, audience="owner", audit=told)
        (section,) = [one for one in content.sections if one.name == "attacks"]
        return [block for block in section.blocks if isinstance(block, Note)]

    assert sentences(0.505) == []
    (note,) = sentences(0.6)
    assert "linking: right more often than 50 %" in note.text


def test_what_decoys_promise_is_not_said_to_be_nothing() -> None:
    many = pa.table({"sex": ["F", "M"] * 2001, "disease": ["flu", "cold", "gout", "hiv", "tb", "mumps"] * 667})
    decoys = dn.publish(many, sensitive="disease", mechanism="decoys:c=3", key=bytes(32))
    retention = dn.publish(many, mechanism="retention:disease=0.5,sex=0.5", key=bytes(32))
    promises = [
        next(point for point in made.decision.points if point.part == "promise") for made in (decoys, retention)
    ]
    assert [point.grade for point in promises] == ["fine", "decide"]
    assert promises[1].says.startswith("Nothing is promised")
    page = report.document(retention, audience="analyst")
    assert "every value of disease and sex is deniable" in page.subtitle


def test_columns_without_a_rho2_to_pass_have_no_column_for_it() -> None:
    rows = [{"column": "sex", "explained": 0.1, "function": None, "after": after(None), "without": after(None)}]
    frequencies = {"after": after(None), "without": after(None), "people": 100}
    found = {"sensitive": "disease", "rows": 9, "of": 9, "columns": rows, "frequencies": frequencies}
    assert "above rho2" not in giveaways._table(found).columns
    stated = {**found, "frequencies": {**frequencies, "after": after(0.2)}}
    assert "above rho2" in giveaways._table(stated).columns


def after(above_rho2: float | None) -> dict[str, float | None]:
    return {"right": 0.4, "above_rho2": above_rho2, "above_nearly": 0.1}
