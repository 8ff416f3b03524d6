"""No command waits for pandas, which Arrow would import; those that write with it still can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import deniable as dn


@pytest.fixture
def release(tmp_path: Path) -> Path:
    table = {"age": [20 + row % 40 for row in range(400)], "ill": ["no", "no", "flu", "cold"] * 100}
    folder = tmp_path / "r"
    dn.publish(pa.table(table), sensitive="ill", mechanism="uniform", privacy=dn.Privacy("1/4", "1/2"), out=folder)
    return folder


def run(*words: object) -> str:
    command = [sys.executable, "-X", "importtime", "-m", "deniable", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


@pytest.mark.parametrize("words", [("verify",), ("query", "SELECT COUNT(*) AS n FROM release WHERE ill = 'flu'")])
def test_a_command_does_not_import_it(release: Path, words: tuple[str, ...]) -> None:
    pytest.importorskip("pandas")
    imported = run(words[0], release, *words[1:])
    assert "pyarrow.lib" in imported
    assert "pandas.core" not in imported


def test_a_command_that_needs_it_has_it(release: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyreadstat")
    assert "pandas.core" in run("export", release, tmp_path / "rows.dta")
    assert (tmp_path / "rows.dta").stat().st_size > 400
