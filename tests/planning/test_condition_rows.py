"""Conditions of a large table are counted in batches: the same counts as from lists of rows."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.lab.made_up import census
from deniable.planning import pools
from deniable.planning import pools as condition_rows
from deniable.planning.informed import spread_rows
from deniable.planning.pools import CodedTable, QuestionPool, large_pool, sdr_pool, small_pool, sql_pool

QUESTIONS = """
SELECT COUNT(*) FROM release WHERE gender = 'Female' AND occupation = 'Lawyer'
SELECT COUNT(*) FROM release WHERE (gender = 'Male' OR age > 40) AND occupation IN ('Lawyer', 'Secretary')
SELECT COUNT(*) FROM release WHERE age BETWEEN 20 AND 30 AND gender = 'Female'
SELECT COUNT(*) FROM release WHERE occupation = 'Secretary'
"""
KINDS = {
    "sdr": lambda table: sdr_pool(table, conditions=60),
    "small": lambda table: small_pool(table, questions=300),
    "large": lambda table: large_pool(table, questions=300),
    "sql": lambda table: sql_pool(table, QUESTIONS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_counts_need_no_lists_of_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = CodedTable.of(census(12_000, seed=3), "occupation")
    held: QuestionPool = KINDS[kind](table)
    for module in (condition_rows, pools):
        monkeypatch.setattr(module, "HELD", 1_000)
    monkeypatch.setattr(condition_rows, "CHUNK", 1_700)
    counted: QuestionPool = KINDS[kind](table)
    assert isinstance(counted.rows, condition_rows.CountedRows)
    states = np.random.default_rng(1).integers(0, 9, table.rows)
    assert np.array_equal(counted.tally(states, 9), held.tally(states, 9))
    assert np.array_equal(counted.truth, held.truth)
    assert np.array_equal(counted.condition_rows, [len(rows) for rows in held.rows])
    assert all(np.array_equal(one, other) for one, other in zip(counted.rows, held.rows, strict=True))
    twice = counted.rows + counted.rows[:2]
    assert np.array_equal(twice.tally(states, 9)[len(held.rows) :], held.tally(states, 9)[:2])


def test_rows_are_spread_over_the_table() -> None:
    rows = spread_rows(10_007, 1_000, seed=1)
    assert len(np.unique(rows)) == 1_000
    assert rows.min() >= 0
    assert rows.max() < 10_007
    assert np.diff(rows).max() < 22  # no stretch of eleven rows is without one
