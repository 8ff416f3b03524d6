"""Predicted errors of line-ups are those that draws have; the planner compares them where they are named."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.lab.draws import draw_release, stream_of
from deniable.mechanisms import Lineup
from deniable.planning.candidates import beliefs
from deniable.planning.planner import compare
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import row_variances

COUNTS = Histogram(tuple("abcdefghijkl"), np.arange(1600, 400, -100))


@pytest.fixture(scope="module")
def table():
    return CodedTable.of(pa.table({"value": np.repeat(list(COUNTS.domain), COUNTS.counts)}), "value")


def test_the_variance_is_that_of_many_draws(table):
    privacy = dn.Privacy(rho1="1/4", rho2="1/3", adversary="any-prior")
    plan = Lineup().plan(table.histogram, privacy)
    expected = row_variances(plan, np.eye(12)).of_table(table.histogram.counts)
    estimates = []
    for draw in range(150):
        drawn = draw_release(table, Lineup(), privacy, stream_of(1, draw, "test"))
        estimates.append(drawn.asking.states.invert(drawn.asking.total))
    off = np.array(estimates) - table.histogram.counts
    assert np.abs(off.mean(axis=0) / np.sqrt(expected / 150)).max() < 5.2
    ratio = (off**2).mean() / expected.mean()  # 1,800 squares, a standard error of about 4 %
    assert 0.8 < ratio < 1.2


def test_who_plans_sees_how_sure_attackers_become():
    plan = Lineup().plan(COUNTS, dn.Privacy(rho2="1/4"))
    sure = beliefs(plan)
    assert sure.frequency <= 0.25
    assert sure.frequency == pytest.approx(float(plan.guarantee.worst), abs=1e-4)


def test_the_planner_compares_line_ups_where_they_are_named():
    compared = compare(COUNTS, dn.Privacy(rho2="1/4"), mechanisms=(Lineup(), dn.mechanisms.Designed()))
    first, second = compared.candidates[:2]
    assert first.name == "lineup"
    assert max(first.errors) < min(1.0, max(second.errors))


def test_line_ups_are_taken_where_their_epsilon_is_small() -> None:
    """Against who knows more than frequencies they are bounded by a floor, and only then taken unnamed."""
    found = compare(COUNTS, dn.Privacy(rho2="1/4"), limit=3.0)
    (plain,) = [one for one in found.candidates if one.label.startswith("lineup, ")]
    (floored,) = [one for one in found.candidates if one.label.startswith("lineup:epsilon=2, ")]
    assert "above 3" in plain.withheld
    assert not floored.withheld
    assert floored.epsilon <= 3 < plain.epsilon
    assert max(plain.errors) < max(floored.errors)
