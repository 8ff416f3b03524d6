"""Public columns that are functions of the sensitive one, or it of them: an ICD chapter beside an ICD code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Codes, Ints

DETERMINES = "each of its values has one sensitive value"
FOLLOWS = "each sensitive value has one of its values"
NEARLY_DETERMINES, NEARLY_FOLLOWS = f"nearly {DETERMINES}", f"nearly {FOLLOWS}"
NEARLY_ALL = 0.95  # of the disagreement that independent columns would have is gone
NO_CHANCE = 20.7  # -log of the probability by which chance makes a function: 1e-9


@dataclass(frozen=True, eq=False)
class Meetings:
    """How a public column's values and sensitive ones meet.

    Attributes:
        column, original: the rows of each value of the public column, and of each sensitive one.
        by_column: of each value of the column, the rows with its most frequent sensitive value; all added up.
        by_original: the same the other way round.
    """

    column: Ints
    original: Ints
    by_column: int
    by_original: int

    @classmethod
    def of(cls, codes: Codes, original: Codes) -> Meetings:
        """From the codes of all rows."""
        column, values = np.bincount(codes), np.bincount(original)
        pairs, rows = np.unique(codes.astype(np.int64) * len(values) + original, return_counts=True)
        largest, most = np.zeros(len(column), np.int64), np.zeros(len(values), np.int64)
        if len(pairs):
            np.maximum.at(largest, pairs // len(values), rows)
            np.maximum.at(most, pairs % len(values), rows)
        return cls(column, values, int(largest.sum()), int(most.sum()))

    @property
    def function(self) -> str:
        """Whether one of them is a function of the other, exactly or nearly, and by no chance; empty where not."""
        forth = _agreement(self.column, self.original, self.by_column)
        back = _agreement(self.original, self.column, self.by_original)
        if max(forth, back) < NEARLY_ALL:
            return ""
        exact, nearly = (DETERMINES, NEARLY_DETERMINES) if forth >= back else (FOLLOWS, NEARLY_FOLLOWS)
        return exact if max(forth, back) == 1 else nearly


def functions_of(columns: Mapping[str, Codes], original: Ints) -> dict[str, str]:
    """Columns that determine the sensitive value or follow from it, exactly or nearly, and by no chance."""
    functions = {name: Meetings.of(codes, original).function for name, codes in columns.items()}
    return {name: function for name, function in functions.items() if function}


def _agreement(arguments: Ints, results: Ints, agreeing: int) -> float:
    """How nearly the one column is a function of the other: 1 where it is, 0 where that says nothing, or is chance.

    Rows beyond the first of each argument must agree with its most frequent result; compared with the most frequent
    result of all rows.
    """
    rows = int(arguments.sum())
    again = rows - int((arguments > 0).sum())
    if not again or not _is_no_chance(arguments, results):
        return 0.0
    return 1 - ((rows - agreeing) / again) / (1 - results.max() / rows)


def _is_no_chance(arguments: Ints, results: Ints) -> bool:
    """Whether independent columns with these rows of each value would not be a function from the one to the other."""
    rows = arguments.sum()
    again = rows - (arguments > 0).sum()
    agree = float(((results / rows) ** 2).sum()) if rows else 1.0
    return bool(agree < 1 and again * -np.log(agree) > NO_CHANCE)
