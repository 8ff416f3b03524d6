"""Questions that fit a release, asked of it: an analyst learns from answers to a table that is already there."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deniable.core.errors import DeniableError
from deniable.core.html import shown
from deniable.core.manifest import Manifest
from deniable.release.release import Release
from deniable.report.tables import Kind, Table

SHORT = 40
GROUPS = range(2, 9)  # how many groups fit into an example


@dataclass(frozen=True)
class Example:
    """A question in words, in SQL (empty where it is not understood) and in Python, and the release's answer."""

    question: str
    sql: str
    python: str
    answer: Table


def examples(release: Release, frequent: Sequence[dict[str, Any]]) -> tuple[Example, ...]:
    """Up to four questions, with their answers; ``frequent`` holds the sensitive values, frequent ones first."""
    answered = []
    for question, sql, python in _questions(release, release.manifest, frequent):
        try:
            answer = release.sql(sql)
        except DeniableError:  # not every mechanism answers every kind of question
            continue
        answered.append(Example(question, sql, python or f"release.sql({sql!r})", _table(answer)))
    return tuple(answered)


def identifier(name: str) -> str:
    """A column's name in SQL, quoted where it must be.

    >>> identifier("age"), identifier('my "own" age')
    ('age', '"my ""own"" age"')
    """
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A value in SQL.

    >>> literal("it's"), literal(3)
    ("'it''s'", '3')
    """
    if isinstance(value, bool | int | float):
        return str(value).upper() if isinstance(value, bool) else repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _questions(release: Release, manifest: Manifest, frequent: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    column = manifest.parts[0].columns[0]
    name = identifier(column)
    condition = _condition(manifest, frequent)
    if condition is None:
        return []
    where, words, python = condition
    sql = f"SELECT COUNT(*) AS n\nFROM release\nWHERE {where}"
    questions = [(f"How many rows have {words}?", sql, python)]
    group, number = _public_columns(release)
    if group is not None:
        by = identifier(group)
        questions.append(
            (
                f"How are they spread over {shown(group)}?",
                f"SELECT {by}, COUNT(*) AS n\nFROM release\nWHERE {where}\nGROUP BY {by}",
                "",
            )
        )
    if number is not None:
        sql = f"SELECT AVG({identifier(number)}) AS average\nFROM release\nWHERE {where}"
        questions.append((f"What is their average {shown(number)}?", sql, ""))
    if manifest.parts[0].domain:
        sql = f"SELECT {name}, COUNT(*) AS n\nFROM release\nGROUP BY {name}\nORDER BY n DESC\nLIMIT 5"
        questions.append((f"Which values of {shown(column)} are the most frequent?", sql, ""))
    return questions


def _condition(manifest: Manifest, frequent: Sequence[dict[str, Any]]) -> tuple[str, str, str] | None:
    """A condition on the first sensitive column: in SQL, in words, and as a question in Python."""
    part = manifest.parts[0]
    column = part.columns[0]
    if part.range is not None:
        low, high = part.range.low, part.range.high
        if isinstance(low, datetime.date) or isinstance(high, datetime.date):
            return None
        middle = (low + high) / 2
        sql, words = (
            f"{identifier(column)} BETWEEN {low:g} AND {middle:g}",
            f"{shown(column)} from {low:g} to {middle:g}",
        )
        return sql, words, f"release.count(where={{{column!r}: dn.between({low:g}, {middle:g})}})"
    for value in _plain_values(manifest, frequent):
        python = f"release.count(where={{{column!r}: {value!r}}})"
        return f"{identifier(column)} = {literal(value)}", f"{shown(column)} = {value}", python
    return None


def _plain_values(manifest: Manifest, frequent: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """The values of the first sensitive column that can be shown as they are, frequent ones first."""
    for row in frequent:
        value = row["value"][0] if len(manifest.parts[0].columns) > 1 else row["value"]
        if isinstance(value, str | int | float) and shown(value, SHORT) == str(value):
            yield value


def _public_columns(release: Release) -> tuple[str | None, str | None]:
    """A public column with few values to group by, and one with many numbers to average."""
    group = number = None
    for name in release.manifest.public_columns:
        distinct = release.counter().distinct(name)
        kind = distinct.type
        if group is None and len(distinct) in GROUPS:
            group = name
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if number is None and numeric and len(distinct) not in GROUPS:
            number = name
    return group, number


def _table(answer: pa.Table) -> Table:
    def kind(field: pa.Field) -> Kind:
        if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
            return "text"
        return "count" if field.name in {"n", "n_low", "n_high"} else "number"

    columns = {field.name: kind(field) for field in answer.schema}
    return Table.of("The answer", columns, (tuple(row.values()) for row in answer.to_pylist()), most=12)
