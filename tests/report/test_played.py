"""Attacks in the owner's report: as a chart and a table, in every format, and only where they were played."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from deniable import report
from deniable.owner import report as played
from deniable.owner.audit import audit
from deniable.report.page import Document

Hostile = Callable[..., Any]


@pytest.fixture
def attacked(hostile: Hostile) -> Document:
    made = hostile()
    found = audit(str(made.original), made.folder, attacks=True).to_dict()
    return report.document(made.folder, audience="owner", audit=found)


def test_every_attack_is_told_with_its_interval_and_the_guess_without_the_release(attacked: Document) -> None:
    told = json.loads(report.render(attacked, "json"))
    (section,) = [section for section in told["sections"] if section["name"] == "attacks"]
    table = next(block for block in section["blocks"][::-1] if "data" in block)["data"]
    names = [row[0] for row in table["rows"]]
    assert {"linking", "corruption, none known", "corruption, all known", "classifier"} <= set(names)
    for row in table["rows"]:
        right, low, high, blind, guesses = row[1:6]
        assert 0 <= blind <= 1
        assert (low <= right <= high) if guesses else right is None
    assert "| linking |" in report.render(attacked, "md")


def test_the_page_draws_them_and_survives_hostile_names(attacked: Document) -> None:
    page = report.render(attacked, "html")
    assert "How often attackers are right" in page
    assert "<script>alert" not in page


def test_only_attackers_whom_this_release_helps_are_cautioned_of() -> None:
    known = {"high": 1.0, "trials": 100, "note": "if the rows were published 10 times"}
    attacks = [
        {"name": "duplicates", "success": 0.9, "low": 0.89, "baseline": 0.92, **known},  # right without any release
        {"name": "repeated publication", "success": 0.8, "low": 0.79, "baseline": 0.1, **known},  # which never were
        {"name": "classifier", "success": 0.2, "low": 0.19, "baseline": 0.1, **known},
    ]
    (note,) = played._above(attacks, 0.25)
    assert (note.grade, note.title) == ("info", "repeated publication")
    assert note.text == "Right about 80 % of the people if the rows were published 10 times."
    caution, note = played._above([*attacks, {**attacks[2], "name": "linking", "low": 0.3}], 0.25)
    assert caution.text.startswith("linking: right more often than 25 %.")
    assert (caution.grade, note.title) == ("caution", "repeated publication")
    assert played._above(attacks, None) == []


def test_without_attacks_there_is_no_such_section(hostile: Hostile) -> None:
    made = hostile()
    content = report.document(made.folder, audience="owner", audit=audit(str(made.original), made.folder).to_dict())
    assert "attacks" not in [section.name for section in content.sections]
