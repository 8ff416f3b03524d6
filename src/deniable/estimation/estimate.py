"""An estimate: a number, how far the randomization may have moved it, and what is possible at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from deniable.core.errors import OptionError, QuestionError, option
from deniable.core.text import paragraph, table
from deniable.core.values import Floats

HOPELESS = "hopeless: the interval is wider than everything that is possible, ask about more rows or values"


def normal_quantile(confidence: float) -> float:
    """z with Pr[|Z| <= z] = confidence.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise OptionError(
            f"confidence = {confidence!r} is not allowed: it must lie strictly between 0 and 1, for example 0.95."
        )
    z = float(ndtri((1 + confidence) / 2))
    return z if math.isfinite(z) else -float(ndtri((1 - confidence) / 2))  # so close to 1 that the sum is rounded to 2


FEW = 50.0  # hits, below which the ends come from a Poisson number's tails
LOWER, UPPER = 0.25, 0.5  # added to the hits: between exact limits (0 and 1) and those of the mid-P (both 1/2)


def reach(variance: Floats, slope: Floats | float, z: float) -> tuple[Floats, Floats]:
    """How far an interval reaches below and above the estimate.

    A truth f is in it where (est - f)^2 <= z^2 V(f), V(f) = V + slope (f - est): the variance is that of the truth in
    question, not of the estimate (a score interval). With d = f - est,

        d = (z^2 slope -+ sqrt(z^4 slope^2 + 4 z^2 V)) / 2

    An estimate made of few hits k = V / slope^2, each worth about ``slope``, has the tails of a Poisson number instead.

    >>> [round(float(x), 2) for x in reach(np.array(4.0), 0.0, 1.96)]
    [3.92, 3.92]
    >>> [round(float(x), 2) for x in reach(np.array(400.0), 2.0, 1.96)]
    [35.55, 43.23]
    >>> [round(float(x), 2) for x in reach(np.array(4.0), 2.0, 1.96)]
    [1.88, 7.35]
    """
    variance = np.asarray(variance, np.float64)
    slope = np.where((variance > 0) & np.isfinite(variance), slope, 0.0)
    shift = z**2 * slope / 2
    half = np.sqrt(shift**2 + z**2 * variance)
    below, above = np.atleast_1d(half - shift), np.atleast_1d(half + shift)
    few = np.atleast_1d(variance < FEW * slope**2)
    if few.any():
        jump, tail = np.atleast_1d(slope)[few], ndtr(-z)
        hits = np.atleast_1d(variance)[few] / jump**2
        lower = np.maximum(hits - gammaincinv(hits + LOWER, tail), 0.0)
        upper = np.maximum(gammaincinv(hits + UPPER, 1 - tail) - hits, 0.0)
        below[few] = np.abs(jump) * np.where(jump > 0, lower, upper)
        above[few] = np.abs(jump) * np.where(jump > 0, upper, lower)
    return below.reshape(variance.shape), above.reshape(variance.shape)


@dataclass(frozen=True, repr=False)
class Estimate:
    """What a release says about a question.

    The value is not cut, so that estimates stay unbiased and may be added up: it can be negative. The interval is cut
    to what is possible, and always holds the value.

    Attributes:
        value: the estimate.
        stderr: its standard error, over the randomization.
        confidence: of the interval.
        smallest, largest: what the answer can be at all, by the public columns alone.
        method: how it was computed.
        uncalibrated: the standard error before calibration; differences need it (see ``__sub__``).
        slope: how much larger the variance is for each row more that the truth has; intervals of small counts are
            lopsided by it.

    >>> import deniable as dn
    >>> women = dn.Estimate(1204.0, 53.06, smallest=0, largest=9000)
    >>> women
    <Estimate 1,204 (95 %: 1,100 to 1,308)>
    >>> men = dn.Estimate(998.0, 51.2, smallest=0, largest=8500)
    >>> print(women + men)
    2,202 (95 %: 2,057 to 2,347)
    """

    value: float
    stderr: float
    confidence: float = 0.95
    smallest: float = -math.inf
    largest: float = math.inf
    method: str = "inverse"
    uncalibrated: float | None = None
    slope: float = 0.0

    @property
    def variance(self) -> float:
        """The square of the standard error."""
        return self.stderr**2

    @cached_property
    def _half(self) -> float:
        return normal_quantile(self.confidence) * self.stderr

    @cached_property
    def _reach(self) -> tuple[float, float]:
        below, above = reach(np.asarray(self.variance), self.slope, normal_quantile(self.confidence))
        return float(below), float(above)

    @property
    def low(self) -> float:
        """The lower end: value - z stderr or a little more, cut to what is possible, never above the value."""
        return min(self.value, max(self.value - self._reach[0], self.smallest), self.largest)

    @property
    def high(self) -> float:
        """The upper end: value + z stderr or a little more, cut to what is possible, never below the value."""
        return max(self.value, min(self.value + self._reach[1], self.largest), self.smallest)

    @property
    def hopeless(self) -> bool:
        """Whether the interval, before it is cut, is wider than everything that is possible: nothing was learned."""
        possible = self.largest - self.smallest
        return possible > 0 and 2 * self._half >= possible

    def __add__(self, other: Estimate) -> Estimate:
        """The sum of two questions that share no row: variances add."""
        return self._with(other, 1.0)

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference of two questions that share no row: variances add.

        Calibrated estimates share the error of the whole table, which a difference does not cancel in the way a sum
        does; their variances from before the calibration are an upper bound, and are used.
        """
        return self._with(other, -1.0)

    def _with(self, other: Estimate, sign: float) -> Estimate:
        if not isinstance(other, Estimate):
            return NotImplemented
        if other.confidence != self.confidence:
            raise QuestionError(
                f"These estimates have different confidence ({self.confidence} and {other.confidence}): ask both "
                f"questions with the same {option('confidence', '')}."
            )
        ends = (other.smallest, other.largest) if sign > 0 else (-other.largest, -other.smallest)
        before = [e.stderr if e.uncalibrated is None else e.uncalibrated for e in (self, other)]
        errors = (self.stderr, other.stderr) if sign > 0 else before
        return Estimate(
            self.value + sign * other.value,
            math.hypot(*errors),
            self.confidence,
            self.smallest + ends[0],
            self.largest + ends[1],
            self.method if self.method == other.method else f"{self.method} and {other.method}",
            math.hypot(*before),
        )

    def _in_words(self) -> list[str]:
        """The value and both ends, with as many decimals as are worth printing."""
        digits = _digits(self._half)
        numbers = [f"{number:,.{digits}f}" for number in (self.value, self.low, self.high)]
        return ["0" if number == "-0" else number for number in numbers]

    def __str__(self) -> str:
        value, low, high = self._in_words()
        said = f"{value} ({100 * self.confidence:g} %: {low} to {high})"
        return f"{said}; {HOPELESS}" if self.hopeless else said

    def __repr__(self) -> str:
        value, low, high = self._in_words()
        hopeless = ", hopeless" if self.hopeless else ""
        return f"<Estimate {value} ({100 * self.confidence:g} %: {low} to {high}{hopeless})>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = ["estimate", f"{100 * self.confidence:g} %: from", "to", "standard error", "method"]
        row = (*self._in_words(), f"{self.stderr:,.{_digits(self.stderr)}f}", self.method)
        return table(columns, [row], total=1) + (paragraph(HOPELESS) if self.hopeless else "")


def by_column(estimates: Sequence[Estimate]) -> dict[str, list[float]]:
    """Estimates as the columns of a table: value, stderr, value_low and value_high."""
    return {
        "value": [one.value for one in estimates],
        "stderr": [one.stderr for one in estimates],
        "value_low": [one.low for one in estimates],
        "value_high": [one.high for one in estimates],
    }


def _digits(half: float) -> int:
    """Decimals worth printing: whole numbers for wide intervals, three digits of a narrow one."""
    if not math.isfinite(half) or half >= 2 or half == 0:
        return 0
    return min(6, 1 - math.floor(math.log10(half)))
