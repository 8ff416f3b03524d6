"""Models of the originals behind rows: closed forms, every published table of a small one, and refusals."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import deniable as dn
from deniable import mechanisms
from deniable.release.release import Release

KEY = bytes(range(32))
PRIVACY = dn.Privacy(rho1="2/5", rho2="3/5")


def people(n=4000, seed=3):
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 80, n), rng.choice(["F", "M"], n)
    ill = rng.random(n) < expit(-1 + 0.02 * (age - 50) + 0.5 * (sex == "M"))
    state = np.where(ill, "ill", rng.choice(["well", "tired", "odd"], n, p=[0.5, 0.3, 0.2]))
    weight = np.clip(np.round(22 + 0.1 * (age - 50) + 3 * ill + rng.normal(0, 4, n)), 10, 50).astype(int)
    return pa.table({"age": age, "sex": sex, "state": state, "kilos": weight})


TABLE = people()


def retention(**columns):
    return mechanisms.Retention({name: dn.Replace(**options) for name, options in columns.items()})


EXACT = dn.publish(TABLE, mechanism=retention(state={"coin": 1.0}), key=KEY, shuffle=False)
MADE = {
    "uniform": {"sensitive": "state", "privacy": PRIVACY, "mechanism": "uniform"},
    "small-domain": {"sensitive": "state", "privacy": PRIVACY, "mechanism": "small-domain"},
    "fine-grain": {
        "sensitive": "state",
        "privacy": dn.Privacy(per_value={"ill": ("2/5", "4/5"), "odd": ("1/5", "3/5")}),
        "mechanism": "fine-grain",
    },
    "designed": {"sensitive": "state", "privacy": PRIVACY, "mechanism": "designed"},
    "line-ups": {"sensitive": "state", "privacy": PRIVACY, "mechanism": "lineup"},
    "decoys": {"sensitive": "state", "mechanism": mechanisms.Decoys(c=2)},
    "two columns": {"sensitive": ["state", "sex"], "privacy": dn.Privacy(rho2="3/5"), "mechanism": "uniform"},
    "retention": {"mechanism": retention(state={"coin": 0.5}, kilos={"coin": 0.6, "low": 10, "high": 50})},
    "swapped": {"mechanism": retention(state={"coin": 0.5, "replacing": "swapping"})},
}


def design(*columns):
    return np.column_stack([np.ones(len(columns[0])), *columns]).astype(float)


def logistic(x, y):
    """Newton's method on rows that are known."""
    theta = np.zeros(x.shape[1])
    for _ in range(30):
        mean = expit(x @ theta)
        theta += np.linalg.solve((x.T * (mean * (1 - mean))) @ x, x.T @ (y - mean))
    return theta


def columns_of(table):
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def test_rows_that_were_kept_give_the_model_of_the_originals():
    own = columns_of(TABLE)
    x = design(own["age"], own["sex"] == "M", own["state"] == "ill")
    linear = EXACT.linear("kilos", ["age", "sex", {"state": "ill"}])
    assert list(linear) == ["intercept", "age", "sex = M", "state = ill"]
    assert linear.coefficients == pytest.approx(np.linalg.lstsq(x, own["kilos"], rcond=None)[0], abs=1e-9)
    logit = EXACT.logit({"state": "ill"}, ["age", "sex"])
    assert logit.coefficients == pytest.approx(logistic(x[:, :3], own["state"] == "ill"), abs=1e-7)
    assert np.abs(logit.covariance).max() < 1e-9
    some = own["age"] > 40
    within = EXACT.linear("kilos", ["age", "sex"], where={"age": dn.between(41, 99)})
    assert within.coefficients == pytest.approx(np.linalg.lstsq(x[some, :3], own["kilos"][some], rcond=None)[0])
    assert within.rows == some.sum()
    r = EXACT.correlation("kilos", {"state": "ill"})
    assert r.value == pytest.approx(np.corrcoef(own["kilos"], own["state"] == "ill")[0, 1])
    assert r.stderr < 1e-9


@pytest.mark.parametrize("made", ["uniform", "small-domain", "line-ups", "decoys"])
def test_distinct_rows_give_what_single_rows_do(made):
    table = TABLE.slice(0, 300)
    release = dn.publish(table, key=KEY, shuffle=False, **MADE[made])
    values = sorted(set(table["state"].to_pylist()))
    weights = [release.weights({"state": value}) for value in values]
    theta, slopes, scores = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
    rows = list(zip(release.table["age"].to_pylist(), release.table["kilos"].to_pylist(), *weights, strict=True))
    for age, kilos, *own in rows:
        for value, weight in zip(values, own, strict=True):
            x = np.array([1.0, age, value == "ill"])
            slopes += weight * np.outer(x, x)
            scores += weight * kilos * x
    theta = np.linalg.solve(slopes, scores)
    meat = np.zeros((3, 3))
    for age, kilos, *own in rows:
        star = np.zeros(3)
        for value, weight in zip(values, own, strict=True):
            x = np.array([1.0, age, value == "ill"])
            psi = x * (kilos - x @ theta)
            star += weight * psi
            meat -= weight * np.outer(psi, psi)
        meat += np.outer(star, star)
    model = release.linear("kilos", ["age", {"state": "ill"}], confidence=1e-9)  # z = 0: no direction is in doubt
    assert model.coefficients == pytest.approx(theta, rel=1e-9)
    inverse = np.linalg.inv(slopes)
    assert model.covariance == pytest.approx(inverse @ meat @ inverse, rel=1e-8)


def test_public_columns_alone_have_robust_errors_of_the_population():
    own = columns_of(TABLE)
    x, y = design(own["age"], own["sex"] == "M"), own["kilos"]
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    bread = np.linalg.inv(x.T @ x)
    robust = bread @ (x.T * (y - x @ beta) ** 2) @ x @ bread
    found = EXACT.linear("kilos", ["age", "sex"], population=True)
    assert found.covariance == pytest.approx(robust, rel=1e-6)


def test_statsmodels_gives_the_same():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    own = columns_of(TABLE)
    x = design(own["age"], own["sex"] == "M")
    theirs = sm.Logit((own["state"] == "ill").astype(float), x).fit(disp=0, cov_type="HC0")
    mine = EXACT.logit({"state": "ill"}, ["age", "sex"], population=True)
    assert mine.coefficients == pytest.approx(theirs.params, abs=1e-6)
    assert mine.covariance == pytest.approx(theirs.cov_params(), rel=1e-4)
    ols = sm.OLS(own["kilos"].astype(float), x).fit(cov_type="HC0")
    linear = EXACT.linear("kilos", ["age", "sex"], population=True)
    assert linear.coefficients == pytest.approx(ols.params, rel=1e-8)
    assert linear.covariance == pytest.approx(ols.cov_params(), rel=1e-6)


@pytest.mark.parametrize("made", MADE)
def test_every_channel_has_models_within_their_errors(made):
    table = people(20_000)
    truth = dn.publish(table, mechanism=retention(state={"coin": 1.0}), key=KEY)
    release = dn.publish(table, **{"mechanism": "uniform", **MADE[made]}, key=KEY)
    for ask in (
        lambda r: r.logit({"state": "ill"}, ["age", "sex"]),
        lambda r: r.linear("kilos", ["age", {"state": ["ill", "odd"]}]),
        lambda r: r.linear("kilos", ["age", "sex"], where={"state": "ill"}),
    ):
        exact, found = ask(truth), ask(release)
        errors = np.sqrt(np.diag(found.covariance))
        assert (errors > 0).all()
        assert (np.abs(found.coefficients - exact.coefficients) < 5.5 * errors).all()
        assert (errors < 0.6 * np.array([6, 0.1, 3])).all()
    assert abs(release.correlation("kilos", {"state": "ill"}).value - 0.35) < 0.25


def test_errors_are_those_of_all_tables_that_could_be_published():
    """Four rows, three values: all 81 published tables, each as often as it is drawn."""
    table = pa.table({"x": [1, 2, 4, 8], "state": ["a", "b", "c", "a"]})
    release = dn.publish(table, mechanism=retention(state={"coin": 0.4}), key=KEY, shuffle=False)
    channel = release.manifest.parts[0].channels[0]
    matrix, domain = channel.matrix(), list(channel.values)
    from deniable.estimation.fitting.design import condition_atoms, numeric
    from deniable.estimation.fitting.model import Model

    theta, chance, totals, errors, slopes = np.array([0.3, -0.2]), [], [], [], []
    for shown in product(domain, repeat=4):
        other = Release(release.manifest, table=table.set_column(1, "state", pa.array(shown)))
        y, x = numeric(other, "x"), [numeric(other, {"state": "b"})]
        model = Model.of(other, y, x, condition_atoms(other, {"state": ["a", "b"]}), "logit")
        truth = [domain.index(value) for value in table["state"].to_pylist()]
        chance.append(np.prod([matrix[domain.index(s), t] for s, t in zip(shown, truth, strict=True)]))
        totals.append(model._slopes(theta)[0])
        errors.append(model._sums(theta).randomization)
        slopes.append(model._slopes(theta)[1])
    chance, totals = np.array(chance), np.array(totals)
    mean = chance @ totals
    inside = np.array([1.0, 1, 0, 1])
    x = np.column_stack([np.ones(4), [0, 1, 0, 0]])
    left = inside * (np.array([1, 2, 4, 8]) - expit(x @ theta))
    assert mean == pytest.approx(x.T @ left)
    spread = (totals - mean).T @ ((totals - mean) * chance[:, None])
    assert np.einsum("t,tij->ij", chance, errors) == pytest.approx(spread)
    steep = inside * expit(x @ theta) * (1 - expit(x @ theta))
    assert np.einsum("t,tij->ij", chance, slopes) == pytest.approx((x.T * steep) @ x)


def test_missing_values_leave_rows_out_whether_public_or_perturbed():
    rng = np.random.default_rng(5)
    x = np.where(rng.random(3000) < 0.1, np.nan, rng.normal(size=3000))
    y = rng.normal(size=3000) + 2 * np.nan_to_num(x)
    kind = rng.choice(["a", "b", None], 3000, p=[0.5, 0.4, 0.1])
    table = pa.table({"x": pa.array(x, from_pandas=True), "y": y, "kind": pa.array(list(kind))})
    known = ~np.isnan(x) & np.array([k is not None for k in kind])
    expected = np.linalg.lstsq(design(x[known], kind[known] == "b"), y[known], rcond=None)[0]
    exact = dn.publish(table, mechanism=retention(kind={"coin": 1.0}), key=KEY).linear("y", ["x", "kind"])
    assert exact.coefficients == pytest.approx(expected)
    assert exact.rows == known.sum()
    found = dn.publish(table, mechanism=retention(kind={"coin": 0.7}), key=KEY).linear("y", ["x", "kind"])
    assert (np.abs(found.coefficients - expected) < 5 * np.sqrt(np.diag(found.covariance))).all()
    assert found.rows == pytest.approx(known.sum(), abs=200)
    assert found.rows != known.sum()


def test_chi_square_of_rows_that_were_kept_is_near_pearson_s():
    from scipy.stats import chi2_contingency

    own = columns_of(TABLE)
    counts = [[((own["sex"] == s) & (own["state"] == v)).sum() for v in np.unique(own["state"])] for s in "FM"]
    pearson = chi2_contingency(np.array(counts), correction=False)
    found = EXACT.chi_square("sex", "state")
    assert found.degrees == pearson.dof == 3
    assert found.statistic == pytest.approx(pearson.statistic, rel=0.1)
    assert "degrees of freedom: p =" in str(found)


def test_a_model_is_a_mapping_a_table_and_readable():
    release = dn.publish(TABLE, **{"mechanism": "uniform", **MADE["designed"]}, key=KEY)
    model = release.logit({"state": "ill"}, ["age", "sex"])
    age = model["age"]
    assert age.low < age.value < age.high
    assert model.table().column_names == ["coefficient", "value", "stderr", "value_low", "value_high"]
    assert model.table()["value"].to_pylist() == [one.value for one in model.values()]
    assert "sex = M" in repr(model)
    assert "<table" in model._repr_html_()
    wider = release.logit({"state": "ill"}, ["age", "sex"], population=True)
    assert wider["age"].stderr > age.stderr
    narrower = release.logit({"state": "ill"}, ["age", "sex"], confidence=0.5)["age"]
    assert narrower.high - narrower.low < age.high - age.low
    assert "exactly" in repr(EXACT.linear("kilos", ["age"]))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda r: r.linear("kilos", "age"), "not a list"),
        (lambda r: r.linear("kilos", []), "at least one regressor"),
        (lambda r: r.linear("kilos", ["aeg"]), "Did you mean 'age'"),
        (lambda r: r.linear("state", ["age"]), "not a number"),
        (lambda r: r.logit("kilos", ["age"]), "other values than 0 and 1"),
        (lambda r: r.linear("kilos", ["age", "age"]), "given twice"),
        (lambda r: r.linear("kilos", [{"state": "il"}]), "is not a value of column 'state'"),
        (lambda r: r.linear("kilos", ["sex", {"sex": "F"}]), "^'sex = M', 'sex = F' say the same"),
        (
            lambda r: r.linear("kilos", ["age", {}]),
            "^'everybody' says the same as other regressors, or is the same for all",
        ),
        (lambda r: r.linear("kilos", ["age"], where={"age": dn.between(200, 300)}), "no row is left"),
        (lambda r: r.logit({"sex": ["F", "M"]}, ["age"]), "holds in all of the rows"),
        (lambda r: r.logit({"sex": "F"}, ["age"], where={"sex": "M"}), "holds in none of the rows"),
        (lambda r: r.logit({"sex": "F"}, ["age", "sex"]), "no finite coefficients: a regressor seems to decide"),
        (lambda r: r.chi_square("sex", "state", where={"sex": "F"}), "a single value among these rows"),
        (lambda r: r.logit({"state": "ill"}, ["age"])["aeg"], "no coefficient 'aeg'"),
        (lambda r: r.chi_square("age", "kilos"), "more than can be tested"),
        (lambda r: r.correlation("kilos", "state"), "not a number"),
        (lambda r: r.pseudo_table("age"), "not a list"),
        (lambda r: r.linear("kilos", ["age"], confidence=2), "confidence"),
        (lambda r: r.weights("sex"), "only numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, words):
    with pytest.raises(dn.DeniableError, match=words) as refused:
        ask(EXACT)
    assert not str(refused.value).startswith("The perturbation")  # which has no part in it


def test_what_the_perturbation_drowns_is_refused():
    noisy = dn.publish(TABLE, mechanism=retention(state={"coin": 0.02}), key=KEY)
    with pytest.raises(dn.DeniableError, match="drowns this model"):
        noisy.linear("kilos", ["age", "state"])
    redrawn = dn.publish(TABLE, sensitive="state", mechanism="redraw", key=KEY)
    with pytest.raises(dn.DeniableError, match="cannot be told apart"):
        redrawn.logit({"state": "ill"}, ["age"])
    assert redrawn.linear("kilos", ["age"])["age"].stderr < 1e-9


@pytest.mark.parametrize("made", MADE)
def test_a_pseudo_table_has_every_one_and_two_way_margin(made):
    table = people(1500).append_column("even", pa.array(np.arange(1500) % 2 == 0))
    table = table.set_column(0, "age", pa.array((columns_of(table)["age"] // 20).tolist()))
    release = dn.publish(table, **{"mechanism": "uniform", **MADE[made]}, key=KEY)
    rows = release.pseudo_table()
    names = [name for name in rows.column_names if name != "weight"]
    assert set(names) == set(table.column_names)
    margins = [[name] for name in names] + [[one, other] for one in names for other in names if one < other]
    for margin in margins:
        expected = release.group_by(margin, calibrate=False)
        counted = rows.group_by(margin).aggregate([("weight", "sum")])
        found = {tuple(row[name] for name in margin): row["weight_sum"] for row in counted.to_pylist()}
        for row in expected.to_pylist():
            assert found.pop(tuple(row[name] for name in margin), 0.0) == pytest.approx(row["value"], abs=1e-6)
        assert all(abs(weight) < 1e-6 for weight in found.values())
    assert len(rows) < 1500
    assert release.pseudo_table(["sex"]).num_rows == 2
    assert all(release.pseudo_table().equals(rows) for _ in range(5))  # to the last bit, in the same order


def test_weights_of_a_condition_or_a_number_in_sql():
    for made in ("designed", "retention", "line-ups"):
        release = dn.publish(TABLE, **{"mechanism": "uniform", **MADE[made]}, key=KEY)
        for text, where in (("state = 'ill'", {"state": "ill"}), ("sex = 'F' AND state IN ('ill', 'odd')", None)):
            asked = where or {"sex": "F", "state": ["ill", "odd"]}
            assert release.weights(text) == pytest.approx(release.weights(asked))
        for number in ("kilos", "kilos * 2 + 1", "age", "CASE WHEN state = 'ill' THEN age ELSE 0 END"):
            total = release.sql(f"SELECT SUM({number}) AS x FROM release", calibrate=False)["x"][0].as_py()
            assert release.weights(number).sum() == pytest.approx(total)
        for wrong, words in (
            ("age, sex", "one condition or expression"),
            ("age FROM release", "one condition"),
            ("aeg > 3", "no column 'aeg'"),
            ("AVG(age)", "AVG"),
        ):
            with pytest.raises(dn.DeniableError, match=words):
                release.weights(wrong)
