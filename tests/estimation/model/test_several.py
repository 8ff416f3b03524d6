"""Several perturbed columns: answers are unbiased, intervals cover, and every way of asking agrees."""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel, NumberRange, Replace
from deniable.core.exact import SCALE
from deniable.estimation.model.several import NoisyQuestionWarning
from deniable.estimation.model.tensor import Factor, Tensor
from deniable.mechanisms.retention import Retention
from deniable.tables.ranges import RangeKernel
from deniable.tables.sampler import Kernel

KEY = bytes(range(32))
N = 3000
MECHANISM = {
    "age": Replace(coin=0.5, low=17, high=90),
    "job": Replace(coin=0.6),
    "ill": Replace(coin=0.7, replacing="identity"),
    "sex": Replace(coin=0.8, replacing="swapping"),
}
ASKED = {"age": dn.between(25, 45), "job": ["a", "b"], "ill": "no", "sex": "f"}


def people(n=N, seed=1):
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 18, n).astype(int), 17, 90)
    job = np.where(rng.random(n) < age / 120, "a", rng.choice(list("abcd"), n))
    ill = np.where(rng.random(n) < age / 150, "yes", rng.choice(["no", "no", "rare"], n, p=[0.5, 0.45, 0.05]))
    sex = np.where((job == "a") & (rng.random(n) < 0.5), "f", rng.choice(["f", "m"], n))
    pay = np.round(age * 100.0 + rng.normal(0, 500, n), 2)
    return pa.table({"zip": rng.choice(list("xyz"), n), "pay": pay, "age": age, "job": job, "ill": ill, "sex": sex})


def truth(table, where):
    inside = np.ones(table.num_rows, bool)
    for name, condition in where.items():
        values = table[name].to_numpy(zero_copy_only=False)
        if hasattr(condition, "low"):
            inside &= (values >= condition.low) & (values <= condition.high)
        else:
            inside &= np.isin(values, np.atleast_1d(condition))
    return inside


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def release(table):
    return dn.publish(table, mechanism=Retention(MECHANISM), key=KEY)


# -- the mathematics, over thousands of draws ------------------------------------------------------------------------


def draws_of(k, repeats, rng):
    """Patterns [repeats, 2, .., 2] of k perturbed columns, by the kernels that publish them, and the tensor."""
    table = people(1500)
    columns, factors, original = [], [], []
    age = table["age"].to_numpy()
    grid = NumberRange("integer", 17, 90, 1, SCALE // 2)
    chosen = (np.arange(74) + 17 >= 25) & (np.arange(74) + 17 <= 45)
    kernels = [(RangeKernel(grid), age - 17, grid.weights(), chosen, 0.5)]
    for name, coin, wanted in (("job", 0.6, ["a", "b"]), ("ill", 0.7, ["no"]), ("sex", 0.4, ["f"])):
        domain, codes = np.unique(table[name].to_numpy(zero_copy_only=False), return_inverse=True)
        channel = Channel.of(domain.tolist(), coin)
        kernel = Kernel([channel], [np.arange(channel.m)])
        kernels.append((kernel, codes, channel.replacing, np.isin(domain, wanted), float(channel.coins[0])))
    for kernel, codes, masses, inside, coin in kernels[:k]:
        many = np.tile(codes.astype(np.uint32), repeats)
        words = rng.integers(0, 2**64, len(many), dtype=np.uint64)
        columns.append(inside[kernel.perturb(many, words)])
        factors.append(Factor(coin, np.array([masses[~inside].sum(), masses[inside].sum()])))
        original.append(inside[codes])
    pattern = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        pattern = pattern * 2 + column
    pattern += np.repeat(np.arange(repeats), len(age)) * 2**k
    counts = np.bincount(pattern, minlength=repeats * 2**k).reshape(repeats, *[2] * k).astype(float)
    return counts, Tensor(tuple(factors)), int(np.logical_and.reduce(original).sum())


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_counts_are_unbiased_and_intervals_cover(k):
    repeats = 1500
    counts, tensor, true = draws_of(k, repeats, np.random.default_rng(10 + k))
    last = (..., *[-1] * k)
    asked = np.zeros([2] * k)
    asked[last] = 1
    weights = tensor.weights(asked)
    axes = tuple(range(1, k + 1))
    estimate = (counts * weights).sum(axis=axes)
    variance = (counts * (weights**2 - weights)).sum(axis=axes)
    assert np.allclose(estimate, tensor.invert(counts)[last])
    spread = estimate.std() / math.sqrt(repeats)
    assert abs(estimate.mean() - true) < 5 * spread  # false alarm 6e-7
    assert 5 * spread < 0.05 * true  # a bias of 5 % would be seen
    # the variance of a variance is 2/R; correlations of k coins make tails heavier, 30 % is far beyond five of those
    assert 0.8 < variance.mean() / estimate.var() < 1.25
    covered = np.abs(estimate - true) <= 1.96 * np.sqrt(np.maximum(variance, 0))
    assert abs(covered.mean() - 0.95) < 5 * math.sqrt(0.95 * 0.05 / repeats) + 0.005


def test_ignoring_the_replacements_would_be_noticed():
    counts, _, true = draws_of(2, 300, np.random.default_rng(20))
    raw = counts[:, -1, -1]
    assert abs(raw.mean() - true) > 20 * raw.std() / math.sqrt(300)


def test_the_likelihood_estimate_is_at_least_as_near_as_the_inverse():
    counts, tensor, true = draws_of(4, 100, np.random.default_rng(21))
    inverse, likely = tensor.invert(counts)[:, -1, -1, -1, -1], tensor.likelihood(counts)[:, -1, -1, -1, -1]
    assert np.abs(likely - true).mean() <= np.abs(inverse - true).mean() * 1.02
    assert (likely >= 0).all()


# -- through a release -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sixty(table):
    """Releases of the same table, each with its own key."""
    return [
        dn.publish(table, mechanism=Retention(MECHANISM), key=bytes([i]) * 32, shuffle=False, threads=1)
        for i in range(60)
    ]


@pytest.mark.parametrize("k", [1, 2, *(pytest.param(k, marks=pytest.mark.long) for k in (3, 4))])
def test_a_release_answers_conjunctions_without_bias(table, sixty, k):
    where = dict(list(ASKED.items())[:k]) | {"zip": ["x", "y"]}
    true = truth(table, where).sum()
    found = [release.count(where) for release in sixty]
    errors = np.array([(estimate.value - true) / estimate.stderr for estimate in found])
    assert abs(errors.mean()) < 5 / math.sqrt(60)
    assert errors.std() < 1.5


def test_python_sql_and_groups_agree(release):
    where = {"age": dn.between(25, 45), "job": "a", "zip": "x"}
    one = release.count(where)
    by_sql = release.sql("SELECT COUNT(*) AS n FROM release WHERE age BETWEEN 25 AND 45 AND job = 'a' AND zip = 'x'")
    assert by_sql["n"][0].as_py() == pytest.approx(one.value)
    assert by_sql["n_low"][0].as_py() == pytest.approx(one.low)
    grouped = release.group_by(["zip", "job"], {"age": dn.between(25, 45)}).to_pandas().set_index(["zip", "job"])
    assert grouped.loc[("x", "a"), "value"] == pytest.approx(one.value)
    assert grouped.loc[("x", "a"), "stderr"] == pytest.approx(one.stderr)


def test_a_function_of_a_perturbed_column_is_grouped_by_as_the_values_that_it_joins(release):
    asked = "SELECT CASE WHEN job IN ('a', 'b') THEN 'ab' ELSE job END AS j, COUNT(*) AS n FROM release GROUP BY 1"
    joined = {row["j"]: row["n"] for row in release.sql(asked).to_pylist()}
    single = {row["job"]: row["value"] for row in release.group_by("job").to_pylist()}
    assert joined == pytest.approx({"ab": single["a"] + single["b"], "c": single["c"], "d": single["d"]})


def test_groups_add_up_to_the_whole(release):
    """By the channels alone; calibrated, each cell is drawn to the histograms by its own slope."""
    cells = release.group_by(["job", "ill", "sex"], calibrate=False)
    assert sum(cells["value"].to_pylist()) == pytest.approx(N)
    assert cells.num_rows == 4 * 3 * 2
    calibrated = release.group_by(["job", "ill", "sex"])
    assert sum(calibrated["value"].to_pylist()) == pytest.approx(N, abs=N / 100)


@pytest.mark.parametrize("missing", ["value", "exempt"])
def test_a_column_may_be_grouped_by_and_narrowed_down_at_once(missing):
    rng = np.random.default_rng(7)
    job = pa.array(rng.choice(list("abc"), 500), mask=rng.random(500) < 0.1)
    table = pa.table({"job": job, "age": rng.integers(0, 9, 500)})
    mechanism = Retention({"job": Replace(coin=0.6), "age": Replace(coin=0.5, low=0, high=8)})
    release = dn.publish(table, mechanism=mechanism, key=KEY, missing=missing)
    every = release.group_by(["job", "age"]).to_pylist()
    some = release.group_by(["job", "age"], {"job": ["a", None], "age": dn.between(2, 4)}).to_pylist()
    assert some == [row for row in every if row["job"] in ("a", None) and row["age"] in (2, 3, 4)]
    assert len(some) == 6
    by_sql = release.sql("SELECT age, COUNT(*) AS n FROM release WHERE age < 3 AND age IS NULL GROUP BY age")
    assert by_sql.num_rows == 0


def test_or_and_not_are_answered_by_inclusion_and_exclusion(release):
    ages, job = "age BETWEEN 25 AND 45", "job = 'a'"

    def count(condition):
        return release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {condition}")["n"][0].as_py()

    both = count(f"{ages} AND {job}")
    assert count(f"{ages} OR {job}") == pytest.approx(count(ages) + count(job) - both)
    assert count(f"NOT ({ages})") == pytest.approx(N - count(ages))
    assert count("age < 25 OR age > 45") == pytest.approx(N - count(ages))


def test_sums_and_means_of_public_columns(table, release):
    where = {"job": "a", "age": dn.between(25, 60)}
    inside = truth(table, where)
    pay = table["pay"].to_numpy()
    total, average = release.sum("pay", where), release.mean("pay", where)
    assert abs(total.value - pay[inside].sum()) < 5 * total.stderr
    assert abs(average.value - pay[inside].mean()) < 5 * average.stderr
    assert total.stderr < 0.2 * pay[inside].sum()
    assert average.value == pytest.approx(total.value / release.count(where).value)


def test_a_question_about_public_columns_is_answered_exactly(table, release):
    found = release.count({"zip": "x"})
    assert found.value == truth(table, {"zip": "x"}).sum()
    assert found.stderr == 0


def test_a_swapped_column_keeps_its_exact_histogram(table, release):
    assert release.count({"sex": "f"}).value == pytest.approx(truth(table, {"sex": "f"}).sum(), abs=0.01)


def test_a_quantile_of_nothing_has_no_value(release):
    assert (
        release.sql("SELECT sex, MEDIAN(NULLIF(age, age)) AS m FROM release GROUP BY sex")["m"].to_pylist()
        == [None] * 2
    )


def test_maximum_likelihood_through_a_release(table, release):
    found = release.count(ASKED, method="mle")
    assert abs(found.value - truth(table, ASKED).sum()) < 5 * found.stderr
    grouped = release.group_by(["job", "ill"], method="mle")
    assert min(grouped["value"].to_pylist()) >= 0
    assert sum(grouped["value"].to_pylist()) == pytest.approx(N)


@pytest.mark.parametrize("missing", ["value", "exempt"])
def test_missing_values_are_counted_under_either_policy(missing):
    rng = np.random.default_rng(3)
    n = 20_000
    age = pa.array(rng.integers(0, 100, n), mask=rng.random(n) < 0.2)
    job = pa.array(rng.choice(list("ab"), n), mask=rng.random(n) < 0.1)
    mechanism = Retention({"age": Replace(coin=0.6, low=0, high=99), "job": Replace(coin=0.6)})
    table = pa.table({"age": age, "job": job})
    release = dn.publish(table, mechanism=mechanism, key=KEY, missing=missing)
    gone = age.null_count
    found = release.count({"age": None})
    assert abs(found.value - gone) <= 5 * found.stderr + 1e-9
    assert (found.stderr == 0) == (missing == "exempt")
    both = release.count({"age": dn.between(0, 49), "job": "a"})
    inside = np.array(
        [a is not None and a < 50 and j == "a" for a, j in zip(age.to_pylist(), job.to_pylist(), strict=True)]
    )
    assert abs(both.value - inside.sum()) < 5 * both.stderr
    assert sum(release.group_by("job")["value"].to_pylist()) == pytest.approx(n)


def test_dates_and_decimals_are_asked_about_in_their_own_words():
    rng = np.random.default_rng(4)
    n = 20_000
    days = rng.integers(0, 3650, n)
    weight = np.round(rng.uniform(40, 120, n), 1)
    table = pa.table({"born": pa.array(days.astype("int32")).cast(pa.date32()), "weight": weight})
    first = datetime.date(1970, 1, 1)
    mechanism = Retention(
        {
            "born": Replace(coin=0.5, low=first, high=first + datetime.timedelta(3649)),
            "weight": Replace(coin=0.5, low=40, high=120),
        }
    )
    release = dn.publish(table, mechanism=mechanism, key=KEY)
    end = datetime.date(1973, 12, 31)
    found = release.count({"born": dn.between(first, end), "weight": dn.between(60, 80)})
    true = ((days <= (end - first).days) & (weight >= 60) & (weight <= 80)).sum()
    assert abs(found.value - true) < 5 * found.stderr
    by_sql = release.sql(
        "SELECT COUNT(*) AS n FROM release WHERE born <= DATE '1973-12-31' AND weight BETWEEN 60 AND 80"
    )
    assert by_sql["n"][0].as_py() == pytest.approx(found.value)


def test_sixteen_perturbed_columns_in_one_question():
    rng = np.random.default_rng(5)
    n = 5000
    table = pa.table({f"c{i:02d}": rng.choice(["y", "n"], n, p=[0.9, 0.1]) for i in range(17)})
    mechanism = Retention({name: Replace(coin=0.9) for name in table.column_names})
    release = dn.publish(table, mechanism=mechanism, key=KEY)
    where = {f"c{i:02d}": "y" for i in range(16)}
    found = release.count(where)
    true = truth(table, where).sum()
    assert abs(found.value - true) < 5 * found.stderr
    with pytest.raises(dn.DeniableError, match="at most 16 columns"):
        release.count({f"c{i:02d}": "y" for i in range(17)})


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"job": dn.between(1, 5)}, r"condition on 'job': 1 cannot be compared.*Fix: ask for a value or a list"),
        ({"job": "zz"}, "is not a value of column 'job'"),
        ({"age": 400}, "is not a value of column 'age'"),
        ({"salary": 3}, "There is no column 'salary'"),
    ],
)
def test_questions_that_make_no_sense_are_refused(release, where, words):
    with pytest.raises(dn.DeniableError, match=words):
        release.count(where)


def test_methods_that_need_one_column_are_refused(release):
    with pytest.raises(dn.DeniableError, match="one sensitive column"):
        release.count({"job": "a"}, method="shrunk")


def test_several_columns_are_calibrated_unless_it_is_not_wanted(release):
    calibrated = release.count({"job": "a", "ill": "no"}, calibrate=True)
    assert calibrated == release.count({"job": "a", "ill": "no"})
    assert calibrated.stderr < release.count({"job": "a", "ill": "no"}, calibrate=False).stderr


def test_many_counts_are_the_counts_one_by_one(release):
    wheres = [{"job": "a"}, {"age": dn.between(25, 45), "zip": "x"}, {"zip": "y"}]
    pool, each = release.count_many(wheres), [release.count(where) for where in wheres]
    assert pool.value == pytest.approx([one.value for one in each])
    assert pool.stderr == pytest.approx([one.stderr for one in each])
    assert pool.low == pytest.approx([one.low for one in each])
    with pytest.raises(dn.DeniableError, match="one sensitive column"):
        release.count_many([{"zip": "x"}], every_value=True)


def test_a_question_that_the_noise_drowns_is_answered_with_a_warning():
    rng = np.random.default_rng(6)
    table = pa.table({f"c{i}": rng.choice(list("abc"), 500) for i in range(6)})
    mechanism = Retention({name: Replace(coin=0.2) for name in table.column_names})
    release = dn.publish(table, mechanism=mechanism, key=KEY)
    with pytest.warns(NoisyQuestionWarning, match="6 perturbed columns together magnify"):
        found = release.count(dict.fromkeys(table.column_names, "a"))
    assert found.hopeless


def test_columns_with_histograms_answer_conditions_that_no_row_satisfies():
    rng = np.random.default_rng(1)
    columns = {"age": rng.integers(1, 9, N), "job": rng.choice(list("abc"), N), "ill": rng.choice(list("xyz"), N)}
    table = pa.table(columns)
    own = {"job": Replace(coin=0.5, replacing="identity"), "ill": Replace(coin=0.6, replacing="identity")}
    release = dn.publish(table, mechanism=Retention(own), marginals=True, key=KEY)
    count = release.count({"age": dn.between(50, 60), "job": "a", "ill": "x"})
    assert (count.value, count.low, count.high) == (0, 0, 0)
