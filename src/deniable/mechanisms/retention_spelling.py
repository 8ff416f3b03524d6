"""Retention in one line of text, as a command line has it: ``age=0.5@17..90,job=1/4:1/2,ill=0.7~identity``."""

from __future__ import annotations

import datetime

from deniable.core.errors import OptionError, RequirementError
from deniable.core.privacy import Privacy
from deniable.core.replace import End, Replace, Replacing

EXAMPLE = "retention:age=0.5@17..90,born=0.5@1950-01-01..2010-12-31,job=0.6,ill=0.7~identity"
REQUIREMENTS = "a coin is a number such as 0.5; a requirement is rho1:rho2 such as 1/4:1/2, or s:rho1:rho2"


def replaces_in(text: str) -> tuple[dict[str, Replace], float | None]:
    """Columns, separated by commas: ``column=coin``, then ``@low..high`` and ``/step``, then ``~replacing``.

    Instead of a coin a requirement, from which the coin follows: ``rho1:rho2`` or ``s:rho1:rho2``. Or one budget for
    all columns, which are then named without a coin.

    >>> replaces_in("age=0.5@17..90,ill=0.7~identity")[0]["age"]
    Replace(coin=0.5, low=17, high=90)
    >>> replaces_in("budget=2,job=,age=@17..90")
    ({'job': Replace(), 'age': Replace(low=17, high=90)}, 2.0)
    """
    columns: dict[str, Replace] = {}
    budget = None
    for spelled in filter(None, (part.strip() for part in text.split(","))):
        column, equals, how = spelled.rpartition("=")
        if not equals or not column:
            raise OptionError(f"mechanism 'retention': {spelled!r} names no column and coin. Write {EXAMPLE}.")
        if column in columns or (column == "budget" and budget is not None):
            raise OptionError(f"mechanism 'retention' names the column {column!r} twice. Fix: once with one coin.")
        if column == "budget":
            budget = _budget(how)
        else:
            columns[column] = _replace(column, how)
    return columns, budget


def _budget(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"mechanism 'retention': budget={text} is no number. Write budget=2,job=.") from None


def _replace(column: str, how: str) -> Replace:
    rest, _, replacing = how.partition("~")
    wanted, _, ends = rest.partition("@")
    scope, _, grid = ends.partition("/")
    low, dots, high = scope.partition("..")
    if ends and not dots:
        raise OptionError(f"mechanism 'retention': {column}={how} has no range low..high. Write {EXAMPLE}.")
    try:
        coin = None if not wanted or ":" in wanted else float(wanted)
        first, last = (_end(low), _end(high)) if ends else (None, None)
        step = float(grid) if grid else None
    except ValueError:
        raise OptionError(
            f"mechanism 'retention': {column}={how} is not understood: {REQUIREMENTS}; the ends of a range are numbers "
            f"or dates. Write {EXAMPLE}."
        ) from None
    kind: Replacing = replacing or "uniform"  # type: ignore[assignment]  # Replace refuses others
    try:
        required = None if coin is not None or not wanted else _requirement(wanted)
        return Replace(coin, first, last, kind, required, step=step)
    except (OptionError, RequirementError) as wrong:
        raise type(wrong)(f"mechanism 'retention', column {column!r}: {wrong}") from None


def _requirement(text: str) -> Privacy | tuple[float, str, str]:
    s, *beliefs = (part.strip() for part in text.split(":"))
    if len(beliefs) == 1:
        return Privacy(rho1=s, rho2=beliefs[0])
    try:
        if len(beliefs) == 2:
            return float(s), beliefs[0], beliefs[1]
    except ValueError:
        pass
    raise OptionError(f"{text!r} is not understood: {REQUIREMENTS}.")


def _end(text: str) -> End:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return datetime.date.fromisoformat(text)
