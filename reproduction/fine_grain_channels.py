"""The channels that chapter 5 of THESIS compares, and how many rows they keep."""

from __future__ import annotations

import numpy as np

from deniable.core.channels import Channel
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import amplification_limit
from deniable.mechanisms import FineGrain, Lineup, tolerance
from deniable.mechanisms.fine_grain import solve_coins

THETA = 30


def optimal_channel(histogram: Histogram, theta: int) -> Channel:
    """The linear program's own optimum, as the thesis uses it: for record utility and nothing else."""
    return Channel.of(histogram.domain, solve_coins(histogram.relative, _limits(histogram, theta)))


def our_channel(histogram: Histogram, theta: int) -> Channel:
    """Ours: a little of uniform perturbation where the optimum all but gives up on a value."""
    return FineGrain().plan(histogram, tolerance(histogram, theta)).cells[0].channel


def errors_channel(histogram: Histogram, theta: int) -> Channel:
    """Ours for a small error of counts instead of many rows kept (THESIS 5.5 leaves such an objective open)."""
    return FineGrain(objective="errors").plan(histogram, tolerance(histogram, theta)).cells[0].channel


def uniform_channel(histogram: Histogram, theta: int) -> Channel:
    """Uniform perturbation at the smallest gamma of any value (THESIS 5.1)."""
    required = tolerance(histogram, theta, exact=True).per_value.values()
    return Channel.uniform(histogram.domain, gamma=min(amplification_limit(*pair) for pair in required))


def lineup_plan(histogram: Histogram, theta: int) -> Plan:
    """Line-ups under the same tolerance."""
    return Lineup().plan(histogram, tolerance(histogram, theta))


def _limits(histogram: Histogram, theta: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    required = tolerance(histogram, theta, exact=True).per_value
    return np.array([float(amplification_limit(*required[x])) if x in required else np.inf for x in histogram.domain])


def utilities(histogram: Histogram, theta: int) -> tuple[float, float]:
    """Record utility of the optimum and of uniform perturbation: closed forms, no draws."""
    channels = (optimal_channel(histogram, theta), uniform_channel(histogram, theta))
    fine, uniform = (float((histogram.relative * channel.diagonal).sum()) for channel in channels)
    return fine, uniform
