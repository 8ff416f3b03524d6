"""How far answers are off: relative to the truth, averaged by the size of the question, and spread over draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Floats


def relative_error(estimates: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """|est - act| / act for every question; not a number where act = 0 (SDR 6.1)."""
    act = np.asarray(truth, dtype=np.float64)
    return relative_to(np.abs(np.asarray(estimates, dtype=np.float64) - act), act)


def relative_to(errors: Floats, truth: Floats) -> Floats:
    """Absolute errors as shares of the true answers; not a number where the truth is 0."""
    shares: Floats = np.divide(errors, truth, out=np.full(errors.shape, np.nan), where=truth > 0)
    return shares


def mean_between(errors: Floats, truth: Floats, low: float, high: float = np.inf) -> float:
    """The mean error of the questions whose true answer is in [low, high); not a number where there is none."""
    inside = (truth >= low) & (truth < high) & ~np.isnan(errors)
    return float(errors[inside].mean()) if inside.any() else float("nan")


@dataclass(frozen=True)
class Spread:
    """A mean over draws, their standard deviation, and how many there were."""

    mean: float
    deviation: float
    draws: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f}" if self.draws > 1 else f"{self.mean:.3f}"


def spread(numbers: Iterable[float]) -> Spread:
    """Mean and standard deviation over draws.

    >>> spread([1.0, 3.0])
    Spread(mean=2.0, deviation=1.4142135623730951, draws=2)
    """
    known = np.array([number for number in numbers if not np.isnan(number)])
    if not len(known):
        return Spread(float("nan"), float("nan"), 0)
    return Spread(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else 0.0, len(known))


def spreads(rows: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """The spread of every number that draws report under the same name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: spread(row[name] for row in rows if name in row) for name in names}
