"""Line-ups by shifted blocks: their integers, by brute force over every draw, and by Hypothesis."""

import hashlib
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core import designs as lineup_codes
from deniable.core import lineups as lineup_exact
from deniable.core.designs import ArcDesign, BlockDesign
from deniable.core.errors import InternalError, ManifestError
from deniable.core.exact import SCALE
from deniable.core.lineups import POINTS, TRUTH_STEP
from deniable_verify import lineups as recount


@st.composite
def designs(draw):
    m = draw(st.integers(2, 14))
    size, orders = draw(st.integers(1, m - 1)), 2 ** draw(st.integers(0, 6))
    truth = draw(st.integers(1, 2**18)) * TRUTH_STEP
    return BlockDesign(m, size, truth, orders, draw(st.integers(0, 2**40)))


def block_of(design, number):
    """The places of a block, made again from the public seed in plain Python."""
    stream = hashlib.shake_256(f"deniable line-ups {design.seed} {number}".encode()).digest(8 * design.m)
    ranked = sorted(range(design.m), key=lambda x: (int.from_bytes(stream[8 * x : 8 * x + 8], "little"), x))
    return sorted(ranked[: design.size])


def draws_of(part, parts):
    """How many r below 2^40 have floor(r parts / 2^40) = part."""
    return -(-(part + 1) * POINTS // parts) + (-part * POINTS // parts)


def counted(design):
    """For every set the draws without looking, and the draws of each member, by the definition."""
    blind, around = Counter(), {}
    for number in range(design.orders):
        block = block_of(design, number)
        for shift in range(design.m):
            hit = tuple(sorted((shift + place) % design.m for place in block))
            blind[hit] += draws_of(shift, design.m)
        for x in range(design.m):
            for slot, place in enumerate(block):
                hit = tuple(sorted((x - place + other) % design.m for other in block))
                around.setdefault(hit, Counter())[x] += draws_of(slot, design.size)
    return blind, around


@settings(max_examples=80, deadline=None)
@given(designs())
def test_every_set_has_the_draws_that_the_definition_gives_it(design):
    blind, around = counted(design)
    sets = design.sets
    assert {tuple(row): n for row, n in zip(sets.members.tolist(), sets.lengths.tolist(), strict=True)} == blind
    for members, hits in zip(sets.members.tolist(), sets.hits.tolist(), strict=True):
        assert dict(zip(members, hits, strict=True)) == around[tuple(members)]
    assert int(sets.lengths.sum()) == design.orders * POINTS
    assert all(int(sets.hits[sets.members == x].sum()) == design.orders * POINTS for x in range(design.m))


@settings(max_examples=60, deadline=None)
@given(designs())
def test_the_verifier_counts_the_same_sets_and_reads_codes_alike(design):
    sets = design.sets
    mine = {
        tuple(members): (blind, tuple(hits))
        for members, blind, hits in zip(sets.members.tolist(), sets.lengths.tolist(), sets.hits.tolist(), strict=True)
    }
    assert recount.is_design(design.integers(), design.m)
    assert not recount.is_design(design.integers(), design.m + 1)
    assert mine == {row.members: (row.blind, tuple(row.draws)) for row in recount.lines(design.integers())}
    assert lineup_exact.lineup_amplification(design) == recount.amplification(design.integers())
    listed = zip(*(column.tolist() for column in design.code_table().values()), strict=True)
    assert recount.code_rows(design.integers()) == list(listed)


@settings(max_examples=60, deadline=None)
@given(designs())
def test_a_code_and_the_table_of_blocks_tell_who_stands_in_a_set(design):
    rows = set(zip(*(column.tolist() for column in design.code_table().values()), strict=True))
    codes = lineup_codes.codes(design).tolist()
    assert len(set(codes)) == len(design.sets.members)
    for members, code in zip(design.sets.members.tolist(), codes, strict=True):
        assert sorted((code + place) % design.m for block, place in rows if block == code // design.m) == members


@settings(max_examples=60, deadline=None)
@given(designs())
def test_two_values_come_together_as_often_as_in_the_sets(design):
    joint = np.zeros((design.m, design.m))
    for members, chance in zip(design.sets.members, design.distribution, strict=True):
        joint[np.ix_(members, members)] += chance
    assert np.abs(design.joint() - joint).max() < 1e-10
    assert np.diag(design.joint()) == pytest.approx(design.inclusion)


@settings(max_examples=40, deadline=None)
@given(designs(), st.data())
def test_the_surest_belief_is_the_largest_posterior_of_all_sets(design, data):
    prior = np.array(data.draw(st.lists(st.integers(0, 1000), min_size=design.m, max_size=design.m)), np.int64)
    if not prior.sum():
        return
    posteriors = [lineup_exact.posterior(design, prior, state) for state in range(len(design.sets.lengths))]
    assert lineup_exact.surest_in_lineups(design, prior) == [max(column) for column in zip(*posteriors, strict=True)]
    assert lineup_exact.surest_in_lineups(design, prior)[0] >= Fraction(int(prior[0]), int(prior.sum()))


def test_a_design_is_written_and_read_back():
    design = BlockDesign(9, 4, SCALE // 4, 8, 5)
    raw = design.integers()
    again = lineup_codes.design_of(raw, 9)
    assert again.integers() == raw
    assert np.array_equal(again.sets.members, design.sets.members)
    for broken in ({"size": 9}, {"size": 0}, {"truth": 5}, {"orders": 3}, {"seed": -1}, {"values": 8}):
        with pytest.raises(ManifestError):
            lineup_codes.design_of({**raw, **broken}, 9)
    with pytest.raises(InternalError):
        BlockDesign(9, 9, SCALE // 4, 8, 5)


def test_pairs_come_together_far_more_evenly_than_along_arcs():
    """At 300 values in sets of 80: the spread of J off its diagonal."""
    off = ~np.eye(300, dtype=bool)
    blocks, arcs = BlockDesign(300, 80, SCALE // 2, 16), ArcDesign.of(np.ones(300), 80, 0.5)
    assert 3 * blocks.joint()[off].std() < arcs.joint()[off].std()
