"""Cubes: all combinations of conditions at once, as the counts that they are."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.estimation.model.several import NoisyQuestionWarning
from deniable.mechanisms.retention import Retention

N = 3000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    age = np.clip(rng.normal(45, 18, N).astype(int), 17, 90)
    job = np.where(rng.random(N) < age / 120, "a", rng.choice(list("abcd"), N))
    return pa.table({"zip": rng.choice(list("xyz"), N), "age": age, "job": job})


@pytest.fixture(scope="module")
def release(table):
    mechanism = Retention({"age": Replace(coin=0.5, low=17, high=90), "job": Replace(coin=0.6)})
    return dn.publish(table, mechanism=mechanism, key=bytes(range(32)))


def test_the_cube_holds_all_combinations_of_conditions(table, release):
    found = release.cube({"age": dn.between(25, 45), "job": "a"}, where={"zip": "x"}).to_pandas()
    assert len(found) == 4
    assert found["value"].sum() == pytest.approx(table["zip"].to_pylist().count("x"))
    row = found[found["age"] & found["job"]].iloc[0]
    one = release.count({"age": dn.between(25, 45), "job": "a", "zip": "x"})
    assert row["value"] == pytest.approx(one.value)
    assert row["stderr"] == pytest.approx(one.stderr)
    likely = release.cube({"age": dn.between(25, 45), "job": "a"}, method="mle").to_pandas()
    assert (likely["value"] >= 0).all()
    assert likely["value"].sum() == pytest.approx(N)


def test_a_cube_may_narrow_down_the_column_that_it_asks_about(table, release):
    """The condition of ``where`` is not replaced by the one of the cube: ages of 25 to 45 among those of 30 to 90."""
    where = {"age": dn.between(30, 90), "zip": "x"}
    found = release.cube({"age": dn.between(25, 45), "job": "a"}, where=where).to_pandas()
    for row in found.itertuples():
        asked = dn.between(30, 45) if row.age else dn.between(46, 90)
        one = release.count({"age": asked, "zip": "x", "job": "a" if row.job else dn.not_("a")})
        assert row.value == pytest.approx(one.value)
        assert row.stderr == pytest.approx(one.stderr)
        assert (row.value_low, row.value_high) == pytest.approx((one.low, one.high), rel=0.05)  # less lopsided


def test_a_cube_s_intervals_stop_at_the_rows_that_public_columns_leave():
    rng = np.random.default_rng(0)
    data = pa.table({"zip": ["x"] * 20 + ["y"] * 980, "ill": rng.choice(["no", "yes"], 1000)})
    few = dn.publish(data, mechanism=Retention({"ill": Replace(coin=0.05)}), key=bytes(32))
    found = few.cube({"ill": "yes"}, where={"zip": "x"}).to_pandas()
    assert (found["value_high"] <= np.maximum(20, found["value"])).all()


def test_a_cube_over_too_many_columns_says_what_it_is_worth():
    names = [f"c{i}" for i in range(7)]
    rng = np.random.default_rng(0)
    data = pa.table({name: rng.choice(["n", "y"], 300) for name in names})
    noisy = dn.publish(data, mechanism=Retention({name: Replace(coin=0.2) for name in names}), key=bytes(32))
    with pytest.warns(NoisyQuestionWarning, match="7 perturbed columns"):
        noisy.cube(dict.fromkeys(names, "y"))
