"""Learned releases on Spark: what is counted, drawn and dealt is that of one machine, however rows are cut."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Synthetic
from tests.spark_session import in_partitions, needs_spark

pytestmark = [needs_spark, pytest.mark.long]

ROWS = 4_000
EPSILON = dn.Privacy(epsilon=3)
ASKED = {
    "a list as it is": {"sensitive": "ill", "mechanism": Synthetic(listing="table")},
    "a list by the threshold, missing values exempt": {"sensitive": "ill", "missing": "exempt"},
    "declared edges": {"sensitive": "income", "bins": {"income": [0, 10_000, 20_000, 40_000, 10_000_000]}},
    "private edges": {"sensitive": "income", "bins": {"income": dn.Quantiles(4)}},
    "two columns": {"sensitive": ["ill", "drug"]},
    "people in households": {"sensitive": "ill", "person": "who", "group": "house"},
}


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(1)
    age, row = rng.integers(18, 90, rows), np.arange(rows)
    ill = np.where(rng.random(rows) < 0.2 + 0.004 * age, "flu", rng.choice(["cold", "ok"], rows))
    drug = np.where(rng.random(rows) < 0.7, np.char.add("for ", ill.astype(str)), "none")
    income = np.round(np.exp(rng.normal(10 + 0.004 * age, 0.4)))
    columns = {"sex": rng.choice(["F", "M"], rows), "age": age, "day": (row // 50).astype("datetime64[D]")}
    ids = {"who": row // 2, "house": row // 3}
    return pa.table({**columns, "ill": pa.array(ill, mask=row % 9 == 0), "drug": drug, "income": income, **ids})


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return people()


@pytest.mark.parametrize("name", ASKED)
def test_what_an_owner_may_ask_gives_the_release_of_one_machine(table: pa.Table, name: str, tmp_path: Path) -> None:
    options = {"mechanism": "synthetic", "privacy": EPSILON, "key": bytes(32), **ASKED[name]}
    named = [options["sensitive"]] if isinstance(options["sensitive"], str) else options["sensitive"]
    used = ["sex", "age", "day", *named, *(options[name] for name in ("person", "group") if name in options)]
    some = table.select(used)
    here = dn.publish(some, out=tmp_path / "here", **options)
    there = dn.publish(in_partitions(some, 3), out=tmp_path / "there", **options)
    assert there.engine.name == "spark"
    assert there.table.equals(here.table)
    assert {**there.manifest.to_dict(), "data": None} == {**here.manifest.to_dict(), "data": None}
    assert dn.verify(tmp_path / "there").holds
    where = {named[0]: here.manifest.column_domains[named[0]][0], "sex": "F"}
    mine, theirs = here.count(where), there.count(where)
    assert (mine.value, mine.low, mine.high) == pytest.approx((theirs.value, theirs.low, theirs.high))


def test_a_hundred_thousand_rows_and_a_series_give_the_release_of_one_machine(tmp_path: Path) -> None:
    table = people(100_000).select(["sex", "age", "ill"])
    asked = {"sensitive": "ill", "mechanism": "synthetic", "privacy": EPSILON}
    here = dn.publish(table, key=bytes(range(32)), **asked)
    there = dn.publish(in_partitions(table, 7), key=bytes(range(32)), **asked)
    assert there.table.equals(here.table)
    first, again = (
        dn.publish(frame, series=tmp_path / "s", publications=2, **asked)
        for frame in (in_partitions(table, 4), in_partitions(table, 4))
    )
    assert again.table.equals(first.table)
    assert again.manifest.to_dict() == first.manifest.to_dict()
