"""Exact numbers: fractions as a manifest has them, coins in whole numbers out of 2^32, and how people read both."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

FULL = 2**32
LARGEST_FACTOR = 10**300  # of odds: floating-point numbers end soon after
MOST_DIGITS = 2_000
LARGEST_GRID = 2**24  # points of a range
_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")

Json = Mapping[str, Any]


def fraction(text: Any) -> Fraction:
    """An exact fraction; Fraction itself reads 1e999999999, too, and takes all memory for it."""
    if not isinstance(text, str) or len(text) > MOST_DIGITS or not _FRACTION.fullmatch(text):
        raise ValueError("no fraction")
    number = Fraction(text)
    if abs(number) >= LARGEST_FACTOR:
        raise ValueError("no fraction of a size that a release has")
    return number


def probability(text: Any) -> Fraction:
    """A fraction above 0, at most 1."""
    number = fraction(text)
    if not 0 < number <= 1:
        raise ValueError("no probability")
    return number


def whole(number: Any) -> int:
    """A whole number, and no truth value."""
    if type(number) is not int:
        raise TypeError("no whole number")
    return number


def truth(value: Any) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise TypeError("neither true nor false")
    return value


def text(value: Any) -> str:
    """Text."""
    if type(value) is not str:
        raise TypeError("no text")
    return value


def optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Null, or what ``read`` reads."""
    return lambda value: None if value is None else read(value)


def listed(*reads: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A list: of anything that the one reader reads, or of lists with an entry for each of several."""

    def one(entry: Any) -> Any:
        if len(reads) == 1:
            return reads[0](entry)
        if type(entry) is not list or len(entry) != len(reads):
            raise TypeError("no such list")
        return tuple(read(item) for read, item in zip(reads, entry, strict=True))

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise TypeError("no list")
        return tuple(one(entry) for entry in value)

    return read


# -- Values of a column, by the name of its Arrow type -----------------------------------------------------------------


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError("no number")
    return float(value)


READS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    (r"u?int(8|16|32|64)", whole),
    (r"(large_)?(string|utf8)(_view)?", text),
    (r"double|float|halffloat", _float),
    (r"bool", truth),
    (r"date(32\[day\]|64\[ms\])", lambda value: datetime.date.fromisoformat(text(value))),
    (r"timestamp\[(s|ms|us|ns)(, tz=[^\]]+)?\]", lambda value: datetime.datetime.fromisoformat(text(value))),
    (r"time(32|64)\[(s|ms|us|ns)\]", lambda value: datetime.time.fromisoformat(text(value))),
    (r"decimal(32|64|128|256)\([0-9]{1,2}, -?[0-9]{1,2}\)", lambda value: Decimal(text(value))),
)


@cache
def reader(kind: str) -> Callable[[Any], Any]:
    """What reads a value of JSON, by the name of its column's Arrow type."""
    for form, read in READS:
        if re.fullmatch(form, kind):
            return read
    raise TypeError(f"no value of type {kind[:40]} can be perturbed")


def value_of(entry: Sequence[Any], kinds: Sequence[str]) -> tuple[Any, ...]:
    """A value of a domain, which has an entry for each column; None is missing."""
    return tuple(None if item is None else reader(kind)(item) for item, kind in zip(entry, kinds, strict=True))


# -- How much a part's integers amplify odds ---------------------------------------------------------------------------


def cell_amplification(keep: Sequence[int], replace: Sequence[int]) -> Fraction | None:
    """The largest ratio of two entries in a row of the channel; None when unbounded.

    Row y holds FULL^2 P[y][x]: keep_y FULL + (FULL - keep_y) w_y at x = y, and (FULL - keep_x) w_y elsewhere. Rows with
    the same coin and weight have the same ratio, so each such pair is looked at once.
    """
    coins, worst = sorted(keep), Fraction(1)
    for k, w in set(zip(keep, replace, strict=True)) if len(keep) > 1 else ():
        low = coins[0] if k != coins[0] else coins[1]
        high = coins[-1] if k != coins[-1] else coins[-2]
        entries = [k * FULL + (FULL - k) * w, (FULL - low) * w, (FULL - high) * w]
        if min(entries) > 0:
            worst = max(worst, Fraction(max(entries), min(entries)))
        elif max(entries) > 0:
            return None
    return worst


def range_amplification(keep: int, number: int) -> Fraction | None:
    """(K FULL + (FULL-K) w) / ((FULL-K) w), w the numbers out of 2^32 that the least likely point owns."""
    return None if keep >= FULL else 1 + Fraction(keep * FULL, (FULL - keep) * (FULL // number))


def grid(scope: Json) -> tuple[Fraction, Fraction, int]:
    """The first point of a range (of dates its ordinal), the step, and how many points there are, missing apart."""
    ends = [scope["low"], scope["high"]]
    if scope["kind"] == "date":
        ends = [datetime.date.fromisoformat(end).toordinal() for end in ends]
    low, high, step = (Fraction(repr(float(number))) for number in (*ends, scope["step"]))
    return low, step, math.floor((high - low) / step + Fraction(1, 10**6)) + 1


def points(scope: Json) -> int:
    """Grid points from low to high, both in, and one more where missing is a value."""
    return grid(scope)[2] + int(scope["missing"])


def belief_after(prior: Fraction, gamma: Fraction) -> Fraction:
    """What a belief becomes at most where odds grow by at most gamma (THESIS Thm 1)."""
    return prior * gamma / (1 - prior + prior * gamma)


LARGEST_EPSILON = 600  # e^epsilon is a number
MOST_BITS = 2**14


def is_within(epsilon: Fraction, gamma: Fraction) -> bool:
    """Whether e^epsilon <= gamma, decided exactly by bounds from below and above; a tie does not occur, since e to a
    fraction is no fraction."""
    if epsilon <= 0 or epsilon > LARGEST_EPSILON:
        return epsilon <= 0 and gamma >= 1
    halvings, bits = int(epsilon).bit_length() + 1, 64
    while bits <= MOST_BITS:
        low, high = _exponential(epsilon / 2**halvings, bits)
        if high**2**halvings * gamma.denominator <= gamma.numerator << bits * 2**halvings:
            return True
        if low**2**halvings * gamma.denominator > gamma.numerator << bits * 2**halvings:
            return False
        bits *= 2
    return False


def _exponential(x: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers below and above e^x 2^bits, 0 < x < 1, by the series: what is left of it is less than twice its
    first term."""
    below = above = 1 << bits
    low = high = number = 0
    while above > 1:
        low, high, number = low + below, high + above, number + 1
        below, above = (
            below * x.numerator // (x.denominator * number),
            -(-above * x.numerator // (x.denominator * number)),
        )
    return low, high + 4


# -- Numbers as people read them ---------------------------------------------------------------------------------------


def percent(value: Fraction | float, digits: int = 3) -> str:
    """A probability in a few significant digits; what is almost certain is never rounded up to certain."""
    number = 100 * float(value)
    if number >= 100:
        return f"{number:,.0f} %"
    shown = f"{number:.{digits}g}"
    if float(shown) >= 100:
        shown = f"{number:.{digits + 2}g}"
    return f"{float(shown):.0f} %" if "e+" in shown else f"{shown} %"


def rounded_up(number: Fraction, digits: int) -> Fraction:
    """A probability in a few significant digits, no smaller than it is."""
    scale = Fraction(10) ** digits
    while 0 < number * scale < 10 ** (digits - 1):
        scale *= 10
    return Fraction(math.ceil(number * scale)) / scale


def factor(gamma: Fraction) -> str:
    """A factor in three digits, rounded up."""
    unit = Fraction(10) ** max(math.floor(math.log10(gamma)) - 2, -2)
    return f"{float(math.ceil(gamma / unit) * unit):,g}"
