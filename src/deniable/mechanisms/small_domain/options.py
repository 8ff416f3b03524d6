"""The options that say which values may make up a cell, checked and turned into rules for the merge."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from deniable.core.errors import OptionError, RequirementError, listing
from deniable.core.histogram import Histogram
from deniable.mechanisms.requirement import require_values
from deniable.mechanisms.small_domain.merge import Rules

Apart = tuple[tuple[Hashable, ...], ...]


def problems_of(keep_apart: Apart, categories: Mapping[Hashable, Hashable] | None, min_categories: int) -> list[str]:
    """What is wrong with the options by themselves, before any table is known."""
    problems = [
        f"keep_apart holds {listing(list(values))}: each entry must name at least two values."
        for values in keep_apart
        if len(set(values)) < 2
    ]
    if min_categories < 1:
        problems.append(f"min_categories = {min_categories} is not allowed: a cell holds at least 1 category.")
    if min_categories > 1 and categories is None:
        problems.append(
            f"min_categories = {min_categories} needs a category map: give categories={{value: category, ..}}."
        )
    return problems


def rules_for(
    histogram: Histogram,
    keep_apart: Apart,
    categories: Mapping[Hashable, Hashable] | None,
    min_categories: int,
    min_rows: int,
) -> Rules:
    """The rules for one table. Whatever no single cell of all rows can meet, no smaller cell can meet either."""
    apart = np.zeros((len(keep_apart), histogram.m))
    for row, values in zip(apart, keep_apart, strict=True):
        require_values("keep_apart", values, histogram)
        row[[histogram.position(value) for value in values]] = 1
        if not (histogram.counts[row == 0] > 0).any():
            raise RequirementError(
                f"keep_apart = {listing(list(values))} cannot be met: the table holds no other values, so every cell "
                "lies within them. Fix: leave this entry out."
            )
    if histogram.rows < min_rows:
        raise RequirementError(
            f"min_rows = {min_rows:,} cannot be met: the whole table has fewer rows. Fix: lower min_rows."
        )
    return Rules(apart, _numbered(histogram, categories, min_categories), min_categories, min_rows)


def _numbered(
    histogram: Histogram, categories: Mapping[Hashable, Hashable] | None, min_categories: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    if categories is None:
        return None
    missing = [value for value in histogram.domain if value not in categories]
    if missing:
        raise OptionError(
            f"categories does not say where {listing(missing)} belongs: every value of the column needs a category."
        )
    numbers: dict[Hashable, int] = {}
    category = np.array([numbers.setdefault(categories[value], len(numbers)) for value in histogram.domain])
    present = len(np.unique(category[histogram.counts > 0]))
    if present < min_categories:
        raise RequirementError(
            f"min_categories = {min_categories} cannot be met: the rows of the table hold values of {present} "
            f"categories only, even as one cell. Fix: min_categories={present} or less, or finer categories."
        )
    return category
