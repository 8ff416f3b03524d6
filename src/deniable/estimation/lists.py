"""Counts of the items of lists, and of pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pyarrow as pa

from deniable.core.errors import QuestionError
from deniable.core.manifest import Manifest
from deniable.estimation.estimate import Estimate
from deniable.estimation.predicates import Where

Counted = Callable[[Where], Estimate]


def item_counts(manifest: Manifest, where: Where | None, count: Counted, *, pairs: bool) -> pa.Table:
    """How many rows have each item, or each pair of items, in the order of the domain."""
    items = [part.item for part in manifest.parts if part.item is not None]
    if not items:
        raise QuestionError(
            "This release has no column of lists. Fix: histogram() counts the values of its sensitive column."
        )
    groups = list(combinations(items, 2)) if pairs else [(item,) for item in items]
    answers = [count({**(where or {}), **{item.column: True for item in group}}) for group in groups]
    names = ("item", "other") if pairs else ("item",)
    columns = {name: [group[place].item for group in groups] for place, name in enumerate(names)}
    return pa.table(
        {
            **columns,
            "value": [answer.value for answer in answers],
            "stderr": [answer.stderr for answer in answers],
            "value_low": [answer.low for answer in answers],
            "value_high": [answer.high for answer in answers],
        }
    )
