"""What `deniable publish` does with the decision: nothing is written that must not be published, what the owner means
is kept, and fixes run as printed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.owner_tables import health

ROWS = 3_000
CODES = [f"{letter}{number}" for letter in "ABCD" for number in range(5)]


def people(seed: int, **more: Any) -> pa.Table:
    draw = np.random.default_rng(seed)
    made = {"sex": draw.choice(["F", "M"], ROWS), "age": draw.integers(2, 9, ROWS) * 10}
    return pa.table({**made, "code": draw.choice(CODES, ROWS), **more})


def test_a_column_that_holds_the_value_stops_publishing(run: Any, tmp_path: Path) -> None:
    table = people(2)
    finer = [f"{code}.{place % 3}" for place, code in enumerate(table["code"].to_pylist())]
    pq.write_table(table.append_column("finer", pa.array(finer)), tmp_path / "t.parquet")
    out = tmp_path / "r"
    words = ("publish", tmp_path / "t.parquet", "--sensitive", "code", "--rho2", "1/3", "--mechanism", "uniform")
    done = run(*words, "--out", out)
    assert done.returncode == 1
    assert not out.exists()
    assert "It must not be published" in done.stdout
    (fix,) = re.findall(r"All of these fixes:\n  (.*)", done.stdout)
    assert "--drop finer" in fix
    said = json.loads(run(*words, "--out", out, "--json").stdout)["error"]
    assert said["type"] == "MustNotBePublished"
    assert "--drop finer" in said["message"]
    done = run(*words, "--out", out, "--despite", "It is a drill.")
    assert done.returncode == 0, done.stdout
    record = json.loads((tmp_path / "r-decision.json").read_text())
    assert record["despite"] == "It is a drill."
    assert (tmp_path / "r-decision.json").stat().st_mode & 0o777 == 0o600
    for file in out.iterdir():
        assert b"drill" not in file.read_bytes()
    assert run("audit", tmp_path / "t.parquet", out).returncode == 1
    assert run(*shlex.split(fix)[1:], "--overwrite").returncode == 0


def test_what_the_owner_means_is_kept_and_counts_next_time(run: Any, tmp_path: Path) -> None:
    table = people(3, salary=np.random.default_rng(0).integers(1, 9, ROWS) * 10_000)
    pq.write_table(table, tmp_path / "t.parquet")
    project = tmp_path / "deniable.toml"
    assert run("risk", tmp_path / "t.parquet", "--sensitive", "code", "--project", project).returncode == 0
    words = ("publish", tmp_path / "t.parquet", "--project", project, "--mechanism", "uniform", "--rho2", "1/3")
    assert run(*words, "--out", tmp_path / "a").returncode == 3
    meant = "other sensitive columns=Salaries are public in this canton."
    assert run(*words, "--out", tmp_path / "b", "--accept", meant).returncode == 0
    assert run(*words, "--out", tmp_path / "c").returncode == 0
    assert "Salaries are public" in project.read_text()
    done = run(*words, "--out", tmp_path / "d", "--accept", "other sensitive=Why not.")
    assert done.returncode == 2
    assert "Did you mean 'other sensitive columns'" in done.stderr


def test_the_command_writes_it_for_its_owner_alone_and_outside_of_the_release(run: Any, tmp_path: Path) -> None:
    pq.write_table(people(4), tmp_path / "t.parquet")
    words = ("--sensitive", "code", "--rho2", "1/3", "--mechanism", "uniform", "--out", tmp_path / "r")
    assert run("publish", tmp_path / "t.parquet", *words).returncode == 0
    done = run("audit", tmp_path / "t.parquet", tmp_path / "r", "--page", tmp_path / "page.html")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    assert "data protection officer" in (tmp_path / "page.html").read_text()
    refused = run("audit", tmp_path / "t.parquet", tmp_path / "r", "--page", tmp_path / "r" / "page.html")
    assert refused.returncode == 2


SCREEN = 40, 100  # lines, and columns of each


def survey(rows: int) -> pa.Table:
    """40 columns with long names, nearly all of which leave everyone alone."""
    rng = np.random.default_rng(1)
    days = rng.integers(-14_000, 12_000, rows).astype("datetime64[D]")
    codes = rng.choice([f"D{i:02}" for i in range(30)], rows, p=np.arange(30, 0, -1) / 465)
    known = {"patient_id": np.arange(rows) + 10_000, "born": days, "zip": rng.integers(8000, 8999, rows)}
    known |= {"sex": rng.choice(["F", "M"], rows), "income": rng.gamma(3, 20_000, rows).round(), "code": codes}
    answers = {f"answer_to_question_{i:02}": rng.integers(1, 6, rows) for i in range(17)}
    kinds = {f"category_of_something_{i:02}": rng.choice(list("abcdefgh"), rows) for i in range(17)}
    return pa.table(known | answers | kinds)


@pytest.mark.parametrize("command", ["risk", "plan", "publish", "audit"])
def test_what_is_said_of_any_table_of_40_columns_fits_a_screen(command: str, run: Any, tmp_path: Path) -> None:
    pq.write_table(survey(5_000), tmp_path / "t.parquet")
    usual = ("t.parquet", "--sensitive", "code", "--rho2", "1/3")
    run("publish", *usual, "--out", "r", cwd=tmp_path)
    words = {
        "risk": ("risk", *usual[:3], "--propose"),
        "plan": ("plan", *usual),
        "publish": ("publish", *usual, "--out", "r", "--overwrite"),
        "audit": ("audit", "t.parquet", "r"),
    }
    done = run(*words[command], cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    said = (done.stdout + done.stderr).splitlines()
    assert sum(max(1, -(-len(line) // SCREEN[1])) for line in said) <= SCREEN[0], "\n".join(said)


@pytest.mark.parametrize("command", ["risk", "plan", "publish", "audit"])
def test_what_is_said_of_a_table_of_41_columns_fits_a_screen(command: str, run: Any, tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    pq.write_table(health(3_000), table)
    assert pq.read_schema(table).names[40:] == ["code"]
    usual = ("--sensitive", "code", "--rho2", "1/3")
    words = {
        "risk": ("risk", table, "--sensitive", "code", "--propose"),
        "plan": ("plan", table, *usual),
        "publish": ("publish", table, *usual, "--mechanism", "uniform", "--out", "r"),
        "audit": ("audit", table, "r"),
    }
    if command == "audit":
        run(*words["publish"], cwd=tmp_path)
    done = run(*words[command], cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    said = (done.stdout + done.stderr).replace(str(tmp_path), ".").splitlines()
    assert sum(max(1, -(-len(line) // SCREEN[1])) for line in said) <= SCREEN[0], "\n".join(said)


def test_every_fix_that_is_printed_runs_as_printed(run: Any, tmp_path: Path) -> None:
    pq.write_table(health(3_000), tmp_path / "t.parquet")
    words = ("publish", tmp_path / "t.parquet", "--sensitive", "code", "--rho2", "1/3", "--mechanism", "uniform")
    done = run(*words, "--out", tmp_path / "r")
    assert done.returncode == 3
    fixed = 0
    while fixes := re.findall(r"All of these fixes:\n  deniable (.*)", done.stdout):
        before = done.stdout
        done = run(*shlex.split(fixes[0]))
        assert done.returncode in (0, 3), done.stderr
        assert done.stdout != before
        fixed += 1
        assert fixed < 5
    assert "deniable" not in done.stdout.split("Expected errors")[-1] or done.returncode == 0
