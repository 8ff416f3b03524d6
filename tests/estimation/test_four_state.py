"""Answers of decoy releases, with one and with two sensitive columns: four states, and the full channel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import OptionError, QuestionError
from deniable.estimation.decoys import four_states, inverted, several_columns
from deniable.estimation.model.conditions import Conditions
from deniable.estimation.model.tensor import Dense, Factor, Tensor
from deniable.estimation.predicates import And, Or, conjunction
from deniable.mechanisms import Decoys, Uniform

pytestmark = pytest.mark.filterwarnings("ignore::deniable.estimation.model.several.NoisyQuestionWarning")
N = 6000
AGES, JOBS = [f"age {i}" for i in range(8)], [f"job {i:02d}" for i in range(20)]
METHODS = ("four-state", "four-state exact")


def people() -> pa.Table:
    rng = np.random.default_rng(1)
    age, job = rng.integers(0, 8, N), rng.choice(20, N, p=np.arange(25, 5, -1) / 310)
    sex, weight = rng.choice(["F", "M"], N), rng.integers(50, 90, N)
    return pa.table({"sex": sex, "weight": weight, "age": np.array(AGES)[age], "job": np.array(JOBS)[job]})


def publish(table, names, key=0, **options):
    return dn.publish(table, sensitive=names, mechanism=Decoys(c=4, **options), key=bytes([key] * 32))


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def one(table):
    return publish(table.drop_columns("age"), "job")


@pytest.fixture(scope="module")
def two(table):
    return publish(table, ["age", "job"])


def truth(table, **where):
    mask = np.ones(table.num_rows, bool)
    for name, wanted in where.items():
        mask &= np.isin(np.array(table[name]), wanted)
    return int(mask.sum())


def observed(release, **values):
    """Published rows by (not F, F) and (does not show, shows) for each column."""
    bits = [np.array(release.table[name]) == value for name, value in {"sex": "F", **values}.items()]
    states = np.zeros([2] * len(bits))
    np.add.at(states, tuple(bit.astype(int) for bit in bits), 1)
    return states


@pytest.mark.parametrize("method", METHODS)
def test_one_value_is_the_four_state_estimate(one, method):
    others = "exact" if "exact" in method else "as published"
    expected = four_states(observed(one, job="job 03"), 4, others=others)[1, 1]
    found = one.count({"sex": "F", "job": "job 03"}, method=method)
    assert found.value == pytest.approx(expected)
    assert "biased" in found.method
    assert "sampling error only" in found.method
    assert 0 <= found.low <= found.value <= found.high <= truth(one.table, sex="F")


@pytest.mark.parametrize("method", METHODS)
def test_one_value_of_each_of_two_columns_is_the_tensor_product_at_its_fixed_point(two, method):
    others = "exact" if "exact" in method else "as published"
    expected = several_columns(observed(two, age="age 2", job="job 03"), [4, 4], others=others)[1, 1, 1]
    assert two.count({"sex": "F", "age": "age 2", "job": "job 03"}, method=method).value == pytest.approx(expected)


def test_a_set_of_values_is_the_sum_of_their_estimates_cut_to_what_is_possible(one, two):
    sets = [JOBS[2], JOBS[5], JOBS[7]]
    linear = sum(inverted(observed(one, job=s), [4], others="as published")[1, 1] for s in sets)
    assert one.count({"sex": "F", "job": sets}, method="four-state").value == pytest.approx(linear)
    ages = AGES[:3]
    linear = sum(inverted(observed(two, age=a, job=s), [4, 4])[1, 1, 1] for s in sets for a in ages)
    found = two.count({"sex": "F", "age": ages, "job": sets}, method="four-state exact")
    assert found.value == pytest.approx(np.clip(linear, 0, truth(two.table, sex="F")))
    everything = one.count({"sex": "F", "job": JOBS}, method="four-state")
    assert (everything.value, everything.stderr) == (truth(one.table, sex="F"), 0)


def test_sql_groups_and_pools_agree_with_counts(one, two):
    for release, where in ((one, {"sex": "F"}), (two, {"sex": "F", "age": "age 2"})):
        said = " AND ".join(f"{name} = '{value}'" for name, value in where.items())
        method = "four-state exact"
        grouped = release.sql(f"SELECT job, COUNT(*) AS n FROM release WHERE {said} GROUP BY job", method=method)
        asked = JOBS[3::5]
        single = {job: release.count({**where, "job": job}, method=method) for job in asked}
        by_job = {row["job"]: row for row in grouped.to_pylist()}
        assert list(by_job) == list(JOBS)
        assert [by_job[job]["n"] for job in asked] == pytest.approx([e.value for e in single.values()])
        assert [by_job[job]["n_high"] for job in asked] == pytest.approx([e.high for e in single.values()])
        pool = release.count_many([{**where, "job": job} for job in asked], method=method)
        assert pool.value.tolist() == pytest.approx([e.value for e in single.values()])
        assert pool.low.tolist() == pytest.approx([e.low for e in single.values()])
        by = release.group_by(["sex", "job"], {k: v for k, v in where.items() if k != "sex"}, method=method)
        rows = {(r["sex"], r["job"]): r["value"] for r in by.to_pylist()}
        assert rows["F", "job 03"] == pytest.approx(single["job 03"].value)
        assert len(rows) == 40


def test_what_it_cannot_answer_is_refused_with_the_way_out(one, two, table):
    uniform = dn.publish(table, sensitive="job", mechanism=Uniform(), privacy=dn.Privacy("1/10", "1/3"), drop=["age"])
    for method in METHODS:
        with pytest.raises(OptionError, match=r"decoy groups; this release was made by 'uniform'.*'inverse'"):
            uniform.count({"job": "job 03"}, method=method)
        with pytest.raises(OptionError, match="uniform"):
            uniform.sql("SELECT COUNT(*) AS n FROM release WHERE job = 'job 03'", method=method)
        with pytest.raises(OptionError, match="uniform"):
            uniform.count_many([{"job": "job 03"}], method=method)
    with pytest.raises(QuestionError, match="inside an OR"):
        one.sql("SELECT COUNT(*) AS n FROM release WHERE job = 'job 03' OR sex = 'F'", method="four-state")
    with pytest.raises(OptionError, match="calibrate"):
        one.count({"job": "job 03"}, method="four-state", calibrate=True)
    with pytest.raises(QuestionError, match="counts only"):
        one.sql("SELECT AVG(weight) AS n FROM release", method="four-state")
    with pytest.raises(OptionError, match="not cubes"):
        two.cube({"job": "job 03", "age": "age 1"}, method="four-state")
    with pytest.raises(OptionError, match="'four-state' or 'four-state exact'"):
        one.count({"job": "job 03"}, method="four-states")
    with pytest.raises(QuestionError, match="not a value"):
        one.count({"job": "job 99"}, method="four-state")


def test_a_value_in_every_group_shows_nothing_and_no_interval_is_claimed():
    rng = np.random.default_rng(2)
    values = np.repeat(["a", "b", "c", "d", "e"], [250, 200, 200, 200, 150])
    table = pa.table({"sex": rng.choice(["F", "M"], 1000), "x": values})
    for key in range(200):
        release = dn.publish(table, sensitive="x", mechanism=Decoys(c=4), key=bytes([key] * 32), marginals=False)
        shown = int((np.array(release.table["x"]) == "a").sum())
        if shown >= 250:  # published by N/c rows or more
            found = release.count({"sex": "F", "x": ["a", "b"]}, method="four-state exact")
            assert found.stderr == np.inf
            assert (found.low, found.high) == (0, truth(release.table, sex="F"))
            return
    pytest.fail("no key published the value often enough")


@pytest.mark.long
def test_with_very_many_values_and_no_histogram_four_states_still_answer():
    """Their full channel would be too large; with fewer values it is made from the published counts."""
    many = pa.table({"job": np.arange(3000) % 1500, "sex": np.arange(3000) % 2})
    release = dn.publish(many, sensitive="job", mechanism=Decoys(c=4), key=bytes(32), marginals=False)
    with pytest.raises(QuestionError, match="four-state exact"):
        release.count({"job": 3})
    assert release.count({"job": [1, 2, 3]}, method="four-state exact").high > 0


def test_a_cube_of_one_column_adds_up_to_its_rows_and_is_as_sure_as_counts_that_are_not_calibrated(one):
    cube = one.cube({"job": JOBS[:6]}, where={"sex": "F"}).to_pylist()
    single = one.count({"sex": "F", "job": JOBS[:6]}, calibrate=False)
    assert sum(row["value"] for row in cube) == pytest.approx(truth(one.table, sex="F"))
    assert cube[1]["value"] == pytest.approx(single.value)
    assert cube[1]["stderr"] == pytest.approx(single.stderr)
    assert one.count({"sex": "F", "job": JOBS[:6]}).stderr < 0.99 * single.stderr  # power: calibration would be seen


def test_no_group_is_no_row_whatever_the_method(one):
    for method in ("inverse", "mle", "shrunk"):
        assert one.group_by("sex", {"weight": 20}, method=method).num_rows == 0
        assert one.group_by(["sex", "job"], {"weight": 20}, method=method).num_rows == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_condition_that_no_value_satisfies_leaves_no_groups(one, method):
    assert one.group_by(["sex", "job"], {"job": None}, method=method).num_rows == 0


def test_values_that_cannot_be_told_apart_are_refused_by_the_full_channel():
    alike = Dense("job", np.kron(np.eye(2), np.full((2, 2), 0.5)))
    with pytest.raises(QuestionError, match=r"'job' cannot be told apart.*four-state exact.*mixed"):
        alike.invert(np.ones(4))


def test_no_inverse_is_made_of_the_rounding_of_a_channel():
    """Balanced groups leave values that only the sixth digit of the channel tells apart: no interval is claimed."""
    share = np.arange(1, 21) ** -0.5
    counts = np.floor(share / share.sum() * 20_000).astype(int)
    counts[-1] += -counts.sum() % 5
    table = pa.table({"x": np.repeat(np.arange(20), counts)})
    for key in range(5):
        release = dn.publish(table, sensitive="x", mechanism=Decoys(c=5, grouping="balanced"), key=bytes([key] * 32))
        found = release.count({"x": 3})
        assert found.stderr == np.inf
        assert 0 <= found.value <= 20_000
        with pytest.raises(QuestionError, match="'x' cannot be told apart"):
            release.cube({"x": 3})


def test_exempt_missing_values_are_counted_exactly_and_others_estimated(table):
    jobs = [None if i < 8 else job for i, job in enumerate(table["job"].to_pylist())]
    some = pa.table({"sex": table["sex"], "job": jobs})
    release = dn.publish(some, sensitive="job", mechanism=Decoys(c=4), missing="exempt", key=bytes(32))
    assert release.count({"job": None}).value == pytest.approx(8)
    for method in ("inverse", *METHODS):
        assert release.count({"job": None}, method=method).value == pytest.approx(8)
        found = release.count({"job": "job 00"}, method=method)
        assert found.value == pytest.approx(truth(some, job="job 00"), rel=0.3)


# -- the full channel of two columns ---------------------------------------------------------------------------------


def test_a_matrix_is_a_factor_like_any_other():
    rng = np.random.default_rng(3)
    p = rng.random((5, 5)) + 3 * np.eye(5)
    p /= p.sum(0)
    dense, coin = Dense("x", p, fixed=1), Factor(0.5, np.array([0.3, 0.7]))
    full = np.kron(np.pad(p, (0, 1)) + np.diag([0] * 5 + [1.0]), 0.5 * np.eye(2) + 0.5 * np.outer([0.3, 0.7], [1, 1]))
    tensor, x = Tensor((dense, coin)), rng.random((3, 6, 2))
    flat, inverse = x.reshape(3, 12), np.linalg.inv(full)
    for found, matrix in (
        (tensor.apply(x), full),
        (tensor.transposed(x), full.T),
        (tensor.invert(x), inverse),
        (tensor.weights(x), inverse.T),
        (tensor.squares(x), inverse**2),
    ):
        assert np.allclose(found.reshape(3, 12), flat @ matrix.T)
    assert dense.condition == pytest.approx(np.linalg.cond(p, 1))


def test_weights_are_unbiased_for_any_and_or(two):
    """sum over published values of P1 P2 w = whether the predicate holds, for every original row."""
    either = Or((conjunction({"age": ["age 1", "age 2"], "sex": "F"}), conjunction({"job": "job 03"})))
    joint = Conditions(two.manifest, two.counter(), And((either, conjunction({"sex": ["F", "M"]}))))
    p, q = (np.array(part.mixture) for part in two.manifest.parts)
    expected = np.einsum("yx,zw,pyz->pxw", p, q, joint.weights_of(joint.truth).reshape(-1, *joint.values.shape))
    if joint.wide_names == ["job", "age"]:
        expected = np.einsum("yx,zw,pyz->pxw", q, p, joint.weights_of(joint.truth).reshape(-1, *joint.values.shape))
    assert np.allclose(expected, joint.truth.reshape(expected.shape), atol=1e-6)


def test_group_by_cube_and_likelihood_agree_with_counts(two):
    """A cube is never calibrated, so that its combinations add up. Groups are, as counts are."""
    asked = {"age": ["age 1", "age 2"], "job": JOBS[:6]}
    cube = two.cube(asked, where={"sex": "F"}).to_pylist()
    alone = two.count({"sex": "F", **asked}, calibrate=False)
    assert cube[-1]["value"] == pytest.approx(alone.value)
    assert cube[-1]["stderr"] == pytest.approx(alone.stderr)
    assert sum(row["value"] for row in cube) == pytest.approx(truth(two.table, sex="F"))
    by = {row["job"]: row["value"] for row in two.group_by("job", {"age": "age 1", "sex": "F"}).to_pylist()}
    for job in JOBS[:3]:
        assert by[job] == pytest.approx(two.count({"age": "age 1", "sex": "F", "job": job}).value, abs=1e-6)
    likely = [two.count({"age": age, "job": JOBS[:6]}, method="mle").value for age in AGES]
    assert min(likely) >= -1e-6


@pytest.mark.long
def test_both_ways_state_their_spread_and_the_full_channel_is_unbiased(table):
    """40 keys, a condition that is independent of the values: spread by stderr within 1 +- .35 (its own error is 11 %;
    a variance off by a factor 2 is nearly 4 of these away), means within 5 standard errors of the truth."""
    releases = [publish(table, ["age", "job"], key) for key in range(40)]
    for where in ({"sex": "F", "job": JOBS[:3]}, {"sex": "F", "age": "age 2", "job": JOBS[:10]}):
        true = truth(table, **where)
        for method in ("inverse", "four-state exact"):
            found = [release.count(where, method=method) for release in releases]
            values, errors = np.array([e.value for e in found]), np.array([e.stderr for e in found])
            free = values > 0  # four states are cut at what is possible
            if method == "inverse" or free.all():
                assert 0.65 < values.std() / np.sqrt((errors**2).mean()) < 1.35
                assert abs(values.mean() - true) < 5 * values.std() / np.sqrt(40)


def four_state_count(shown, shown_outside, rows, total, c, method):
    """x of one value from how many rows of Q, and of the others, show it; with f_s and a_s."""
    seen = shown + shown_outside
    if method == "four-state exact":
        f = seen
        a = f * (c - 1) / (c * (total - f))
    else:  # f/c + (f/N) (N - f) = seen
        f = total / 2 * (1 + 1 / c - np.sqrt((1 + 1 / c) ** 2 - 4 * seen / total))
        a = f / total
    return (shown - a * rows) / (1 / c - a), f, a


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("most", [89, 85, 70, 55])
def test_the_stated_variance_is_that_of_two_binomial_numbers(one, method, most):
    """What Q shows of a value and what the others show of it move the estimate, also through a: with all rows in Q the
    estimate is what was published, and its variance is not that of known groups."""
    c, weight = 4, np.array(one.table["weight"])
    inside = weight <= most
    for job in (JOBS[0], JOBS[19]):
        shows = np.array(one.table["job"]) == job
        own, others = float((shows & inside).sum()), float((shows & ~inside).sum())
        rows, total = float(inside.sum()), float(len(weight))
        x, f, a = four_state_count(own, others, rows, total, c, method)
        spread = [
            n * (1 / c) * (1 - 1 / c) + (everyone - n) * a * (1 - a)
            for n, everyone in ((x, rows), (f - x, total - rows))
        ]
        slopes = [
            four_state_count(own + up, others + up_outside, rows, total, c, method)[0]
            - four_state_count(own - up, others - up_outside, rows, total, c, method)[0]
            for up, up_outside in ((0.5, 0.0), (0.0, 0.5))
        ]
        counted = one.count({"job": job, "weight": dn.between(0, most)}, method=method)
        assert counted.value == pytest.approx(x, abs=1e-6)
        expected = sum(slope**2 * variance for slope, variance in zip(slopes, spread, strict=True))
        assert counted.variance == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_nobody_shows_may_have_rows(method):
    """A value of one row is shown by nobody in (2/3)^3 = 30 % of the releases: 0 is not certain."""
    jobs = pa.table({"job": np.repeat(JOBS[:6], [300, 250, 200, 150, 98, 1])})
    unseen = 0
    for key in range(20):
        release = dn.publish(jobs, sensitive="job", mechanism=Decoys(c=3), key=bytes([key] * 32))
        counted = release.count({"job": JOBS[5]}, method=method)
        if JOBS[5] not in release.table["job"].to_pylist():
            unseen += 1
            assert counted.value == 0
            assert 3 < counted.high < 4
    assert unseen
