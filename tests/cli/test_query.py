"""`deniable query`: estimates with intervals, as a table, as JSON or as CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

SQL = "SELECT sex, COUNT(*) AS n FROM release WHERE disease IN ('flu', 'hiv') GROUP BY sex ORDER BY sex"


def test_an_estimate_has_its_interval_beside_it(release: Path, run) -> None:
    done = run("query", release, SQL, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {"sex", "n", "n_low", "n_high"} <= set(result["columns"])
    assert [row["sex"] for row in result["rows"]] == ["F", "M"]
    for row in result["rows"]:
        assert row["n_low"] <= row["n"] <= row["n_high"]


def test_the_same_answer_for_people_and_for_spreadsheets(release: Path, run) -> None:
    table = run("query", release, SQL).stdout.splitlines()
    assert table[0].split()[:2] == ["sex", "n"]
    assert [line.split()[0] for line in table[1:3]] == ["F", "M"]
    rows = list(csv.DictReader(io.StringIO(run("query", release, SQL, "--csv").stdout)))
    assert [row["sex"] for row in rows] == ["F", "M"]


def test_rows_that_were_picked_by_their_estimates_say_so_to_programs_too(release: Path, run) -> None:
    picked = f"{SQL.replace('ORDER BY sex', 'ORDER BY n DESC')} LIMIT 1"
    done = run("query", release, picked, "--json")
    note = json.loads(done.stdout)["note"]
    assert note.startswith("These rows were picked among 2")
    assert note.endswith("Ask with --simultaneous, which makes all of them hold together.")
    assert note in done.stderr
    assert json.loads(run("query", release, SQL, "--json").stdout)["note"] is None


def test_more_confidence_is_a_wider_interval(release: Path, run) -> None:
    many = SQL.replace("'hiv'", "'cold', 'asthma', 'diabetes', 'gout', 'hiv'")  # so many that no interval reaches 0

    def width(*words: object) -> float:
        row = json.loads(run("query", release, many, "--json", *words).stdout)["rows"][0]
        assert row["n_low"] > 0, "an interval that is cut says nothing about its width"
        return row["n_high"] - row["n_low"]

    assert width("--confidence", 0.5) < width()
    assert width() <= width("--no-calibrate") * 1.001


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("SELECT FROM WHERE",), ""),
        (("SELECT COUNT(*) AS n FROM release WHERE diseas = 'flu'",), "diseas"),
        ((SQL, "--method", "magic"), "magic"),
        ((SQL, "--confidence", "2"), "2"),
        ((SQL, "--csv", "--json"), "--csv and --json contradict each other"),
    ],
)
def test_a_question_that_makes_no_sense_is_one_message(
    release: Path, run, words: tuple[str, ...], message: str
) -> None:
    done = run("query", release, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("Error: ") == 1
    assert "Traceback" not in done.stderr
