"""How many rows of each value a cell took, where only the release and the table's histogram are at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.core.channel import Channel, Floats
from deniable.core.histogram import Counts

ROUNDS = 300
FINE = 2**16  # expected rows are fractions; kept as whole numbers of 1/65536 of a row


def expected_rows(
    counts: Counts, channels: Sequence[Channel], positions: Sequence[Counts], observed: Sequence[Counts] | None
) -> list[Counts]:
    """The most likely rows of each value in each cell, in units of 1/65536 of a row.

    Maximum likelihood given what each cell shows (the iterative Bayesian rule, mathematics 8), raked after every step
    so that the cells together hold the table's histogram. Without ``observed`` (cells not published) each value is
    spread over its cells as evenly as the histogram allows.

    Args:
        counts: the table's histogram.
        channels, positions: the cells, as in the manifest.
        observed: for each cell, how many rows show each value of the table's domain.
    """
    if len(channels) == 1:
        return [counts[positions[0]] * FINE]
    dealt = np.zeros((len(channels), len(counts)))
    for cell, place in enumerate(positions):
        dealt[cell, place] = 1.0
    if observed is not None:
        dealt *= np.array([shown.sum() for shown in observed], dtype=np.float64)[:, None]
    dealt = _raked(dealt, counts)
    for _ in range(0 if observed is None else ROUNDS):
        for cell, (channel, place) in enumerate(zip(channels, positions, strict=True)):
            assert observed is not None
            dealt[cell, place] = _bayesian_step(channel, dealt[cell, place], observed[cell][place])
        dealt = _raked(dealt, counts)
    return [np.rint(dealt[cell, place] * FINE).astype(np.int64) for cell, place in enumerate(positions)]


def _bayesian_step(channel: Channel, rows: Floats, shown: Counts) -> Floats:
    """x <- x * P^T (o / P x), in O(m): P^T v = p v + (1 - p) (r . v)."""
    expected = channel.apply(rows)
    share = np.divide(shown, expected, out=np.zeros_like(expected), where=expected > 0)
    result: Floats = rows * (channel.coins * share + (1 - channel.coins) * (channel.replacing @ share))
    return result


def _raked(dealt: Floats, counts: Counts) -> Floats:
    """Columns scaled so that the cells together hold every row of the histogram once."""
    totals = dealt.sum(0)
    scale = np.divide(counts, totals, out=np.zeros_like(totals), where=totals > 0)
    result: Floats = dealt * scale
    return result
