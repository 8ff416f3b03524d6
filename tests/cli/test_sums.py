"""Requirements on sums from the command line: --small-sums and --large-sums of `plan` and `publish`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deniable.cli.main import app

SMALL = "error=0.3,below=3,at-least=0.6"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_release_is_published_verified_and_asked(patients: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    values = tmp_path / "values.txt"
    held = {row["disease"] for row in csv.DictReader(patients.open(encoding="utf-8"))}
    values.write_text("\n".join(sorted(held)) + "\n", encoding="utf-8")
    terms = ("--small-sums", SMALL, "--large-sums", "error=50%,above=200,at-most=5%", "--domain", f"disease={values}")
    mechanism = ("--mechanism", "decoys:leftovers=drop")
    done = run("publish", patients, "--sensitive", "disease", "--drop", "name", *mechanism, *terms, "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.count("exact binomial tail") == 2
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["mechanism"]["options"]["c"] == 7
    assert manifest["privacy"]["large_sums"] == {"error": "1/2", "above": 200, "at_most": "1/20"}
    assert "ok   small sums" in run("verify", out).stdout
    asked = run("query", out, "SELECT COUNT(*) AS n FROM release WHERE disease = 'flu' AND sex = 'F'", "--json")
    assert asked.exit_code == 0, asked.output


def test_the_planner_finds_the_size(patients: Path) -> None:
    done = run("plan", patients, "--sensitive", "disease", "--small-sums", SMALL)
    assert done.exit_code == 0, done.output
    assert "Take decoys:leftovers=drop." in done.stdout  # 7 does not divide the rows: this can be published as it says
    assert "Groups of 7" in done.stdout
    assert "exact binomial tail" in done.stdout
    found = json.loads(run("plan", patients, "--sensitive", "disease", "--small-sums", SMALL, "--json").stdout)
    assert found["recommended"] == "decoys"
    assert found["candidates"][0]["label"] == "decoys:leftovers=drop"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--small-sums", "error=.3,at-leest=.6"), "Did you mean 'at-least'"),
        (("--small-sums", "error=.3,error=.4"), "each once"),
        (("--small-sums", "3"), "is not understood at '3'"),
        (("--small-sums", "below=three"), "below = 'three' is not allowed"),
        (("--small-sums", "error=2"), "strictly between 0 and 1"),
        (("--large-sums", "below=3"), "--large-sums error=..,above=..,at-most=.."),
        (("--small-sums", "at-least=.9"), "lower at_least"),
        (("--small-sums", SMALL, "--requirements", "r.csv"), "--requirements excludes"),
        (
            ("--small-sums", SMALL, "--mechanism", "uniform", "--rho2", "1/3"),
            "(--small-sums, --large-sums). Fix: --mechanism decoys",
        ),
    ],
)
def test_terms_that_are_not_understood_or_not_kept_are_refused(
    patients: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    mechanism = () if "--mechanism" in words else ("--mechanism", "decoys:leftovers=drop")
    done = run("publish", patients, "--sensitive", "disease", *mechanism, *words, "--out", tmp_path / "r")
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert not (tmp_path / "r").exists()
