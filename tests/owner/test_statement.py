"""The page for the data protection officer: the decision, before and after, who approved; no term unexplained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable.owner.project import Project
from deniable.owner.statement import statement
from deniable.report.page import Document, markdown, to_html

ROWS = 3_000
TERMS = ("epsilon", "gamma", "posterior", "amplification", "adversary", "rho1", "prior", "coin", "perturb")


def people() -> pa.Table:
    draw = np.random.default_rng(3)
    code = draw.choice(list("abcdefgh"), ROWS)
    made = {"age": draw.integers(0, 95, ROWS), "salary": draw.integers(1, 9, ROWS) * 10_000, "name": np.arange(ROWS)}
    return pa.table({**made, "code": code})


def page(project: Project | None = None, **options: Any) -> Document:
    stated: dict[str, Any] = {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/3"), **options}
    release = dn.publish(people(), sensitive="code", drop="name", recode={"age": "bands:10"}, **stated)
    return statement(people(), release.manifest, dn.audit(people(), release), project)


def test_the_page_says_what_is_given_away_what_that_does_and_what_is_open() -> None:
    content = page()
    assert to_html(content).count("<h2") == 5
    text = markdown(content)
    for words in (
        "Something is to be decided",
        "Other columns look sensitive themselves",
        "Public, and made coarser: age (",
        "Not given away: name",
        "33.3 %",
        "To be signed",
    ):
        assert words in text, words
    body = text.split("What nothing is promised about")[0].lower()
    assert not [term for term in TERMS if term in body]


def test_what_the_owner_decided_and_who_approved_stand_on_it() -> None:
    project = Project.proposed(people(), "code").approved("A. Muster", note="Seen.")
    project = project.accepting("other sensitive columns", ("salary",), "Salaries are public here.", figure="1 column")
    content = page(project)
    assert content.title == "This file may be given away"
    text = markdown(content)
    assert "Salaries are public here." in text
    assert "A. Muster" in text
    assert "To be signed" not in text
