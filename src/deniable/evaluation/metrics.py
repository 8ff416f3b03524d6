"""How far an experiment's answers are off: by the size of the question, and for the histogram as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Floats, Ints
from deniable.core.profile import SELECTIVITIES
from deniable.planning.accuracy import mean_between, relative_error

BANDS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)  # ends of bands of selectivity, for charts
FEWEST = 5  # questions of a band: the mean of fewer says little
POINTS = 300  # of a cloud of (true, estimated)


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
    relative, by_band = relative_error(estimates, truth), {}
    for low, high in pairwise(bands):
        if int(np.sum((truth > 0) & (truth >= low * rows) & (truth < high * rows))) >= FEWEST:
            by_band[low, high] = mean_between(relative, truth, low * rows, high * rows)
    return by_band


def spread_out(truth: Floats, least: float, most: int = POINTS) -> Ints:
    """At most ``most`` questions with at least ``least`` true rows, evenly over their order by size; no chance in it.

    >>> spread_out(np.array([5.0, 0.0, 1.0, 9.0, 7.0]), 1, most=3).tolist()
    [2, 4, 3]
    """
    large = np.nonzero(truth >= max(least, 1.0))[0]
    by_size = large[np.argsort(truth[large], kind="stable")]
    places = np.round(np.linspace(0, len(large) - 1, min(most, len(large)))).astype(np.int64)
    return by_size[places]


def reconstruction_error(estimates: npt.ArrayLike, counts: npt.ArrayLike, least: float = 0.0) -> float:
    """The mean over values of |f - f*| / f (THESIS Def. 2), for values with f >= least."""
    f = np.asarray(counts, dtype=np.float64)
    return mean_between(relative_error(estimates, f), f, max(least, 1.0))


def fitted_line(truth: Floats, estimates: Floats) -> tuple[float, float]:
    """Slope and r2 of the straight line through (act, est), by least squares: 1 and 1 are perfect (SDR Fig. 3).

    >>> slope, r2 = fitted_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    >>> round(slope, 6), round(r2, 6)
    (2.0, 1.0)
    """
    if len(truth) < 2 or np.ptp(truth) == 0:
        return float("nan"), float("nan")
    slope, intercept = np.polyfit(truth, estimates, 1)
    left = float(((estimates - slope * truth - intercept) ** 2).sum())
    variation = float(((estimates - estimates.mean()) ** 2).sum())
    return float(slope), 1 - left / variation if variation > 0 else 1.0
