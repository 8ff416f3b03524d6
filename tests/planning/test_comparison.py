"""Mechanisms side by side, in one line and as a small table."""

from __future__ import annotations

import pytest

import deniable as dn
from deniable.lab import rival_candidates
from deniable.mechanisms import Designed, SmallDomain, Uniform
from deniable.planning.comparison import Comparison
from deniable.planning.planner import compare

ROWS = {"flu": 4021, "cold": 3517, "<script>": 1213, "tb": 911, "hiv": 409, "gout": 1103}


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(ROWS, dn.Privacy(rho2="3/5"), mechanisms=[Uniform(), SmallDomain()], rivals=rival_candidates)


def test_it_prints_in_one_line(compared):
    usable = [one for one in (*compared.candidates, *compared.rivals) if one.guarantee is not None]
    first = compared.recommended.name
    assert repr(compared).startswith(f"<Comparison of {len(usable)} mechanisms: {first} recommended")
    assert "\n" not in repr(compared)
    assert len(repr(compared)) < 200


def test_what_does_not_apply_is_named():
    privacy = dn.Privacy(rho1="3/5", rho2="4/5", adversary="any-prior")
    compared = compare(ROWS, privacy, mechanisms=[Uniform(), SmallDomain(), Designed()])
    assert repr(compared) == "<Comparison of 1 mechanism: uniform recommended, small-domain, designed refused>"
    assert [one.name for one in compared.refused] == ["small-domain", "designed"]


def test_a_notebook_shows_mechanisms_rivals_and_the_reason(compared, notebook):
    page = notebook(compared)
    assert page.rows[0] == compared.columns
    assert page.rows[1][0] == compared.recommended.name
    assert any(row[0].endswith(" (rival)") for row in page.rows)
    assert {len(row) for row in page.rows} == {len(compared.columns)}
    assert compared.reason in page.paragraphs


def test_a_refusal_is_escaped_and_shown(notebook):
    per_value = dn.Privacy(per_value={"<script>": ("1/5", "2/5"), "flu": ("2/5", "3/5")})
    compared = compare(ROWS, per_value)
    refusals = [f"{one.name} does not apply: {one.refusal}" for one in compared.refused]
    assert refusals
    assert notebook(compared).paragraphs[-len(refusals) :] == refusals
