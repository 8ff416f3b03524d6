"""A small table on disk, and a way to run a command as a shell would."""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deniable.engines.randomness import Secret

DISEASES = ("flu", "cold", "asthma", "diabetes", "gout", "hiv", "mumps", "measles", "angina", "none")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def patients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 made-up patients in a CSV file; every disease is about a tenth of them."""
    path = tmp_path_factory.mktemp("tables") / "patients.csv"
    draw = random.Random(7)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "sex", "age", "disease"])
        for number in range(3000):
            writer.writerow([f"Person {number}", draw.choice("FM"), draw.randint(18, 90), draw.choice(DISEASES)])
    return path


@pytest.fixture(scope="session")
def run() -> Run:
    """Run `python -m deniable ...` and return exit code, stdout and stderr."""

    def start(*words: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deniable", *map(str, words)],
            cwd=cwd,
            env={**os.environ, **environment, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


@pytest.fixture(scope="session")
def release(patients: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the patients, the same in every run: what a fresh key draws may be an interval that is cut at 0."""
    folder = tmp_path_factory.mktemp("releases")
    out, key = folder / "release", folder / "key"
    Secret.from_key(bytes(range(32))).write(key, outside=out)
    done = run(
        *("publish", patients, "--sensitive", "disease", "--rho1", "1/5", "--rho2", "1/3", "--drop", "name"),
        *("--key-file", key, "--out", out),
    )
    assert done.returncode == 0, done.stderr
    return out
