"""The door that a manifest comes in by: whatever its schema cannot say is checked here, once, and trusted from then on:
that names refer to something, that lists have equal lengths, that fractions are fractions and that nothing makes us
allocate what no release needs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from deniable.core.about import About
from deniable.core.errors import ManifestError, OptionError, is_unicode, shortened
from deniable.core.formats.parts import MOST_ROWS, Json, is_fraction, is_probability, part_problems
from deniable.core.items import MOST_ITEMS, item_column
from deniable.core.recode import MOST_STEPS, step_of
from deniable.core.values import LARGEST_WHOLE

DEEPEST = 32  # levels of lists and objects
LONG = 64  # items: a longer list is condensed before its schema is looked at
MOST_COLUMNS = 10_000


def require_sound(raw: Json) -> None:
    """Refuse a manifest, valid by its schema, that contradicts itself or asks for too much."""
    for problem in _problems(raw):
        raise ManifestError(f"manifest.json is damaged: {problem}.")


def require_plain(raw: Any) -> None:
    """Refuse numbers that no release has, text that is no text, and nesting without end; before anything else."""
    level = [raw]
    for _ in range(DEEPEST):
        scalars: list[Any] = []
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, list) and len(item) > LONG and {*map(type, item)} == {int}:
                scalars += [min(item), max(item)]  # long lists are of whole numbers, and there may be millions
                continue
            inside = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else [item]
            for entry in inside:
                (deeper if isinstance(entry, dict | list) else scalars).append(entry)
        if any(_is_strange(scalar) for scalar in scalars):
            raise ManifestError("manifest.json is damaged: it holds a number or a text that no release has.")
        if not deeper:
            return
        level = deeper
    raise ManifestError(f"manifest.json is damaged: it is nested more than {DEEPEST} levels deep.")


def condensed(raw: Any) -> Any:
    """The same document to a schema that says of a list's items no more than their types and ranges, as ours do.

    Of the numbers in a long list the smallest and the largest are left, of lists in a list one that holds all of their
    items: a schema looks at every item, which takes minutes where a domain has a million values.

    >>> condensed({"keep": [*range(100)], "name": "x"})
    {'keep': [0, 99], 'name': 'x'}
    """
    if isinstance(raw, dict):
        return {name: condensed(item) for name, item in raw.items()}
    if not isinstance(raw, list) or len(raw) <= LONG:
        return [condensed(item) for item in raw] if isinstance(raw, list) else raw
    by_type: dict[type, list[Any]] = {}
    for item in raw:
        by_type.setdefault(type(item), []).append(item)
    left: list[Any] = []
    for kind, items in by_type.items():
        if kind in (int, float):
            left += [min(items), max(items)]
        elif kind is list:
            left.append(condensed([entry for item in items for entry in item]))
        else:
            left += [condensed(item) for item in (items if kind is dict else items[:1])]
    return left


def _is_strange(scalar: Any) -> bool:
    if isinstance(scalar, str):
        return not is_unicode(scalar)
    if isinstance(scalar, float):
        return not math.isfinite(scalar)
    return isinstance(scalar, int) and not -LARGEST_WHOLE <= scalar < LARGEST_WHOLE


def _problems(raw: Json) -> Iterator[str]:
    """What is wrong with a manifest, the first thing first: later checks rely on earlier ones."""
    if raw["rows"] > MOST_ROWS or len(raw["columns"]) > MOST_COLUMNS or len(raw["parts"]) > MOST_COLUMNS:
        yield "it speaks of more rows or columns than a release can have"
    names = [column["name"] for column in raw["columns"]]
    if len(set(names)) != len(names):
        yield "a column is named twice"
    yield from _roles(raw)
    yield from _files(raw)
    yield from _guarantee(raw["guarantee"])
    if raw["privacy"] is not None:
        yield from _privacy(raw["privacy"])
    for part in raw["parts"]:
        yield from part_problems(part, raw)
    yield from _labels(raw)
    yield from _recodings(raw)
    yield from _about(raw)
    yield from _items(raw)


def _roles(raw: Json) -> Iterator[str]:
    """Every sensitive column belongs to one part, and every part to sensitive columns."""
    covered = [name for part in raw["parts"] for name in part["columns"]]
    if len(set(covered)) != len(covered):
        yield "a sensitive column belongs to two parts"
    published = {column["name"]: column["role"] for column in raw["columns"]}
    sensitive = {name for name, role in published.items() if role == "sensitive"}
    if set(covered) != sensitive:
        yield "its parts are not about its sensitive columns"
    by_cell = any(part["cells_published"] for part in raw["parts"])
    if by_cell and (published.get("cell") != "cell" or len(raw["parts"]) != 1):
        yield "cells are published, and no column 'cell' of one part says which"
    if not by_cell and ("cell" in published.values() or any(len(part["cells"]) > 1 for part in raw["parts"])):
        yield "rows are of several cells, and it says that these are not published"


def _files(raw: Json) -> Iterator[str]:
    for file in (raw["data"], raw.get("lineups")):
        if file is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", file["file"]):
            yield "it names a data file outside the release"


def _guarantee(stated: Json) -> Iterator[str]:
    for name in ("rho1", "rho2"):
        if stated[name] is not None and not is_probability(stated[name]):
            yield f"{name} of the guarantee is no probability"
    if stated["gamma"] is not None and not (is_fraction(stated["gamma"]) and Fraction(stated["gamma"]) >= 1):
        yield "gamma of the guarantee is no ratio of probabilities"


def _privacy(required: Json) -> Iterator[str]:
    for name in ("rho1", "rho2"):
        if required[name] is not None and not is_probability(required[name]):
            yield f"{name} of the requirement is no probability"
    for entry in required["per_value"]:
        if not isinstance(entry, list) or len(entry) != 3 or not all(map(is_probability, entry[1:])):
            yield "a value's own requirement is not [value, rho1, rho2]"
            return
    for sums in (required["small_sums"], required["large_sums"]):
        if sums is not None and not all(is_probability(n) for n in sums.values() if isinstance(n, str)):
            yield "a requirement of sums is no probability"


def _labels(raw: Json) -> Iterator[str]:
    """Labels are of columns that are published, and a code has one."""
    published = {column["name"] for column in raw["columns"]}
    for column, pairs in raw.get("labels", {}).items():
        if column not in published or len({code for code, _ in pairs}) < len(pairs):
            yield "it labels a column that it does not publish, or one code twice"


def _recodings(raw: Json) -> Iterator[str]:
    """Recodings are of columns that there are, and each step is one."""
    known = _names(raw)
    for column, steps in raw.get("recoded", {}).items():
        if column not in known or column == "cell" or not 1 <= len(steps) <= MOST_STEPS + 2:
            yield "it recodes a column that it does not publish, or in too many steps"
        for step in steps:
            try:
                step_of(step)
            except OptionError as problem:
                yield f"the recoding of {shortened(column)} is none ({problem})"


def _about(raw: Json) -> Iterator[str]:
    """What is said of a release is of columns that there are, on a day that there was."""
    if "about" not in raw:
        return
    lists = {part["item"]["list"] for part in raw["parts"] if part.get("item")}
    if not set(raw["about"]["columns"]) <= _names(raw) | lists:
        yield "it describes a column that it does not publish"
    try:
        About.from_dict(raw["about"])
    except OptionError as problem:
        yield f"what it says about itself is not sound ({problem})"


def _items(raw: Json) -> Iterator[str]:
    """All parts are items of one list, or none is; each has a column of its own name, of yes and no."""
    items = [part["item"] for part in raw["parts"] if part.get("item") is not None]
    if not items:
        return
    if len(items) != len(raw["parts"]) or len(items) > MOST_ITEMS:
        yield "some of its parts are items of lists, and others are not, or there are too many"
        return
    if any({**item, "item": ""} != {**items[0], "item": ""} for item in items):
        yield "its items are of several lists"
    for part in raw["parts"]:
        item = part["item"]
        if part["columns"] != [item_column(item["list"], item["item"])] or part["types"] != ["bool"]:
            yield "an item of a list is not published as a column of its name"
        if part["domain"] != [[False], [True]] or len(part["cells"]) != 1 or part["cells"][0]["values"] != [0, 1]:
            yield "an item of a list is something else than yes or no"
    if items[0]["most"] > len(items):
        yield "more items of a list count than there are"


def _names(raw: Json) -> set[str]:
    """The columns that a manifest speaks of."""
    return {column["name"] for column in raw["columns"]} | {name for part in raw["parts"] for name in part["columns"]}
