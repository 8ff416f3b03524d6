"""`deniable demo`: all of it in one go."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_publishes_verifies_and_answers_within_a_minute(run, shell, tmp_path: Path) -> None:
    start = time.monotonic()
    done = shell("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 60
    assert (tmp_path / "demo" / "release" / "manifest.json").exists()
    assert "What to do next:" in done.stderr
    assert "estimate" in done.stdout
    assert run("verify", tmp_path / "demo" / "release").returncode == 0


@pytest.mark.long
def test_its_intervals_contain_the_truth_and_it_can_run_twice(run, tmp_path: Path) -> None:
    for _ in range(2):
        done = run("demo", "--rows", 20_000, "--out", tmp_path / "d", "--json")
        assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rows"] == 20_000
    assert result["verified"]["holds"] is True
    for answer in result["answers"]:
        # Six standard errors: a false alarm in far less than one run in a million.
        middle, reach = answer["estimate"], 6 / 1.96 * (answer["high"] - answer["low"]) / 2
        assert abs(answer["truth"] - middle) < reach + 1
