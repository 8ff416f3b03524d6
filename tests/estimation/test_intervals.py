"""Columns of intervals are compared with numbers at their edges, and nowhere else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.core.errors import QuestionError
from deniable.estimation.intervals import Interval, compare_intervals

HOLDS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@given(st.integers(-5, 5), st.integers(1, 6), st.booleans(), st.sampled_from(sorted(HOLDS)), st.integers(-12, 24))
def test_all_none_or_some_of_its_numbers(low: int, width: int, closed: bool, operator: str, halves: int) -> None:
    interval, number = Interval(low, low + width, closed), halves / 2
    inside = [low + step / 4 for step in range(4 * width + closed)]  # quarters: finer than any edge or number
    held = {HOLDS[operator](one, number) for one in inside}
    assert interval.satisfies(operator, number) == (held.pop() if len(held) == 1 else None)


def test_labels_of_bins_and_bands_are_read() -> None:
    for labels in (dn.Bins((0, 2.5, 1e7)).labels, dn.bands([-3, 4]).labels, (dn.bands(0.1).label(-3),)):
        assert all(Interval.read(label) is not None for label in labels)
    for label in ("flu", "[1, 2", "[a, b)", "(1, 2)", "below", "above 3"):
        assert Interval.read(label) is None
    values = pa.array(["[0, 10)", None, "10 and above"])
    assert compare_intervals(">=", values, 10).to_pylist() == [False, False, True]
    assert compare_intervals(">=", pa.array(["[0, 10)", "flu"]), 10) is None


@pytest.fixture(scope="module")
def release() -> dn.Release:
    draw = np.random.default_rng(0)
    table = pa.table({"age": draw.integers(18, 90, 4_000), "pay": draw.integers(0, 101, 4_000)})
    bins = {"pay": [0, 25, 50, 75, 100]}
    return dn.publish(
        table,
        sensitive="pay",
        bins=bins,
        recode={"age": dn.bands(10)},
        privacy="2/3",
        key=bytes(32),
        mechanism="uniform",
    )


def test_a_release_is_asked_by_numbers(release: dn.Release) -> None:
    def one(question: str) -> float:
        return float(release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {question}")["n"][0].as_py())

    assert one("age >= 30 AND age < 50") == one("age IN ('[30, 40)', '[40, 50)')")
    assert one("pay >= 50") == pytest.approx(one("pay IN ('[50, 75)', '[75, 100]')"))
    assert one("pay <= 100") == pytest.approx(4_000)
    assert one("NOT age < 30") == one("age >= 30")
    groups = release.sql("SELECT age < 40 AS young, COUNT(*) AS n FROM release GROUP BY young").to_pylist()
    assert {row["young"]: row["n"] for row in groups}[True] == one("age < 40")


@pytest.mark.parametrize("question", ["age > 35", "age = 30", "age BETWEEN 30 AND 50", "pay <= 50", "pay > 99"])
def test_a_number_inside_of_an_interval_is_refused(release: dn.Release, question: str) -> None:
    with pytest.raises(QuestionError, match="parts the interval"):
        release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {question}")
