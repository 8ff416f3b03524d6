"""The list of what the papers hold names files and tests that are there, and has a verdict in every row."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import deniable as dn
from deniable import mechanisms

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "coverage-of-the-papers.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_every_file_of_the_list_is_there() -> None:
    paths = set(re.findall(r"`([\w./]+\.py)`", PAGE))
    assert len(paths) > 60
    missing = [
        path for path in paths if not (ROOT / path).is_file() and not (ROOT / "src" / "deniable" / path).is_file()
    ]
    assert not missing


def test_every_row_has_a_verdict_of_a_known_kind() -> None:
    kinds = ("built", "corrected", "repeated", "not built")
    bare = [row for row in ROWS if row[0] not in ("item", "---") and not row[-1].strip("| ").startswith(kinds)]
    assert not bare


def test_what_is_built_or_corrected_names_a_test() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if re.search(r"\| (built|corrected)[^|]*\|$", line)]
    assert len(rows) > 30
    assert all("`tests/" in row for row in rows)


NAMED = sorted(set(re.findall(r"`((?:reproduction/)?\w[\w/]*\.py)`", PAGE)))
CALLS = sorted(set(re.findall(r"`((?:dn\.)?[A-Z]\w+\([^`]*\))`", PAGE)))


@pytest.mark.parametrize("path", [path for path in NAMED if not path.startswith("tests/")])
def test_what_a_row_names_can_be_imported(path: str) -> None:
    if "learn/" in path or path == "reproduction/olap_trees.py":
        pytest.importorskip("sklearn")
    inside = "" if path.startswith("reproduction/") else "deniable."
    importlib.import_module(inside + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))


@pytest.mark.parametrize("call", CALLS)
def test_options_that_a_row_names_are_taken(call: str) -> None:
    """They are refused by nothing: the page once named an option that there is not."""
    names = {name: getattr(mechanisms, name) for name in mechanisms.__all__}
    assert eval(call, {"dn": dn, "Privacy": dn.Privacy, "Replace": dn.Replace, **names}) is not None


def test_commands_and_public_names_of_the_list_are_there() -> None:
    from deniable.cli.main import COMMANDS

    for command in re.findall(r"`deniable ([\w-]+)", PAGE):
        assert command in COMMANDS
    for name in re.findall(r"`dn\.(\w+)", PAGE):
        assert hasattr(dn, name)


def test_what_is_not_built_says_why() -> None:
    missing = [line for line in PAGE.splitlines() if "| not built" in line]
    assert len(missing) >= 4
    assert all("not built, because" in line for line in missing)
