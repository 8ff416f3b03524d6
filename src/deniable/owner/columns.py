"""Columns as an audit looks at them: ranges of numbers in intervals, and how often two columns' values meet."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.channel import SCALE, Channel
from deniable.core.histogram import Counts
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.replace import NumberRange
from deniable.engines.base import Dataset, Scan
from deniable.engines.batch.ranges import RangeEncoder

MOST_POINTS = 100  # a range of more is looked at in intervals
INTERVALS = 50
MOST_PAIRS = 2**20  # combinations of two columns' values that are counted
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IntervalEncoder:
    """A column of numbers as the places of intervals; missing after the last."""

    inner: RangeEncoder
    firsts: Codes

    @property
    def columns(self) -> list[str]:
        return self.inner.columns

    def encode(self, batch: pa.RecordBatch) -> Codes:
        places = self.inner.encode(batch).astype(np.int64)
        inside = np.searchsorted(self.firsts, places, side="right") - 1
        return np.where(places == self.inner.range.grid, len(self.firsts), inside).astype(np.int64)


@dataclass(frozen=True, eq=False)
class IntervalScan:
    """How many rows each interval of a range has."""

    counts: Counts
    encoder: IntervalEncoder


def with_intervals(manifest: Manifest) -> Manifest:
    """The manifest with a channel for every range of numbers, over points or intervals; categories come first.

    With one coin, joining values leaves a coin with joined replacing masses: nothing is approximated.
    """
    shown = [_in_intervals(part) if part.range is not None else part for part in manifest.parts]
    return replace(manifest, parts=tuple(sorted(shown, key=lambda part: part.range is not None)))


def _in_intervals(part: Part) -> Part:
    assert part.range is not None
    grid = part.range
    firsts = _firsts(grid)
    lasts = np.append(firsts[1:], grid.grid) - 1
    labels: list[Any] = [_label(grid, first, last) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
    starts = [*firsts.tolist(), grid.grid, *([grid.points] if grid.missing else [])]
    edges = np.array([-(-place * SCALE // grid.points) for place in starts], dtype=np.int64)
    domain = (*labels, *([None] if grid.missing else []))
    channel = Channel(domain, np.full(len(domain), grid.keep, dtype=np.int64), np.diff(edges))
    return replace(part, domain=domain, channels=(channel,), cell_positions=(np.arange(len(domain)),))


def _firsts(grid: NumberRange) -> Codes:
    if grid.grid <= MOST_POINTS:
        return np.arange(grid.grid, dtype=np.int64)
    return np.unique(np.arange(INTERVALS, dtype=np.int64) * grid.grid // INTERVALS)


def _label(grid: NumberRange, first: int, last: int) -> str:
    ends = [_shown(grid, place) for place in (first, last)]
    return ends[0] if first == last else f"{ends[0]} to {ends[1]}"


def _shown(grid: NumberRange, place: int) -> str:
    number = grid.numbers(np.array([place]))[0]
    return datetime.date.fromordinal(int(number)).isoformat() if grid.kind == "date" else f"{number:.10g}"


def scan_intervals(source: Dataset, part: Part) -> IntervalScan:
    """Count the rows of each interval."""
    assert part.range is not None
    grid = part.range
    dtype = source.schema.field(part.columns[0]).type
    inner = RangeEncoder(part.columns[0], dtype, grid, exempt=part.missing == "exempt")
    encoder = IntervalEncoder(inner, _firsts(grid))
    m = len(part.domain)
    counts = np.zeros(m + 1, dtype=np.int64)
    for batch in source.batches(list(part.columns)):
        counts += np.bincount(encoder.encode(batch), minlength=m + 1)
    return IntervalScan(counts[:m], encoder)


def joint_counts(
    source: Dataset, parts: Sequence[Part], scans: Sequence[Scan | IntervalScan]
) -> Mapping[tuple[int, int], Counts]:
    """How often each pair of values of two columns occurs, for columns that are perturbed with one coin each."""
    alone = [i for i, part in enumerate(parts) if len(part.columns) == 1 and _has_one_coin(part)]
    sizes = [len(part.domain) for part in parts]
    pairs = [(i, j) for i, j in combinations(alone, 2) if sizes[i] * sizes[j] <= MOST_PAIRS]
    counts = {(i, j): np.zeros((sizes[i] + 1) * (sizes[j] + 1), dtype=np.int64) for i, j in pairs}
    used = sorted({i for pair in pairs for i in pair})
    for batch in source.batches([parts[i].columns[0] for i in used]) if used else ():
        codes = {i: np.minimum(scans[i].encoder.encode(batch).astype(np.int64), sizes[i]) for i in used}
        for i, j in pairs:  # a code after the last value is a missing one that is published as it is
            counts[i, j] += np.bincount(codes[i] * (sizes[j] + 1) + codes[j], minlength=len(counts[i, j]))
    return {(i, j): counts[i, j].reshape(sizes[i] + 1, sizes[j] + 1)[:-1, :-1] for i, j in pairs}


def _has_one_coin(part: Part) -> bool:
    return len(part.channels) == 1 and bool((part.channels[0].keep == part.channels[0].keep[0]).all())
