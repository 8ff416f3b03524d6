"""Probabilities as exact fractions, and the words people write them in."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from numbers import Rational

from deniable.core.errors import RequirementError, shortened

MOST_DIGITS = 100  # of a probability: exact arithmetic with it, and printing it, take time and memory for every one
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)$")
_COMMA = re.compile(r"\s*[0-9]{0,3},[0-9]{1,9}\s*%?\s*$")  # how many languages write decimals
Probability = str | float | int | Fraction
LARGEST_FACTOR = 10**300  # of odds: a computer's numbers end soon after, and nobody is kept from certainty before


def probability(value: Probability, name: str) -> Fraction:
    """Read a probability strictly between 0 and 1, exactly.

    A float means the decimal that it prints as: 0.1 is one tenth, not the nearest binary fraction.

    >>> probability("1/13", "rho1"), probability(0.1, "rho1"), probability("5 %", "rho1")
    (Fraction(1, 13), Fraction(1, 10), Fraction(1, 20))
    """
    exact = exact_number(value, name)
    if not 0 < exact < 1:
        meant = f" Did you mean {value}%?" if 1 < exact < 100 and not str(value).strip().endswith("%") else ""
        raise RequirementError(
            f"{name} = {value} is not allowed: it must lie strictly between 0 and 1.{meant} "
            f"Fix: give a fraction such as 1/6, a decimal such as 0.17, or a percentage such as 17%."
        )
    return exact


def exact_number(value: Probability, name: str) -> Fraction:
    """Read a number exactly, as ``probability`` does, whatever its size; one of absurdly many digits is refused."""
    meant = f" Did you mean {value.replace(',', '.')}?" if isinstance(value, str) and _COMMA.match(value) else ""
    wrong = RequirementError(
        f"{name} = {shortened(value)} is not a number.{meant} Fix: give a fraction such as '1/6', a decimal such as "
        "0.17, or '17%'."
    )
    too_fine = RequirementError(
        f"{name} has more than {MOST_DIGITS} digits. Fix: give a fraction such as '1/6', a decimal such as 0.17, or "
        "'17%'."
    )
    if isinstance(value, bool):
        raise wrong
    if isinstance(value, str):
        text = value.strip()
        percent = text.endswith("%")
        digits = text.removesuffix("%").replace(" ", "")
        exponent = _EXPONENT.search(digits)
        if len(digits) > MOST_DIGITS or (exponent and not -MOST_DIGITS < int(exponent[1]) < MOST_DIGITS):
            raise too_fine
        try:
            number = Fraction(digits)
        except (ValueError, ZeroDivisionError):
            raise wrong from None
        return number / 100 if percent else number
    if isinstance(value, Rational):
        if max(abs(value.numerator), value.denominator) >= 10**MOST_DIGITS:
            raise too_fine
        return Fraction(value)
    try:
        number_float = float(value)
    except (TypeError, ValueError):
        raise wrong from None
    if not math.isfinite(number_float):
        raise wrong
    return exact_number(repr(number_float), name)


def percent(value: Fraction | float, digits: int = 3) -> str:
    """A probability as people read it, to a few significant digits.

    >>> percent(Fraction(1, 13)), percent(0.5), percent(0.99996), percent(1.934, 2), percent(0.68, 1)
    ('7.69 %', '50 %', '99.996 %', '193 %', '70 %')
    """
    number = 100 * float(value)
    if number >= 100:  # errors, unlike probabilities, may be larger than all there is
        return f"{number:,.0f} %"
    text = f"{number:.{digits}g}"
    if float(text) >= 100 > number:  # never round "almost sure" up to "sure"
        text = f"{number:.{digits + 2}g}"
    return f"{float(text):.0f} %" if "e+" in text else f"{text} %"


def rounded(number: Fraction, *, up: bool, digits: int = 3) -> Fraction:
    """A probability to a few significant digits, up or down; 0 as it is.

    >>> rounded(Fraction(1, 6), up=True), rounded(Fraction(57, 100_001), up=True)
    (Fraction(167, 1000), Fraction(57, 100000))
    """
    if not number:
        return number
    scale = Fraction(10) ** digits
    while number * scale < 10 ** (digits - 1):
        scale *= 10
    return Fraction(math.ceil(number * scale) if up else math.floor(number * scale)) / scale


def factor(gamma: Fraction) -> str:
    """A factor in three digits, rounded up."""
    digits = max(math.floor(math.log10(gamma)) - 2, -2)
    return f"{float(math.ceil(gamma / Fraction(10) ** digits) * Fraction(10) ** digits):,g}"
