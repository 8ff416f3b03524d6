"""With --json, stdout is one JSON document, whatever happens; everything else goes to stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MISTAKES = [
    ("publish", "nope.csv", "--sensitive", "x", "--rho2", "1/3", "--out", "o"),
    ("publish",),
    ("plan", "--nope"),
    ("demo", "--rows", "x"),
    ("query", "nope", "SELECT"),
    ("nope",),
    ("collect", "nope"),
]


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_an_object_with_the_message_of_stderr(run, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(*words, "--json", cwd=tmp_path)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["message"].splitlines()[-1] in done.stderr
    assert ("'x'" in error["message"]) == ("x" in words[1:] and words[0] == "demo")


def test_every_command_prints_one_document(run, patients: Path, release: Path, tmp_path: Path) -> None:
    required = ("--sensitive", "disease", "--rho2", "1/3", "--drop", "name")
    survey = tmp_path / "survey.toml"
    for words in (
        ("plan", patients, *required),
        ("publish", patients, *required, "--out", tmp_path / "o"),
        ("verify", release),
        ("query", release, "SELECT COUNT(*) AS n FROM release"),
        ("export", release, tmp_path / "rows.dta"),
        ("audit", patients, release),
        ("audit", patients, release, "--out", tmp_path / "audit.json"),
        ("breach", release, "disease=flu"),
        ("risk", patients, "--columns", "age,sex", "--suppress-to-k", "2", "--out", tmp_path / "k.csv"),
        ("rows-needed", "0.5"),
        ("respond", release, '{"disease": "flu"}'),
        ("evaluate", patients, *required, "--draws", "1", "--mechanism", "uniform", "--out", tmp_path / "e.md"),
        ("report", release, "--out", tmp_path / "r.md"),
        ("collect", "new", survey),
        ("collect", "check", survey),
        ("collect", "simulate", survey, "--respondents", "50", "--out", tmp_path / "s"),
        ("doctor",),
        ("demo", "--rows", "600", "--out", tmp_path / "demo"),
    ):
        done = run(*words, "--json")
        assert done.returncode in (0, 1), (words, done.stderr)
        assert isinstance(json.loads(done.stdout), dict), words
