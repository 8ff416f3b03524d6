"""What a report is written from, collected once, and questions that fit a release, asked of it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core import values
from deniable.core.errors import DeniableError, VerificationError
from deniable.core.histogram import SELECTIVITIES, Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.privacy import Privacy
from deniable.core.text import shown
from deniable.core.values import Floats
from deniable.estimation.answers import NUMBERS, WHY
from deniable.estimation.limits import UNKNOWN
from deniable.lab import rival_candidates
from deniable.planning.budgets import error_curve
from deniable.planning.planner import compare
from deniable.planning.prediction import calibrated_variance, predicted_error
from deniable.release.release import Release
from deniable.report.page import Section, Text
from deniable.report.tables import Kind, Table

# -- Questions that fit a release, asked of it: an analyst learns from answers to a table that is already there --------


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


# -- What a report is written from, collected once: plain tables and dictionaries, so that more can be plugged in ------


COMPARED = 500  # values up to which the other mechanisms are planned too
DRAWN = 200  # values up to which their errors are also predicted for other requirements
FEW = 6
SHARES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
LEAST_ROWS = 10


@dataclass(frozen=True)
class Estimates:
    """The estimated histogram of one part: rows (value, estimate, low, high), and errors (share, error, line); of
    ``lost`` values nothing was learned, since they cannot be told from others."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    errors: tuple[dict[str, Any], ...]
    lost: int = 0
    unpredicted: str = "the release has too few rows"  # why there are no errors, where there are none

    @property
    def name(self) -> str:
        return ", ".join(map(shown, self.columns))


@dataclass(frozen=True)
class Evidence:
    """Everything that the sections of a report draw from.

    Attributes:
        certificate: as ``Certificate.to_dict``.
        public: rows (column, type, different values, which).
        audit: as ``Audit.to_dict``; facts about the original table, for the owner alone. So are the next three.
        comparison: as ``Comparison.to_dict``.
        curve: as ``error_curve``.
        evaluation: ``{"results": [Result.to_dict(), ...]}``, or a table ``{"caption", "columns", "rows"}``.
    """

    manifest: Manifest
    certificate: Mapping[str, Any]
    estimates: tuple[Estimates, ...]
    examples: tuple[Example, ...]
    public: tuple[tuple[Any, ...], ...]
    audit: Mapping[str, Any] | None = None
    comparison: Mapping[str, Any] | None = None
    curve: tuple[dict[str, Any], ...] = ()
    evaluation: Mapping[str, Any] | None = None


def from_release(release: Release) -> Evidence:
    """What the release itself holds: nothing here comes from anywhere else."""
    manifest = release.manifest
    made = [one for part in manifest.parts if part.domain and (one := _estimates(release, part)) is not None]
    distinct = {name: release.counter().distinct(name) for name in manifest.public_columns}
    frequent = made[0].rows if made else ()
    return Evidence(
        manifest=manifest,
        certificate=_certificate(release),
        estimates=tuple(made),
        examples=examples(release, frequent),
        public=tuple(_described(name, manifest.types[name], values) for name, values in distinct.items()),
    )


def plans_from_audit(
    manifest: Manifest, audit: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, tuple[dict[str, Any], ...]]:
    """What other mechanisms would do for the same table and requirement: a comparison, and error against epsilon."""
    stated, part = manifest.privacy, manifest.parts[0]
    simple = stated is not None and stated["rho2"] is not None and not stated["per_value"] and not stated["exempt"]
    if not simple or len(manifest.parts) > 1 or not 1 < len(part.domain) <= COMPARED:
        return None, ()
    assert stated is not None
    counts = true_counts(manifest, audit, part.columns)
    if not counts:
        return None, ()
    histogram = Histogram(part.domain, np.array([counts.get(json_key(value), 0) for value in part.domain]))
    rho1 = None if stated["rho1"] is None else Fraction(stated["rho1"])
    try:
        privacy = Privacy(rho1, Fraction(stated["rho2"]), adversary=stated["adversary"])
        comparison = compare(histogram, privacy, rivals=rival_candidates)
    except DeniableError:  # the release may come from a mechanism that is not among the compared ones
        return None, ()
    if len(part.domain) > DRAWN:
        return comparison.to_dict(), ()
    return comparison.to_dict(), tuple(
        error_curve(histogram, SELECTIVITIES[-1], privacy, columns=len(manifest.public_columns))
    )


def true_counts(
    manifest: Manifest, audit: Mapping[str, Any] | None, columns: Sequence[str]
) -> dict[tuple[str, Any], int]:
    """How many rows of the original hold each value, by ``json_key``; empty where no audit says."""
    parts = [] if audit is None else [part for part in audit["parts"] if list(part["columns"]) == list(columns)]
    return {json_key(row["value"]): round(row["prior"] * manifest.rows) for part in parts for row in part["values"]}


def json_key(value: Hashable) -> tuple[str, Any]:
    """A value as JSON tells it, with its type, since 1 and true are different values."""
    plain = values.to_json(value)
    return type(plain).__name__, plain


def labels(domain: Sequence[Any], most: int = 40) -> list[str]:
    """Values as texts that are all different, also where they were cut.

    >>> labels(["x" * 50 + "a", "x" * 50 + "b"], most=5)
    ['xxxx…', 'xxxx… (2)']
    """
    seen: dict[str, int] = {}
    texts = []
    for value in domain:
        text = shown(value, most)
        seen[text] = seen.get(text, 0) + 1
        texts.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return texts


def _estimates(release: Release, part: Part) -> Estimates | None:
    try:
        named, estimated, stderr, low, high = _counted(release, part, calibrate=None)
        raw_stderr = _counted(release, part, calibrate=False)[2]
    except DeniableError:  # a mechanism that nothing can be estimated from
        return None
    order = np.argsort(-estimated, kind="stable")
    rows = tuple(
        {"value": named[i], "estimate": float(estimated[i]), "low": float(low[i]), "high": float(high[i])}
        for i in order
    )
    noise = None if part.marginal is None else part.marginal.variance
    errors = tuple(_errors(estimated, raw_stderr, noise, release.manifest.rows))
    lost = int(np.isinf(stderr).sum())
    return Estimates(part.columns, rows, errors, lost, UNKNOWN if lost == len(rows) else Estimates.unpredicted)


def _counted(release: Release, part: Part, calibrate: bool | None) -> tuple[list[Any], Floats, Floats, Floats, Floats]:
    """The values of a part, their estimated counts, standard errors and intervals. Groups of a column that is called
    like one of these numbers are refused, so they are counted by conditions: slower, and the same."""
    if {*NUMBERS, WHY}.isdisjoint(part.columns):
        table = release.group_by(part.columns, calibrate=calibrate)
        keys = list(zip(*(table[name].to_pylist() for name in part.columns), strict=True))
        value, stderr, low, high = (table[name].to_numpy() for name in NUMBERS)
        return [key[0] if len(key) == 1 else key for key in keys], value, stderr, low, high
    whole: list[Any] = [value if len(part.columns) > 1 else (value,) for value in part.domain]
    wheres = [dict(zip(part.columns, value, strict=True)) for value in whole]
    counts = release.count_many(wheres, calibrate=calibrate)
    return list(part.domain), counts.value, counts.stderr, counts.low, counts.high


def _errors(estimated: Any, stderr: Any, noise: float | None, rows: int) -> list[dict[str, Any]]:
    """The mean relative error of counts of a share a of the rows: V_R = V_T a / pi_x (planning.prediction)."""
    errors = []
    for share in SHARES:
        size = share * rows
        large = (estimated >= size) & np.isfinite(stderr)
        if size < LEAST_ROWS or not large.any():
            continue
        of_table = stderr[large] ** 2
        of_rows = of_table * size / estimated[large]
        lines = {"from the rows alone": of_rows}
        if noise is not None:
            lines = {"with the noisy histogram": calibrated_variance(of_rows, of_table, noise), **lines}
        for line, variance in lines.items():
            error = float(predicted_error(variance).mean()) / size
            if error > 0:
                errors.append({"share": share, "error": error, "line": line})
    return errors


def _certificate(release: Release) -> Mapping[str, Any]:
    try:
        return release.verify().to_dict()
    except VerificationError as broken:
        return {"holds": False, "checks": [{"what": "verification", "holds": False, "detail": str(broken)}]}


def _described(name: str, kind: str, distinct: pa.Array) -> tuple[Any, ...]:
    """A public column in a row: its name, its type, how many values, and which where they are few or numbers."""
    which = ""
    if len(distinct) <= FEW:
        which = "; ".join(shown(value, 30) for value in distinct.to_pylist())
    elif pa.types.is_integer(distinct.type) or pa.types.is_floating(distinct.type):
        ends = pc.min_max(distinct).as_py()
        which = f"{ends['min']} to {ends['max']}"
    return name, kind, len(distinct), which


# -- What a report leaves out because it would be too much, said instead of dropped ------------------------------------


def not_compared(evidence: Evidence) -> Section | None:
    """Why other mechanisms are not planned for the same table; None where there is no table to plan for."""
    manifest = evidence.manifest
    required = manifest.privacy
    if evidence.audit is None or required is None:
        return None
    values = max((len(part.domain) for part in manifest.parts), default=0)
    if len(manifest.parts) > 1:
        why = "several columns are perturbed, each by itself"
    elif values > COMPARED:
        why = f"the column has {values:,} values, and a report plans for up to {COMPARED}"
    elif required["per_value"] or required["exempt"]:
        why = "values have requirements of their own, or are exempt"
    else:
        why = "no other mechanism can be planned for this table and requirement"
    return Section("alternatives", "Other mechanisms", (Text(f"Not compared here: {why}. `deniable plan` compares."),))


def not_drawn(evidence: Evidence) -> list[Text]:
    """Why errors for other requirements are not drawn, where that is for their number."""
    values = len(evidence.manifest.parts[0].domain)
    if evidence.curve or values <= DRAWN:
        return []
    text = (
        f"Errors for other requirements than yours are not drawn: the column has {values:,} values, and they are for "
        f"up to {DRAWN}. `deniable plan --chart FILE` draws them."
    )
    return [Text(text)]
