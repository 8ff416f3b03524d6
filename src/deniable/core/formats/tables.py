"""The tables of numbers in a manifest, checked: the noisy histogram, and the channel of a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

LARGEST_MARGINAL = 2**53
LARGEST_MIXTURE = 4_096  # values: their square is the size of the matrix


def marginal_problems(noisy: Json, m: int) -> Iterator[str]:
    """A noisy histogram has one count for each value, and noise that a release can have."""
    if len(noisy["counts"]) != m:
        yield "the noisy histogram does not have one count per value"
    elif not all(type(count) is int for count in noisy["counts"]):  # to JSON Schema 3.0 is a whole number, too
        yield "the noisy histogram has counts that are no whole numbers"
    elif max(map(abs, noisy["counts"]), default=0) > LARGEST_MARGINAL:
        yield "the noisy histogram counts more rows than a release can have"
    if not 1e-6 <= noisy["epsilon"] <= 1e6 or noisy["variance"] > 1e15:
        yield "the noise of the histogram is none that a release can have"


def mixture_problems(mixture: Sequence[Sequence[float]], m: int) -> Iterator[str]:
    """The channel of a whole table has a row and a column for each value."""
    if m > LARGEST_MIXTURE:
        yield f"a channel of the whole table has more than {LARGEST_MIXTURE:,} values"
    elif len(mixture) != m or any(len(row) != m for row in mixture):
        yield "the channel of the whole table does not have a row and a column per value"
    elif any(abs(sum(column) - 1) > 1e-4 for column in zip(*mixture, strict=True)):
        yield "the channel of the whole table is not a probability distribution"
