"""A small table on disk, and a way to run a command as a shell would."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import random
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from deniable.cli.entry import main

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
    """Run `deniable ...` inside this process and return exit code, stdout and stderr, as a shell would see them.

    A new process takes a second to import everything; the tests that are about processes ask for ``shell`` instead.
    """

    def start(*words: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        command = ["deniable", *map(str, words)]
        stdout, stderr = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            patch.setattr(sys, "argv", command)
            patch.chdir(cwd or Path.cwd())
            for name, value in {**environment, "COLUMNS": "200"}.items():
                patch.setenv(name, value)
            code = _exit_code_of(main)
        return subprocess.CompletedProcess(command, code, stdout.getvalue(), stderr.getvalue())

    return start


def _exit_code_of(program: Callable[[], None]) -> int:
    """What Python hands to the shell: 1 and a traceback where the program raises."""
    try:
        program()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@pytest.fixture(scope="session")
def shell() -> Run:
    """The same in a process of its own, by `python -m deniable ...`."""

    def start(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deniable", *map(str, words)],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "200"},
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
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    done = run(
        *("publish", patients, "--sensitive", "disease", "--rho1", "1/5", "--rho2", "1/3", "--drop", "name"),
        *("--mechanism", "uniform", "--key-file", key, "--out", out),
    )
    assert done.returncode == 0, done.stderr
    return out
