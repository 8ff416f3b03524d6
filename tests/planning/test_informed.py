"""The informed attacker: what rows show is drawn and weighed as it is published, and beliefs are those of Bayes' rule.

Draws have fixed seeds. A count of hits is compared with its exact chance at 5.5 standard deviations: false alarm below
1e-7; each such test also sees a chance that is wrong by 5 %.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core import lineups as lineup_exact
from deniable.core.histogram import Histogram
from deniable.core.lineups import LineUpDesign
from deniable.core.plan import Plan
from deniable.core.values import Floats
from deniable.owner.attacks import Evidence
from deniable.planning.attackers import ChannelRows, LineUpRows, NothingShown, Shown, judged_by_likelihood
from deniable.planning.informed import (
    InformedAttacker,
    Sureness,
    from_population,
    in_classes,
    informed_attacker,
    shown_by,
)
from deniable.planning.pools import CodedTable

COUNTS = Histogram.of({"a": 400, "b": 300, "c": 200, "d": 100, "e": 60, "f": 40})
DRAWS = 400_000


def lineup_chances(design: LineUpDesign) -> Floats:
    """Pr[S | x] from the exact integers."""
    rows = []
    for state in range(len(design.sets.members)):
        inside, other = lineup_exact.likelihoods(design, state)
        row = np.full(design.m, float(other))
        row[design.sets.members[state]] = inside
        rows.append(row)
    return np.array(rows) / (design.orders * 2.0**58)


def chances_of(plan: Plan) -> Floats:
    """Pr[view | x] of a plan, from its channels or its sets, by code that draws nothing."""
    design = plan.parts[0].lineups
    if design is not None:
        return lineup_chances(design)
    places = [plan.positions(cell) for cell in plan.cells]
    channels, dealt = [cell.channel for cell in plan.cells], [cell.rows.counts for cell in plan.cells]
    return Evidence.of_channels(COUNTS.counts, channels, places, dealt).likelihood


PLANS = {name: dn.plan(COUNTS, dn.Privacy(rho2="1/2"), name) for name in ("uniform", "small-domain", "lineup")}


def test_likelihoods_of_line_ups_are_the_published_ones() -> None:
    chances = chances_of(PLANS["lineup"])
    design = PLANS["lineup"].parts[0].lineups
    assert design is not None
    given = LineUpRows(design).likelihood(np.arange(len(chances)))
    assert np.allclose(given, chances, rtol=1e-12)
    assert np.allclose(given.sum(0), 1, rtol=1e-9)


@pytest.mark.parametrize("name", PLANS)
def test_views_are_drawn_with_the_published_chances(name: str) -> None:
    chances = chances_of(PLANS[name])
    views = shown_by(PLANS[name]).draw(np.full(DRAWS, 2), np.random.default_rng(5))
    order = np.argsort(-chances[:, 2])
    half = order[: int(np.searchsorted(np.cumsum(chances[order, 2]), 0.5)) + 1]
    chance, hits = float(chances[half, 2].sum()), int(np.isin(views, half).sum())
    off = 5.5 * np.sqrt(DRAWS * chance * (1 - chance))
    assert abs(hits - DRAWS * chance) < off
    assert abs(hits - DRAWS * chance * 1.05) > off
    assert abs(hits - DRAWS * chance * 0.95) > off


@pytest.mark.parametrize("name", [*PLANS, "hidden cells"])
def test_what_is_believed_afterwards_is_judged_as_the_likelihood_of_every_value_says(name: str) -> None:
    rng, m = np.random.default_rng(3), COUNTS.m
    if name in PLANS:
        shown, chances = shown_by(PLANS[name]), chances_of(PLANS[name])
    else:
        cells = PLANS["small-domain"].cells
        channels, places = [cell.channel for cell in cells], [PLANS["small-domain"].positions(cell) for cell in cells]
        dealt = [cell.rows.counts for cell in cells]
        shown = ChannelRows.of(m, channels, places, dealt, cells_shown=False)
        mixed = Evidence.of_channels(COUNTS.counts, channels, places, dealt, cells_shown=False).likelihood
        chances = np.tile(mixed, (len(cells), 1))  # a view names a cell that nobody sees
    beliefs = rng.dirichlet(np.full(m, 0.3), 60)
    beliefs[:20, : m - 1] = 0.0  # sure of one value, which many rows cannot show
    beliefs[:20, m - 1] = 1.0
    people = np.tile(np.arange(60), 30)
    original = rng.integers(0, m, len(people))
    views = shown.draw(original, rng)
    own, right = shown.judged(beliefs, people, views, original)
    expected, guessed = judged_by_likelihood(chances[views], beliefs, people, original)
    assert np.allclose(own, expected, atol=1e-12)
    assert (right == guessed).all()


def exactly_right(beliefs: Floats, original: Floats, chances: Floats) -> float:
    """How often the likeliest value is right, over everything that a row can show."""
    total = 0.0
    for belief, x in zip(beliefs, original.astype(int), strict=True):
        guesses = (chances * belief).argmax(1)
        total += float(chances[guesses == x, x].sum())
    return total / len(original)


@pytest.mark.parametrize("name", PLANS)
def test_beliefs_after_a_row_are_those_of_bayes_rule(name: str) -> None:
    rng, people = np.random.default_rng(8), 40
    beliefs = rng.dirichlet(np.ones(COUNTS.m), people)
    original = np.array([rng.choice(COUNTS.m, p=belief) for belief in beliefs])
    expected = exactly_right(beliefs, original, chances_of(PLANS[name]))
    again = 2000
    many = InformedAttacker(np.tile(beliefs, (again, 1)), np.tile(original, again))
    found = many.against(shown_by(PLANS[name]), 0.5, rng)
    off = 5.5 * 0.5 / np.sqrt(people * again)
    assert abs(found.after.right - expected) < off
    assert 0.05 * expected > off or expected < 0.2
    assert found.before == Sureness.of(beliefs, original, 0.5)


def test_rows_that_show_nothing_change_nothing() -> None:
    beliefs = np.random.default_rng(1).dirichlet(np.ones(COUNTS.m), 50)
    shown: Shown = NothingShown(COUNTS.m)
    original, people = np.arange(50) % COUNTS.m, np.arange(50)
    found = InformedAttacker(beliefs, original).against(shown, 0.3, np.random.default_rng(1))
    assert found.after == found.before
    own, right = shown.judged(beliefs, people, np.zeros(50, np.int64), original)
    assert np.allclose(own, beliefs[people, original])
    assert (right == (beliefs.argmax(1) == original)).all()


def test_sureness_counts_people_whose_truth_is_believed() -> None:
    beliefs = np.array([[0.95, 0.05], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    sure = Sureness.of(beliefs, np.array([0, 0, 1, 1]), 0.35)
    assert (sure.right, sure.above_rho2, sure.above_half, sure.above_nearly) == (0.75, 0.75, 0.75, 0.25)
    assert sure.texts() == ["75 %", "75 %", "75 %", "25 %"]
    assert Sureness.of(beliefs, np.array([0, 0, 1, 1]), None).to_dict()["above_rho2"] is None


def test_columns_that_say_the_same_are_not_believed_twice() -> None:
    """Five copies of a column that is right four times in five: about as much is believed of it."""
    rng = np.random.default_rng(4)
    original = rng.integers(0, 4, 20_000)
    column = np.where(rng.random(20_000) < 0.8, original, rng.integers(0, 4, 20_000))
    attacker = from_population([column] * 5, original, 4, rng)
    assert attacker is not None
    likeliest = attacker.beliefs.max(1)
    right = (attacker.beliefs.argmax(1) == attacker.original).mean()
    assert abs(right - 0.85) < 0.03
    assert abs(likeliest.mean() - right) < 0.05


def test_the_owner_sees_both_attackers(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    value = rng.choice(6, 6_000, p=COUNTS.counts / COUNTS.rows)
    table = pa.table({"side": (value + (rng.random(6_000) < 0.5)) % 6, "value": np.array(list("abcdef"))[value]})
    release = dn.publish(table, sensitive="value", privacy=dn.Privacy(rho2="1/2"), mechanism="lineup", key=bytes(32))
    found = dn.audit(table, release)
    assert [one.learnt_from for one in found.informed] == ["other people", "the release"]
    known, learnt = found.informed
    assert known.after.right > known.before.right > 0.4
    assert 0.3 < learnt.before.right <= known.before.right + 0.03
    assert "Whoever has learnt from the release" in str(found)
    assert found.to_dict()["informed"][0]["without"]["right"] == round(known.before.right, 4)
    planned = informed_attacker(CodedTable.of(table, "value"))
    assert planned is not None
    again = planned.against(LineUpRows(release.manifest.parts[0].lineups), 0.5, rng)  # type: ignore[arg-type]
    assert abs(again.after.right - known.after.right) < 0.05


def test_without_public_columns_nothing_is_learnt() -> None:
    table = CodedTable.of(pa.table({"value": ["a", "b"] * 50}), "value")
    assert informed_attacker(table) is None


def test_numbers_are_learnt_from_in_classes_of_equal_size() -> None:
    numbers = np.arange(1000, dtype=np.float64)
    classes = in_classes(np.arange(1000), numbers, 50, 20)
    assert np.bincount(classes).tolist() == [50] * 20
    rare = in_classes(np.repeat(np.arange(100), np.arange(100, 0, -1)), None, 50, 20)
    assert rare.max() == 49
    assert np.bincount(rare)[0] == 100


def test_line_ups_of_one_value_have_likelihoods_that_add_up_to_one() -> None:
    """Their hits times the coin pass 2^63: whole numbers would turn negative."""
    counts = {"flu": 1_400, "cold": 1_000, "gout": 592, "scurvy": 8}
    design = dn.plan(counts, dn.Privacy(rho2="4/5"), mechanism="lineup").parts[0].lineups
    assert design is not None
    assert design.size == 1
    chances = LineUpRows(design).likelihood(np.arange(len(design.sets.members)))
    assert np.allclose(chances.sum(axis=0), 1)
    assert (np.diag(chances) > 0.5).all()
