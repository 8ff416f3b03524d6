"""Averages, quantiles and spreads stay within what the conditions and groups of a question leave."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.estimation.possible import values_left
from deniable.estimation.predicates import And, Leaf, Or, among, complement

N = 300


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "town": rng.choice(list("abcdef"), N),
            "pay": pa.array(rng.integers(-50, 50, N), mask=rng.random(N) < 0.1),
            "ill": rng.choice(list("xyz"), N),
            "age": rng.integers(0, 100, N),
        }
    )


@pytest.fixture(scope="module", params=["uniform", "retention"])
def release(request: pytest.FixtureRequest, table: pa.Table) -> dn.Release:
    """Of a hundred values that noise drowns: estimates by town leave every range."""
    if request.param == "uniform":
        privacy = dn.Privacy(rho1="1/5", rho2="1/3")
        return dn.publish(table, sensitive="age", privacy=privacy, mechanism="uniform", key=bytes(32))
    columns = {"age": dn.Replace(coin=0.2, low=0, high=99), "ill": dn.Replace(coin=0.2)}
    return dn.publish(table, mechanism=dn.mechanisms.Retention(columns), key=bytes(32))


WITHIN = {  # aggregate, condition, the numbers that it lies between
    "AVG(age)": ("age BETWEEN 30 AND 60", 30, 60),
    "AVG(age) ": ("NOT (age < 30 OR age > 60)", 30, 60),
    "AVG(age)  ": ("(age > 90 OR age < 10) AND age > 20 AND (town = 'a' OR pay < 40)", 91, 99),
    "AVG(age)   ": ("(age < 20 AND town = 'a') OR (age IN (25, 40) AND NOT town = 'a')", 0, 40),
    "AVG(age * 12)": ("age BETWEEN 30 AND 60", 360, 720),
    "AVG(ABS(age - 50))": ("age BETWEEN 30 AND 60", 0, 20),
    "AVG(100 - age)": ("age / 10 >= 3 AND age <= 60", 40, 70),
    "AVG(age) FILTER (WHERE age < 50)": ("age >= 30", 30, 49),
    "AVG(CASE WHEN age < 50 THEN age END)": ("age >= 30", 30, 49),
    "AVG(CASE WHEN age < 50 THEN age ELSE 7 END)": ("age >= 30", 7, 49),
    "AVG(CASE WHEN age < 50 THEN 5 WHEN age < 70 THEN -2 ELSE 0 END)": ("TRUE", -2, 5),
    "AVG(pay) FILTER (WHERE age < 50)": ("pay > 10", 11, 49),
    "AVG(pay * 2)": ("age < 50 AND pay BETWEEN -9 AND 10", -18, 20),
    "AVG(COALESCE(pay, 45))": ("age < 50 AND (pay IS NULL OR pay > 46)", 45, 49),
    "MEDIAN(age)": ("age BETWEEN 30 AND 60", 30, 60),
    "QUANTILE_CONT(age * 2, 0.9)": ("age BETWEEN 30 AND 60", 60, 120),
    "MEDIAN(age) FILTER (WHERE age > 40)": ("age BETWEEN 30 AND 60", 41, 60),
    "STDDEV(age)": ("age BETWEEN 30 AND 60", 0, 30 / np.sqrt(2)),
    "STDDEV_POP(age)": ("age BETWEEN 30 AND 60", 0, 15),
    "VAR_POP(pay)": ("age < 50 AND pay BETWEEN 0 AND 10", 0, 25),
    "AVG(5)": ("age < 50", 5, 5),
}


@pytest.mark.parametrize("what", WITHIN, ids=str.strip)
def test_no_answer_leaves_what_the_condition_leaves(release: dn.Release, what: str) -> None:
    condition, low, high = WITHIN[what]
    answers = release.sql(f"SELECT town, {what} AS a FROM release WHERE {condition} GROUP BY town").to_pydict()
    known = [one for one in zip(answers["a"], answers["a_low"], answers["a_high"], strict=True) if one[0] is not None]
    assert known
    for value, lower, upper in known:
        assert low - 1e-9 <= lower <= value <= upper <= high + 1e-9


@pytest.mark.parametrize("sensitive", [False, True])
def test_a_group_by_the_averaged_column_narrows_its_range(table: pa.Table, sensitive: bool) -> None:
    privacy = dn.Privacy(rho1="1/5", rho2="1/3") if sensitive else dn.Privacy(rho2="2/5")
    hidden = "age" if sensitive else "ill"
    release = dn.publish(table, sensitive=hidden, privacy=privacy, mechanism="uniform", key=bytes(32))
    other = "town = 'a'" if sensitive else "ill = 'x'"
    asked = "SELECT age // 10 AS tens, AVG(age) AS a, MEDIAN(age) AS m FROM release"
    answers = release.sql(f"{asked} WHERE age <> 99 AND NOT {other} GROUP BY age // 10").to_pylist()
    assert len(answers) == 10
    for row in answers:
        low, high = 10 * row["tens"], min(10 * row["tens"] + 9, 98)
        for name in ("a", "m"):
            if row[name] is not None:
                assert low <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= high


def test_python_averages_stay_within_the_condition(release: dn.Release) -> None:
    for town in "abcdef":
        where = {"age": dn.between(30, 60), "town": town}
        if release.count(where).value > 0:
            mean = release.mean("age", where)
            assert 30 <= mean.low <= mean.value <= mean.high <= 60


@pytest.mark.parametrize("end", [0.1, 9.9], ids=["lowest", "highest"])
def test_averages_and_sums_of_bins_reach_their_outer_edges(end: float) -> None:
    """All numbers near one end of their bins: cut to the middles of the bins, no interval held the truth."""
    rng = np.random.default_rng(3)
    ages = 10 * rng.integers(0, 4, 4000) + end
    table = pa.table({"age": ages, "town": rng.choice(["a", "b"], 4000)})
    bins = {"age": dn.Bins((0, 10, 20, 30, 40))}
    release = dn.publish(table, sensitive="age", bins=bins, privacy=dn.Privacy(rho2="4/5"), key=bytes(32))
    low, high, last = (0, 10, "[0, 10)") if end < 5 else (30, 40, "[30, 40]")
    inside = ages[(ages >= low) & (ages < high)]
    mean, total = release.mean("age", {"age": last}), release.sum("age", {"age": last})
    assert (mean.smallest, mean.largest) == (low, high)
    assert mean.low <= inside.mean() <= mean.high
    assert total.low <= inside.sum() <= total.high
    (row,) = release.sql(f"SELECT AVG(age) AS a, SUM(age) AS s FROM release WHERE age = '{last}'").to_pylist()
    assert (row["a_low"], row["a"], row["a_high"]) == (low, low + 5, high)
    assert row["s_low"] <= inside.sum() <= row["s_high"]
    assert release.weights("age").sum() == pytest.approx(release.sum("age", calibrate=False).value)


def test_values_left_are_those_of_some_row() -> None:
    """Against all rows of two columns with three values each and missing: every value that a satisfying row has is
    left, and for conjunctions of columns no other."""
    rng, values = np.random.default_rng(0), [1, 2, 3, None]

    def leaf(column: str) -> Leaf:
        wanted, missing = [v for v in values[:3] if rng.random() < 0.5], bool(rng.random() < 0.5)
        return Leaf(column, lambda array: among(array, wanted), missing)

    def satisfies(node: Any, row: dict[str, Any]) -> bool:
        if isinstance(node, Leaf):
            value = row[node.column]
            return node.missing if value is None else bool(node.holds(pa.array([value]))[0])
        return (all if isinstance(node, And) else any)(satisfies(part, row) for part in node.parts)

    def grown(depth: int) -> Any:
        if depth == 0:
            return leaf(str(rng.choice(["a", "b"])))
        kind = And if rng.random() < 0.5 else Or
        node = kind(tuple(grown(depth - 1) for _ in range(rng.integers(0, 4))))
        return complement(node) if rng.random() < 0.3 else node

    rows = [dict(zip("ab", pair, strict=True)) for pair in product(values, values)]
    for _ in range(200):
        node = grown(int(rng.integers(0, 3)))
        held = {row["a"] for row in rows if satisfies(node, row)}
        left = values_left(node, "a", pa.array(values[:3]))
        assert held <= {value for value, kept in zip(values, left, strict=True) if kept}
        if isinstance(node, Leaf) and node.column == "a":
            assert held == {value for value, kept in zip(values, left, strict=True) if kept}


def test_sums_of_nobody_are_missing_where_that_is_certain_and_else_add_up(release: dn.Release) -> None:
    (nobody,) = release.sql("SELECT SUM(pay) AS s, AVG(pay) AS a FROM release WHERE pay > 1000").to_pylist()
    assert nobody == dict.fromkeys(("s", "s_low", "s_high", "a", "a_low", "a_high"))
    assert release.sum("pay", {"pay": dn.between(1000, 2000)}).value == 0
    asked = "SUM(pay) AS s, AVG(pay) AS a FROM release WHERE age < 3"
    by_town = release.sql(f"SELECT town, {asked} GROUP BY town", calibrate=False).to_pydict()
    (whole,) = release.sql(f"SELECT {asked}", calibrate=False).to_pylist()
    assert None in by_town["a"]
    assert None not in by_town["s"]
    assert sum(by_town["s"]) == pytest.approx(whole["s"])
