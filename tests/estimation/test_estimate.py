"""The Estimate itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.errors import QuestionError
from deniable.estimation.estimate import Estimate

numbers = st.floats(-1e6, 1e6)


def test_it_prints_as_people_read_it():
    assert str(Estimate(1204.0, 53.06, smallest=0, largest=9000)) == "1,204 (95 %: 1,100 to 1,308)"
    assert str(Estimate(41.237, 0.31, 0.9, 18, 90)) == "41.24 (90 %: 40.73 to 41.75)"


@given(numbers, st.floats(0, 1e6), st.floats(0, 1e6).map(math.floor), st.booleans())
def test_the_interval_lies_within_what_is_possible_and_holds_the_value_if_that_does(value, stderr, largest, whole):
    found = Estimate(value, stderr, smallest=0, largest=largest, whole=whole)
    assert 0 <= found.low <= found.high <= largest
    near = round(value) if whole else value
    assert not 0 <= near <= largest or found.low <= near <= found.high
    assert not whole or (found.low.is_integer() and found.high.is_integer())


def test_an_interval_is_cut_to_what_is_possible():
    found = Estimate(10, 20, smallest=0, largest=40)
    assert (found.low, found.high) == (0, 40)
    assert Estimate(-5, 8, smallest=0, largest=40).low == 0
    assert (Estimate(12.09, 12, smallest=0, largest=1).low, Estimate(12.09, 12, smallest=0, largest=1).high) == (0, 1)
    assert (Estimate(0.3, 0.01, smallest=0, largest=9, whole=True).high) == 0, "nothing lies between two counts"


def test_it_says_when_a_question_is_hopeless():
    assert Estimate(10, 20, smallest=0, largest=40).hopeless
    assert "hopeless" in str(Estimate(10, 20, smallest=0, largest=40))
    assert not Estimate(10, 2, smallest=0, largest=40).hopeless
    assert not Estimate(10, 0, smallest=10, largest=10).hopeless


def test_variances_of_disjoint_questions_add():
    one, two = Estimate(100, 3, smallest=0, largest=200), Estimate(50, 4, smallest=0, largest=60)
    assert (one + two).value == 150
    assert (one + two).stderr == pytest.approx(5)
    assert (one + two).largest == 260
    assert (one - two).value == 50
    assert ((one - two).smallest, (one - two).largest) == (-60, 200)


def test_a_difference_of_calibrated_estimates_uses_the_error_from_before():
    one, two = Estimate(100, 3, uncalibrated=6), Estimate(50, 4, uncalibrated=8)
    assert (one - two).stderr == pytest.approx(10)
    assert (one + two).stderr == pytest.approx(5)


def test_estimates_of_different_confidence_do_not_mix():
    with pytest.raises(QuestionError, match="different confidence"):
        Estimate(1, 1, 0.9) + Estimate(1, 1, 0.95)
    assert math.isinf(Estimate(1, math.inf).high)
