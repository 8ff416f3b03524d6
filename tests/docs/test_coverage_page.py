"""The list of what the papers hold names files and tests that are there, and has a verdict in every row."""

from __future__ import annotations

import re
from pathlib import Path

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
    kinds = ("built", "corrected", "repeated", "not built", "decoy groups alone")
    bare = [row for row in ROWS if row[0] not in ("item", "---") and not row[-1].strip("| ").startswith(kinds)]
    assert not bare


def test_what_is_built_or_corrected_names_a_test() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if re.search(r"\| (built|corrected)[^|]*\|$", line)]
    assert len(rows) > 30
    assert all("`tests/" in row for row in rows)
