"""The budget of a list, against all lists and all rows of small cases; and what verify makes of the same integers."""

from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.errors import OptionError
from deniable.core.transforms import Unfolding, differing, list_gamma
from deniable_verify.promises.items import row_amplification

FULL = 2**32


def brute_force(chances, most):
    """The largest ratio of two probabilities of one row, over all pairs of lists."""
    m = len(chances)
    lists = [set(some) for size in range(most + 1) for some in combinations(range(m), size)]
    worst = Fraction(1)
    for row in product([True, False], repeat=m):
        of_lists = []
        for held in lists:
            probability = Fraction(1)
            for i, yes in enumerate(row):
                chance = chances[i][0] if i in held else chances[i][1]
                probability *= chance if yes else 1 - chance
            of_lists.append(probability)
        worst = max(worst, max(of_lists) / min(of_lists))
    return worst


@pytest.mark.parametrize(("m", "most"), [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("chances", [("1/2", "1/5"), ("3/4", "1/4"), ("9/10", "1/2"), ("2/5", "1/100")])
def test_the_budget_is_that_of_the_worst_pair_of_lists(m, most, chances):
    present, absent = map(Fraction, chances)
    assert list_gamma(present, absent, m, most) == brute_force([(present, absent)] * m, most)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1)), min_size=4, max_size=4),
)
def test_verify_never_counts_less_than_the_worst_pair_of_lists(m, most, integers):
    """Channels that differ, coins of yes and no that differ: the bound is not below what enumeration finds."""
    most, parts, chances = min(m, most), [], []
    for keep, weight in integers[:m]:
        parts.append(
            {
                "cells": [{"values": [0, 1], "keep": [keep, keep], "replace": [FULL - weight, weight]}],
                "item": {"most": most},
            }
        )
        absent = Fraction((FULL - keep) * weight, FULL**2)
        chances.append((Fraction(keep, FULL) + absent, absent))
    bound = row_amplification(parts)
    assert bound >= brute_force(chances, most)
    if len(set(chances)) == 1:
        assert bound == brute_force(chances, most) == list_gamma(*chances[0], m, most)


def test_an_answer_that_never_errs_has_no_budget():
    sure = {"cells": [{"values": [0, 1], "keep": [0, FULL], "replace": [FULL, 0]}], "item": {"most": 1}}
    assert row_amplification([sure]) is None


def test_two_lists_differ_in_what_both_can_hold():
    assert [differing(50, 3), differing(6, 3), differing(5, 3), differing(5, 5), differing(2, 9)] == [
        *((3, 3), (3, 3), (3, 2), (5, 0), (2, 0))
    ]


@pytest.mark.parametrize(
    "options", [{"most": 0}, {"most": True}, {"beyond": "last"}, {"beyond": "first"}, {"separator": ""}]
)
def test_what_lists_cannot_be_read_by_is_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Unfolding(**options)
