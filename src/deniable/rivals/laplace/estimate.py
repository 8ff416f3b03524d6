"""Estimates with discrete Laplace noise: their interval is that of the noise itself, not of a normal law.

P(z) = (1-a)/(1+a) a^|z|,  a = e^-epsilon,    Pr[|z| > k] = 2 a^(k+1) / (1+a)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from deniable.estimation.estimate import Estimate, normal_quantile


@dataclass(frozen=True)
class LaplaceEstimate(Estimate):
    """A count with discrete Laplace noise; a sum of such estimates has a normal interval, as all sums have.

    Attributes:
        epsilon: of the noise.

    >>> e = LaplaceEstimate(100.0, 13.5, epsilon=0.1)
    >>> e.low, e.high
    (70.0, 130.0)
    """

    epsilon: float = 1.0

    @cached_property
    def _half(self) -> float:
        return float(laplace_quantile(self.confidence, self.epsilon))

    @cached_property
    def _reach(self) -> tuple[float, float]:
        return self._half, self._half


def laplace_quantile(confidence: float, epsilon: float) -> int:
    """The smallest k with Pr[|z| <= k] >= confidence.

    >>> laplace_quantile(0.95, 1.0)
    3
    """
    normal_quantile(confidence)  # refuses what is no confidence
    rest = (1 - confidence) * (1 + math.exp(-epsilon)) / 2
    k = max(math.ceil(-math.log(rest) / epsilon) - 1, 0)
    return k + 1 if math.exp(-epsilon * (k + 1)) > rest * (1 + 1e-12) else k
