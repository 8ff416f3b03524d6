"""Every line of the contract about crashes names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "durability.md").read_text("utf-8")


def test_every_line_names_a_test_that_is_there() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what happens")]
    assert len(rows) > 8
    for row in rows:
        (path, name) = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)[0]
        assert f"def {name}(" in (ROOT / path).read_text("utf-8"), row
