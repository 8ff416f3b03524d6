"""`deniable publish --mechanism retention`: several columns, each perturbed on its own, from one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import deniable as dn

COLUMNS = ("--sensitive", "age", "--sensitive", "disease", "--drop", "name")


def test_one_requirement_gives_each_column_its_coin(patients: Path, run, tmp_path: Path) -> None:
    two = ("--sensitive", "sex", "--sensitive", "disease", "--drop", "name", "--drop", "age")
    out = tmp_path / "r"
    done = run("publish", patients, *two, "--mechanism", "retention", "--rho1", "1/4", "--rho2", "1/2", "--out", out)
    assert done.returncode == 0, done.stderr
    release = dn.open_release(out)
    assert [part.columns for part in release.manifest.parts] == [("sex",), ("disease",)]
    assert [round(float(part.channels[0].coins[0]), 4) for part in release.manifest.parts] == [0.5, 0.1667]
    assert run("verify", out).returncode == 0


def test_coins_and_ranges_are_said_in_one_text(patients: Path, run, tmp_path: Path) -> None:
    out = tmp_path / "r"
    text = "retention:age=0.6@17..90,disease=0.7~identity"
    done = run("publish", patients, *COLUMNS, "--mechanism", text, "--out", out, "--json")
    assert done.returncode == 3, done.stderr  # names are published, and nothing is promised
    assert json.loads(done.stdout)["rows"] == 3000
    release = dn.open_release(out)
    assert release.manifest.parts[0].range.high == 90
    assert str(release.table["age"].type) == "int64"
    asked = run("query", out, "SELECT COUNT(*) AS n FROM release WHERE age >= 60 AND disease = 'flu'", "--json")
    assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("retention", "needs its columns"),
        ("retention:age=0.5@20..90,disease=0.5", "'age' holds values outside the declared range 20 to 90"),
        ("retention:age=1.5@17..90,disease=0.5", "column 'age': Replace: coin = 1.5 is not allowed"),
        ("retention:age=0.5@17..90", "sensitive names 'age', 'disease', Retention perturbs 'age'"),
        ("retention:age=0.5@17..90,disease=0.5@0..9", "'disease' has the type string, which has no range"),
    ],
)
def test_mistakes_are_one_message_and_leave_nothing(
    patients: Path, run, tmp_path: Path, mechanism: str, words: str
) -> None:
    done = run("publish", patients, *COLUMNS, "--mechanism", mechanism, "--out", tmp_path / "r")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mechanism_that_names_its_columns_needs_no_other_names(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, "--drop", "name", "--mechanism", "retention:disease=0.6", "--out", tmp_path / "r")
    assert done.returncode == 3, done.stderr  # nothing is promised about how sure one becomes
    done = run("publish", patients, "--rho2", "1/3", "--out", tmp_path / "s")
    assert done.returncode == 2
    assert "--sensitive COLUMN" in done.stderr
