"""Codes of line-ups: one for each set, and ranges that say exactly which sets hold a value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core import designs as lineup_codes
from deniable.core.designs import ArcDesign
from deniable_verify import lineups


@st.composite
def designs(draw: st.DrawFn) -> ArcDesign:
    m = draw(st.integers(3, 30))
    weights = draw(st.lists(st.integers(1, 1000), min_size=m, max_size=m))
    return ArcDesign.of(np.array(weights, float), draw(st.integers(1, m - 1)), 0.5, seed=draw(st.integers(0, 99)))


@settings(max_examples=60, deadline=None)
@given(designs())
def test_a_value_stands_in_a_set_exactly_where_a_range_of_its_own_holds_the_code(design: ArcDesign) -> None:
    holds = np.zeros((design.m, len(design.edges)), np.int64)
    for value, first, last in zip(*design.code_table().values(), strict=True):
        assert first <= last
        holds[value, first : last + 1] += 1
    codes = lineup_codes.codes(design)
    assert len(set(codes.tolist())) == len(design.sets.members)
    for members, code in zip(design.sets.members, codes, strict=True):
        assert np.flatnonzero(holds[:, code]).tolist() == members.tolist()
    assert holds.max() == 1  # nothing is listed twice


@settings(max_examples=30, deadline=None)
@given(designs())
def test_verify_finds_the_same_ranges_by_walking_through_the_sets(design: ArcDesign) -> None:
    listed = zip(*(column.tolist() for column in design.code_table().values()), strict=True)
    assert lineups.code_rows(design.integers()) == list(listed)


def test_a_worked_case() -> None:
    """Arcs of 1/2, 1/4 and 1/4 of a turn in a row: a set of one, which changes at 1/2 and 3/4."""
    design = ArcDesign.of([2.0, 1.0, 1.0], size=1, truth=0.5)
    one = ArcDesign(design.arcs, design.truth, 1, 0)
    begin = one.starts[0]
    by_place = np.argsort(begin)
    table = one.code_table()
    assert table["first"][by_place].tolist() == table["last"][by_place].tolist() == [0, 1, 2]


@pytest.mark.parametrize(("size", "coded"), [(16, False), (17, True)])
def test_sets_of_more_than_sixteen_values_are_coded(size: int, coded: bool) -> None:
    assert lineup_codes.is_coded(ArcDesign.of(np.ones(40), size, 0.5)) == coded


def test_the_table_is_a_fraction_of_the_sets() -> None:
    """369 of 1,200 values: one or two ranges of each value in each of 16 orders, where sets have 6 million members."""
    design = ArcDesign.of(np.ones(1200), 369, 0.3)
    assert design.sets.members.size > 6_000_000
    assert design.orders * 1200 <= len(design.code_table()["value"]) <= design.orders * (1200 + 369)
