"""Columns as an audit looks at them: ranges of numbers in intervals, and how often two columns' values meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from deniable.core.histogram import Counts
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.engines.base import Dataset, Scan
from deniable.engines.batch.intervals import IntervalEncoder, interval_channel
from deniable.engines.batch.ranges import RangeEncoder

MOST_PAIRS = 2**20  # combinations of two columns' values that are counted


@dataclass(frozen=True, eq=False)
class IntervalScan:
    """How many rows each interval of a range has."""

    counts: Counts
    encoder: IntervalEncoder


def with_intervals(manifest: Manifest) -> Manifest:
    """The manifest with a channel for every range of numbers, over points or intervals; categories come first."""
    shown = [_in_intervals(part) if part.range is not None else part for part in manifest.parts]
    return replace(manifest, parts=tuple(sorted(shown, key=lambda part: part.range is not None)))


def _in_intervals(part: Part) -> Part:
    assert part.range is not None
    channel = interval_channel(part.range)
    return replace(part, domain=channel.values, channels=(channel,), cell_positions=(np.arange(channel.m),))


def scan_intervals(source: Dataset, part: Part) -> IntervalScan:
    """Count the rows of each interval."""
    assert part.range is not None
    dtype = source.schema.field(part.columns[0]).type
    inner = RangeEncoder(part.columns[0], dtype, part.range, exempt=part.missing == "exempt")
    encoder = IntervalEncoder.of(inner)
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
