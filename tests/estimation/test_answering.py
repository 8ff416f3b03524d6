"""Questions in Python, against a brute-force inverse and against the truth."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel
from deniable.core.errors import OptionError, QuestionError
from deniable.estimation.predicates import between, not_
from deniable.tables import counting

PRIVACY = dn.Privacy(rho1="1/2", rho2="3/4")


def weights_by_row(release, wanted):
    """w for every row, from dense inverses: the definition."""
    table = release.table.to_pandas()
    cell = table["cell"].to_numpy() if "cell" in table else np.zeros(len(table), int)
    w = np.zeros(len(table))
    (part,) = release.manifest.parts
    place = {value: i for i, value in enumerate(part.domain)}
    y = table["disease"].map(place).to_numpy()
    for number, (channel, positions) in enumerate(zip(part.channels, part.cell_positions, strict=True)):
        inverse = np.linalg.inv(channel.matrix())
        inside = np.array([part.domain[i] in wanted for i in positions], float)
        rows = cell == number
        w[rows] = (inside @ inverse)[np.searchsorted(positions, y[rows])]
    return w, table


@pytest.fixture(params=["release", "celled"])
def some(request):
    return request.getfixturevalue(request.param)


def test_count_is_the_sum_of_weights_and_its_variance_the_sum_of_w_squared_minus_w(some):
    w, table = weights_by_row(some, {"hiv", "flu"})
    rows = ((table.sex == "F") & table.age.between(30, 50)).to_numpy()
    found = some.count({"sex": "F", "age": between(30, 50), "disease": ["hiv", "flu"]}, calibrate=False)
    assert found.value == pytest.approx(w[rows].sum(), rel=1e-9)
    assert found.variance == pytest.approx((w * w - w)[rows].sum(), rel=1e-9)
    assert found.largest <= rows.sum()
    assert found.low <= found.value <= found.high


def test_sum_and_mean_weigh_the_rows_that_have_a_number(some):
    w, table = weights_by_row(some, {"cancer"})
    rows = ((table.sex == "M") & table.income.notna()).to_numpy()
    v = table.income.to_numpy()
    total = some.sum("income", {"sex": "M", "disease": "cancer"}, calibrate=False)
    assert total.value == pytest.approx((v * w)[rows].sum(), rel=1e-9)
    assert total.variance == pytest.approx((v * v * (w * w - w))[rows].sum(), rel=1e-9)
    average = some.mean("income", {"sex": "M", "disease": "cancer"}, calibrate=False)
    ratio = (v * w)[rows].sum() / w[rows].sum()
    assert average.value == pytest.approx(ratio, rel=1e-9)
    delta = ((v - ratio) ** 2 * (w * w - w))[rows].sum() / w[rows].sum() ** 2
    assert delta <= average.variance <= delta * 1.3


def test_public_questions_are_exact(release):
    table = release.table.to_pandas()
    found = release.count({"sex": "F", "town": None})
    assert found.value == ((table.sex == "F") & table.town.isna()).sum()
    assert found.stderr == 0
    assert found.low == found.high == found.value
    assert release.mean("income", {"age": between(20, 30)}).value == pytest.approx(
        table.income[table.age.between(20, 30)].mean()
    )


def test_not_means_everything_else_missing_included(release):
    table = release.table.to_pandas()
    assert release.count({"town": not_("Basel")}).value == (table.town != "Basel").sum()
    assert release.count({"town": not_(None)}).value == table.town.notna().sum()
    assert release.count({"town": ["Basel", None]}).value == ((table.town == "Basel") | table.town.isna()).sum()
    whole = release.count({"disease": not_("hiv")}, calibrate=False) + release.count(
        {"disease": "hiv"}, calibrate=False
    )
    assert whole.value == pytest.approx(6000)


def test_no_rows_is_zero_with_no_error(release):
    found = release.count({"age": 17, "disease": "hiv"})
    assert (found.value, found.stderr, found.low, found.high) == (0, 0, 0, 0)
    with pytest.raises(QuestionError, match="no average"):
        release.mean("income", {"age": 17})


def test_group_by_public_and_sensitive_columns_equals_single_counts(some):
    table = some.group_by(["disease", "sex"], {"age": between(20, 60)})
    assert table.column_names == ["disease", "sex", "value", "stderr", "value_low", "value_high"]
    assert table.num_rows == 10
    for row in table.to_pylist():
        single = some.count({"disease": row["disease"], "sex": row["sex"], "age": between(20, 60)})
        assert row["value"] == pytest.approx(single.value, rel=1e-9)
        assert row["stderr"] == pytest.approx(single.stderr, rel=1e-9)
        assert (row["value_low"], row["value_high"]) == pytest.approx((single.low, single.high), rel=1e-9)


def test_uncalibrated_histogram_adds_up_to_the_rows(some):
    assert sum(some.histogram({"sex": "F"}, calibrate=False)["value"].to_pylist()) == pytest.approx(
        some.count({"sex": "F"}).value
    )


@pytest.mark.parametrize("method", ["inverse", "mle", "shrunk"])
def test_a_pool_answers_as_single_questions_do(some, method):
    wheres = [
        {"sex": "F", "disease": "hiv"},
        {"sex": "M", "age": between(30, 40), "disease": ["flu", "ulcer"]},
        {"town": None, "age": 33},
        None,
        {"town": ["Basel", "Chur"], "disease": "hiv"},
    ]
    pool = some.count_many(wheres, method=method)
    for i, where in enumerate(wheres):
        single = some.count(where, method=method)
        assert pool.value[i] == pytest.approx(single.value, rel=1e-9)
        assert (pool.low[i], pool.high[i]) == pytest.approx((single.low, single.high), rel=1e-9)
    every = some.count_many([{"sex": "F"}, {"town": "Chur"}], every_value=True, method=method)
    assert every.value.shape == (2, 5)
    assert every.value[1, 3] == pytest.approx(some.count({"town": "Chur", "disease": "hiv"}, method=method).value)


def test_large_group_bys_are_tallied_in_pieces_with_the_same_result(release, monkeypatch):
    whole = release.group_by(["age", "town", "disease"]).sort_by([("age", "ascending"), ("town", "ascending")])
    monkeypatch.setattr(counting, "DENSE_ENTRIES", 10)
    monkeypatch.setattr(counting, "BLOCK_ENTRIES", 100)
    pieces = release.group_by(["age", "town", "disease"]).sort_by([("age", "ascending"), ("town", "ascending")])
    assert (
        whole.num_rows
        == pieces.num_rows
        == len(set(zip(*release.table.select(["age", "town"]).to_pydict().values(), strict=True))) * 5
    )
    np.testing.assert_allclose(whole["value"], pieces["value"], rtol=1e-9)


def test_a_condition_that_no_value_satisfies_leaves_no_groups():
    rng = np.random.default_rng(6)
    table = pa.table({name: rng.choice(["a", "b", "c"], 300) for name in ("one", "two", "sex")})
    release = dn.publish(table, sensitive=["one", "two"], mechanism="uniform", privacy=PRIVACY, key=bytes(32))
    for method in ("inverse", "mle", "shrunk"):
        for groups in ("one", "one, two", "sex, two"):
            query = f"SELECT {groups}, COUNT(*) AS n FROM release WHERE one LIKE '%x%' GROUP BY {groups}"
            assert release.sql(query, method=method).num_rows == 0


def test_groups_are_answered_a_block_at_a_time(new_release, monkeypatch):
    """100,000 groups of 40 values are 32 MB of tallies; a block of them and the answers are a few."""
    rng = np.random.default_rng(9)
    n, domain = 100_000, [f"v{i}" for i in range(40)]
    release = new_release(rng, pa.table({"id": np.arange(n)}), rng.integers(0, 40, n), domain)
    release.count({"id": 1, "disease": "v1"})  # columns are encoded once, the whole table is tallied once
    monkeypatch.setattr(counting, "DENSE_ENTRIES", 2**10)
    monkeypatch.setattr(counting, "BLOCK_ENTRIES", 2**16)
    tracemalloc.start()
    found = release.group_by("id", {"disease": "v1"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.num_rows == n
    assert peak < 20 * 2**20


def test_a_million_groups_are_answered(new_release):
    rng = np.random.default_rng(3)
    n = 1_000_000
    release = new_release(rng, pa.table({"id": np.arange(n)}), rng.integers(0, 2, n), ["a", "b"])
    found = release.group_by("id", {"disease": "a"}, calibrate=False)
    assert found.num_rows == n
    assert sum(found["value"].to_numpy()) == pytest.approx(release.count({"disease": "a"}, calibrate=False).value)


def test_a_channel_that_redraws_everything_claims_no_error_bound(new_release, new_patients):
    rng = np.random.default_rng(4)
    table, truth, domain = new_patients(rng, 2000)
    share = np.bincount(truth) / len(truth)
    release = new_release(rng, table, truth, domain, [(Channel.of(domain, 0.0, share), list(range(5)))], marginal=False)
    found = release.count({"sex": "F", "disease": "hiv"})
    rows = release.count({"sex": "F"}).value
    assert found.value == pytest.approx(rows * share[3], rel=1e-6)
    assert (found.low, found.high) == (0, rows)
    assert found.hopeless


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.count({"sexx": "F"}), "no column 'sexx'. Did you mean 'sex'"),
        (lambda r: r.count({"disease": "hivv"}), "'hivv' is not a value of column 'disease'. Did you mean 'hiv'"),
        (lambda r: r.count({"town": "Bael"}), "Did you mean 'Basel'"),
        (lambda r: r.count({"town": "asel"}), "Did you mean 'Basel'"),
        (lambda r: r.count({"disease": "zz"}), "is not a value of column 'disease'. Fix: ask for one of its values: '"),
        (
            lambda r: r.count({"age": "old"}),
            "on 'age': 'old' cannot be compared .* Fix: ask for values of type",
        ),
        (lambda r: r.count({"disease": 5}), "on 'disease': 5 cannot be compared .* Fix: ask for a value or a list"),
        (lambda r: r.count({"town": 3.5}), "on 'town': 3.5 cannot be compared .* Fix: ask for a value or a list"),
        (lambda r: r.count("sex"), "not a mapping"),
        (lambda r: r.sum("disease"), "only numbers"),
        (lambda r: r.sum("town"), "only numbers"),
        (lambda r: r.group_by([]), "one or more"),
        (lambda r: r.group_by(["six"]), "Did you mean 'sex'"),
        (lambda r: r.count({"disease": None}), "no missing values"),
        (lambda r: r.count_many([{"disease": "hiv"}], every_value=True), "public columns only"),
    ],
)
def test_questions_that_make_no_sense_are_refused_with_a_hint(release, ask, message):
    with pytest.raises(QuestionError, match=message):
        ask(release)


def test_a_condition_that_makes_no_sense_is_said_before_an_option_that_does_not_fit(new_release, new_patients):
    rng = np.random.default_rng(5)
    release = new_release(rng, *new_patients(rng, 100), marginal=False)
    with pytest.raises(QuestionError, match="Did you mean 'hiv'"):
        release.count({"disease": "hivv"}, calibrate=True)
    with pytest.raises(OptionError, match="needs the noisy histogram"):
        release.count({"disease": "hiv"}, calibrate=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.5}, "confidence = 1.5"),
        ({"confidence": True}, "confidence"),
        ({"method": "shrink"}, "Did you mean 'shrunk'"),
    ],
)
def test_bad_options_are_refused(release, options, message):
    with pytest.raises(OptionError, match=message):
        release.count(**options)


def test_a_range_whose_ends_are_reversed_or_of_two_kinds_is_refused():
    with pytest.raises(QuestionError, match=r"Fix: between\(2, 6\)"):
        between(6, 2)
    with pytest.raises(QuestionError, match="one kind"):
        between(1, "b")
