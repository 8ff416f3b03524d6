"""Estimates against a database over expanded rows: each published row stands for every value that its original may have
had, with the weight P^-1[x][y], so any sum over the release is a weighted sum over the expanded rows."""

from __future__ import annotations

from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

N = 150
COLUMNS: dict[str, list[str]] = {"several": ["s", "v"], "range": ["v"], "one": ["v"]}


def inverse(release: dn.Release, column: str) -> tuple[list[object], np.ndarray]:
    """The values of a sensitive column, missing last, and the inverse of its channel P = p I + (1 - p) r 1^T."""
    part = release.manifest.part_of(column)
    if part.range is None:
        (channel,) = part.channels
        values, coins, masses = list(part.domain), channel.coins, channel.replacing
    else:
        values, coins, masses = [*range(-3, 8), None], part.range.coin, part.range.weights()
    return values, np.linalg.inv(np.diag(np.broadcast_to(coins, len(values))) + np.outer(masses, 1 - coins))


@pytest.fixture(scope="module", params=COLUMNS)
def asked(request: pytest.FixtureRequest) -> tuple[dn.Release, duckdb.DuckDBPyConnection]:
    rng, name = np.random.default_rng(2), request.param
    table = pa.table(
        {
            "g": rng.choice(["x", "y", "z"], N),
            "a": pa.array(rng.integers(-9, 10, N), mask=rng.random(N) < 0.1),
            "s": pa.array(rng.choice(["flu", "cold", "ok"], N), mask=rng.random(N) < 0.2),
            "v": pa.array(np.append(rng.integers(-3, 8, N - 11), range(-3, 8)), mask=np.arange(N) % 7 == 0),
        }
    )
    if name == "one":
        privacy = dn.Privacy(rho2="1/2")
        release = dn.publish(table, sensitive="v", mechanism="uniform", privacy=privacy, key=bytes(32))
    else:
        kept = {"v": dn.Replace(coin=0.5, low=-3, high=7)} if name == "range" else {"v": dn.Replace(coin=0.5)}
        kept |= {"s": dn.Replace(coin=0.6)} if name == "several" else {}
        release = dn.publish(table, mechanism=dn.mechanisms.Retention(kept), key=bytes(32))
    known = {column: inverse(release, column) for column in COLUMNS[name]}
    expanded = []
    for row in release.table.select(table.column_names).to_pylist():
        for places in product(*(range(len(values)) for values, _ in known.values())):
            chosen = list(zip(known.items(), places, strict=True))
            weight = np.prod([matrix[at, values.index(row[column])] for (column, (values, matrix)), at in chosen])
            expanded.append({**row, **{column: values[at] for (column, (values, _)), at in chosen}, "w": weight})
    connection = duckdb.connect()
    connection.register("expanded", pa.Table.from_pylist(expanded, table.schema.append(pa.field("w", pa.float64()))))
    return release, connection


CONDITIONS = [
    "TRUE",
    "v BETWEEN 0 AND 4",
    "NOT (v > 2 OR a < 0)",
    "(v IN (1, 2, NULL) AND g = 'x') OR (v IS NULL AND a > 0)",
    "COALESCE(v, 3) % 2 = 1 AND g <> 'z'",
    "CASE WHEN v > 3 THEN v - 5 ELSE -1 END < 0 AND NOT (s = 'flu')",
]
NUMBERS = ["1", "a", "v", "COALESCE(v, 9) * 2", "CASE WHEN v < 3 THEN 1 WHEN v IS NULL THEN 7 END", "COALESCE(a, 1)"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_estimates_are_those_of_the_expanded_rows(
    asked: tuple[dn.Release, duckdb.DuckDBPyConnection], condition: str
) -> None:
    release, connection = asked
    sums = ", ".join(f"SUM({number}) AS s{i}, AVG({number}) AS m{i}" for i, number in enumerate(NUMBERS))
    answers = release.sql(f"SELECT g, {sums} FROM release WHERE {condition} GROUP BY g", calibrate=False).to_pylist()
    theirs = ", ".join(
        f"SUM(w * ({number})), SUM(w) FILTER (WHERE ({number}) IS NOT NULL), MIN({number}), MAX({number})"
        for number in NUMBERS
    )
    exact = connection.execute(f"SELECT g, {theirs} FROM expanded WHERE {condition} GROUP BY g").fetchall()
    assert {row["g"] for row in answers} == {row[0] for row in exact}
    by_group = {row[0]: np.array(row[1:], float).reshape(len(NUMBERS), 4) for row in exact}
    for row in answers:
        for i, (total, present, low, high) in enumerate(by_group[row["g"]]):
            if np.isnan(total):  # no number is left
                assert row[f"s{i}"] is row[f"m{i}"] is None
                continue
            assert row[f"s{i}"] == pytest.approx(total)
            if present <= 0:
                assert row[f"m{i}"] is None
            elif low <= total / present <= high:
                assert row[f"m{i}"] == pytest.approx(total / present)
            else:  # cut, to no less than what the group's own rows have
                nearest = np.clip(total / present, low, high)
                assert min(nearest, total / present) <= row[f"m{i}"] <= max(nearest, total / present)
