"""Who stands out: how many rows share a combination of columns that an attacker may know, and what that tells.

    k = the rows of the smallest combination;   l = the fewest different sensitive values in a combination

A row that is alone in columns that someone knows is found by them. Its sensitive value stays deniable in a release; in
the table itself it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.core.arrays import Codes, Ints
from deniable.core.errors import counted
from deniable.core.probability import percent

STEPS = (2, 3, 5, 10, 20)  # rows in groups smaller than these are counted
DENSE = 2**25  # combinations that are counted in an array, at the most, and for each row; more are sorted
DENSE_BY_ROW = 4


@dataclass(frozen=True)
class Exposure:
    """What a set of columns exposes.

    Attributes:
        rows, groups: how many rows, and how many combinations they have.
        k: the rows of the smallest combination; 0 where there are no rows.
        unique: rows that are alone in their combination.
        below: size -> rows in combinations of fewer rows.
        l: the fewest different sensitive values in a combination; None where no sensitive column was given.
        alike: rows in combinations of two rows or more that all have one sensitive value; None likewise.
        alone_without: column -> rows that would be alone if it were not known.
    """

    rows: int
    groups: int
    k: int
    unique: int
    below: Mapping[int, int]
    l: int | None
    alike: int | None
    alone_without: Mapping[str, int]

    @classmethod
    def of(cls, columns: Mapping[str, Codes], sensitive: Codes | None = None) -> Exposure:
        """From coded columns, and the coded sensitive column."""
        rows = len(next(iter(columns.values()))) if columns else 0
        group = combined(list(columns.values()), rows)
        sizes = np.bincount(group)
        own = sizes[group]
        l, alike = (None, None) if sensitive is None else _diversity(group, sizes, sensitive)
        without = {}
        for name in columns if len(columns) > 1 else ():
            others = combined([codes for other, codes in columns.items() if other != name], rows)
            without[name] = int((np.bincount(others) == 1).sum())
        return cls(
            rows=rows,
            groups=len(sizes),
            k=int(sizes.min(initial=rows)),
            unique=int((sizes == 1).sum()),
            below={size: int((own < size).sum()) for size in STEPS},
            l=l,
            alike=alike,
            alone_without=without,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **vars(self),
            "below": {str(size): rows for size, rows in self.below.items()},
            "alone_without": dict(self.alone_without),
        }

    def lines(self) -> list[str]:
        """For people."""
        total = max(self.rows, 1)
        lines = [
            f"{self.unique:,} of {counted(self.rows, 'row')} ({percent(self.unique / total)}) are alone in these "
            f"columns: whoever knows them finds the row. k = {self.k:,}.",
            "Rows in groups of fewer than "
            + ", ".join(f"{size}: {rows:,} ({percent(rows / total)})" for size, rows in self.below.items() if size > 2)
            + ".",
        ]
        if self.l is not None and self.alike is not None:
            lines.append(
                f"l = {self.l:,}; {self.alike:,} rows ({percent(self.alike / total)}) share these columns with others "
                "and have the same sensitive value as all of them."
            )
        if self.alone_without:
            without = ", ".join(f"{name} {rows:,}" for name, rows in self.alone_without.items())
            lines.append(f"Alone if one column were not known: {without}.")
        return lines


def combined(columns: Sequence[Codes], rows: int) -> Ints:
    """The number of each row's combination of codes, counted from 0 without gaps."""
    total = np.zeros(rows, dtype=np.int64)
    for codes in columns:
        size = int(codes.max(initial=0)) + 1
        total = total * size + codes
        total = _without_gaps(total)
    return total


def _without_gaps(numbers: Ints) -> Ints:
    if int(numbers.max(initial=0)) < min(DENSE, DENSE_BY_ROW * len(numbers)):
        there = np.bincount(numbers) > 0
        places: Ints = (np.cumsum(there) - 1)[numbers]
        return places
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _diversity(group: Ints, sizes: Ints, sensitive: Codes) -> tuple[int, int]:
    """l, and the rows in groups of several rows that all have one value."""
    if not len(group):
        return 0, 0
    m = int(sensitive.max()) + 1
    pairs = np.unique(group * m + sensitive)
    values = np.bincount(pairs // m, minlength=len(sizes))
    return int(values.min()), int(sizes[(values == 1) & (sizes > 1)].sum())
