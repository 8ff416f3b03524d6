"""Anatomy: what it leaves out, what it promises, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab import Anatomy

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))


def by_hand(counts: list[int], l: int) -> list[int]:
    """Suppress rows of the most frequent value, one at a time, until no value has more than 1/l of the rows."""
    left = list(counts)
    while sum(left) and max(left) * l > sum(left):
        left[left.index(max(left))] -= 1
    return [f - g for f, g in zip(counts, left, strict=True)]


@pytest.mark.parametrize(
    "counts", [[50, 3, 3, 3], [50, 40, 3, 3, 3, 2], [10, 10, 10], [9, 9, 1, 1, 1], [100, 60, 30, 20, 10, 7, 3, 3]]
)
@pytest.mark.parametrize("l", [2, 3])
def test_anatomy_suppresses_rows_of_the_most_frequent_values_only_as_needed(counts, l):
    found = Anatomy(l=l).suppressed(Histogram(tuple(range(len(counts))), np.array(counts)))
    assert found.sum() == sum(by_hand(counts, l))
    assert sorted(np.array(counts) - found) == sorted(np.array(counts) - by_hand(counts, l))


def test_anatomy_refuses_what_it_cannot_group():
    with pytest.raises(OptionError, match="l = 1"):
        Anatomy(l=1)
    with pytest.raises(RequirementError, match="3 different values"):
        Anatomy(l=4).suppressed(Histogram.of({"a": 5, "b": 5, "c": 5, "d": 0}))
    with pytest.raises(TableError, match="no rows"):
        Anatomy(l=4).suppressed(Histogram.of({"a": 0, "b": 0}))


def test_anatomy_states_its_guarantee_and_checks_a_requirement():
    guarantee = Anatomy(l=3).guarantee(COUNTS, Privacy(rho2="1/3"))
    assert guarantee.worst == Fraction(1, 3)
    assert guarantee.gamma is None
    with pytest.raises(RequirementError, match="l=6"):
        Anatomy(l=3).guarantee(COUNTS, Privacy(rho2="1/6"))
    with pytest.raises(RequirementError, match="any-prior"):
        Anatomy(l=3).guarantee(COUNTS, Privacy(rho1="1/9", rho2="1/3", adversary="any-prior"))
