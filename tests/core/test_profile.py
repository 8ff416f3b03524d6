"""Questions as counts."""

import numpy as np
import pytest

from deniable.core.errors import OptionError
from deniable.core.histogram import QuestionProfile


def profile() -> QuestionProfile:
    by_value = np.array([[5.0, 3.0, 2.0], [1.0, 0.0, 4.0]])
    sets = np.array([[True, False, False], [False, True, True]])
    return QuestionProfile(("a", "b", "c"), by_value, sets, np.array([0, 1, 1]), np.array([0, 1, 0]))


def test_the_truth_of_every_question_is_the_sum_over_its_values():
    assert profile().truth.tolist() == [5.0, 4.0, 1.0]


def test_another_order_of_the_domain_asks_the_same():
    other = profile().in_order(("c", "x", "a", "b"))
    assert other.truth.tolist() == profile().truth.tolist()
    assert other.by_value[0].tolist() == [2.0, 0.0, 5.0, 3.0]


def test_a_domain_without_a_value_that_is_asked_about_is_refused():
    with pytest.raises(OptionError, match="'c'"):
        profile().in_order(("a", "b"))


def test_it_never_shows_its_counts():
    assert repr(profile()) == "QuestionProfile(3 questions)"
