"""Attack stories: what they must show, and that the tables in the docs agree with what the commands print.

A figure in the docs may lie anywhere in the interval of the one that is printed: mechanisms may improve, and then draw
other rows, without a figure becoming wrong.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduction.attack_story import GROUP, attack_story
from reproduction.corruption_story import corruption_story
from reproduction.introduction import METHODS, introduction

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "attacks.md"
ROUNDED = 0.0005


def table(*columns: str) -> dict[str, dict[str, str]]:
    """The table in the docs with this head: first cell -> column -> cell."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(' | '.join(columns))} \|\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found is not None, columns
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.group(1).splitlines()]
    return {first: dict(zip(columns[1:], cells, strict=True)) for first, *cells in rows}


def agrees(told: str, printed: dict[str, Any] | None) -> bool:
    if printed is None:
        return told == ""
    share = float(told.removesuffix(" %")) / 100
    return printed["low"] - ROUNDED <= share <= printed["high"] + ROUNDED


def test_the_docs_show_the_corruption_story_as_it_is_printed() -> None:
    story = {(str(each["known"]), each["method"]): each for each in corruption_story()}
    told = table("known of every 5", *METHODS.values())
    assert list(told) == [str(known) for known in range(GROUP)]
    for known, cells in told.items():
        for method, shown in METHODS.items():
            assert agrees(cells[shown], story[known, method]), (known, method)


@pytest.mark.long
def test_the_docs_show_the_attack_story_as_it_is_printed() -> None:
    story: dict[tuple[str, str], dict[str, Any]] = {}
    for each in attack_story():
        known = f", {each['note'].split()[0]} known" if each["name"] == "corruption" else ""
        story[each["name"] + known, each["method"]] = each
    methods = ("uniform", "small-domain", "designed", "decoys", "anatomy", "generalize")
    told = table("attack", *methods)
    assert len(told) == 6
    for name, cells in told.items():
        for method, cell in cells.items():
            assert agrees(cell, story.get((name, method))), (name, method, story.get((name, method)))
    # The promise of 1/6 for everyone who is attacked through one release; 5.5 standard deviations of 48,000.
    most = 1 / 6 + 5.5 * np.sqrt(5 / 36 / 48_000)
    assert max(story["linking", method]["success"] for method in methods) < most


def test_the_introduction_is_an_item_with_a_verdict() -> None:
    item = introduction(rows=12_000)
    assert item.agrees
    assert len(item.rows) == GROUP
    assert item.rows[-1][1] == "100.0 %"
    assert item.chart is not None
    assert len(item.chart.series) == len(METHODS)
