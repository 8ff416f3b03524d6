"""Where the experiments stand: beside the package, found from a checkout, never part of what is installed."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "reproduction").glob("*.py"))
LONGEST_FILE = 320


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_experiment_uses_the_package_from_above_and_can_be_read_in_one_sitting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "deniable.tables.local" not in text
    assert "deniable.cli" not in text
    assert len(text.splitlines()) <= LONGEST_FILE


def test_only_the_command_names_the_experiments() -> None:
    naming = [
        path.relative_to(ROOT / "src" / "deniable").as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if "reproduction" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom | ast.Import)
        and re.search(r"import reproduction|from reproduction", ast.unparse(node))
    ]
    assert set(naming) == {"cli/reproduce.py"}


def test_what_is_installed_holds_only_what_stands_in_src() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["packages"]["find"]["where"] == ["src"]
    assert not (ROOT / "src" / "reproduction").exists()


def test_without_a_checkout_the_command_says_where_it_works(tmp_path: Path) -> None:
    """A copy of the package alone, as an installation has it; the folder it runs in has another ``reproduction``."""
    shutil.copytree(
        ROOT / "src" / "deniable", tmp_path / "lib" / "deniable", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "reproduction.py").write_text("PAPERS = {}", encoding="utf-8")
    words = [sys.executable, "-m", "deniable", "reproduce", "fine-grain"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "lib")}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "works from a checkout" in done.stderr
    assert "pip install -e" in done.stderr
    assert "Traceback" not in done.stderr
