"""Numbers, probabilities and values: the arrays that everything is computed with, and how values are written and
stored.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.errors import ManifestError, OptionError, RequirementError, shortened

# -- The arrays that everything is computed with, by what they hold ----------------------------------------------------


Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]  # of rows
Cells = npt.NDArray[np.int32]  # the number of the cell of each row
Words = npt.NDArray[np.uint64]
Codes = npt.NDArray[Any]  # integers of the smallest width that holds them


# -- Numbers as people write them: in decimals, which sums and multiples of floats leave by a last digit ---------------


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


# -- Probabilities as exact fractions, and the words people write them in ----------------------------------------------


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


# -- Values of a sensitive column in JSON: as they are where JSON has them, else as text that their type reads back.


LARGEST_WHOLE = 2**63  # what Arrow's and JSON's readers hold as a whole number lies below
_READERS: tuple[tuple[str, Callable[[str], Hashable]], ...] = (
    ("date", datetime.date.fromisoformat),
    ("timestamp", datetime.datetime.fromisoformat),
    ("time", datetime.time.fromisoformat),
    ("decimal", decimal.Decimal),
)


def to_json(value: Hashable) -> Any:
    """A value as JSON: dates, times and decimals become text.

    >>> to_json(datetime.date(2026, 1, 31)), to_json(None), to_json(3)
    ('2026-01-31', None, 3)
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def from_json(value: Any, arrow_type: str) -> Hashable:
    """The value that ``to_json`` wrote, by the name of its column's Arrow type."""
    if isinstance(value, str):
        for prefix, read in _READERS:
            if arrow_type.startswith(prefix):
                try:
                    return read(value)
                except (ValueError, ArithmeticError):
                    raise ManifestError(f"The manifest's domain holds {value!r}, which is no {arrow_type}.") from None
    if isinstance(value, list | dict):
        raise ManifestError("The manifest's domain holds something that is not a single value.")
    result: Hashable = float(value) if isinstance(value, int) and arrow_type in ("double", "float") else value
    return result


def plain(value: Any) -> Any:
    """Options as JSON has them: mappings as lists of pairs where their keys are not text, tuples and sets as lists."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: plain(item) for key, item in value.items()}
        return [[plain(key), plain(item)] for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return to_json(value)


# -- What the codes of an answer stand for, as SPSS and Stata files say it ---------------------------------------------


Labels = Mapping[Hashable, str]  # code -> label


def texts_of(labels: Labels) -> dict[Hashable, str]:
    """One text for each code: its label, with the code where another has the same label, or the code where it has none.

    >>> texts_of({1: "yes", 2: "no", 8: "other", 9: "other", 10: " "})
    {1: 'yes', 2: 'no', 8: 'other (8)', 9: 'other (9)', 10: '10'}
    """
    often = Counter(label.strip() for label in labels.values())
    return {code: _text(code, label.strip(), often[label.strip()]) for code, label in labels.items()}


def _text(code: Hashable, label: str, often: int) -> str:
    shown = f"{code:g}" if isinstance(code, float) else str(code)
    if not label:
        return shown
    return label if often == 1 else f"{label} ({shown})"


def labels_dict(labels: Mapping[str, Labels]) -> dict[str, Any]:
    """The labels of several columns as JSON has them: in their order, and codes are numbers or texts."""
    return {column: [[code, label] for code, label in pairs.items()] for column, pairs in labels.items()}


def labels_of(raw: Mapping[str, Any]) -> dict[str, Labels]:
    """The inverse of ``labels_dict``."""
    return {column: dict(pairs) for column, pairs in raw.items()}


def of_columns(labels: Mapping[str, Labels], names: Iterable[str]) -> dict[str, Labels]:
    """The labels of these columns only."""
    return {name: labels[name] for name in names if name in labels}


# -- Exact fractions as manifests have them: text, of bounded length ---------------------------------------------------


MOST_DIGITS = 2_000  # of an exact fraction: products of many columns' gammas are long
_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")


def is_fraction(text: Any) -> bool:
    """Whether a text is a fraction that can be read in a moment (Fraction itself reads 1e999999999, too), and that
    floating-point numbers reach."""
    if not isinstance(text, str) or len(text) > MOST_DIGITS or not _FRACTION.fullmatch(text):
        return False
    whole, _, parts = text.partition("/")
    return int(parts or 1) > 0 and abs(int(whole)) < int(parts or 1) * LARGEST_FACTOR


def is_probability(text: Any) -> bool:
    """Whether a text is a fraction above 0, at most 1."""
    return is_fraction(text) and 0 < Fraction(text) <= 1
