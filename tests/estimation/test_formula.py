"""Shares, ratios and differences: the covariances of what they are made of, against the weights of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms

N = 6000
PRIVACY = dn.Privacy(rho1="1/4", rho2="1/3")
MADE: dict[str, tuple[Any, Any]] = {
    "uniform": (mechanisms.Uniform(), PRIVACY),
    "small-domain": (mechanisms.SmallDomain(), PRIVACY),
    "designed": (mechanisms.Designed(), PRIVACY),
    "decoys": (mechanisms.Decoys(c=3), None),
    "retention": (
        mechanisms.Retention({"disease": dn.Replace(coin=0.7), "sex": dn.Replace(coin=0.9)}),
        None,
    ),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    disease = rng.choice(list("abcdef"), N, p=np.arange(6, 0, -1) / 21)
    sex = np.where(rng.random(N) < np.where(disease < "d", 0.7, 0.4), "F", "M")
    town = rng.choice(["x", "y", None], N)
    age = np.where(rng.random(N) < 0.1, np.nan, rng.integers(18, 90, N))
    return pa.table({"sex": sex, "town": town, "age": pa.array(age, from_pandas=True), "disease": disease})


@pytest.fixture(scope="module", params=MADE)
def release(request: pytest.FixtureRequest, table: pa.Table) -> dn.Release:
    mechanism, privacy = MADE[request.param]
    sensitive = {} if mechanism.name == "retention" else {"sensitive": "disease"}
    return dn.publish(table, **sensitive, privacy=privacy, mechanism=mechanism, key=bytes(32), marginals=False)


def by_hand(release: dn.Release, one: dict[str, Any], other: dict[str, Any], both: dict[str, Any]) -> Any:
    """Two counts and their covariance matrix, from the weights of single rows."""
    a, b, c = (release.weights(where) for where in (one, other, both))
    return a.sum(), b.sum(), (a**2 - a).sum(), (b**2 - b).sum(), (a * b - c).sum()


def test_a_share_is_a_ratio_with_its_covariance(release: dn.Release) -> None:
    inside, within = {"disease": "a", "sex": "F"}, {"disease": ["a", "b"], "sex": "F"}
    a, b, var_a, var_b, both = by_hand(release, inside, within, inside)
    share = release.share({"disease": "a"}, within, confidence=0.5)
    doubt = 0.6744897501960817**2 * var_b / b**2
    assert share.value == pytest.approx(a / b)
    assert share.variance == pytest.approx((var_a - 2 * a / b * both + (a / b) ** 2 * var_b) / b**2 / (1 - doubt) ** 2)


@pytest.mark.parametrize("other", [{"disease": "b"}, {"sex": "F"}, {"disease": ["a", "b"], "sex": "M"}], ids=str)
def test_a_difference_has_its_covariance(release: dn.Release, other: dict[str, Any]) -> None:
    one = {"disease": "a"}
    overlap = {"disease": "a", **{k: v for k, v in other.items() if k != "disease"}}
    overlap["disease"] = [] if other.get("disease") == "b" else ["a"]
    a, b, var_a, var_b, both = by_hand(release, one, other, overlap)
    difference = release.difference(one, other)
    assert difference.value == pytest.approx(a - b)
    assert difference.variance == pytest.approx(var_a - 2 * both + var_b)


def test_what_is_asked_and_the_rest_add_up(table: pa.Table) -> None:
    for name in ("uniform", "small-domain", "designed", "decoys"):
        mechanism, privacy = MADE[name]
        release = dn.publish(table, sensitive="disease", privacy=privacy, mechanism=mechanism, key=bytes(32))
        for within in ({}, {"sex": "F"}, {"age": dn.between(20, 40), "town": ["x", None]}):
            rows = release.count(within)
            inside = release.count({**within, "disease": ["a", "b"]})
            outside = release.count({**within, "disease": dn.not_(["a", "b"])})
            assert inside.value + outside.value == pytest.approx(rows.value, rel=1e-9)
            assert inside.stderr == pytest.approx(outside.stderr)
            shares = [release.share({"disease": d}, within).value for d in (["a", "b"], dn.not_(["a", "b"]))]
            assert sum(shares) == pytest.approx(1)


def test_a_calibrated_share_is_narrower_and_as_count_says(table: pa.Table) -> None:
    release = dn.publish(table, sensitive="disease", privacy=PRIVACY, mechanism="designed", key=bytes(32))
    share, plain = (release.share({"disease": "a"}, {"sex": "F"}, calibrate=known) for known in (None, False))
    count, rows = release.count({"sex": "F", "disease": "a"}), release.count({"sex": "F"}).value
    assert share.value == pytest.approx(count.value / rows)
    assert share.stderr == pytest.approx(count.stderr / rows)
    assert share.stderr < 0.8 * plain.stderr


SQL = {
    "AVG(CASE WHEN disease = 'a' THEN 1 ELSE 0 END)": lambda f: (f.disease == "a").mean(),
    "SUM(CASE WHEN disease = 'a' THEN 1 ELSE 0 END) / COUNT(*)": lambda f: (f.disease == "a").mean(),
    "100.0 * COUNT(*) FILTER (WHERE disease = 'a') / COUNT(*)": lambda f: 100 * (f.disease == "a").mean(),
    "COUNT(CASE WHEN disease = 'a' THEN 1 END)": lambda f: (f.disease == "a").sum(),
    "COUNT(*) FILTER (WHERE disease = 'a') - COUNT(*) FILTER (WHERE disease = 'b')": lambda f: (
        (f.disease == "a").sum() - (f.disease == "b").sum()
    ),
    "SUM(age) FILTER (WHERE disease = 'a')": lambda f: f.age[f.disease == "a"].sum(),
    "SUM(CASE WHEN disease = 'a' THEN age ELSE 0 END)": lambda f: f.age[f.disease == "a"].sum(),
    "AVG(CASE WHEN disease = 'a' THEN age END)": lambda f: f.age[f.disease == "a"].mean(),
    "AVG(age) FILTER (WHERE disease IN ('a', 'b')) - AVG(age)": lambda f: (
        f.age[f.disease.isin(["a", "b"])].mean() - f.age.mean()
    ),
    "COUNT(town) FILTER (WHERE disease = 'a')": lambda f: (f.town.notna() & (f.disease == "a")).sum(),
    "-(COUNT(*) + 2 * COUNT(*) FILTER (WHERE disease = 'a')) / 3": lambda f: (
        -(len(f) + 2 * (f.disease == "a").sum()) / 3
    ),
    "1 - AVG(CASE WHEN NOT disease = 'a' THEN 1 ELSE 0 END)": lambda f: (f.disease == "a").mean(),
}


@pytest.mark.parametrize("expression", SQL)
def test_expressions_of_aggregates_are_estimated(table: pa.Table, release: dn.Release, expression: str) -> None:
    answer = release.sql(f"SELECT sex, {expression} AS x FROM release GROUP BY sex ORDER BY sex").to_pydict()
    frame = table.to_pandas()
    for sex, value, low, high in zip(*(answer[name] for name in ("sex", "x", "x_low", "x_high")), strict=True):
        truth = SQL[expression](frame[frame.sex == sex])
        assert low <= value <= high
        assert abs(value - truth) <= 5 * (high - low) / 2 / 1.96 + 1e-9


def test_the_same_thing_asked_in_two_ways_has_one_answer(release: dn.Release) -> None:
    answer = release.sql(
        "SELECT AVG(CASE WHEN disease = 'a' THEN 1 ELSE 0 END) AS a, "
        "SUM(CASE WHEN disease = 'a' THEN 1 ELSE 0 END) / COUNT(*) AS b, COUNT(*) FILTER (WHERE disease = 'a') AS n "
        "FROM release WHERE sex = 'F'"
    ).to_pylist()[0]
    share, count = release.share({"disease": "a"}, {"sex": "F"}), release.count({"sex": "F", "disease": "a"})
    for name in ("a", "b"):
        assert [answer[name], answer[f"{name}_low"], answer[f"{name}_high"]] == pytest.approx(
            [share.value, share.low, share.high]
        )
    assert [answer["n"], answer["n_low"], answer["n_high"]] == pytest.approx([count.value, count.low, count.high])


def test_having_and_order_by_take_expressions(release: dn.Release) -> None:
    share = "COUNT(*) FILTER (WHERE disease = 'a') / COUNT(*)"
    answer = release.sql(f"SELECT sex, {share} AS s FROM release GROUP BY sex HAVING {share} > 0 ORDER BY {share} DESC")
    assert answer["s"].to_pylist() == sorted(answer["s"].to_pylist(), reverse=True)
    assert release.sql(f"SELECT sex, COUNT(*) AS n FROM release GROUP BY sex HAVING ({share}) > 1.5").num_rows == 0


def test_grouped_by_the_sensitive_column_too(table: pa.Table, release: dn.Release) -> None:
    answer = release.sql(
        "SELECT disease, AVG(CASE WHEN town = 'x' THEN 1 ELSE 0 END) AS s, "
        "COUNT(*) FILTER (WHERE disease = 'a') AS n FROM release GROUP BY disease"
    ).to_pylist()
    frame = table.to_pandas()
    assert sum(row["s"] is not None for row in answer) > len(answer) / 2  # an average over an estimate of none is NULL
    for row in answer:
        truth = (frame.town[frame.disease == row["disease"]] == "x").mean()
        if row["s"] is not None:
            assert abs(row["s"] - truth) <= 5 * (row["s_high"] - row["s_low"]) / 2 / 1.96
        assert (row["n"] == 0) == (row["disease"] != "a")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("COUNT(*) * COUNT(*)", "multiplies two estimates"),
        ("COUNT(*) / 0", "divides by zero"),
        ("STDDEV(CASE WHEN disease = 'a' THEN age END)", "FILTER"),
        ("COUNT(*) % 2", "cannot be answered"),
        ("COUNT(*) // 2", "cannot be answered"),
        ("SUM(disease) FILTER (WHERE sex = 'F')", "only numbers"),
    ],
)
def test_other_expressions_are_refused_with_the_reason(release: dn.Release, question: str, reason: str) -> None:
    with pytest.raises(dn.DeniableError, match=reason):
        release.sql(f"SELECT {question} AS x FROM release")


def test_sums_of_two_columns_know_how_they_err_together(table: pa.Table) -> None:
    """A column that is twice another: their ratio has no error at all, though each sum has."""
    doubled = table.append_column("pay", pa.array(2.0 * table["age"].to_numpy()))
    release = dn.publish(doubled, sensitive="disease", privacy=PRIVACY, mechanism="uniform", key=bytes(32))
    (row,) = release.sql(
        "SELECT SUM(pay) / SUM(age) AS x, SUM(pay) AS p, SUM(pay) - 2 * SUM(age) AS d, AVG(pay) - AVG(age) AS m, "
        "AVG(age) AS a FROM release WHERE disease = 'a'"
    ).to_pylist()
    assert (row["x"], row["d"]) == pytest.approx((2.0, 0.0), abs=1e-6)
    assert row["x_high"] - row["x_low"] < 1e-3
    assert row["p_high"] - row["p_low"] > 1
    assert (row["m"], row["m_low"], row["m_high"]) == pytest.approx((row["a"], row["a_low"], row["a_high"]))


def test_shares_are_for_the_inverse_and_for_rows(table: pa.Table, release: dn.Release) -> None:
    with pytest.raises(dn.DeniableError, match="counts only"):
        release.sql("SELECT AVG(CASE WHEN disease = 'a' THEN 1 ELSE 0 END) AS x FROM release", method="mle")
    with pytest.raises(dn.DeniableError, match="no share"):
        release.share({"disease": "a"}, {"town": "x", "age": dn.between(200, 300)})
