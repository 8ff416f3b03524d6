"""Ranges of numbers as their adversary looks at them: in intervals, each of them a value.

With one coin, joining values leaves a coin with joined replacing masses: nothing is approximated.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Ints
from deniable.core.channel import Channel
from deniable.core.exact import SCALE
from deniable.core.replace import NumberRange
from deniable.engines.batch.ranges import RangeEncoder

MOST_POINTS = 100  # a range of more is looked at in intervals
INTERVALS = 50


@dataclass(frozen=True, eq=False)
class IntervalEncoder:
    """A column of numbers as the places of intervals; missing after the last."""

    inner: RangeEncoder
    firsts: Ints

    @classmethod
    def of(cls, inner: RangeEncoder) -> IntervalEncoder:
        """Over the intervals of the encoder's range."""
        return cls(inner, _firsts(inner.range))

    @property
    def columns(self) -> list[str]:
        return self.inner.columns

    def encode(self, batch: pa.RecordBatch) -> Ints:
        places = self.inner.encode(batch).astype(np.int64)
        inside = np.searchsorted(self.firsts, places, side="right") - 1
        return np.where(places == self.inner.range.grid, len(self.firsts), inside).astype(np.int64)


def interval_channel(grid: NumberRange) -> Channel:
    """The channel of a range over its points, or over intervals where these are many; missing is the last value."""
    firsts = _firsts(grid)
    lasts = np.append(firsts[1:], grid.grid) - 1
    labels = [_label(grid, first, last) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
    domain: tuple[Hashable, ...] = (*labels, *([None] if grid.missing else []))
    starts = [*firsts.tolist(), grid.grid, *([grid.points] if grid.missing else [])]
    edges = np.array([-(-place * SCALE // grid.points) for place in starts], dtype=np.int64)
    return Channel(domain, np.full(len(domain), grid.keep, dtype=np.int64), np.diff(edges))


def _firsts(grid: NumberRange) -> Ints:
    if grid.grid <= MOST_POINTS:
        return np.arange(grid.grid, dtype=np.int64)
    return np.unique(np.arange(INTERVALS, dtype=np.int64) * grid.grid // INTERVALS)


def _label(grid: NumberRange, first: int, last: int) -> str:
    ends = [_shown(grid, place) for place in (first, last)]
    return ends[0] if first == last else f"{ends[0]} to {ends[1]}"


def _shown(grid: NumberRange, place: int) -> str:
    number = grid.numbers(np.array([place]))[0]
    return datetime.date.fromordinal(int(number)).isoformat() if grid.kind == "date" else f"{number:.10g}"
