"""A project file says what becomes of each column, and publishes this month's table and the next one alike."""

from __future__ import annotations

import tomllib
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from deniable.core.errors import ColumnError, OptionError
from deniable.owner.project import TEMPLATES, Accepted, Approval, Project, Record
from deniable.owner.roles import ROLES, Role


def month(seed: int, **more: object) -> pa.Table:
    draw = np.random.default_rng(seed)
    rows = 2000
    return pa.table(
        {
            "name": [f"Person {number}" for number in range(rows)],
            "sex": draw.choice(["F", "M"], rows),
            "age": draw.integers(18, 90, rows),
            "disease": draw.choice(list("abcdefgh"), rows),
            **more,
        }
    )


def project(**changes: object) -> Project:
    proposed = Project.proposed(month(1), "disease", rho2="1/2")
    return Project(**{**vars(proposed), **changes})  # type: ignore[arg-type]


def test_a_project_is_written_and_read_back(tmp_path: Path) -> None:
    full = (
        project()
        .with_role("age", "public", "top:80+bands:10")
        .accepting("dates", ["age"], 'needed for "the season"', by="A. Owner", figure="12 %")
        .approved("B. Officer", release="ab", note="fine")
        .recorded("may be published", release="ab")
    )
    full.write(tmp_path / "deniable.toml")
    assert Project.read(tmp_path / "deniable.toml") == full
    assert (tmp_path / "deniable.toml").stat().st_mode & 0o077 == 0


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=40)
@given(
    columns=st.lists(
        st.builds(Role, TEXT, TEXT, st.sampled_from([role for role in ROLES if role in ("public", "drop")]), TEXT),
        min_size=1,
        max_size=4,
        unique_by=lambda one: one.column,
    ),
    exempt=st.lists(st.one_of(TEXT, st.integers(-9, 9), st.booleans()), max_size=3),
    decisions=st.lists(st.builds(Accepted, TEXT, st.tuples(TEXT), TEXT, TEXT), max_size=2),
    approvals=st.lists(st.builds(Approval, TEXT, TEXT), max_size=2),
    published=st.lists(st.builds(Record, TEXT, TEXT, TEXT, TEXT), max_size=2),
)
def test_whatever_it_holds_is_read_back(tmp_path_factory, columns, exempt, decisions, approvals, published) -> None:
    made = Project(
        columns=tuple(columns),
        requirement={"rho2": "1/3", "exempt": exempt},
        decisions=tuple(decisions),
        approvals=tuple(approvals),
        published=tuple(published),
    )
    path = tmp_path_factory.mktemp("project") / "deniable.toml"
    made.write(path)
    assert Project.read(path) == made


def test_a_table_with_other_columns_is_refused_until_they_have_a_role(tmp_path: Path) -> None:
    known = project()
    with pytest.raises(ColumnError, match="no role: 'town'"):
        known.fitting([*month(1).column_names, "town"])
    with pytest.raises(ColumnError, match="no column 'age'"):
        known.fitting(["name", "sex", "disease"])
    assert [one.column for one in known.fitting(["sex", "age", "disease"]).columns] == ["sex", "age", "disease"]
    grown = known.with_role("sex", "drop").completed(month(1, town=["x", "y"] * 1000))
    assert {one.column: one.role for one in grown.columns} == {
        "name": "drop",
        "sex": "drop",
        "age": "public",
        "disease": "sensitive",
        "town": "public",
    }


def test_options_replace_what_they_name() -> None:
    known = project(requirement={"rho2": "1/2", "exempt": ["a"]})
    changed = known.changed(sensitive=["sex"], roles={"age": "drop"}, requirement={"epsilon": "1", "rho2": None})
    assert changed.options()["sensitive"] == ["sex"]
    assert changed.options()["drop"] == ["name", "age", "disease"]
    assert changed.requirement == {"exempt": ["a"], "epsilon": "1"}
    assert known.changed() == known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = 1", "names no columns"),
        ("version = 2", "version = 1"),
        ("version = 1\nrows = 3", "'rows' is not known"),
        ("version = 1\n[columns.a]\nrole = 'sensible'", "Did you mean 'sensitive'"),
        ("version = 1\n[columns.a]\nrole = 'public'\nrecode = 'band:3'", "Did you mean 'bands'"),
        ("version = 1\n[columns.a]\nrule = 'public'", "Did you mean 'role'"),
        ("version = 1\n[columns]\na = 'public'", "a is no table"),
        ("version = 1\n[requirement]\nrho = 1\n[columns.a]\nrole = 'public'", "Did you mean 'rho"),
        ("version = 1\n[[decisions]]\npart = 'x'\n[columns.a]\nrole = 'public'", "not understood"),
        ("version = ", "is not TOML"),
        (
            "version = 1\n[columns.a]\nrole = 'person'\n[columns.b]\nrole = 'person'",
            "several columns of the role person",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(OptionError, match=words):
        Project.read(tmp_path / "p.toml")


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="deniable risk TABLE --project"):
        Project.read(tmp_path / "p.toml")


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_are_projects_with_their_requirement(template: str) -> None:
    table = month(1, salary=np.arange(2000) % 37, diagnosis=["x", "y"] * 1000)
    made = Project.proposed(table, template=template)
    assert made.requirement["rho2"] == TEMPLATES[template].rho2
    (sensitive,) = made.sensitive
    assert sensitive == {"health": "disease", "census": "salary", "employees": "salary"}[template]
    assert tomllib.loads(made.to_toml())["template"] == template


def test_a_decision_has_a_reason_and_an_approval_a_name() -> None:
    with pytest.raises(OptionError, match="no reason"):
        project().accepting("dates", ["age"], " ")
    with pytest.raises(OptionError, match="names nobody"):
        project().approved("")
