"""Retention in one line of text, as a command line has it: ``age=0.5@17..90,job=0.6,ill=0.7~identity``."""

from __future__ import annotations

import datetime

from deniable.core.errors import OptionError
from deniable.core.replace import End, Replace, Replacing
from deniable.mechanisms.retention import Retention

EXAMPLE = "retention:age=0.5@17..90,born=0.5@1950-01-01..2010-12-31,job=0.6,ill=0.7~identity"


def spelled_retention(text: str) -> Retention:
    """Columns with their coins, separated by commas: ``column=coin``, then ``@low..high``, then ``~replacing``.

    >>> spelled_retention("age=0.5@17..90,ill=0.7~identity").columns["age"]
    Replace(coin=0.5, low=17, high=90)
    """
    columns: dict[str, Replace] = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        column, equals, how = each.rpartition("=")
        if not equals or not column:
            raise OptionError(f"mechanism 'retention': {each!r} names no column and coin. Write {EXAMPLE}.")
        if column in columns:
            raise OptionError(f"mechanism 'retention' names the column {column!r} twice. Fix: once with one coin.")
        columns[column] = _replace(column, how)
    return Retention(columns)


def _replace(column: str, how: str) -> Replace:
    rest, _, replacing = how.partition("~")
    coin, _, ends = rest.partition("@")
    low, dots, high = ends.partition("..")
    if ends and not dots:
        raise OptionError(f"mechanism 'retention': {column}={how} has no range low..high. Write {EXAMPLE}.")
    try:
        number = float(coin)
        first, last = (_end(low), _end(high)) if ends else (None, None)
    except ValueError:
        raise OptionError(
            f"mechanism 'retention': {column}={how} is not understood: a coin is a number such as 0.5, the ends of a "
            f"range are numbers or dates. Write {EXAMPLE}."
        ) from None
    kind: Replacing = replacing or "uniform"  # type: ignore[assignment]  # Replace refuses others
    try:
        return Replace(number, first, last, kind)
    except OptionError as wrong:
        raise OptionError(f"mechanism 'retention', column {column!r}: {wrong}") from None


def _end(text: str) -> End:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return datetime.date.fromisoformat(text)
