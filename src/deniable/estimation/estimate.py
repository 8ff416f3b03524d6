"""An estimate: a number, how far the randomization may have moved it, and what is possible at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from deniable.core.errors import OptionError, QuestionError, option
from deniable.core.text import paragraph, table
from deniable.estimation.limits import UNKNOWN, WIDE, Cumulants, limits

HOPELESS = f"hopeless: {WIDE}"


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


@dataclass(frozen=True, repr=False)
class Estimate:
    """What a release says about a question.

    The value is not cut, so that estimates stay unbiased and may be added up: it can be negative. The interval is cut
    to what is possible, and is all of that where nothing was learned.

    Attributes:
        value: the estimate.
        stderr: its standard error, over the randomization.
        confidence: of the interval.
        smallest, largest: what the answer can be at all, by the public columns alone.
        method: how it was computed.
        uncalibrated: the standard error before calibration; differences need it (see ``__sub__``).
        cumulants: how it is distributed for any truth, which makes intervals of small counts lopsided: k2, k2', k3
            and k3' with k2 + k2' f and k3 + k3' f for a truth of smallest + f; None where that is not known.
        whole: whether the truth is a whole number.

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
    cumulants: tuple[float, ...] | None = None
    whole: bool = False

    @property
    def variance(self) -> float:
        """The square of the standard error."""
        return self.stderr**2

    @cached_property
    def _half(self) -> float:
        return normal_quantile(self.confidence) * self.stderr

    @cached_property
    def _limits(self) -> tuple[float, float]:
        value, variance, smallest, largest = np.array([[self.value], [self.variance], [self.smallest], [self.largest]])
        known = None if self.cumulants is None else Cumulants(*np.array(self.cumulants)[:, None])
        z = normal_quantile(self.confidence)
        low, high = limits(value, variance, smallest, largest, z, known, self.whole)
        return float(low[0]), float(high[0])

    @property
    def low(self) -> float:
        """The lower end, nothing less than what is possible; of a count a whole number."""
        return self._limits[0]

    @property
    def high(self) -> float:
        """The upper end, nothing more than what is possible; of a count a whole number."""
        return self._limits[1]

    @property
    def hopeless(self) -> bool:
        """Whether the interval, before it is cut, is wider than everything that is possible: nothing was learned."""
        possible = self.largest - self.smallest
        return 0 < possible < math.inf and 2 * self._half >= possible

    @property
    def _why(self) -> str:
        return f"hopeless: {UNKNOWN}" if math.isinf(self.stderr) else HOPELESS

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
            whole=self.whole and other.whole,
        )

    def _in_words(self) -> list[str]:
        """The value and both ends, with as many decimals as are worth printing."""
        digits = _digits(self._half)
        numbers = [f"{number:,.{digits}f}" for number in (self.value, self.low, self.high)]
        return ["0" if number == "-0" else number for number in numbers]

    def __str__(self) -> str:
        value, low, high = self._in_words()
        said = f"{value} ({100 * self.confidence:g} %: {low} to {high})"
        return f"{said}; {self._why}" if self.hopeless else said

    def __repr__(self) -> str:
        value, low, high = self._in_words()
        hopeless = ", hopeless" if self.hopeless else ""
        return f"<Estimate {value} ({100 * self.confidence:g} %: {low} to {high}{hopeless})>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = ["estimate", f"{100 * self.confidence:g} %: from", "to", "standard error", "method"]
        row = (*self._in_words(), f"{self.stderr:,.{_digits(self.stderr)}f}", self.method)
        return table(columns, [row], total=1) + (paragraph(self._why) if self.hopeless else "")


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
