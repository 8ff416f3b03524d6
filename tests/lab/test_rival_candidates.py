"""The baselines in the planner's table: every rival, on selectivities and on a pool."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deniable.core.privacy import Privacy
from deniable.lab import rival_candidates
from deniable.lab.made_up import census
from deniable.lab.settings import EVALUATED
from deniable.planning.comparison import Comparison
from deniable.planning.planner import compare
from deniable.planning.pools import CodedTable, QuestionPool, sdr_pool, sql_pool

PRIVACY = Privacy("1/10", "1/5")


@pytest.fixture(scope="module")
def pool() -> QuestionPool:
    table = CodedTable.of(census(40_000, seed=3), "occupation")
    return sdr_pool(table, conditions=100)


@pytest.fixture(scope="module")
def compared(pool: QuestionPool) -> tuple[Comparison, Comparison]:
    """By selectivities, and by the questions of the pool."""
    plain, asked = (
        compare(pool.table.histogram, PRIVACY, pool=questions, rivals=rival_candidates) for questions in (None, pool)
    )
    return plain, asked


def test_every_mechanism_and_every_rival_is_in_the_table(compared: tuple[Comparison, Comparison]) -> None:
    for found in compared:
        names = {each.name for each in (*found.candidates, *found.rivals)}
        assert names == set(EVALUATED)
        assert not any(each.rival for each in found.candidates)
        assert all(each.rival for each in found.rivals)


def test_a_pool_shows_the_bias_that_selectivities_hide(compared: tuple[Comparison, Comparison]) -> None:
    plain, asked = compared
    hidden = {each.name: each for each in plain.rivals}
    shown = {each.name: each for each in asked.rivals}
    for name in ("anatomy", "redraw"):
        assert hidden[name].biased
        assert not shown[name].biased
        assert shown[name].errors[-1] > 2 * hidden[name].errors[-1]
    assert asked.independence is not None
    assert shown["redraw"].errors[-1] == pytest.approx(asked.independence[-1], rel=0.2)
    assert math.isnan(hidden["generalize"].errors[0])
    assert shown["generalize"].errors[0] > 0


def test_a_budget_is_divided_among_the_questions(pool: QuestionPool) -> None:
    few = sql_pool(pool.table, "\n".join(f"SELECT COUNT(*) FROM release WHERE age < {age}" for age in (30, 40, 50, 60)))
    found = compare(few.table.histogram, PRIVACY, pool=few, rivals=rival_candidates)
    (laplace,) = (rival for rival in found.rivals if rival.name == "laplace")
    t = math.exp(-laplace.epsilon / 4)
    assert laplace.errors[0] == pytest.approx(float(np.mean(2 * t / (1 - t**2) / few.truth)))
