"""A release as one DuckDB file, for SQL and BI tools: rows, weights, and macros that put them together."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.core.errors import OutputError, QuestionError, option
from deniable.release.folder import require_writable
from deniable.release.weights import PartWeights, Weights, asked_sql, joined_sql, literal, quoted

if TYPE_CHECKING:
    from deniable.release.release import Release

MOST_PARTS = 16  # that ``weighed`` joins at once
NO_WEIGHTS = (
    "The rows of this release have no weights (its channel has no inverse, or is not published), so a database could "
    'not count them. Fix: deniable query RELEASE "SELECT .." says what can be known of it.'
)
NULL = "CAST(NULL AS DOUBLE)"


def write_database(release: Release, out: str | os.PathLike[str], overwrite: bool) -> Path:
    """Write the tables ``data`` and ``weights``, a view for each column and the macros ``weighed`` and ``stderr``."""
    import duckdb  # whose import takes longer than most questions

    path, weights = Path(out), Weights.of(release.manifest)
    if weights is None:
        raise QuestionError(NO_WEIGHTS)
    if path.exists() and not overwrite:
        raise OutputError(
            f"The output {str(path)!r} exists already. Fix: choose another name, or {option('overwrite', True)}."
        )
    place = require_writable(path)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        made = Path(folder, "release.duckdb")
        with duckdb.connect(str(made)) as database:
            _fill(database, release, weights)
        made.replace(place)
    return path


def _fill(database: Any, release: Release, weights: Weights) -> None:
    tables = {"data": release.table, "weights": weights.table()}
    if release.manifest.lineups is not None:
        tables["lineups"] = release.lineups
    for name, table in tables.items():
        database.register("given", table)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        database.unregister("given")
    parts = weights.parts
    learned = any(one.part.learned is not None for one in parts)
    error = NULL if learned else "SQRT(GREATEST(SUM(w * w - w), 0))"  # a model's rows do not err one by one
    database.execute(f"CREATE MACRO stderr(w) AS {error}")
    if len(parts) <= MOST_PARTS:
        database.execute(weighed_sql(weights))
    if weights.form != "members" and parts[0].part.item is None:
        for one in parts:
            for name in one.columns:
                database.execute(by_value_sql(weights, one, name))
    sentence = literal(release.manifest.guarantee["sentence"])
    database.execute(f"COMMENT ON TABLE data IS {sentence}")
    for name in release.manifest.sensitive_columns:
        database.execute(
            f"COMMENT ON COLUMN data.{quoted(name)} IS 'Changed at random: count it with weights, never as it is.'"
        )


def weighed_sql(weights: Weights) -> str:
    """The macro ``weighed(disease_in := ['flu'])``: all rows, with the weight w of the values that are asked for; what
    is left out is not asked about."""
    names = [name for one in weights.parts for name in one.columns]
    if weights.parts[0].part.item is not None:
        names = [one.part.columns[0] for one in weights.parts]
    with_, joins, factors = [], [], []
    for number, one in enumerate(weights.parts):
        columns = one.columns if one.part.item is None else dict.fromkeys(one.part.columns)
        pairs = zip(columns, one.columns.items(), strict=True)
        condition = " AND ".join(_listed(name, value, bool(known.null_count)) for name, (value, known) in pairs)
        with_.append(f"asked{number} AS ({asked_sql(weights, one, condition)})")
        joins.append(f"LEFT JOIN asked{number} ON {joined_sql(one, 'data', f'asked{number}')}")
        nothing = " AND ".join(f"{quoted(f'{name}_in')} IS NULL" for name in columns)
        factors.append(f"CASE WHEN {nothing} THEN 1 ELSE COALESCE(asked{number}.w, 0) END")
    parameters = ", ".join(f"{quoted(f'{name}_in')} := NULL" for name in names)
    return (
        f"CREATE MACRO weighed({parameters}) AS TABLE\nWITH {', '.join(with_)}\n"
        f"SELECT data.*, {' * '.join(factors)} AS w FROM data {' '.join(joins)}"
    )


def _listed(name: str, value: str, missing: bool) -> str:
    """Whether a value is among those of a parameter."""
    parameter, column = quoted(f"{name}_in"), quoted(f"value_{value}")
    among = f"list_contains({parameter}, {column})"
    if missing:
        among += f" OR ({column} IS NULL AND len({parameter}) > list_count({parameter}))"
    return f"({parameter} IS NULL OR {among})"


def by_value_sql(weights: Weights, one: PartWeights, column: str) -> str:
    """The view ``by_disease``: every row once for each value of a column, with its weight w for it, and v = w * w - w,
    whose sum is the variance of that of w. For several values together v of their added weights is needed: ``weighed``.
    """
    error = NULL if one.part.learned is not None else "asked.w * asked.w - asked.w"
    named = f"part = {literal(one.named)}" if len(weights.parts) > 1 else "TRUE"
    shown = [quoted(f"shown_{name}") for name in one.columns]
    value, cell = quoted(f"value_{column}"), ["cell"] if one.part.cells_published else []
    if weights.form == "values":
        listed = f"SELECT * FROM weights WHERE {named}"
    else:
        values = [quoted(f"value_{name}") for name in one.columns]
        keys = [*(f"y.{name}" for name in cell), *(f"y.{v} AS {s}" for v, s in zip(values, shown, strict=True))]
        same = " AND ".join(f"x.{name} IS NOT DISTINCT FROM y.{name}" for name in values)
        listed = (
            f"SELECT {', '.join(keys)}, x.{value}, CASE WHEN {same} THEN y.own ELSE 0 END - y.rest * x.share AS w\n"
            f"FROM (FROM weights WHERE {named}) AS y JOIN (FROM weights WHERE {named}) AS x\n"
            f"ON {'x.cell = y.cell' if cell else 'TRUE'}"
        )
    keyed = ", ".join([*cell, *shown, value])
    return (
        f"CREATE VIEW {quoted('by_' + column)} AS\n"
        f"SELECT data.*, asked.{value}, asked.w, {error} AS v\n"
        f"FROM data JOIN (SELECT {keyed}, SUM(w) AS w FROM ({listed}) AS listed GROUP BY {keyed}) AS asked\n"
        f"ON {joined_sql(one, 'data', 'asked')}"
    )
