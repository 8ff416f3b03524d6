"""What a manifest says of items of lists, checked as everything else in it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.core.items import MOST_ITEMS, item_column


def item_problems(raw: Mapping[str, Any]) -> Iterator[str]:
    """All parts are items of one list, or none is; each has a column of its own name, of yes and no."""
    items = [part["item"] for part in raw["parts"] if part.get("item") is not None]
    if not items:
        return
    if len(items) != len(raw["parts"]) or len(items) > MOST_ITEMS or raw["form"] != "rows":
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
