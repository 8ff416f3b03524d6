"""Recodings as texts and files: the same words on the command line, in a file and in Python."""

from __future__ import annotations

import csv
import io
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deniable.core.errors import OptionError, did_you_mean, shortened
from deniable.core.numbers import Number
from deniable.core.reading import small_text
from deniable.core.recode import KINDS, MOST_LEAVES, MOST_STEPS, UNITS, Calendar, Hierarchy, Step, bands
from deniable.core.recode import bottom as bottom_of
from deniable.core.recode import prefix as prefix_of
from deniable.core.recode import snap as snap_of
from deniable.core.recode import top as top_of

WORDS = ("bands", "prefix", "top", "bottom", "snap", *UNITS, "hierarchy")
SPELLING = (
    "bands:10, bands:10:5 (from 5 on), bands:18,65 (edges), prefix:3, prefix:3:5 (of numbers of 5 digits), top:150000, "
    "bottom:0, snap:1000, year, quarter, month, hierarchy:FILE or hierarchy:FILE:LEVEL; several are joined by +"
)
_NEXT = re.compile(rf"\+(?=(?:{'|'.join(WORDS)})(?::|\+|$))")
FIELDS = ("recode", "rare", "suppress")


def hierarchy(
    source: str | os.PathLike[str] | Mapping[Any, str], level: int = 1, *, other: str | None = None
) -> Hierarchy:
    """A category for each value, from a file or a mapping.

    Args:
        source: a CSV file with a value in each line, then what it becomes on level 1, 2, ..; separated by commas,
            semicolons or tabs, without a head. Or a mapping value -> category.
        level: how coarse.
        other: what values become that are not listed; left out, they are refused.

    >>> import deniable as dn
    >>> dn.hierarchy({"France": "Europe", "Spain": "Europe", "Peru": "Americas"}).categories
    ('Europe', 'Americas')
    """
    if isinstance(source, Mapping):
        return Hierarchy(tuple((_leaf(value), category) for value, category in source.items()), other)
    path = Path(source)
    try:
        text = small_text(path)
    except (OSError, UnicodeDecodeError):
        raise OptionError(f"The hierarchy {str(path)!r} cannot be read as text. Fix: a CSV file in UTF-8.") from None
    lines = _lines(text, level)
    if not 1 <= len(lines) <= MOST_LEAVES:
        raise OptionError(f"The hierarchy {str(path)!r} has no line, or more than {MOST_LEAVES:,}.")
    short = next((number for number, line in enumerate(lines, 1) if len(line) <= level), None)
    if level < 1 or short is not None:
        raise OptionError(
            f"The hierarchy {str(path)!r} has no level {level} in line {short or 1}. Fix: a value and its categories "
            "in each line, and a level that all lines have."
        )
    return Hierarchy(tuple((line[0].strip(), line[level].strip()) for line in lines), other)


def _lines(text: str, level: int) -> list[list[str]]:
    """The fields of all lines, by the first separator that gives each of them the level, else by that of most fields:
    a value may hold commas.

    >>> _lines("Korea, Republic, of;Asia\\nPeru;Americas\\n", 1)
    [['Korea, Republic, of', 'Asia'], ['Peru', 'Americas']]
    """
    read = [[line for line in csv.reader(io.StringIO(text, newline=""), delimiter=by) if line] for by in ";\t,"]
    whole = [lines for lines in read if all(len(line) > level for line in lines)]
    return whole[0] if whole else max(read, key=lambda lines: sum(map(len, lines)))


def _leaf(value: Any) -> str:
    """A value of a mapping as the text that a column has for it: 1.0 is the whole number 1."""
    if value is None:
        raise OptionError("hierarchy: None is no value: what is missing stays missing. Fix: leave it out.")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def steps_spelled(text: str, home: Path | None = None) -> tuple[Step, ...]:
    """The steps that a text means; paths in it are relative to ``home``.

    >>> [str(step) for step in steps_spelled("top:90+bands:10")]
    ['90 stands for that and more', 'in bands of 10, such as [0, 10)']
    """
    return tuple(_step(word, home) for word in _NEXT.split(text))


def _step(text: str, home: Path | None) -> Step:
    word, colon, rest = text.partition(":")
    if word in UNITS and not colon:
        return Calendar(word)
    try:
        if word == "hierarchy" and rest:
            return _hierarchy(rest, home)
        if word == "bands" and "," in rest:
            return bands([_number(edge) for edge in rest.split(",")])
        numbers = [_number(part) for part in rest.split(":")]
        made: Any = {"bands": bands, "prefix": prefix_of, "top": top_of, "bottom": bottom_of, "snap": snap_of}[word]
        step: Step = made(*numbers)
    except (KeyError, ValueError, TypeError):
        hint = did_you_mean(word, WORDS) if word not in WORDS else ""
        raise OptionError(f"recode: {shortened(text)} is not understood.{hint} Fix: {SPELLING}.") from None
    return step


def _hierarchy(rest: str, home: Path | None) -> Hierarchy:
    path, _, level = rest.rpartition(":")
    if not (path and level.isdecimal()):
        path, level = rest, "1"
    return hierarchy(path if home is None else home / path, int(level))


def _number(text: str) -> Number:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def as_steps(given: Any) -> tuple[Step, ...]:
    """A step, several, or their text."""
    if isinstance(given, str):
        return steps_spelled(given)
    several = tuple(given) if isinstance(given, Sequence) else (given,)
    if not 1 <= len(several) <= MOST_STEPS or not all(isinstance(step, tuple(KINDS.values())) for step in several):
        raise OptionError(
            f"recode = {shortened(given)} is not understood. Fix: 1 to {MOST_STEPS} of bands, prefix, top, bottom, "
            f"snap, year, quarter, month, hierarchy; or as text: {SPELLING}."
        )
    return several


def read_recode_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A TOML file with a table ``recode`` (column = text), and ``rare`` and ``suppress`` where they are wanted."""
    try:
        raw = tomllib.loads(small_text(Path(path)))
    except (OSError, UnicodeDecodeError):
        raise OptionError(
            f"The recoding file {os.fspath(path)!r} cannot be read as text. Fix: a TOML file in UTF-8, or COLUMN=HOW."
        ) from None
    except tomllib.TOMLDecodeError as problem:
        raise OptionError(
            f'The recoding file {os.fspath(path)!r} is not TOML: {problem}. Fix: a table recode with age = "bands:10".'
        ) from None
    for name in raw:
        if name not in FIELDS:
            raise OptionError(
                f"The recoding file {os.fspath(path)!r} has the field {name!r}.{did_you_mean(name, FIELDS)} "
                f"Fix: {', '.join(FIELDS)}."
            )
    columns = raw.get("recode", {})
    if not isinstance(columns, dict) or not all(isinstance(text, str) for text in columns.values()):
        raise OptionError(f"The recoding file {os.fspath(path)!r}: recode is not a table of column = 'text'.")
    home = Path(path).parent
    return {**raw, "recode": {column: steps_spelled(text, home) for column, text in columns.items()}}
