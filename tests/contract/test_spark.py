"""Every mechanism on Spark: the same key and the same table give the release of one machine, however rows are cut."""

from functools import cache

import pyarrow.parquet as pq
import pytest

import deniable as dn
from tests.contract.cases import MADE, N, people, publish
from tests.spark_session import in_partitions, needs_spark

pytestmark = [needs_spark, pytest.mark.long]

ELSEWHERE = "retention, swapped"
FEW = ["uniform", "small-domain", "lineup", "decoys, rows left out"]


@pytest.fixture(scope="module")
def table():
    return people(N)


@pytest.fixture(scope="module")
def frame(table):
    return cache(lambda number: in_partitions(table, number))


def check(table, frame, name, number, folder):
    here, there = publish(table, name, "local", out=folder / "here"), publish(frame, name, None, out=folder / "there")
    assert there.engine.name == "spark"
    assert frame.rdd.getNumPartitions() == number
    assert there.table.equals(here.table)  # the same rows, and in the same order
    assert {**there.manifest.to_dict(), "data": None} == {**here.manifest.to_dict(), "data": None}
    assert not dn.verify(folder / "there").failures


@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize("name", [name for name in MADE if name != ELSEWHERE])
def test_every_mechanism_gives_the_release_of_one_machine(table, frame, name, number, tmp_path):
    check(table, frame(number), name, number, tmp_path)


@pytest.mark.parametrize("name", FEW)
def test_a_file_and_no_shuffling_give_the_release_of_one_machine(table, name, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    here, there = (publish(tmp_path / "t.parquet", name, engine, shuffle=False) for engine in ("local", "spark"))
    assert there.table.equals(here.table)


def test_swapping_is_refused_with_the_reason(frame, tmp_path):
    with pytest.raises(dn.DeniableError, match=r"exchanges values between any two rows.*Fix: another replacing="):
        publish(frame(2), ELSEWHERE, None, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
