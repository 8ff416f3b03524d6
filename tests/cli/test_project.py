"""Project files on the command line: proposed by risk, read and written by publish."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv as pacsv

import deniable as dn
from deniable.owner.project import Project
from tests.cli.conftest import Run
from tests.owner.test_project import month


def test_a_project_replays_next_month_and_changes_with_options(tmp_path: Path, run: Run) -> None:
    for number in (1, 2):
        pacsv.write_csv(month(number), tmp_path / f"{number}.csv")
    tables, file = [str(tmp_path / f"{number}.csv") for number in (1, 2)], str(tmp_path / "p.toml")
    assert run("risk", tables[0], "--sensitive", "disease", "--project", file).returncode == 0
    first = run(
        "publish",
        tables[0],
        "--project",
        file,
        "--rho2",
        "1/2",
        "--recode",
        "age=bands:20",
        "--out",
        str(tmp_path / "a"),
    )
    assert first.returncode == 0, first.stderr
    again = run("publish", tables[1], "--project", file, "--out", str(tmp_path / "b"))
    assert again.returncode == 0, again.stderr
    for folder in "ab":
        release = dn.open_release(tmp_path / folder)
        assert release.table.column_names == ["sex", "age", "disease"]
        assert set(release.table["age"].to_pylist()) <= {f"[{low}, {low + 20})" for low in range(0, 100, 20)}
    assert Project.read(file).options()["recode"] == ["age=bands:20"]


def test_risk_says_what_is_proposed_and_writes_over_no_project(tmp_path: Path, run: Run) -> None:
    pacsv.write_csv(month(1), tmp_path / "1.csv")
    table, file = str(tmp_path / "1.csv"), str(tmp_path / "p.toml")
    said = run("risk", table, "--sensitive", "disease")
    assert said.returncode == 0
    assert "'name': drop. It looks like an identifier" in said.stdout
    assert run("risk", table, "--sensitive", "disease", "--project", file).returncode == 0
    before = Path(file).read_text()
    again = run("risk", table, "--sensitive", "sex", "--project", file)
    assert (again.returncode, Path(file).read_text()) == (2, before)
    assert run("risk", table, "--project", file).returncode == 0
    assert Project.read(file).sensitive == ("disease",)
    wrong = run("risk", table, "--columns", "age", "--project", file)
    assert (wrong.returncode, "leave --columns out" in wrong.stderr) == (2, True)
    assert run("risk", table, "--recode", "age=bands:10").returncode == 2
