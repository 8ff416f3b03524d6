"""How far answers are off: by the size of the question, over draws, and for the histogram as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SELECTIVITIES = (0.001, 0.005, 0.01)
BANDS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)  # ends of bands of selectivity, for charts
FEWEST = 5  # questions of a band: the mean of fewer says little
POINTS = 300  # of a cloud of (true, estimated)


def relative_error(estimates: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """|est - act| / act for every question; not a number where act = 0 (SDR 6.1)."""
    act = np.asarray(truth, dtype=np.float64)
    off = np.abs(np.asarray(estimates, dtype=np.float64) - act)
    error: Floats = np.divide(off, act, out=np.full(off.shape, np.nan), where=act > 0)
    return error


def mean_between(errors: Floats, truth: Floats, low: float, high: float = np.inf) -> float:
    """The mean error of the questions whose true answer is in [low, high); not a number where there is none."""
    asked = (truth >= low) & (truth < high) & ~np.isnan(errors)
    return float(errors[asked].mean()) if asked.any() else float("nan")


def errors_by_selectivity(
    estimates: Floats, truth: Floats, rows: int, selectivities: Sequence[float] = SELECTIVITIES
) -> dict[str, tuple[float, ...]]:
    """Mean relative and mean absolute error of the questions of selectivity >= s, for each s (SDR 6.1)."""
    relative, absolute = relative_error(estimates, truth), np.abs(estimates - truth)
    limits = [share * rows for share in selectivities]
    return {
        "relative": tuple(mean_between(relative, truth, limit) for limit in limits),
        "absolute": tuple(mean_between(absolute, truth, limit) for limit in limits),
    }


def errors_by_band(
    estimates: Floats, truth: Floats, rows: int, bands: Sequence[float] = BANDS
) -> dict[tuple[float, float], float]:
    """Mean relative error of the questions of selectivity in [low, high), for bands that hold at least five."""
    relative, found = relative_error(estimates, truth), {}
    for low, high in pairwise(bands):
        if int(np.sum((truth > 0) & (truth >= low * rows) & (truth < high * rows))) >= FEWEST:
            found[low, high] = mean_between(relative, truth, low * rows, high * rows)
    return found


def spread_out(truth: Floats, least: float, most: int = POINTS) -> npt.NDArray[np.int64]:
    """At most ``most`` questions with at least ``least`` true rows, evenly over their order by size; no chance in it.

    >>> spread_out(np.array([5.0, 0.0, 1.0, 9.0, 7.0]), 1, most=3).tolist()
    [2, 4, 3]
    """
    asked = np.nonzero(truth >= max(least, 1.0))[0]
    asked = asked[np.argsort(truth[asked], kind="stable")]
    places = np.round(np.linspace(0, len(asked) - 1, min(most, len(asked)))).astype(np.int64)
    chosen: npt.NDArray[np.int64] = asked[places]
    return chosen


def reconstruction_error(estimates: npt.ArrayLike, counts: npt.ArrayLike, least: float = 0.0) -> float:
    """The mean over values of |f - f*| / f (THESIS Def. 2), for values with f >= least."""
    f = np.asarray(counts, dtype=np.float64)
    return mean_between(relative_error(estimates, f), f, max(least, 1.0))


@dataclass(frozen=True)
class Line:
    """The straight line through (act, est), and the share of the variation that it explains (SDR Fig. 3)."""

    slope: float
    intercept: float
    r2: float


def fitted_line(truth: Floats, estimates: Floats) -> Line:
    """Least squares; a slope of 1 through 0 with r2 = 1 is perfect.

    >>> line = fitted_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    >>> round(line.slope, 6), round(line.intercept, 6), round(line.r2, 6)
    (2.0, 1.0, 1.0)
    """
    if len(truth) < 2 or np.ptp(truth) == 0:
        return Line(float("nan"), float("nan"), float("nan"))
    slope, intercept = np.polyfit(truth, estimates, 1)
    left = float(((estimates - slope * truth - intercept) ** 2).sum())
    spread = float(((estimates - estimates.mean()) ** 2).sum())
    return Line(float(slope), float(intercept), 1 - left / spread if spread > 0 else 1.0)


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
    found = np.array([number for number in numbers if not np.isnan(number)])
    if not len(found):
        return Spread(float("nan"), float("nan"), 0)
    return Spread(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else 0.0, len(found))


def spreads(rows: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """The spread of every number that draws report under the same name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: spread(row[name] for row in rows if name in row) for name in names}
