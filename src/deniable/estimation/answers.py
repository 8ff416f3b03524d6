"""Asking a release for tables: counts by group, and of the items of lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import QuestionError
from deniable.core.manifest import Manifest
from deniable.estimation.aggregates import Count
from deniable.estimation.answering import answer, group_columns, interval
from deniable.estimation.asking import Options, asking
from deniable.estimation.estimate import Estimate, by_column
from deniable.estimation.model.weighed import Answers
from deniable.estimation.predicates import Where, conjunction
from deniable.estimation.published import Published
from deniable.estimation.question import Question

NUMBERS = ("value", "stderr", "value_low", "value_high")
WHY = "value_hopeless"


def group_by(published: Published, columns: Sequence[str] | str, where: Where | None, options: Options) -> pa.Table:
    """How many rows each group has: its columns, then value, stderr, value_low and value_high. A column may be called
    like one of those: then they are told apart by their places (see ``unambiguous``)."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names):
        raise QuestionError("group_by needs one or more different columns.")
    grouped = answer(published, Question(conjunction(where), tuple(names), options=options))
    counts = grouped.by_aggregate[Count()]
    z = options.z_of(int((counts.variance > 0).sum()))
    return counted_table(group_columns(asking(published), names, grouped), counts, z)


def counted_table(columns: Mapping[str, Any], counts: Answers, z: float) -> pa.Table:
    """Columns that say what was counted, then value, stderr, value_low and value_high; and value_hopeless, why nothing
    was learned, where that is so of any row."""
    numbers = (counts.value, np.sqrt(counts.variance), *interval(counts, z))
    table = pa.table([*columns.values(), *(array.reshape(-1) for array in numbers)], [*columns, *NUMBERS])
    why = counts.hopeless(z)
    return table if why.null_count == len(why) else table.append_column(WHY, why)


def unambiguous(table: pa.Table) -> pa.Table:
    """A table of counts; refused where a column that was counted by is called like one of the numbers."""
    for name in (*NUMBERS, WHY):
        if table.column_names.count(name) > 1:
            raise QuestionError(
                f"The column {name!r} is called like a column of the result: {', '.join(NUMBERS)}. Fix: name the "
                f'counts yourself, sql(\'SELECT "{name}", COUNT(*) AS n FROM release GROUP BY "{name}"\').'
            )
    return table


def item_counts(manifest: Manifest, where: Where | None, count: Callable[[Where], Estimate], pairs: bool) -> pa.Table:
    """How many rows have each item of a list, or each pair of items, in the order of the domain."""
    items = [part.item for part in manifest.parts if part.item is not None]
    if not items:
        raise QuestionError(
            "This release has no column of lists. Fix: histogram() counts the values of its sensitive column."
        )
    groups = list(combinations(items, 2)) if pairs else [(item,) for item in items]
    answers = [count({**(where or {}), **{item.column: True for item in group}}) for group in groups]
    names = ("item", "other") if pairs else ("item",)
    columns = {name: [group[place].item for group in groups] for place, name in enumerate(names)}
    return pa.table({**columns, **by_column(answers)})
