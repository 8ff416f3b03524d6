"""The numbers of promises, read from JSON: exact fractions as text, whole numbers, places in a domain."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from deniable.core.errors import RequirementError
from deniable.core.probability import LARGEST_FACTOR
from deniable.core.sums import LargeSums, SmallSums

Limit = tuple[int, Fraction, Fraction]  # position, rho1, rho2
Single = tuple[int, int]  # a column, and a place among its values


def _fraction(value: Any) -> Fraction:
    if not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise TypeError
    number = Fraction(value)
    if abs(number) >= LARGEST_FACTOR:
        raise ValueError
    return number


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _items(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: tuple(read(item) for item in _exactly(list)(value))


def _limit(value: Any) -> Limit:
    place, rho1, rho2 = _exactly(list)(value)
    return _whole(place), _fraction(rho1), _fraction(rho2)


def _single(value: Any) -> Single:
    column, place = _exactly(list)(value)
    return _whole(column), _whole(place)


def _sums(kind: type[SmallSums | LargeSums]) -> Callable[[Any], SmallSums | LargeSums]:
    def read(value: Any) -> SmallSums | LargeSums:
        try:
            wanted = kind(**value)
        except RequirementError:
            raise ValueError from None
        if wanted.to_dict() != value:  # a number that is missing is not the default
            raise ValueError
        return wanted

    return read


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return read


_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")  # Fraction itself reads 1e999999999, too, and takes all memory for it
READERS: dict[str, Callable[[Any], Any]] = {
    "Fraction": _fraction,
    "Fraction | None": _optional(_fraction),
    "tuple[Fraction | None, ...]": _items(_optional(_fraction)),
    "tuple[int, ...]": _items(_whole),
    "tuple[Limit, ...]": _items(_limit),
    "tuple[Single, ...]": _items(_single),
    "SmallSums | None": _optional(_sums(SmallSums)),
    "LargeSums | None": _optional(_sums(LargeSums)),
    "bool": _exactly(bool),
    "int": _whole,
    "str": _exactly(str),
}
