"""The same ten questions have the same answers in DuckDB, pandas, R, psql and a browser, and the page says so."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deniable as dn

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "scripts" / "ten_questions.py"


def chapter() -> Any:
    spec = importlib.util.spec_from_file_location("ten_questions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # which dataclasses look for
    spec.loader.exec_module(module)
    return module


TEN = chapter()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ten") / "release"
    TEN.published(home)
    return home


def missing(tool: str) -> str:
    """What a tool needs and this machine lacks; empty where it has all."""
    if tool == "R":
        loaded = ["Rscript", "-e", "library(jsonlite)"]
        there = shutil.which("Rscript") and not subprocess.run(loaded, capture_output=True, check=False).returncode
        return "" if there else "R with jsonlite: install r-base-core r-cran-jsonlite"
    if tool == "psql":
        return "" if shutil.which("psql") else "psql: install postgresql-client"
    if tool == "browser":
        there = shutil.which("chromium") and importlib.util.find_spec("playwright")
        return "" if there else "Chromium and playwright"
    return "" if importlib.util.find_spec(tool.lower()) else f"{tool.lower()}: pip install {tool.lower()}"


@pytest.mark.parametrize("tool", list(TEN.TOOLS))
def test_each_tool_gives_what_deniable_gives(tool: str, folder: Path) -> None:
    lacking = missing(tool)
    if lacking:
        pytest.skip(f"needs {lacking}")
    release = dn.open_release(folder)
    wanted = []
    for question in TEN.QUESTIONS:
        where = {name: list(values) for name, values in question.texts.items()}
        ages = {} if question.ages is None else {"age": dn.between(*question.ages)}
        wanted.append(release.count({**where, **ages, "job": list(question.jobs)}).value)
    assert TEN.TOOLS[tool](folder) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_the_page_has_these_figures(folder: Path) -> None:
    release = dn.open_release(folder)
    counts = dict.fromkeys(TEN.TOOLS, TEN.in_duckdb(folder))
    assert len(TEN.QUESTIONS) == 10
    assert TEN.table(counts, TEN.intervals(release)) in TEN.PAGE.read_text(encoding="utf-8")
