"""Nothing of a question in SQL is passed over: what the parser knows and we do not read is refused."""

from __future__ import annotations

import inspect

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

import deniable as dn
from deniable.core.errors import QuestionError
from deniable.estimation.sql.understood import UNDERSTOOD, require_understood

CLASSES = sorted(
    {
        kind
        for _, kind in inspect.getmembers(exp, inspect.isclass)
        if issubclass(kind, exp.Expression) and kind is not exp.Expression  # others are bases, of which no tree has one
    },
    key=lambda kind: kind.__name__,
)


def asking(condition: object) -> exp.Select:
    return exp.Select(expressions=[exp.Count(this=exp.Star())], where=exp.Where(this=condition))


def made(kind: type, **more: object) -> object:
    return kind(**{name: exp.Null() for name, needed in kind.arg_types.items() if needed}, **more)


def test_the_parser_has_many_more_kinds_than_are_understood() -> None:
    assert len(CLASSES) > 500
    assert set(UNDERSTOOD) <= set(CLASSES)


def passes(tree: object) -> bool:
    try:
        require_understood(tree)
    except QuestionError:
        return False
    return True


def test_every_kind_of_node_is_understood_or_refused() -> None:
    """All of the parser's kinds: a new version of it cannot bring one that is passed over."""
    assert [kind for kind in CLASSES if kind not in UNDERSTOOD and passes(asking(made(kind)))] == []
    assert passes(asking(exp.EQ(this=exp.Null(), expression=exp.Null())))


@pytest.mark.parametrize("kind", UNDERSTOOD, ids=lambda kind: kind.__name__)
def test_every_argument_is_understood_or_refused(kind: type) -> None:
    for name in set(kind.arg_types) - UNDERSTOOD[kind]:
        for value in (True, exp.Null(), [exp.Null()]):
            tree = made(kind)
            tree.args[name] = value
            assert not passes(asking(tree)), (name, value)


REFUSED = [
    "SELECT COUNT(*) AS n FROM release TABLESAMPLE 10%",
    "SELECT COUNT(*) AS n FROM release USING SAMPLE 10%",
    "SELECT town, COUNT(*) AS n FROM release GROUP BY town LIMIT 5 PERCENT",
    "SELECT COUNT(*) AS n FROM release AT (VERSION => 3)",
    "SELECT COUNT(*) AS n FROM release PIVOT (COUNT(*) FOR town IN ('x'))",
    "SELECT COUNT(*) AS n FROM release WHERE town LIKE 'x!%' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM release WHERE town COLLATE NOCASE = 'X'",
    "SELECT COUNT(*) AS n FROM a.release WHERE town = 'x'",
    "SELECT town, COUNT(*) AS n FROM release GROUP BY town QUALIFY n > 3",
]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(1)
    n = 4000
    town = rng.choice(["x", "xa", "y", "Yb", None], n, p=[0.3, 0.2, 0.2, 0.2, 0.1])
    return pa.table({"town": pa.array(town), "pay": rng.integers(0, 50, n), "job": rng.choice(list("abc"), n)})


@pytest.fixture(scope="module")
def release(table: pa.Table) -> dn.Release:
    privacy = dn.Privacy(rho1="1/2", rho2="3/4")
    return dn.publish(table, sensitive="job", privacy=privacy, mechanism="uniform", key=bytes(32))


@pytest.mark.parametrize("question", REFUSED)
def test_what_would_be_ignored_is_refused(release: dn.Release, question: str) -> None:
    with pytest.raises(dn.DeniableError):
        release.sql(question)


@pytest.mark.parametrize(
    "condition",
    [
        "town NOT LIKE 'x%'",
        "NOT town LIKE 'x%'",
        "NOT town NOT LIKE 'x%'",
        "town NOT ILIKE 'y%'",
        "town ILIKE 'y%' AND pay NOT BETWEEN 10 AND 20",
        "town IS NOT NULL",
        "NOT (town IS NOT NULL)",
        "town NOT IN ('x', 'y') OR pay < 3",
        "pay / 1000.0 = CAST('0.0205' AS DECIMAL(10, 2))",
    ],
)
def test_conditions_on_public_columns_count_as_a_database_counts(
    table: pa.Table, release: dn.Release, condition: str
) -> None:
    with duckdb.connect() as connection:
        connection.register("release", table)
        (expected,) = connection.execute(f"SELECT COUNT(*) FROM release WHERE {condition}").fetchone()
    counted = release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {condition}").to_pylist()[0]
    assert (counted["n"], counted["n_low"], counted["n_high"]) == (expected,) * 3


def test_a_symmetric_range_takes_its_ends_either_way(release: dn.Release) -> None:
    def count(condition: str) -> float:
        return release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {condition}")["n"][0].as_py()

    assert count("pay BETWEEN SYMMETRIC 20 AND 10") == count("pay BETWEEN 10 AND 20") > 0
    assert count("pay NOT BETWEEN SYMMETRIC 20 AND 10") == count("pay NOT BETWEEN 10 AND 20") > 0
    assert count("pay BETWEEN 20 AND 10") == 0


@pytest.mark.parametrize("order", ["town", "town DESC", "town NULLS FIRST", "town DESC NULLS FIRST", "town NULLS LAST"])
def test_missing_groups_stand_where_a_database_puts_them(table: pa.Table, release: dn.Release, order: str) -> None:
    question = f"SELECT town, COUNT(*) AS n FROM release GROUP BY town ORDER BY {order}"
    with duckdb.connect() as connection:
        connection.register("release", table)
        expected = [row[0] for row in connection.execute(question).fetchall()]
    assert release.sql(question)["town"].to_pylist() == expected


def test_a_plain_question_is_understood_and_refused_with_one_clause_more() -> None:
    plain = "SELECT a, COUNT(*) AS n FROM release WHERE b > 3 GROUP BY a"
    assert require_understood(parse_one(plain, dialect="duckdb")) is None
    with pytest.raises(dn.DeniableError, match="QUALIFY"):
        require_understood(parse_one(f"{plain} QUALIFY n > 3", dialect="duckdb"))
