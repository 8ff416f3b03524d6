"""What is counted of a column: every answer, or bands of a long range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from deniable.collection.sheet import SheetColumn
from deniable.collection.survey import NO_ANSWER
from deniable.collection.wire import value_at
from deniable.core import values
from deniable.estimation.predicates import between

MOST_BARS = 30
BANDS = 10


@dataclass(frozen=True)
class Bar:
    """One count of a column.

    Attributes:
        label: for people.
        where: the condition that it stands for.
        codes: the answers that it stands for, as places among all of them.
    """

    label: str
    where: Mapping[str, Any]
    codes: range


def bars_of(column: SheetColumn) -> list[Bar]:
    """The counts of a column."""
    scope, name = column.question.range, column.name
    if scope is None:
        bars = [Bar(value, {name: value}, range(place, place + 1)) for place, value in enumerate(column.values)]
        missing = column.part is None
    else:
        bars, missing = [], True
        for first, last in _bands(scope.grid):
            low, high = (values.from_json(value_at(place, scope), column.type) for place in (first, last))
            label = str(low) if first == last else f"{low} to {high}"
            bars.append(Bar(label, {name: low if first == last else between(low, high)}, range(first, last + 1)))
    if column.question.optional and missing:
        after = len(column.values) if scope is None else scope.grid
        bars.append(Bar(NO_ANSWER, {name: None}, range(after, after + 1)))
    return bars


def _bands(grid: int) -> list[tuple[int, int]]:
    """Single points, or so many bands of about equal length."""
    if grid <= MOST_BARS:
        return [(place, place) for place in range(grid)]
    edges = [grid * band // BANDS for band in range(BANDS + 1)]
    return [(low, high - 1) for low, high in pairwise(edges)]
