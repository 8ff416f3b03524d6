"""The tables of the page on scale are those that its benchmark and its model print from what was measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")
MEASURED = "benchmarks/scale.jsonl"


@pytest.mark.parametrize(
    "words", [["benchmarks/scale.py", "--as-kept", "--kept", MEASURED], ["benchmarks/scale_model.py", MEASURED]]
)
def test_tables_are_what_was_measured(words: list[str]) -> None:
    printed = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tables = printed.strip().split("\n\n")
    assert len(tables) == 2
    for table in tables:
        assert table in PAGE
