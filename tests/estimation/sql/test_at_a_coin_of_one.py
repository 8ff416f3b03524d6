"""Of columns that are all kept, SQL gives what DuckDB gives."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import QuestionError

N = 400


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "g": rng.choice(["x", "y"], N),
            "f": np.where(rng.random(N) < 0.3, -0.0, rng.integers(-2, 3, N) / 2),
            "d": pa.array(rng.integers(18_000, 18_400, N).astype(np.int32)).cast(pa.date32()),
            "half": pa.array([0.25] * N),
            "s": pa.array(rng.choice(["flu", "cold", "ok"], N), mask=rng.random(N) < 0.2),
            "v": pa.array(rng.integers(-3, 8, N), mask=rng.random(N) < 0.2),
        }
    )


KEPT: dict[str, dict[str, dn.Replace]] = {
    "values": {"s": dn.Replace(coin=1.0), "v": dn.Replace(coin=1.0)},
    "a range": {"v": dn.Replace(coin=1.0, low=-3, high=7)},
    "missing as it is": {"s": dn.Replace(coin=1.0), "v": dn.Replace(coin=1.0)},
}


@pytest.fixture(scope="module", params=KEPT)
def release(request: pytest.FixtureRequest, table: pa.Table) -> dn.Release:
    missing = "exempt" if request.param == "missing as it is" else "value"
    return dn.publish(table, mechanism=dn.mechanisms.Retention(KEPT[request.param]), missing=missing, key=bytes(32))


def theirs(table: pa.Table, question: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("release", table)
        return connection.execute(question).fetchall()


AGGREGATES = [
    "SUM(COALESCE(v, 4))",
    "AVG(COALESCE(v, 10))",
    "SUM(GREATEST(v, -2))",
    "AVG(CASE WHEN v > 2 THEN 10 ELSE v * 2 END)",
    "AVG(CASE WHEN v = v THEN 1 ELSE -5 END)",
    "SUM(NULLIF(2, v))",
    "AVG(LENGTH(COALESCE(s, 'missing')))",
    "STDDEV(COALESCE(v, 5))",
    "SUM(COALESCE(v, 4)) FILTER (WHERE s = 'flu' OR s IS NULL)",
    "AVG(v) FILTER (WHERE v BETWEEN 1 AND 4)",
    "COUNT(*) FILTER (WHERE NOT (v > 3))",
]


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_numbers_made_of_missing_ones_count(release: dn.Release, table: pa.Table, aggregate: str) -> None:
    """Missing values counted as 0, whatever an expression made of them, where several columns are perturbed."""
    question = f"SELECT g, {aggregate} AS a FROM release GROUP BY g ORDER BY g"
    answered = release.sql(question).to_pydict()
    for ours, (_, exact) in zip(answered["a"], theirs(table, question), strict=True):
        assert ours == pytest.approx(float(exact))


@pytest.mark.parametrize(
    "question",
    [
        "SELECT f, COUNT(*) AS n FROM release GROUP BY f ORDER BY f",
        "SELECT CEIL(f / 3) AS c, COUNT(*) AS n FROM release GROUP BY 1 ORDER BY 1",
        "SELECT f * 0 AS c, COUNT(*) AS n FROM release GROUP BY 1",
        "SELECT COUNT(*) AS n, COUNT(DISTINCT f) AS m FROM release WHERE f = 0",
        "SELECT COUNT(*) AS n FROM release WHERE f <> 0",
        "SELECT COUNT(*) AS n FROM release WHERE f IN (0, 1)",
        "SELECT COUNT(*) AS n, AVG(d - DATE '2019-06-01') AS a FROM release WHERE d - DATE '2019-06-01' > 100",
        "SELECT COUNT(*) AS n FROM release WHERE d >= TIMESTAMP '2019-09-01 00:00:00'",
        "SELECT SUM(f // 2) AS a, SUM(CAST(f * 0.5 AS INTEGER)) AS b, SUM(CAST(2.5 AS INTEGER)) AS c FROM release",
        "SELECT SUM(v // 2) AS a, ROUND(SUM(v // 2.5), 6) AS b, SUM(CAST(v * 0.5 AS INTEGER)) AS c FROM release",
        "SELECT COUNT(*) AS n FROM release WHERE g LIKE 'x\\%' OR LOWER(g) ILIKE 'Y%'",
        "SELECT ROUND(SUM(half) / 40) AS a, ROUND(-SUM(half) / 40) AS b, ROUND(SUM(half) / 400, 1) AS c FROM release",
    ],
)
def test_answers_are_those_of_a_database(release: dn.Release, table: pa.Table, question: str) -> None:
    answered = release.sql(question)
    names = [name for name in answered.column_names if not name.endswith(("_low", "_high"))]
    ours = list(zip(*(answered[name].to_pylist() for name in names), strict=True))
    assert ours == theirs(table, question)


def test_not_a_number_is_missing() -> None:
    numbers = pa.array([1.0, float("nan"), None, 3.0] * 50)
    table = pa.table({"f": numbers, "ill": ["a", "b", "c", "d", "e"] * 40})
    release = dn.publish(table, sensitive="ill", privacy=dn.Privacy(rho2="1/2"), mechanism="uniform", key=bytes(32))
    (row,) = release.sql("SELECT COUNT(f) AS n, AVG(f) AS a, MAX(f) AS m FROM release").to_pylist()
    assert (row["n"], row["a"], row["m"]) == (100, 2, 3)
    assert release.count({"f": None}).value == 100
    assert release.group_by("f").num_rows == 3


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("d = 3", "date32"),
        ("d > 18000", "date32"),
        ("d IN (1, 2)", "date32"),
        ("d - DATE '2019-06-01' > DATE '2019-06-01'", "BIGINT and type DATE"),
    ],
)
def test_what_would_be_read_in_another_way_is_refused(release: dn.Release, condition: str, named: str) -> None:
    """3 was read as the third day of 1970."""
    with pytest.raises(QuestionError, match=named):
        release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {condition}")


def test_a_number_is_no_date_in_python(release: dn.Release) -> None:
    with pytest.raises(QuestionError, match="date32"):
        release.count({"d": 18_000})
