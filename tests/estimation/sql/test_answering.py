"""SQL over a release: exact where only public columns are asked, estimates elsewhere, refusals with a way out."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import QuestionError
from deniable.estimation import answering
from deniable.estimation.predicates import between
from deniable.tables import counting

PUBLIC = [
    "town = 'Basel'",
    "town <> 'Basel'",
    "NOT town = 'Basel'",
    "NOT (town = 'Basel' OR age < 40)",
    "town IS NULL",
    "town IS NOT NULL AND NOT (age BETWEEN 30 AND 50)",
    "town NOT IN ('Basel', 'Chur')",
    "town NOT IN ('Basel', NULL)",
    "town IN ('Basel', NULL)",
    "town LIKE '%a%' AND age >= 80",
    "NOT town LIKE 'B%'",
    "town ILIKE 'b%'",
    "income > 4000.5 OR (sex = 'F' AND 40 > age)",
    "NOT (income > 4000 AND town = 'Basel')",
    "age = 30.5",
    "(sex = 'F' OR TRUE) AND NOT FALSE",
    "age IN (20, 30, -1)",
]


@pytest.mark.parametrize("where", PUBLIC)
def test_public_conditions_follow_sql_to_the_row(release, where):
    ours = release.sql(f"SELECT sex, COUNT(*) AS n, COUNT(town) AS t, SUM(income) AS s, AVG(income) AS a FROM release "
                        f"WHERE {where} GROUP BY sex ORDER BY sex").to_pylist()  # fmt: skip
    connection = duckdb.connect()
    connection.register("release", release.table)
    theirs = connection.execute(
        f"SELECT sex, COUNT(*) AS n, COUNT(town) AS t, SUM(income) AS s, AVG(income) AS a FROM release "
        f"WHERE {where} GROUP BY sex ORDER BY sex"
    ).fetchall()
    assert [row["sex"] for row in ours] == [row[0] for row in theirs]
    for mine, exact in zip(ours, theirs, strict=True):
        assert [mine[k] for k in "ntsa"] == pytest.approx(exact[1:], rel=1e-9)
        assert mine["n_low"] == mine["n_high"] == mine["n"]


def test_sql_agrees_with_python(release):
    found = release.sql(
        "SELECT COUNT(*) AS n, SUM(income) AS s, AVG(income) FROM release "
        "WHERE disease IN ('hiv', 'flu') AND age BETWEEN 30 AND 50",
    ).to_pylist()[0]
    where = {"disease": ["hiv", "flu"], "age": between(30, 50)}
    expected = release.count(where)
    assert (found["n"], found["n_low"], found["n_high"]) == pytest.approx((expected.value, expected.low, expected.high))
    assert found["s"] == pytest.approx(release.sum("income", where).value)
    assert found["avg_income"] == pytest.approx(release.mean("income", where).value)


def test_mixed_conditions_are_the_sum_of_their_disjoint_parts(release):
    mixed = (
        "SELECT COUNT(*) AS n FROM release WHERE (sex = 'F' AND disease = 'hiv') OR (sex = 'M' AND disease <> 'flu')"
    )
    found = release.sql(mixed, calibrate=False).to_pylist()[0]
    parts = release.count({"sex": "F", "disease": "hiv"}, calibrate=False) + release.count(
        {"sex": "M", "disease": ["asthma", "cancer", "hiv", "ulcer"]}, calibrate=False
    )
    assert found["n"] == pytest.approx(parts.value)
    width = parts.high - parts.low  # intervals of the parts are lopsided, each in its own way
    assert (found["n_low"], found["n_high"]) == pytest.approx((parts.low, parts.high), abs=0.02 * width)


def test_either_of_two_kinds_of_condition(release):
    either = release.sql("SELECT COUNT(*) AS n FROM release WHERE sex = 'F' OR disease = 'hiv'").to_pylist()[0]
    women = release.count({"sex": "F"}).value
    men = release.count({"sex": "M", "disease": "hiv"})
    assert either["n"] == pytest.approx(women + men.value)
    assert either["n_low"] >= women


def test_group_by_having_order_and_limit(release):
    text = (
        "SELECT disease AS d, sex, COUNT(*) AS n FROM release WHERE age < 60 GROUP BY disease, sex "
        "HAVING COUNT(*) > 100 AND n_low > 0 ORDER BY n DESC, sex LIMIT 3 OFFSET 1"
    )
    rows = release.sql(text).to_pylist()
    everything = release.sql("SELECT disease, sex, COUNT(*) AS n FROM release WHERE age < 60 GROUP BY ALL"
                     .replace("GROUP BY ALL", "GROUP BY 1, 2")).to_pylist()  # fmt: skip
    expected = sorted((r for r in everything if r["n"] > 100 and r["n_low"] > 0), key=lambda r: -r["n"])[1:4]
    assert [r["n"] for r in rows] == pytest.approx([r["n"] for r in expected])
    assert list(rows[0]) == ["d", "sex", "n", "n_low", "n_high"]
    assert release.sql("select COUNT(*) from RELEASE having avg(age) > 99").num_rows == 0


def test_missing_values_form_a_group_that_sorts_last(release):
    towns = release.sql("SELECT town, COUNT(*) AS n FROM release GROUP BY town ORDER BY town")["town"].to_pylist()
    assert towns == ["Aarau", "Basel", "Chur", None]


def test_a_missing_sensitive_value_is_a_value(new_release, new_patients):
    rng = np.random.default_rng(1)
    table, truth, domain = new_patients(rng, 3000)
    release = new_release(rng, table, truth, [*domain[:4], None])
    whole = release.sql("SELECT COUNT(*) AS n FROM release WHERE disease IS NULL", calibrate=False).to_pylist()[0]["n"]
    assert whole == pytest.approx(release.count({"disease": None}, calibrate=False).value)
    other = release.sql("SELECT COUNT(*) AS n FROM release WHERE disease <> 'hiv'", calibrate=False).to_pylist()[0]["n"]
    assert other == pytest.approx(3000 - whole - release.count({"disease": "hiv"}, calibrate=False).value)
    present = release.sql("SELECT COUNT(disease) AS n FROM release", calibrate=False).to_pylist()[0]["n"]
    assert present == pytest.approx(3000 - whole)


def test_a_condition_on_a_column_without_any_value_holds_for_no_row():
    release = dn.publish(
        pa.table({"gone": pa.nulls(40), "ill": ["yes", "no"] * 20}), sensitive="ill", mechanism="redraw"
    )
    assert release.sql("SELECT COUNT(*) AS n FROM release WHERE COALESCE(gone, gone)")["n"].to_pylist() == [0.0]


def test_no_rows_give_a_count_of_zero_and_no_average(release):
    (row,) = release.sql("SELECT COUNT(*) AS n, AVG(income) AS a FROM release WHERE age = 17").to_pylist()
    assert (row["n"], row["a"]) == (0, None)
    assert release.sql("SELECT sex, COUNT(*) AS n FROM release WHERE age = 17 GROUP BY sex").num_rows == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT disease FROM release", "GROUP BY disease"),
        ("SELECT * FROM release", "single rows"),
        ("SELECT release.* FROM release", "single rows"),
        ("SELECT age FROM release", "GROUP BY age"),
        ("SELECT MAX(age) FROM release WHERE disease = 'hiv'", "QUANTILE_CONT"),
        ("SELECT disease, MIN(age) FROM release GROUP BY disease", "hangs on single rows"),
        ("SELECT MAX(disease) FROM release", "SELECT disease, COUNT"),
        ("SELECT MEDIAN(town) FROM release", "only numbers"),
        ("SELECT QUANTILE_CONT(age, 2) FROM release", "above 0 and below 1"),
        ("SELECT AVG(disease) FROM release", "counts by"),
        ("SELECT SUM(town) FROM release", "only numbers"),
        ("SELECT SUM(town) - SUM(age) FROM release", "only numbers"),
        ("SELECT COUNT(*) FROM release JOIN other USING (disease)", "--with NAME=FILE"),
        ("SELECT COUNT(*) FROM release, other", "no table 'other'"),
        ("SELECT COUNT(*) FROM release a JOIN release b ON a.age = b.age", "twice"),
        ("SELECT COUNT(*) FROM (SELECT * FROM release LIMIT 5)", "LIMIT"),
        ("SELECT COUNT(*) FROM (SELECT age FROM release) WHERE sex = 'F'", "no column 'sex'"),
        ("WITH RECURSIVE x AS (SELECT 1) SELECT COUNT(*) FROM release", "RECURSIVE"),
        ("SELECT COUNT(*) FROM release WHERE age IN (SELECT 1)", "lookup table"),
        ("SELECT COUNT(DISTINCT disease) FROM release", "every value of it appears"),
        ("SELECT DISTINCT disease FROM release", "DISTINCT"),
        ("SELECT COUNT(*) FROM release WHERE disease = town", "perturbed, and another column"),
        ("SELECT disease || sex, COUNT(*) FROM release GROUP BY 1", "perturbed, and another column"),
        ("SELECT COUNT(*) FROM release WHERE age + 1", "a value, not a condition"),
        ("SELECT COUNT(*) FROM release WHERE random() < 1", "CONTAINS, DATE_DIFF, DATE_TRUNC"),
        ("SELECT COUNT(*) FROM release WHERE 1", "'1': it is a value, not a condition"),
        ("SELECT COUNT(*) FILTER (WHERE 'flu') FROM release", "a value, not a condition"),
        ("SELECT COUNT(*) FROM release WHERE soundex(town) = 'B'", "not a function|not understood"),
        ("SELECT COUNT(*) FROM release GROUP BY COUNT(*)", "not the aggregate"),
        ("SELECT COUNT(*) OVER () FROM release", "needs single rows"),
        ("SELECT COUNT(*) FROM release UNION SELECT 1", "names no table"),
        ("SELECT COUNT(*) FROM relase", "Did you mean 'release'"),
        ("SELECT COUNT(*)", "FROM release"),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", "FROM release"),
        ("SELECT COUNT(*) FROM release WHERE diseas = 'hiv'", "Did you mean 'disease'"),
        ("SELECT COUNT(*) FROM release WHERE disease = hiv", "single quotes"),
        ("SELECT COUNT(*) FROM release WHERE disease = NULL", "IS NULL"),
        ("SELECT SQRT(AVG(age)) FROM release", "compute with the results afterwards"),
        ("SELECT COUNT(*) AS n, SUM(age) AS n FROM release", "Two columns"),
        ("SELECT COUNT(*) AS n FROM release HAVING m > 2", "no column 'm'"),
        ("SELECT COUNT(*) FROM release ORDER BY 4", "ORDER BY 4"),
        ("SELECT COUNT(*) FROM release LIMIT 'x'", "whole number"),
        ("SELECT COUNT(*) FROM release; DROP TABLE release", "one question|2 statements"),
        ("DELETE FROM release", "only be asked"),
        ("SELEC COUNT(*) FROM release", "cannot be read|only be asked"),
        ("SELECT COUNT(*) FROM release WHERE (age > 3", "line 1, column"),
        ("SELECT COUNT(*) FROM release WHERE sex = 'F", "quote"),
        ("", "empty"),
        ("SELECT COUNT(*) FROM release USING SAMPLE 10", "not supported"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(release, text, message):
    with pytest.raises(QuestionError, match=message):
        release.sql(text)


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain"])
def test_exempt_missing_values_are_counted_exactly(mechanism, new_patients):
    import warnings

    import deniable as dn

    rng = np.random.default_rng(2)
    table, truth, domain = new_patients(rng, 4000)
    hidden = np.where(rng.random(4000) < 0.1, None, np.array(domain, dtype=object)[truth])
    table = table.append_column("disease", [hidden.tolist()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed is meant to be loud
        release = dn.publish(
            table, sensitive="disease", privacy=dn.Privacy(rho1="1/3", rho2="1/2"), mechanism=mechanism,
            missing="exempt", seed=3,
        )  # fmt: skip
    missing = release.count({"disease": None, "sex": "F"})
    women = (table["sex"].to_numpy(zero_copy_only=False) == "F") & (hidden == None)  # noqa: E711
    assert (missing.value, missing.stderr) == (women.sum(), 0)
    for method in ("inverse", "mle", "shrunk"):
        found = release.count({"disease": "flu", "sex": "F"}, method=method)
        assert found.stderr > 0
        assert found.largest <= (table["sex"].to_numpy(zero_copy_only=False) == "F").sum() - women.sum()
    parts = release.histogram(calibrate=False)
    assert sum(parts["value"].to_pylist()) == pytest.approx(4000)


@pytest.mark.parametrize("rest", ["LIMIT 7", "LIMIT 4 OFFSET 9", "LIMIT 1", "LIMIT 0", "LIMIT 100000"])
@pytest.mark.parametrize("hidden", ["", ", disease"])
def test_a_limit_leaves_the_first_rows_and_answers_no_more_groups_than_it_needs(release, monkeypatch, rest, hidden):
    question = f"SELECT age{hidden}, COUNT(*) AS n, COUNT(*) FILTER (WHERE disease = 'flu') / COUNT(*) AS share, "
    question += f"AVG(income) AS income FROM release GROUP BY age{hidden}"
    monkeypatch.setattr(counting, "DENSE_ENTRIES", 1)
    monkeypatch.setattr(counting, "BLOCK_ENTRIES", 64)
    numbers = [int(word) for word in rest.split() if word.isdecimal()]
    whole = release.sql(question)
    blocks = []
    estimate = answering._estimated
    monkeypatch.setattr(answering, "_estimated", lambda *given: blocks.append(given) or estimate(*given))
    limited = release.sql(f"{question} {rest}")
    assert limited.equals(whole.select(limited.column_names).slice(numbers[1] if len(numbers) > 1 else 0, numbers[0]))
    of_limit = len(blocks)
    release.sql(question)
    assert (of_limit < (len(blocks) - of_limit) / 2) == (numbers[0] < 100)


def test_a_limit_after_an_order_looks_at_every_group(release):
    question = "SELECT age, COUNT(*) AS n FROM release WHERE disease = 'flu' GROUP BY age ORDER BY n DESC"
    assert release.sql(f"{question} LIMIT 3").equals(release.sql(question).slice(0, 3))
