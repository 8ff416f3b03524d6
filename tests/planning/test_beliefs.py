"""What attackers can make of a plan: against Bayes by brute force, for every kind of channel."""

from __future__ import annotations

import math

import numpy as np
import pytest

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.lab import rival_candidates
from deniable.mechanisms import Decoys, Designed, FineGrain, Identity, Pram, SmallDomain, Uniform, tolerance
from deniable.planning.candidates import ANY, KNOWS, Beliefs, belief_chart, beliefs, value_rows
from deniable.planning.planner import compare

ROWS = Histogram.of({"a": 900, "b": 800, "c": 700, "d": 500, "e": 400, "f": 300, "g": 150, "h": 51})
PRIVACY = Privacy(rho2="2/5")
PLANS = {
    each.name: each.plan(ROWS, PRIVACY)
    for each in (Uniform(), SmallDomain(), FineGrain(), Identity(), Designed(), Pram())
} | {"decoys": Decoys(c=3, leftovers="drop").plan(ROWS, None)}


def likelihoods(plan: Plan) -> np.ndarray:
    """Pr[view | value] in full: a row for each published value, or each cell and value."""
    m = plan.histogram.m
    parts = []
    for cell in plan.cells:
        places = plan.positions(cell)
        share = cell.rows.counts / np.maximum(plan.histogram.counts[places], 1)
        each = np.zeros((m, m))
        each[np.ix_(places, places)] = cell.channel.matrix() * share
        parts.append(each)
    return np.concatenate(parts) if plan.cells_published else np.sum(parts, axis=0)


def most_sure(seen: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The largest posterior of each value over all views."""
    joint = seen * prior
    shown = joint.sum(1) > 0
    return (joint[shown] / joint[shown].sum(1, keepdims=True)).max(0)


@pytest.mark.parametrize("name", PLANS)
def test_the_frequency_attacker_is_bayes_by_brute_force(name: str) -> None:
    plan = PLANS[name]
    assert beliefs(plan).frequency == pytest.approx(most_sure(likelihoods(plan), ROWS.relative).max(), rel=1e-9)


@pytest.mark.parametrize("name", PLANS)
def test_the_curve_is_bayes_for_the_value_that_fares_worst(name: str) -> None:
    plan = PLANS[name]
    seen = likelihoods(plan)
    for point in beliefs(plan).curve([0.01, 0.1, 0.5]):
        worst = []
        for x in range(ROWS.m):
            others = np.where(np.arange(ROWS.m) == x, 0.0, ROWS.relative)
            prior = (1 - point["before"]) * others / others.sum()
            prior[x] = point["before"]
            worst.append(most_sure(seen, prior)[x])
        assert point[KNOWS] == pytest.approx(max(worst), rel=1e-9)


@pytest.mark.parametrize("name", PLANS)
def test_no_attacker_at_all_exceeds_the_other_curve_and_one_reaches_it(name: str) -> None:
    """Two values hold the whole prior: the worst that anyone can believe of the others."""
    plan = PLANS[name]
    seen, m = likelihoods(plan), ROWS.m
    (point,) = beliefs(plan).curve([0.1])
    worst = 0.0
    for x in range(m):
        for k in range(m):
            if k != x:
                prior = np.zeros(m)
                prior[x], prior[k] = 0.1, 0.9
                worst = max(worst, most_sure(seen, prior)[x])
    assert point[ANY] >= worst - 1e-9
    if name != "decoys":  # who shares a group with whom is hidden, and decoy groups promise no bound for it
        assert point[ANY] == pytest.approx(worst, rel=1e-9)


def test_exempt_values_are_nobodys_worst() -> None:
    plan = Designed().plan(ROWS, Privacy(rho2="3/10", exempt=["a", "b"]))
    found = beliefs(plan)
    assert found.frequency <= 0.3
    assert most_sure(likelihoods(plan), ROWS.relative).max() > 0.3
    assert found.rho1 == pytest.approx(700 / 3801)


def test_both_directions_are_told_value_by_value() -> None:
    """Upward and downward by brute force over priors on two values, which are the worst."""
    plan = FineGrain().plan(ROWS, tolerance(ROWS, 2))
    seen, m = likelihoods(plan), ROWS.m
    told = value_rows(plan)
    assert [row["value"] for row in told] == list(ROWS.domain)
    for x, row in enumerate(told):
        up, down = 0.0, 1.0
        for k in (k for k in range(m) if k != x):
            for start, direction in ((row["rho1"], "up"), (row["rho2"], "down")):
                prior = np.zeros(m)
                prior[x], prior[k] = start, 1 - start
                after = seen[:, x] * start / (seen @ prior)
                up = max(up, after.max()) if direction == "up" else up
                down = min(down, after.min()) if direction == "down" else down
        assert row["grows to"] == pytest.approx(up, rel=1e-9)
        assert row["grows to"] <= row["rho2"]
        assert row["falls to"] == pytest.approx(down, rel=1e-9)
        assert row["downward"] == (down >= row["rho1"])


def test_the_planner_tells_every_adversary_for_every_mechanism() -> None:
    found = compare(ROWS, PRIVACY, rivals=rival_candidates)
    for each in (*found.candidates, *found.rivals):
        if each.guarantee is not None:
            told = each.to_dict()["worst_posterior"]
            assert 0 < told["frequency"] <= 0.4
            assert told["any-prior"] >= told["curve"][0]["before"]
    uniform = next(each for each in found.candidates if each.name == "uniform")
    assert uniform.beliefs is not None
    assert uniform.beliefs.any_prior <= 0.4
    drawn = belief_chart({each.name: each.beliefs for each in found.candidates if each.beliefs is not None})
    assert {series.panel for series in drawn.series} == {KNOWS, ANY}


def test_what_is_not_known_is_not_drawn_and_certainty_is() -> None:
    found = Beliefs(frequency=0.2, suspicion=math.nan, gamma=math.inf, rho1=0.1)
    assert found.any_prior == 1
    assert [series.panel for series in belief_chart({"x": found}).series] == [ANY]
    assert found.to_dict()["curve"][0][KNOWS] is None


def test_beliefs_are_part_of_the_public_face() -> None:
    assert dn.beliefs(dn.plan(ROWS, PRIVACY, "designed")).frequency <= 0.4
