"""Columns of intervals, as bins and bands are published, compared with numbers.

An interval satisfies a comparison where all of its numbers do, and fails it where none does. A number inside of an
interval parts it, and nobody can say how many of its rows lie on which side: such a question is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_INNER = re.compile(rf"\[({_NUMBER}), ({_NUMBER})([)\]])")
_BELOW, _ABOVE = re.compile(rf"below ({_NUMBER})"), re.compile(rf"({_NUMBER}) and above")


@dataclass(frozen=True)
class Interval:
    """From low to high; low is in it, high if it is closed."""

    low: float
    high: float
    closed: bool = False

    @classmethod
    def read(cls, label: str) -> Interval | None:
        """The interval that a label means; None where it means none.

        >>> Interval.read("[30, 40)"), Interval.read("below 18"), Interval.read("flu")
        (Interval(low=30.0, high=40.0, closed=False), Interval(low=-inf, high=18.0, closed=False), None)
        """
        if inner := _INNER.fullmatch(label):
            return cls(float(inner[1]), float(inner[2]), inner[3] == "]")
        if first := _BELOW.fullmatch(label):
            return cls(-math.inf, float(first[1]))
        last = _ABOVE.fullmatch(label)
        return cls(float(last[1]), math.inf) if last else None

    def satisfies(self, operator: str, number: float) -> bool | None:
        """Whether all of its numbers do, or none; None where some do."""
        if operator in ("==", "!="):
            outside = self._all_below(number) or self._all_above(number)
            return None if not outside else operator == "!="
        if operator in ("<", ">="):  # the number itself is on the upper side
            below, above = self._all_below(number), self.low >= number
        else:
            below, above = self.high <= number, self._all_above(number)
        if not below and not above:
            return None
        return below == (operator in ("<", "<="))

    def _all_below(self, number: float) -> bool:
        return self.high < number or (self.high == number and not self.closed)

    def _all_above(self, number: float) -> bool:
        return self.low > number


def compare_intervals(operator: str, values: pa.Array, number: float) -> pa.Array | None:
    """Which intervals satisfy a comparison with a number; None where the values are no intervals."""
    labels = values.unique().drop_null()
    known: dict[str, Interval] = {}
    for label in labels.to_pylist():
        interval = Interval.read(label)
        if interval is None:
            return None
        known[label] = interval
    if not known:
        return None
    holds = {label: interval.satisfies(operator, number) for label, interval in known.items()}
    parted = [label for label, held in holds.items() if held is None]
    if parted:
        raise QuestionError(
            f"{number:g} parts the interval {parted[0]!r}: of its rows nobody can say which lie on which side. "
            "Fix: compare with an edge, by >= or <."
        )
    return pa.array(list(holds.values())).take(pc.index_in(values, value_set=labels)).fill_null(False)
