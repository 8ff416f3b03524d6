"""Designs of line-ups: their integers, by brute force over every order and point, and by Hypothesis."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core import designs as lineup_arcs
from deniable.core import lineups as lineup
from deniable.core import lineups as lineup_exact
from deniable.core.designs import ARC_STEP, BLIND, TURN, ArcDesign, arcs_of
from deniable.core.errors import InternalError
from deniable.core.exact import SCALE
from deniable.core.lineups import COIN, POINTS, TRUTH_STEP

FEW = 2**12  # steps of coarse designs: every arc a multiple, so that points can be enumerated


def coarse(parts, truth=COIN // 2, orders=4, seed=3):
    """A design whose arcs are multiples of a 4096th turn."""
    return ArcDesign(np.array(parts) * (SCALE // FEW), truth * TRUTH_STEP, orders, seed)


def by_hand(design, number, point):
    """The set that a point stands for: the values hit by u, u+1, .., walked along the line."""
    hit, place = [], 0
    for x in design.order(number).tolist():
        length = int(design.arcs[x]) // ARC_STEP
        hit += [x for layer in range(design.size) if place <= point + layer * TURN < place + length]
        place += length
    return tuple(sorted(hit))


@pytest.mark.parametrize(
    "parts", [[2048, 2048, 2048, 2048], [4095, 1, 3000, 1000, 96], [4096, 2000, 2000, 96], [1, 4095]]
)
def test_every_order_and_point_stands_for_the_set_that_the_line_says(parts):
    design = coarse(parts)
    seen = {}
    for number in range(design.orders):
        for point in range(0, TURN, TURN // FEW):
            hit = by_hand(design, number, point)
            seen[hit] = seen.get(hit, 0) + TURN // FEW
    sets = design.sets
    assert {
        tuple(row): length // BLIND for row, length in zip(sets.members.tolist(), sets.lengths.tolist(), strict=True)
    } == seen
    assert all(len(hit) == design.size for hit in seen)


@pytest.mark.parametrize("parts", [[2048, 2048, 2048, 2048], [4095, 1, 3000, 1000, 96], [3000, 1500, 1500, 2192]])
def test_hits_are_the_numbers_that_the_sampler_counts(parts):
    design = coarse(parts)
    sets = design.sets
    place = {tuple(row): number for number, row in enumerate(sets.members.tolist())}
    for x in range(design.m):
        arc = int(design.arcs[x]) // ARC_STEP
        counted = {}
        for number in range(design.orders):
            start = int(design.starts[number, x])
            # Where the set changes along the arc, and the first r at or beyond it: floor(r arc / 2^40) >= offset.
            changes = {(int(edge) - start) % TURN for edge in design.edges % TURN}
            offsets = sorted({0, arc, *(offset for offset in changes if offset < arc)})
            firsts = [-(-offset * POINTS // arc) for offset in offsets]
            for offset, low, high in zip(offsets, firsts, firsts[1:], strict=False):
                assert (low * arc >> 40) >= offset
                assert low == 0 or ((low - 1) * arc >> 40) < offset
                hit = by_hand(design, number, (start + offset) % TURN)
                counted[hit] = counted.get(hit, 0) + high - low
        for hit, number in counted.items():
            assert x in hit
            assert sets.hits[place[hit], hit.index(x)] == number
        assert sum(counted.values()) == design.orders * POINTS


designs = st.builds(
    lambda weights, size, truth, seed: ArcDesign.of(weights, min(size, len(weights) - 1), truth, seed=seed),
    st.lists(st.floats(0.01, 100), min_size=2, max_size=9),
    st.integers(1, 8),
    st.floats(1e-4, 1),
    st.integers(0, 2**40),
)


@settings(max_examples=60, deadline=None)
@given(designs)
def test_probabilities_add_up_exactly_and_inclusion_is_the_arcs(design):
    sets = design.sets
    full = design.orders * POINTS
    assert int(sets.lengths.sum()) == full
    for x in range(design.m):
        inside = sets.members == x
        assert int(sets.hits[inside].sum()) == full
        assert int(sets.lengths[inside.any(axis=1)].sum()) == design.orders * int(design.arcs[x]) // ARC_STEP * BLIND
    joint = design.joint()
    assert np.array_equal(np.diag(joint), design.inclusion)
    assert np.array_equal(joint.sum(axis=0), design.size * design.inclusion)
    assert (np.diff(sets.members, axis=1) > 0).all()


@settings(max_examples=60, deadline=None)
@given(designs, st.data())
def test_the_surest_belief_is_the_largest_posterior_of_all_sets(design, data):
    prior = np.array(data.draw(st.lists(st.integers(0, 1000), min_size=design.m, max_size=design.m)), np.int64)
    if not prior.sum():
        return
    posteriors = [lineup_exact.posterior(design, prior, state) for state in range(len(design.sets.lengths))]
    brute = [max(column) for column in zip(*posteriors, strict=True)]
    assert lineup_exact.surest_in_lineups(design, prior) == brute
    assert all(sum(one) in (0, 1) for one in posteriors)
    among = data.draw(st.sets(st.integers(0, design.m - 1), min_size=1), label="among")
    assert lineup_exact.highest(design, prior, np.array(sorted(among))) == max(brute[x] for x in among)
    assert lineup_exact.keeps(design, prior, brute)
    x = int(np.argmax([float(belief) for belief in brute]))
    tighter = [belief if place != x else belief * Fraction(10**15 - 1, 10**15) for place, belief in enumerate(brute)]
    assert not lineup_exact.keeps(design, prior, tighter)
    assert lineup_exact.keeps(design, prior, [None if place == x else belief for place, belief in enumerate(tighter)])


@settings(max_examples=40, deadline=None)
@given(designs)
def test_the_amplification_is_the_largest_ratio_of_all_sets(design):
    worst = Fraction(1)
    for state in range(len(design.sets.lengths)):
        inside, outside = lineup_exact.likelihoods(design, state)
        if outside == 0:
            assert lineup_exact.lineup_amplification(design) is None
            return
        worst = max(worst, Fraction(max(inside), outside))
    assert lineup_exact.lineup_amplification(design) == worst


def test_beliefs_are_those_of_the_closed_form():
    """Pr[x | S] = t/L + (1-t) f_x inside, (1-t) f_x outside, where pi = L f (mathematics 12)."""
    prior = np.array([1, 2, 3, 2], np.int64)
    design = ArcDesign(prior * (SCALE // 4), SCALE // 2, 8, 1)
    for state in range(len(design.sets.lengths)):
        inside = set(design.sets.members[state].tolist())
        for x, belief in enumerate(lineup_exact.posterior(design, prior, state)):
            share = Fraction(int(prior[x]), 8)
            expected = Fraction(1, 4) + share / 2 if x in inside else share / 2
            assert abs(belief - expected) < Fraction(1, 2**14)


def test_with_truth_1_a_value_outside_is_ruled_out_and_with_less_no_belief_falls_below_its_share():
    prior = np.array([5, 1, 1, 1, 2], np.int64)
    for truth in (COIN, COIN // 2, COIN // 5):
        design = coarse([4000, 1000, 1000, 1000, 1192], truth)
        least = min(
            min(map(Fraction, lineup_exact.posterior(design, prior, s))) for s in range(len(design.sets.lengths))
        )
        assert (least == 0) == (truth == COIN)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=200),
    st.integers(1, 50),
    st.sampled_from([1.0, 0.9, 0.75]),
)
def test_arcs_are_whole_steps_in_proportion_and_none_too_large(weights, size, largest):
    w = np.array(weights)
    if not 0 < size < len(w) or size > largest * len(w) - 1:
        return
    arcs = arcs_of(w, size, largest)
    assert int(arcs.sum()) == size * SCALE
    assert (arcs % ARC_STEP == 0).all()
    assert arcs.min() >= ARC_STEP
    assert arcs.max() <= largest * SCALE
    at_most = arcs >= largest * SCALE - 1000 * ARC_STEP  # the settling may have taken a few steps from those at the top
    free = ~at_most & (arcs > 1000 * ARC_STEP)
    if free.sum() > 1:
        ratio = (arcs / w)[free]
        assert ratio.max() / ratio.min() < 1.01


@pytest.mark.parametrize(
    "broken",
    [
        {"arcs": [SCALE, SCALE]},
        {"arcs": [SCALE // 2, SCALE // 4, SCALE // 8]},
        {"arcs": [SCALE // 2 + 1, SCALE // 2 - 1]},
        {"arcs": [0, SCALE]},
        {"truth": 0},
        {"truth": SCALE + TRUTH_STEP},
        {"truth": 5},
        {"orders": 3},
        {"orders": 128},
        {"seed": -1},
    ],
)
def test_integers_that_are_no_design_are_refused(broken):
    sound = {"arcs": [SCALE // 2, SCALE // 2], "truth": SCALE // 2, "orders": 2, "seed": 0}
    ArcDesign(**{**sound, "arcs": np.array(sound["arcs"])})
    with pytest.raises(InternalError):
        ArcDesign(**{**sound, **broken, "arcs": np.array({**sound, **broken}["arcs"])})


def test_orders_are_public_and_differ_with_seed_and_number():
    design = ArcDesign.of(np.ones(50), 5, 0.5)
    again = ArcDesign.of(np.ones(50), 5, 0.5)
    other = ArcDesign.of(np.ones(50), 5, 0.5, seed=1)
    assert np.array_equal(design.order(3), again.order(3))
    assert sorted(design.order(3).tolist()) == list(range(50))
    assert not np.array_equal(design.order(3), design.order(4))
    assert not np.array_equal(design.order(3), other.order(3))


def test_large_designs_have_fewer_orders():
    assert lineup.orders_for(50, 6) == 64
    assert lineup.orders_for(1200, 369) == 16
    assert lineup.orders_for(4096, 6) == 64
    assert lineup.orders_for(15_000, 6) == 16
    assert lineup.orders_for(15_000, 5000) == 0


@pytest.mark.parametrize(("m", "size"), [(7, 2), (30, 3), (30, 20)])
def test_pairs_are_counted_as_they_stand_in_the_sets_either_way(m, size, monkeypatch):
    design = ArcDesign.of(np.arange(1.0, m + 1), size, 0.5, largest=0.9)
    wanted = np.zeros((m, m))
    for members, length in zip(design.sets.members.tolist(), design.sets.lengths.tolist(), strict=True):
        for x in members:
            for y in members:
                wanted[x, y] += length
    for cost in (0, 10**9):
        monkeypatch.setattr(lineup_arcs, "PAIR_COST", cost)
        assert (design.joint() == wanted / (design.orders * POINTS)).all()
