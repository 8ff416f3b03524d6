"""`deniable export`, and files of SPSS wherever a command reads a table."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

ASKED = ("--sensitive", "ill", "--rho2", "3/5", "--mechanism", "uniform")


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "survey.sav"
    frame = pd.DataFrame({"sex": [1.0, 2.0] * 300, "age": [float(20 + row % 40) for row in range(600)]})
    frame["ill"] = [float(row * 7 % 11 % 4) for row in range(600)]
    labels = {"sex": {1.0: "male", 2.0: "female"}, "ill": {0.0: "no", 1.0: "flu", 2.0: "cold", 3.0: "gout"}}
    pyreadstat.write_sav(frame, str(path), variable_value_labels=labels)
    return path


def test_every_command_that_reads_a_table_reads_it(survey: Path, run, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    assert run("publish", survey, *ASKED, "--out", folder).returncode == 0
    asked = run("query", folder, "SELECT sex, COUNT(*) AS n FROM release WHERE ill = 'flu' GROUP BY sex", "--json")
    assert {row["sex"] for row in json.loads(asked.stdout)["rows"]} == {"male", "female"}
    assert run("plan", survey, *ASKED[:4], "--quiet").returncode == 0
    assert run("audit", survey, folder, "--quiet").returncode in (0, 1)
    risk = run("risk", survey, "--columns", "sex,age")
    assert risk.returncode == 0, risk.stderr


def test_rows_go_back_into_the_program_that_they_came_from(survey: Path, run, tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "rows.dta"
    assert run("publish", survey, *ASKED, "--out", folder).returncode == 0
    done = run("export", folder, out)
    assert done.returncode == 0
    assert done.stdout == f"Wrote 600 rows to {out}\n"
    assert "counts of it in that file are no estimates" in done.stderr
    frame, about = pyreadstat.read_dta(str(out))
    assert len(frame) == 600
    assert about.variable_value_labels["ill"] == {0: "no", 1: "flu", 2: "cold", 3: "gout"}
    again = run("export", folder, out)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
