"""SQL about public columns gives what DuckDB gives; what is estimated is linear in the same rows."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

CHAPTERS = pa.table({"code": ["asthma", "flu", "hiv", "ulcer"], "chapter": ["lung", "lung", "blood", "gut"]})
TOWNS = pa.table({"town": ["Aarau", "Basel"], "canton": ["AG", "BS"], "people": [21, 177]})


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = np.random.default_rng(3)
    n = 3000
    return pa.table(
        {
            "town": pa.array(rng.choice(["Aarau", "Basel", "Chur", None], n, p=[0.4, 0.3, 0.2, 0.1]).tolist()),
            "age": pa.array(rng.integers(18, 90, n), pa.int16()),
            "pay": pa.array(np.where(rng.random(n) < 0.1, np.nan, np.round(rng.gamma(3, 900, n), 2)), from_pandas=True),
            "since": pa.array(
                [datetime.date(2018, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 2500, n)]
            ),
            "disease": rng.choice(["asthma", "cancer", "flu", "hiv", "ulcer"], n),
        }
    )


@pytest.fixture(scope="module")
def release(people: pa.Table) -> dn.Release:
    return dn.publish(people, sensitive="disease", privacy=dn.Privacy("2/5", "3/4"), mechanism="uniform", key=bytes(32))


def rows(release: dn.Release, question: str) -> list[tuple[Any, ...]]:
    """A result without its intervals; exact answers have none."""
    table = release.sql(question, tables={"icd": CHAPTERS, "towns": TOWNS})
    names = [name for name in table.column_names if not name.endswith(("_low", "_high"))]
    for name in names:
        if f"{name}_low" in table.column_names:
            assert table[name].to_pylist() == table[f"{name}_low"].to_pylist() == table[f"{name}_high"].to_pylist()
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def theirs(people: pa.Table, question: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in (("release", people), ("icd", CHAPTERS), ("towns", TOWNS)):
            connection.register(name, table)
        return connection.execute(question).fetchall()


def plain(value: Any) -> Any:
    return value.date() if isinstance(value, datetime.datetime) else float(value) if isinstance(value, int) else value


def same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> None:
    assert len(one) == len(other)
    for mine, exact in zip(one, other, strict=True):
        for value, expected in zip(map(plain, mine), map(plain, exact), strict=True):
            numbers = isinstance(value, float) and expected is not None
            assert value == (pytest.approx(float(expected), rel=1e-9, abs=1e-7) if numbers else expected), (mine, exact)


CONDITIONS = [
    "1 = 1",
    "1 = 2 OR town = 'Basel'",
    "town IS DISTINCT FROM 'Basel'",
    "NOT town IS DISTINCT FROM 'Basel'",
    "town IS NOT DISTINCT FROM NULL",
    "lower(town) = 'basel' OR upper(town) LIKE 'AA%'",
    "substr(town, 1, 2) = 'Ch' AND length(town) = 4",
    "left(town, 1) || right(town, 1) = 'Bl'",
    "concat(town, '!') = '!'",
    "replace(town, 'a', 'o') ILIKE 'bos%'",
    "starts_with(town, 'A') OR contains(town, 'ase')",
    "trim(town) NOT IN ('Basel', 'Chur')",
    "year(since) = 2020 AND month(since) <= 6",
    "extract(quarter FROM since) = 3 OR day(since) = 31",
    "dayofweek(since) IN (0, 6)",
    "date_trunc('month', since) = DATE '2020-03-01'",
    "since >= DATE '2021-01-01' AND since < CAST('2022-01-01' AS DATE)",
    "age % 10 = 3 OR age // 10 = 4",
    "age + 5 > 60 AND age * 2 < 160",
    "pay / 12 > 300 OR pay IS NULL",
    "pay > age * 40",
    "coalesce(pay, 0) < 1000",
    "nullif(town, 'Basel') IS NULL",
    "abs(age - 50) <= 3",
    "round(pay, -2) = 2000 OR floor(pay / 100) = 7 OR ceil(pay / 100) = 9",
    "CASE WHEN age < 30 THEN 'young' WHEN pay > 3000 THEN 'rich' ELSE town END IN ('rich', 'Chur')",
    "CASE town WHEN 'Basel' THEN 1 WHEN 'Chur' THEN 2 END = 2",
    "NOT (pay > 2000 AND length(town) > 4)",
    "(pay > 2000) IS NOT TRUE",
    "greatest(age, 40) = 40 AND least(age, 25) = 25",
    "CAST(age AS VARCHAR) LIKE '4%' AND age::DOUBLE / 2 <> 21.5",
    "town IN (SELECT town FROM towns WHERE people > 100)",
    "town NOT IN (SELECT town FROM towns)",
    "age BETWEEN 20 + 5 AND 2 * 20",
    "strftime(since, '%Y-%m') = '2020-03' OR strftime(since, '%a') = 'Sun'",
    "date_diff('month', DATE '2018-01-01', since) > 40 AND datediff('day', since, DATE '2024-01-01') < 700",
    "since + INTERVAL 90 DAY > DATE '2023-01-01' OR since - INTERVAL '1 month' < DATE '2018-01-01'",
    "since BETWEEN DATE '2020-02-28' AND DATE '2020-02-28' + INTERVAL 1 YEAR",
    "regexp_matches(town, '^[AB].*[lu]$') OR regexp_full_match(town, 'Ch..')",
    "regexp_extract(town, '([a-z]+)$', 1) = 'hur' OR regexp_replace(town, 'a', 'A', 'g') = 'BAsel'",
    "(town, age) IN (('Basel', 30), ('Chur', 31), ('Aarau', 32))",
    "(town, age % 2) NOT IN (('Basel', 0), ('Chur', 1))",
    "EXISTS (SELECT 1 FROM towns WHERE towns.town = release.town AND people > 100)",
    "NOT EXISTS (SELECT * FROM towns AS t WHERE t.town = release.town)",
    "(SELECT MAX(people) FROM towns) > age * 4",
    "town IN (SELECT t.town FROM towns AS t WHERE t.people < release.age)",
    "trim(leading 'A' FROM town) = 'arau' OR lpad(town, 6, '*') = '**Chur' OR split_part(town, 'a', 2) = 'sel'",
    "monthname(since) = 'May' OR dayname(since) = 'Monday' OR isodow(since) = 7 OR dayofyear(since) > 350",
    "date_part('week', since) = 10 OR last_day(since) = since OR make_date(2020, 5, 1) = since",
    "strptime('2020-05-01', '%Y-%m-%d') < since AND TRY_CAST(town AS INTEGER) IS NULL",
    "age BETWEEN 20 AND 40 AND town NOT LIKE '%u_' AND log10(age) < 1.5 AND age ^ 2 > 500",
    "sign(age - 40) = -1 AND cbrt(age) < 3.2 AND age IN (SELECT 25 + 1 FROM towns)",
    "sqrt(age) < 5 OR ln(age) > 4.4 OR power(age, 2) = 900",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_hold_for_the_rows_that_a_database_finds(people, release, condition):
    question = f"SELECT COUNT(*) AS n, COUNT(pay) AS p, AVG(pay) AS a FROM release WHERE {condition}"
    same(rows(release, question), theirs(people, question))


QUESTIONS = [
    "SELECT r.town, COUNT(1) AS n FROM release AS r GROUP BY r.town ORDER BY town",
    "SELECT town AS place, COUNT(*) AS n FROM release GROUP BY place ORDER BY place",
    "SELECT lower(town) AS t, COUNT(*) AS n FROM release GROUP BY t ORDER BY 1",
    "SELECT year(since) AS y, age // 10 * 10 AS decade, COUNT(*) AS n FROM release GROUP BY ALL ORDER BY y, decade",
    "SELECT upper(town) AS t, town, COUNT(*) AS n FROM release GROUP BY town ORDER BY n DESC",
    "SELECT 'all' AS what, COUNT(*) AS n FROM release",
    "SELECT town, month(since) AS m, COUNT(*) AS n FROM release GROUP BY ROLLUP (town, month(since)) ORDER BY n, 1, 2",
    "SELECT town, year(since) AS y, COUNT(*) AS n FROM release GROUP BY CUBE (town, year(since)) ORDER BY n, 1, 2",
    "SELECT town, year(since) AS y, COUNT(*) AS n FROM release "
    "GROUP BY GROUPING SETS ((town), (year(since)), ()) ORDER BY n, 1",
    "SELECT DISTINCT town FROM release WHERE age < 30 ORDER BY town",
    "SELECT town, COUNT(DISTINCT age) AS d, MIN(pay) AS low, MAX(since) AS last, MAX(town) AS t FROM release "
    "WHERE age > 60 GROUP BY town ORDER BY town",
    "SELECT town, MEDIAN(age) AS m, QUANTILE_CONT(pay, 0.9) AS q, QUANTILE_DISC(age, 0.25) AS d FROM release "
    "GROUP BY town ORDER BY town",
    "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY pay) AS p, "
    "MEDIAN(pay) FILTER (WHERE age < 40) AS m FROM release",
    "SELECT town, STDDEV(pay) AS s, VAR_POP(age) AS v, STDDEV_POP(age) AS p, VARIANCE(pay) AS u FROM release "
    "GROUP BY town ORDER BY town",
    "SELECT SUM(pay * age) AS s, AVG(pay / 12) AS m, SUM(age - 18) AS d, COUNT_IF(age > 30) AS c FROM release",
    "SELECT SUM(CASE WHEN age < 30 THEN 2 WHEN age < 60 THEN 1 ELSE 0 END) AS s, "
    "AVG(CASE town WHEN 'Basel' THEN pay END) AS a FROM release",
    "SELECT ROUND(100.0 * SUM(CASE WHEN pay > 2000 THEN 1 ELSE 0 END) / COUNT(*), 1) AS pct FROM release",
    "SELECT SUM(pay) AS s FROM release WHERE age > 500",
    "SELECT town, COUNT(*) AS n FROM release WHERE 1 = 2 GROUP BY town",
    "SELECT COUNT(*) FILTER (WHERE age > 500) / NULLIF(COUNT(*) FILTER (WHERE age > 600), 0) AS r FROM release",
    "SELECT town, COUNT(*) AS n FROM release GROUP BY town HAVING town LIKE 'B%' OR town IS NULL ORDER BY n",
    "SELECT town, COUNT(*) AS n FROM release GROUP BY town HAVING town IN ('Chur', 'Basel') AND n * 2 > 10 "
    "ORDER BY town",
    "SELECT town, COUNT(*) AS n FROM release GROUP BY town ORDER BY length(town), COUNT(*) DESC, 1",
    "SELECT t, COUNT(*) AS n FROM (SELECT lower(town) AS t, age FROM release WHERE age > 40) AS x WHERE age < 60 "
    "GROUP BY t ORDER BY t",
    "WITH old AS (SELECT *, age - 60 AS over FROM release WHERE age >= 60), "
    "older AS (SELECT * FROM old WHERE over > 5) "
    "SELECT town, AVG(over) AS a, COUNT(*) AS n FROM older GROUP BY town ORDER BY town",
    "SELECT * FROM (SELECT town, COUNT(*) AS n FROM release GROUP BY 1) WHERE n > 700 ORDER BY n DESC LIMIT 2",
    "WITH c(place, k) AS (SELECT town, COUNT(*) FROM release GROUP BY town) "
    "SELECT k, place FROM c WHERE place <> 'Chur' ORDER BY k",
    "SELECT canton, COUNT(*) AS n, SUM(people) AS s FROM release JOIN towns ON release.town = towns.town "
    "GROUP BY canton ORDER BY canton",
    "SELECT t.canton, COUNT(*) AS n FROM release r LEFT JOIN towns t USING (town) GROUP BY t.canton ORDER BY n",
    "SELECT COUNT(*) AS n FROM towns AS t JOIN release AS r ON t.town = r.town WHERE t.people > 100",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_about_public_columns_are_answered_as_a_database_does(people, release, question):
    same(rows(release, question), theirs(people, question))


def numbers(release: dn.Release, question: str, **options: Any) -> dict[str, Any]:
    return release.sql(question, tables={"icd": CHAPTERS, "towns": TOWNS}, **options).to_pylist()[0]


ALIKE = [
    ("substr(disease, 1, 1) = 'h'", "disease = 'hiv'"),
    ("upper(disease) LIKE '%U%'", "disease IN ('flu', 'ulcer')"),
    ("disease IN (SELECT code FROM icd WHERE chapter = 'lung')", "disease IN ('asthma', 'flu')"),
    ("disease NOT IN (SELECT code FROM icd WHERE chapter = 'lung')", "disease IN ('cancer', 'hiv', 'ulcer')"),
    ("length(disease) > 3 AND age > 30", "disease NOT IN ('flu', 'hiv') AND age > 30"),
    ("CASE disease WHEN 'flu' THEN 1 ELSE 0 END = 1 OR 1 = 2", "disease = 'flu'"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_a_function_of_the_sensitive_column_is_the_set_of_values_it_holds_for(release, one, other):
    question = "SELECT COUNT(*) AS n, AVG(pay) AS a FROM release WHERE "
    assert numbers(release, question + one) == pytest.approx(numbers(release, question + other))


def test_groups_of_a_lookup_on_the_sensitive_column_are_sets_of_its_values(release):
    question = (
        "SELECT chapter, COUNT(*) AS n, AVG(age) AS a FROM release LEFT JOIN icd ON disease = icd.code GROUP BY chapter"
    )
    chapters = {row["chapter"]: row for row in release.sql(question, tables={"icd": CHAPTERS}).to_pylist()}
    assert set(chapters) == {"lung", "blood", "gut", None}
    for chapter, codes in (("lung", "('asthma', 'flu')"), ("blood", "('hiv')"), (None, "('cancer')")):
        alone = numbers(release, f"SELECT COUNT(*) AS n, AVG(age) AS a FROM release WHERE disease IN {codes}")
        assert {k: v for k, v in chapters[chapter].items() if k != "chapter"} == pytest.approx(alone)
    inner = release.sql(question.replace("LEFT ", ""), tables={"icd": CHAPTERS})
    assert sorted(inner["chapter"].to_pylist()) == ["blood", "gut", "lung"]


def test_branches_of_case_add_up_as_they_should(release):
    whole = "SELECT SUM(CASE disease WHEN 'flu' THEN 2 WHEN 'hiv' THEN pay ELSE -1 END) AS s FROM release"
    parts = (
        "SELECT 2 * COUNT(*) FILTER (WHERE disease = 'flu') + SUM(pay) FILTER (WHERE disease = 'hiv') "
        "- COUNT(*) FILTER (WHERE disease NOT IN ('flu', 'hiv')) AS s FROM release"
    )
    assert numbers(release, whole) == pytest.approx(numbers(release, parts))
    one = numbers(release, "SELECT AVG(CASE WHEN disease = 'flu' THEN age END) AS a FROM release")
    assert one == pytest.approx(numbers(release, "SELECT AVG(age) AS a FROM release WHERE disease = 'flu'"))


def test_an_average_of_nobody_by_the_estimate_has_no_value(people):
    few = people.filter(pa.compute.not_equal(people["disease"], "hiv")).append_column(
        "flag",
        pa.array(np.arange(people.num_rows)[: people.filter(pa.compute.not_equal(people["disease"], "hiv")).num_rows]),
    )
    release = dn.publish(few, sensitive="disease", privacy=dn.Privacy("2/5", "3/4"), mechanism="uniform", key=bytes(32))
    table = release.sql(
        "SELECT flag // 40 AS g, COUNT(*) AS n, AVG(age) AS a FROM release WHERE disease = 'flu' GROUP BY g"
    )
    below = [row for row in table.to_pylist() if row["n"] <= 0]
    assert below, "some group of 40 rows is estimated at or below nothing"
    assert all(row["a"] is None for row in below)
    assert all(row["a"] is not None for row in table.to_pylist() if row["n"] > 0)


def test_a_lookup_that_holds_a_key_twice_is_refused(release):
    twice = pa.table({"code": ["flu", "flu"], "chapter": ["a", "b"]})
    with pytest.raises(dn.DeniableError, match="twice"):
        release.sql(
            "SELECT chapter, COUNT(*) FROM release JOIN icd ON disease = code GROUP BY 1", tables={"icd": twice}
        )


KEPT = [
    "SELECT disease AS g, COUNT(*) AS n FROM release GROUP BY g ORDER BY g",
    "SELECT upper(disease) AS g, COUNT(*) AS n, AVG(pay) AS p FROM release WHERE age > 40 GROUP BY g ORDER BY g",
    "SELECT age % 3 AS g, town, COUNT(*) AS n FROM release GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS g, substr(disease, 1, 1) AS d, COUNT(*) AS n "
    "FROM release GROUP BY ALL ORDER BY g, d",
    "SELECT disease AS d, age // 20 AS g, VARIANCE(pay) AS v FROM release WHERE town = 'Chur' "
    "GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT town, disease, COUNT(*) AS n FROM release WHERE town IN ('Basel', 'Chur') GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT town, AVG(age) AS a, MAX(since) AS m FROM release WHERE town = 'Chur' AND pay > 50 GROUP BY town",
    "SELECT town, COUNT(*) AS n FROM release WHERE pay < 0 AND disease = 'flu' GROUP BY town",
]


@pytest.mark.parametrize("question", KEPT)
def test_groups_by_functions_of_several_perturbed_columns_are_those_of_a_database(people, question):
    """Coins that keep everything leave nothing to estimate."""
    columns = {"disease": dn.Replace(coin=1), "age": dn.Replace(coin=1, low=18, high=89)}
    kept = dn.publish(people, mechanism=dn.mechanisms.Retention(columns), key=bytes(32))
    same(rows(kept, question), theirs(people, question))


NAMED = [
    "SELECT place, COUNT(*) AS c FROM release GROUP BY place ORDER BY place",
    "SELECT place, n, COUNT(*) AS c FROM release GROUP BY ALL HAVING n > 0 ORDER BY place, n",
    'SELECT COUNT(*) AS "group place", place FROM release GROUP BY place ORDER BY place',
    'SELECT place, COUNT(*) AS "hidden 0" FROM release GROUP BY place HAVING SUM(n) > 0 ORDER BY "hidden 0", place',
    "SELECT n AS k, COUNT(*) AS n FROM release GROUP BY n ORDER BY n DESC, k",
    "SELECT n AS k, COUNT(*) AS n FROM release GROUP BY n HAVING n > 0 ORDER BY n + 0",
    "SELECT place AS n, n AS place, COUNT(*) AS c FROM release GROUP BY 1, 2 ORDER BY n, place",
    "SELECT upper(place) AS place, COUNT(*) AS c FROM release GROUP BY place ORDER BY place",
]


@pytest.mark.parametrize("question", NAMED)
def test_columns_are_called_as_they_like(question):
    """A column 'place' was answered with numbers of rows, and what is ordered by is a name of the result first."""
    draw = np.random.default_rng(8)
    table = pa.table(
        {"place": draw.choice(["x", "y", "z"], 300), "n": draw.integers(0, 4, 300), "d": draw.choice(list("abc"), 300)}
    )
    release = dn.publish(table, sensitive="d", privacy="3/4", mechanism="uniform", key=bytes(32))
    same(rows(release, question), theirs(table, question))
