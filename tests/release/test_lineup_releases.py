"""Releases of line-ups: what goes together, and what they say."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Lineup

ANY_PRIOR = dn.Privacy(rho1="1/4", rho2="1/3", adversary="any-prior")


def published(seed, size=None):
    rng = np.random.default_rng(seed)
    table = pa.table({"sex": rng.choice(["F", "M"], 3000), "disease": rng.choice(list("abcdefgh"), 3000)})
    return dn.publish(
        table,
        sensitive="disease",
        privacy=ANY_PRIOR,
        mechanism=Lineup(size=size),
        domain=list("abcdefgh"),
        key=bytes([seed] * 32),
    )


def test_line_ups_of_one_design_are_pooled_and_others_are_not():
    both = dn.pool([published(1), published(2)])
    assert both.count(where={"sex": "F"}).value == pytest.approx(3000, abs=200)
    with pytest.raises(dn.DeniableError, match="line-ups of another design"):
        dn.pool([published(1), published(2, size=2)])


def test_a_plan_is_explained_without_cells():
    text = dn.plan(dict.fromkeys("abcdefgh", 10), ANY_PRIOR, mechanism="lineup").explain()
    assert "line-ups of" in text
    assert "cell" not in text


def test_several_columns_are_refused_with_the_fix():
    table = pa.table({"a": ["x", "y"] * 50, "b": ["u", "v"] * 50})
    with pytest.raises(dn.DeniableError, match="one sensitive column"):
        dn.publish(table, sensitive=["a", "b"], privacy=dn.Privacy(rho2="3/4"), mechanism="lineup", key=bytes(32))
