"""What the page says of forgeries that `verify` sees is what the benchmark prints."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "guarantees.md").read_text(encoding="utf-8")
POWER = runpy.run_path(str(ROOT / "benchmarks" / "verify_power.py"))


def test_every_mechanism_of_the_benchmark_is_on_the_page() -> None:
    assert all(f"\n| {mechanism} | 0 |" in PAGE for mechanism in POWER["MECHANISMS"])


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", POWER["MECHANISMS"])
def test_the_page_says_how_many_forgeries_fail(mechanism: str) -> None:
    counted = ["-" if entry is None else str(entry) for entry in POWER["line"](mechanism, 10, POWER["ROWS"])]
    assert f"\n| {' | '.join(counted)} |" in PAGE
