"""Values of a sensitive column in JSON: as they are where JSON has them, else as text that their type reads back."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from deniable.core.errors import ManifestError

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
