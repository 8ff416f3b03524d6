"""What a manifest says of recoded and labelled columns, checked as everything else in it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.core.about import About
from deniable.core.errors import OptionError, shortened
from deniable.core.recode import MOST_STEPS, step_of


def column_problems(raw: Mapping[str, Any]) -> Iterator[str]:
    """Labels are of columns that are published, and a code has one; recodings are sound."""
    published = {column["name"] for column in raw["columns"]}
    for column, pairs in raw.get("labels", {}).items():
        if column not in published or len({code for code, _ in pairs}) < len(pairs):
            yield "it labels a column that it does not publish, or one code twice"
    yield from _recoding_problems(raw)
    yield from _about_problems(raw)


def _about_problems(raw: Mapping[str, Any]) -> Iterator[str]:
    """What is said of a release is of columns that there are, on a day that there was."""
    if "about" not in raw:
        return
    lists = {part["item"]["list"] for part in raw["parts"] if part.get("item")}
    known = {column["name"] for column in raw["columns"]} | {name for part in raw["parts"] for name in part["columns"]}
    if not set(raw["about"]["columns"]) <= known | lists:
        yield "it describes a column that it does not publish"
    try:
        About.from_dict(raw["about"])
    except OptionError as problem:
        yield f"what it says about itself is not sound ({problem})"


def _recoding_problems(raw: Mapping[str, Any]) -> Iterator[str]:
    """Recodings are of columns that there are, and each step is one."""
    known = {column["name"] for column in raw["columns"]} | {name for part in raw["parts"] for name in part["columns"]}
    for column, steps in raw.get("recoded", {}).items():
        if column not in known or column == "cell" or not 1 <= len(steps) <= MOST_STEPS + 2:
            yield "it recodes a column that it does not publish, or in too many steps"
        for step in steps:
            try:
                step_of(step)
            except OptionError as problem:
                yield f"the recoding of {shortened(column)} is none ({problem})"
