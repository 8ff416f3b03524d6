"""How an owner makes columns coarser: the same words on the command line, in a file and in Python, checked against the
table.
"""

from __future__ import annotations

import csv
import io
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.core.errors import ColumnError, OptionError, did_you_mean, no_column, option, shortened
from deniable.core.text import small_text
from deniable.core.transforms import (
    KINDS,
    MOST_LEAVES,
    MOST_STEPS,
    UNITS,
    Calendar,
    Hierarchy,
    Rare,
    Step,
    Steps,
    bands,
)
from deniable.core.transforms import bottom as bottom_of
from deniable.core.transforms import prefix as prefix_of
from deniable.core.transforms import snap as snap_of
from deniable.core.transforms import top as top_of
from deniable.core.values import Number
from deniable.tables.encoding import is_text
from deniable.tables.transforms import recoded_type

# -- Recodings as texts and files: the same words on the command line, in a file and in Python -------------------------


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


# -- How an owner makes columns coarser before they are published: checked against the table, as steps for an engine.


RecodeLike = Mapping[str, Step | Sequence[Step] | str] | str | os.PathLike[str]
Rows = int | Mapping[str, int]


@dataclass(frozen=True)
class Recoding:
    """What is asked for.

    Attributes:
        columns: the steps of each column.
        rare: public values of fewer rows are merged: one number for all columns of text, or one for each column named.
        suppress: sensitive values of fewer rows become missing: one number, or one for each column named.
    """

    columns: Steps = field(default_factory=dict)
    rare: Rows | None = None
    suppress: Rows | None = None

    @classmethod
    def of(cls, recode: RecodeLike | None = None, rare: Rows | None = None, suppress: Rows | None = None) -> Recoding:
        """From the arguments of ``publish``; a path names a file that may hold all three."""
        if recode is None or isinstance(recode, Mapping):
            return cls({column: as_steps(given) for column, given in (recode or {}).items()}, rare, suppress)
        if not isinstance(recode, str | os.PathLike):
            raise OptionError(
                f"recode = {shortened(recode)} names no columns. Fix: column -> how, as in {{'age': 'bands:10'}}, or "
                "the path of a TOML file."
            )
        read = read_recode_file(recode)
        for name, given in (("rare", rare), ("suppress", suppress)):
            if given is not None and name in read:
                raise OptionError(
                    f"{name} is in {os.fspath(recode)!r} and given once more. Fix: leave one of them out."
                )
        return cls(read["recode"], read.get("rare", rare), read.get("suppress", suppress))

    def __bool__(self) -> bool:
        return bool(self.columns) or self.rare is not None or self.suppress is not None

    def steps(self, schema: pa.Schema, public: Sequence[str], sensitive: Sequence[str]) -> Steps:
        """The steps of each column of a table, in the order of its columns."""
        for column in self.columns:
            self._require_published(column, "recode", schema, [*public, *sensitive])
        steps = {name: self.columns[name] for name in (*public, *sensitive) if name in self.columns}
        for column, below in self._rare(schema, public).items():
            text = is_text(self._type(schema, column))
            steps[column] = (*steps.get(column, ()), Rare(below) if text else Rare(below, None))
        for column, below in self._suppressed(schema, sensitive).items():
            steps[column] = (*steps.get(column, ()), Rare(below, None))
        return {name: steps[name] for name in schema.names if name in steps}

    def _rare(self, schema: pa.Schema, public: Sequence[str]) -> Mapping[str, int]:
        if not isinstance(self.rare, Mapping):
            texts = [name for name in public if is_text(self._type(schema, name))] if self.rare is not None else []
            return dict.fromkeys(texts, self.rare or 0)
        for column in self.rare:
            self._require_published(column, "rare", schema, public)
        return self.rare

    def _suppressed(self, schema: pa.Schema, sensitive: Sequence[str]) -> Mapping[str, int]:
        if not isinstance(self.suppress, Mapping):
            return {} if self.suppress is None else dict.fromkeys(sensitive, self.suppress)
        for column in self.suppress:
            self._require_published(column, "suppress", schema, sensitive)
        return self.suppress

    def _type(self, schema: pa.Schema, column: str) -> pa.DataType:
        kind = schema.field(column).type
        for step in self.columns.get(column, ()):
            kind = recoded_type(column, kind, step)
        return kind

    @staticmethod
    def _require_published(column: str, what: str, schema: pa.Schema, allowed: Sequence[str]) -> None:
        if column in allowed:
            return
        if column not in schema.names:
            raise ColumnError(no_column(what, column, schema.names))
        role = {"rare": "no public column", "suppress": "no sensitive column"}.get(what, "not published")
        raise ColumnError(
            f"{option(what)} names the column {column!r}, which is {role}. Fix: leave it out of {option(what)}."
        )

    def fitting(self, sensitive: Sequence[str], missing: str, domain: Any, bins: Mapping[str, Any]) -> Recoding:
        """Itself; refused where it contradicts other options, or does something twice."""
        twice = [column for column in bins if column in self.columns]
        if twice:
            raise OptionError(f"{twice[0]!r} is recoded, and has bins. Fix: leave one of them out.")
        if self.suppress is None:
            return self
        if missing != "value":
            raise OptionError(
                "suppress makes rare values missing, which must then be perturbed like any value: missing = "
                f"{missing!r} does not do that. Fix: {option('missing', 'value')}."
            )
        if domain is not None:
            raise OptionError("suppress leaves rare values out, and domain declares all values. Fix: leave one out.")
        columns = self.suppress if isinstance(self.suppress, Mapping) else sensitive
        if any(column in bins for column in columns):
            raise OptionError(
                "suppress counts values before they have bins. Fix: widen the bins, or leave suppress out."
            )
        return self
