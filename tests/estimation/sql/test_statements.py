"""Statements that analysts write (``statements.sql``): of columns that are kept, SQL gives what DuckDB gives on the
original; what is refused says what to ask instead, and that runs."""

from __future__ import annotations

import datetime
import re
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import QuestionError

ANSWERED, REFUSED = (
    [line for line in text.splitlines() if line and not line.startswith("--")]
    for text in Path(__file__).with_name("statements.sql").read_text(encoding="utf-8").split("-- Refused")
)
REFUSED = REFUSED[1:]  # the rest of the heading
ENDS = ("_low", "_high", "_hopeless")
TABLES = {
    "icd": pa.table({"code": ["asthma", "flu", "hiv", "ulcer"], "chapter": ["lung", "lung", "blood", "gut"]}),
    "towns": pa.table({"town": ["Aarau", "Basel"], "canton": ["AG", "BS"], "people": [21, 177]}),
}


@cache
def people() -> pa.Table:
    rng = np.random.default_rng(3)
    n = 3000
    days, minutes = rng.integers(0, 2500, n), rng.integers(0, 700 * 24 * 60, n)
    return pa.table(
        {
            "town": pa.array(rng.choice(["Aarau", "Basel", "Chur", None], n, p=[0.4, 0.3, 0.2, 0.1]).tolist()),
            "sex": rng.choice(["F", "M"], n),
            "age": pa.array(rng.integers(18, 90, n), pa.int16()),
            "pay": pa.array(np.where(rng.random(n) < 0.1, np.nan, np.round(rng.gamma(3, 900, n), 2)), from_pandas=True),
            "since": pa.array([datetime.date(2018, 1, 1) + datetime.timedelta(int(d)) for d in days]),
            "seen": pa.array([datetime.datetime(2023, 1, 1) + datetime.timedelta(minutes=int(d)) for d in minutes]),
            "insured": rng.random(n) < 0.8,
            "disease": rng.choice(["asthma", "cancer", "flu", "hiv", "ulcer"], n, p=[0.3, 0.1, 0.35, 0.05, 0.2]),
            "grade": rng.integers(1, 5, n),
        }
    )


@cache
def kept() -> dn.Release:
    """Every value as it was: what is answered is what a database would answer."""
    coins = {"disease": dn.Replace(coin=1.0), "grade": dn.Replace(coin=1.0)}
    return dn.publish(people(), mechanism=dn.mechanisms.Retention(coins), key=bytes(32))


@cache
def perturbed() -> dn.Release:
    coins = {"disease": dn.Replace(coin=0.7), "grade": dn.Replace(coin=0.6)}
    return dn.publish(people(), mechanism=dn.mechanisms.Retention(coins), key=bytes(range(32)))


@cache
def database() -> Any:
    connection = duckdb.connect()
    for name, table in {"release": people(), **TABLES}.items():
        connection.register(name, table)
    return connection


def plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    return float(value) if not isinstance(value, bool | str | datetime.date | None) else value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """A result without its intervals."""
    names = table.column_names
    shown = [name for name in names if not any(name == f"{other}{end}" for other in names for end in ENDS)]
    columns = [list(map(plain, table[name].to_pylist())) for name in shown]
    return list(zip(*columns, strict=True)) if columns else []


@pytest.mark.parametrize("statement", ANSWERED)
def test_the_answer_is_that_of_a_database(statement: str) -> None:
    ours = rows_of(kept().sql(statement, tables=TABLES))
    theirs = [tuple(map(plain, row)) for row in database().execute(statement).fetchall()]
    if "ORDER BY" not in statement:
        ours, theirs = (sorted(rows, key=lambda row: tuple(map(str, row))) for rows in (ours, theirs))
    assert len(ours) == len(theirs)
    for mine, exact in zip(ours, theirs, strict=True):
        for value, wanted in zip(mine, exact, strict=True):
            number = isinstance(value, float) and wanted is not None
            assert value == (pytest.approx(wanted, rel=1e-6, abs=1e-6) if number else wanted), (mine, exact)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused_says_what_to_ask_and_that_runs(statement: str) -> None:
    release = perturbed()
    with pytest.raises(QuestionError) as refused:
        release.sql(statement, tables=TABLES)
    said = str(refused.value)
    model = re.search(r"release\.\w+\(.*\)(\[.*\])?$", said)
    if model is not None:
        assert np.isfinite(eval(model[0], {"release": release}).value)
    else:
        question = said[said.rindex("SELECT") :]
        assert release.sql(question).num_rows > 0


def test_most_of_two_hundred_statements_are_answered() -> None:
    assert len(ANSWERED) + len(REFUSED) >= 200
    assert len(ANSWERED) >= 185


def note(table: pa.Table) -> str:
    return (table.schema.metadata or {}).get(b"deniable note", b"").decode()


def test_intervals_are_kept_where_a_column_is_taken_over_and_nowhere_else() -> None:
    release = perturbed()
    by_town = "SELECT town, COUNT(*) AS n FROM release WHERE disease = 'flu' GROUP BY town ORDER BY town"
    alone = release.sql(by_town)
    ranked = release.sql(f"SELECT town, n, RANK() OVER (ORDER BY n DESC) AS place FROM ({by_town}) AS t ORDER BY town")
    assert ranked.column_names == ["town", "n", "n_low", "n_high", "place"]
    assert ranked.select(["n", "n_low", "n_high"]).to_pydict() == alone.select(["n", "n_low", "n_high"]).to_pydict()
    assert note(ranked) == "Computed from estimates, and so without an interval: 'place'."
    both = release.sql(
        "SELECT town, COUNT(*) AS n FROM release WHERE disease = 'flu' GROUP BY town UNION ALL "
        "SELECT 'all', COUNT(*) FROM release ORDER BY town"
    )
    assert both.column_names == ["town", "n", "n_low", "n_high"]
    rows = {row["town"]: row for row in both.to_pylist()}
    assert rows["all"] == {"town": "all", "n": 3000, "n_low": 3000, "n_high": 3000}
    assert rows["Basel"] == alone.to_pylist()[1]
    assert note(both) == ""
    share = "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM release) AS s FROM release WHERE disease = 'flu'"
    (row,) = release.sql(share).to_pylist()
    flu = release.count({"disease": "flu"})
    assert [row["s"], row["s_low"], row["s_high"]] == pytest.approx(
        [x / 3000 for x in (flu.value, flu.low, flu.high)], rel=0.01
    )
    exact = release.sql(
        "SELECT town, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS place FROM release GROUP BY town"
    )
    assert note(exact) == ""
    gap = release.sql(
        "SELECT sex, COUNT(*) / (SELECT COUNT(*) FROM release WHERE disease = 'flu') AS r FROM release GROUP BY sex"
    )
    assert gap.column_names == ["sex", "r"]
    assert "without an interval: 'r'" in note(gap)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) AS n FROM release WHERE age > (SELECT AVG(age) FROM release WHERE disease = 'hiv')",
        "SELECT SUM(CASE WHEN age > (SELECT AVG(grade) FROM release) THEN 1 ELSE 0 END) AS n FROM release",
    ],
)
def test_no_interval_leaves_out_the_error_of_what_rows_are_compared_with(question: str) -> None:
    with pytest.raises(QuestionError, match="no interval would hold its error") as refused:
        perturbed().sql(question)
    inner = str(refused.value).rsplit(": ", 1)[1]
    assert perturbed().sql(inner).num_rows == 1


def test_values_that_do_not_occur_count_nothing_and_a_note_says_so() -> None:
    table = perturbed().sql("SELECT COUNT(*) AS n FROM release WHERE disease = 'asthmma' AND town = 'Rome'")
    assert table.to_pylist() == [{"n": 0, "n_low": 0, "n_high": 0}]
    assert "'asthmma' is not a value of column 'disease', so it counts 0. Did you mean 'asthma'?" in note(table)
    assert "'Rome' is not a value of column 'town'" in note(table)
    assert note(perturbed().sql("SELECT COUNT(*) AS n FROM release WHERE grade = '2'")) == ""


@pytest.mark.parametrize(
    "question",
    [
        "SELECT * FROM read_csv('x.csv') UNION ALL SELECT COUNT(*) FROM release",
        "SELECT n, current_setting('threads') FROM (SELECT COUNT(*) AS n FROM release UNION ALL SELECT 1) AS t",
        "SELECT COUNT(*) FROM release UNION ALL SELECT random()",
        "SELECT disease FROM release UNION ALL SELECT town FROM release",
        "SELECT LAG(disease) OVER (ORDER BY age) FROM release",
        "SELECT town, COUNT(*), LAG(disease) OVER (ORDER BY town) FROM release GROUP BY town",
        "SELECT r.n FROM (SELECT COUNT(*) AS n FROM release) AS r JOIN release ON TRUE",
    ],
)
def test_what_is_not_of_results_is_refused_here_too(question: str) -> None:
    with pytest.raises(QuestionError):
        perturbed().sql(question)
