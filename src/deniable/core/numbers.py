"""Numbers as people write them: in decimals, which sums and multiples of floats leave by a last digit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.errors import OptionError, shortened

Number = int | float
MOST_DECIMALS = 12


def number_text(number: Number) -> str:
    return str(number) if isinstance(number, int) else f"{number:.15g}"


def as_printed(edge: Number) -> Number:
    """An edge as its label has it, in 15 digits: what is printed as 0.3 is 0.3, and not 0.1 + 0.2.

    >>> as_printed(0.1 + 0.2)
    0.3
    """
    return edge if isinstance(edge, int) else float(number_text(edge))


def stepped(start: Number, steps: int, width: Number) -> Number:
    """start + steps * width, reckoned in decimals.

    >>> stepped(-0.3, 3, 0.1), stepped(0, 3, 0.1), stepped(5, 2, 10)
    (0.0, 0.3, 25)
    """
    if isinstance(width, int) and isinstance(start, int):
        return start + steps * width
    return float(Fraction(str(start)) + steps * Fraction(str(width)))


def as_written(sums: Floats, *terms: float) -> Floats:
    """Sums of multiples of ``terms`` with no more decimals than these are written with: 3 * 0.1 is 0.3.

    >>> as_written(np.array([3 * 0.1, 7 * 0.1]), 0.1).tolist()
    [0.3, 0.7]
    """
    decimals = max(map(_decimals, terms))
    rounded: Floats = np.round(sums, decimals) if decimals <= MOST_DECIMALS else sums
    return rounded


def _decimals(number: float) -> int:
    exponent = Decimal(repr(float(number))).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else MOST_DECIMALS + 1


def require_number(value: Any, what: str, above: float | None = None) -> None:
    right = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not right or abs(value) > 1e18 or (above is not None and value <= above):
        beyond = "" if above is None else f" above {above:g}"
        raise OptionError(f"{what} must be a number{beyond}, and {shortened(value)} is none.")


def require_whole(value: Any, what: str, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise OptionError(f"{what} must be a whole number from {low} to {high:,}, and {shortened(value)} is none.")
