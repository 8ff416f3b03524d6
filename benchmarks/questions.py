"""A pool of questions answered from a release, with intervals, against DuckDB counting the same pool exactly.

200 random conditions on one to three public columns, each with all 50 values: 10,000 counts on 500,000 rows. DuckDB
counts each condition on the original table by one GROUP BY, the fastest way that gives all 50 values. The iterative
Bayesian rule, one question at a time as the papers do it, stands beside our maximum likelihood.
"""

from __future__ import annotations

import time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from measuring import alone

import deniable as dn
from deniable.lab.made_up import census

ROWS = 500_000
CONDITIONS = 200
PUBLIC = ("age", "gender", "education", "marital", "race", "workclass", "country")


def encoded(table: pa.Table) -> pa.Table:
    """Every column as small integers: the form that DuckDB counts fastest."""
    columns = {}
    for name in table.column_names:
        codes = np.unique(table[name].to_numpy(zero_copy_only=False), return_inverse=True)[1]
        columns[name] = pa.array(codes.astype(np.uint8))
    return pa.table(columns)


def conditions(table: pa.Table, number: int, seed: int = 0) -> list[dict[str, Any]]:
    """Random sets of values (about half of them) of one to three public columns."""
    random = np.random.default_rng(seed)
    domains = {name: np.unique(table[name].to_numpy(zero_copy_only=False)) for name in PUBLIC}
    wheres = []
    for _ in range(number):
        chosen = random.choice(PUBLIC, random.integers(1, 4), replace=False)
        wheres.append(
            {str(c): random.choice(domains[c], max(1, len(domains[c]) // 2), replace=False).tolist() for c in chosen}
        )
    return wheres


def exact_counts(table: pa.Table, wheres: list[dict[str, Any]]) -> int:
    """Count every condition by occupation with DuckDB, values bound as parameters."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("original", table)
    connection.execute("CREATE TABLE people AS SELECT * FROM original")
    total = 0
    begin = time.perf_counter()
    for where in wheres:
        tests = " AND ".join(f'"{column}" IN ({", ".join("?" * len(values))})' for column, values in where.items())
        query = f"SELECT occupation, COUNT(*) FROM people WHERE {tests} GROUP BY occupation"
        total += len(connection.execute(query, [v for values in where.values() for v in values]).fetchall())
    exact_counts.seconds = time.perf_counter() - begin  # type: ignore[attr-defined]
    return total


def iterative_bayes(matrix: np.ndarray, observed: np.ndarray, rounds: int = 2000) -> np.ndarray:
    """The rule by the book: x_p <- sum_q y_q a_pq x_p / sum_r a_rq x_r, one question at a time."""
    x = np.full(len(observed), observed.sum() / len(observed))
    for _ in range(rounds):
        x = x * (matrix.T @ (observed / (matrix @ x)))
    return x


def rows() -> list[dict[str, Any]]:
    """One dict (what, seconds, ratio, note); ratios are to DuckDB's exact counting."""
    table = encoded(census(ROWS, seed=1))
    wheres = conditions(table, CONDITIONS)
    exact_counts(table, wheres)
    limit = exact_counts.seconds  # type: ignore[attr-defined]
    privacy = dn.Privacy("1/13", "1/6")
    release = dn.publish(table, sensitive="occupation", privacy=privacy, key=bytes(32), mechanism="uniform")
    result: list[dict[str, Any]] = [
        {"what": "10,000 counts, DuckDB on the original", "seconds": limit, "ratio": 1.0, "note": "exact, no intervals"}
    ]
    for what, options in (
        ("inverse", {"calibrate": False}),
        ("calibrated", {}),
        ("shrunk", {"method": "shrunk"}),
        ("mle", {"method": "mle"}),
    ):
        fresh = dn.Release(release.manifest, table=release.table)
        begin = time.perf_counter()
        fresh.count_many(wheres, every_value=True, **options)
        spent = time.perf_counter() - begin
        note = "with intervals; aim: at most twice DuckDB"
        result.append({"what": f"10,000 counts, {what}", "seconds": spent, "ratio": spent / limit, "note": note})
    calibrated = result[2]["seconds"]
    lineups = dn.publish(table, sensitive="occupation", privacy=privacy, key=bytes(32), mechanism="lineup")
    begin = time.perf_counter()
    lineups.count_many(wheres, every_value=True)
    spent = time.perf_counter() - begin
    note = f"{spent / calibrated:.1f} x the time of uniform, calibrated; aim: at most 2"
    result.append({"what": "10,000 counts, line-ups", "seconds": spent, "ratio": spent / limit, "note": note})
    result += grouped(table, release)
    channel = release.manifest.parts[0].channels[0]
    observed = np.random.default_rng(0).multinomial(5000, channel.apply(np.full(50, 0.02)))
    begin = time.perf_counter()
    iterative_bayes(channel.matrix(), observed)
    spent = (time.perf_counter() - begin) * CONDITIONS
    note = f"{CONDITIONS} x one question of 2,000 rounds, extrapolated"
    result.append(
        {"what": "10,000 counts, iterative Bayes by the book", "seconds": spent, "ratio": spent / limit, "note": note}
    )
    return [*result, large_pool()]


GROUPED = (
    "SELECT education, marital, race, COUNT(*) AS n FROM {} WHERE occupation < 10 GROUP BY education, marital, race"
)


def grouped(table: pa.Table, release: dn.Release) -> list[dict[str, Any]]:
    """A group-by of three columns, DuckDB on the original and ours on the release, its columns read and coded."""
    with duckdb.connect() as connection:
        connection.register("original", table)
        connection.execute("SET threads = 2")
        connection.execute("CREATE TABLE people AS SELECT * FROM original")
        begin = time.perf_counter()
        connection.execute(GROUPED.format("people")).fetchall()
        limit = time.perf_counter() - begin
    release.sql(GROUPED.format("release"))
    begin = time.perf_counter()
    release.sql(GROUPED.format("release"))
    spent = time.perf_counter() - begin
    return [
        {"what": "GROUP BY three columns, DuckDB", "seconds": limit, "ratio": 1.0, "note": "exact, no intervals"},
        {"what": "GROUP BY three columns", "seconds": spent, "ratio": spent / limit, "note": "with intervals"},
    ]


MADE = """
import numpy as np, pyarrow as pa
import deniable as dn
rng = np.random.default_rng(0)
n = 20_000_000
sizes = {"age": 77, "gender": 2, "education": 14, "marital": 6, "race": 9, "workclass": 7, "country": 70}
table = pa.table({k: rng.integers(0, v, n, dtype=np.uint8) for k, v in (sizes | {"occupation": 50}).items()})
options = {"mechanism": "uniform", "privacy": dn.Privacy("1/13", "1/6"), "key": bytes(32), "shuffle": False}
release = dn.publish(table, sensitive="occupation", **options)
del table
wheres = []
for _ in range(10_000):
    chosen = rng.choice(list(sizes), rng.integers(1, 4), replace=False)
    wheres.append({str(c): int(rng.integers(0, sizes[str(c)])) for c in chosen})
    wheres[-1]["occupation"] = int(rng.integers(0, 50))
"""


def large_pool() -> dict[str, Any]:
    """10,000 questions on 20 million rows, in a process of its own for its peak memory."""
    seconds, memory = alone("release.count_many(wheres)", setup=MADE)
    return {
        "what": "10,000 questions on 20M rows",
        "seconds": seconds,
        "ratio": None,
        "MB": round(memory),
        "note": "aim: under 2 GB, publishing included",
    }
