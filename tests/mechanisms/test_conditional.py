"""Attackers who know public columns: the strictest requirement of each value is met for all of them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.core.privacy import amplification_limit
from deniable.mechanisms import strictest, tolerance

VALUES = "abcd"
COUNTS = st.lists(st.integers(1, 200), min_size=4, max_size=4)


def test_the_smallest_gamma_of_each_value_is_taken():
    """breast: gamma 12.25 among men, 2.25 among women; lung: required of men only."""
    men = dn.Privacy(per_value={"lung": ("1/2", "3/4"), "breast": ("1/50", "1/5")})
    women = dn.Privacy(per_value={"breast": ("1/10", "1/5")})
    for both in (strictest(men, women), strictest(women, men)):
        assert dict(both.per_value) == {
            "lung": (Fraction(1, 2), Fraction(3, 4)),
            "breast": (Fraction(1, 10), Fraction(1, 5)),
        }
    assert strictest(men).per_value == men.per_value


@settings(max_examples=40, deadline=None)
@given(COUNTS, COUNTS, st.integers(2, 6))
def test_whoever_knows_the_group_becomes_no_surer_than_the_group_allows(first, second, theta):
    """Pr[x | y, z] over all published values and both groups, from the matrix of the plan."""
    groups = [dict(zip(VALUES, counts, strict=True)) for counts in (first, second)]
    for counts in groups:  # the rule protects some value of each
        assume(any(theta * count < sum(counts.values()) for count in counts.values()))
    required = [tolerance(counts, theta, exact=True) for counts in groups]
    everyone = {value: groups[0][value] + groups[1][value] for value in VALUES}
    channel = dn.plan(everyone, strictest(*required), mechanism="fine-grain").cells[0].channel.matrix()
    for counts, own in zip(groups, required, strict=True):
        joint = channel * (np.array([counts[value] for value in VALUES]) / sum(counts.values()))
        posterior = joint / joint.sum(1, keepdims=True)
        for place, value in enumerate(VALUES):
            if value in own.per_value:
                assert posterior[:, place].max() <= float(own.per_value[value][1]) * (1 + 1e-9)


def test_without_it_whoever_knows_the_group_becomes_too_sure():
    """What the requirement of all rows together allows: 0.1 of women have b, 0.34 of all, theta is 2.5."""
    women, men = {"a": 700, "b": 100, "c": 200}, {"a": 300, "b": 580, "c": 120}
    everyone = {value: women[value] + men[value] for value in women}
    prior = np.array(list(women.values())) / 1000

    def surest(privacy):
        joint = dn.plan(everyone, privacy, mechanism="fine-grain").cells[0].channel.matrix() * prior
        return (joint / joint.sum(1, keepdims=True))[:, 1].max()

    allowed = float(tolerance(women, 2.5, exact=True).per_value["b"][1])
    naive = tolerance(everyone, 2.5, exact=True, adversary="any-prior")
    assert surest(naive) > allowed * 1.05
    both = strictest(tolerance(women, 2.5, exact=True), naive)
    assert surest(both) <= allowed * (1 + 1e-9)
    limits = [amplification_limit(*one.per_value["b"]) for one in (naive, both)]
    assert limits[0] > limits[1]


@pytest.mark.parametrize("requirements", [(), (dn.Privacy("1/4", "1/2"),), ({"a": ("1/4", "1/2")},)])
def test_what_has_no_requirements_of_values_is_refused(requirements):
    with pytest.raises(dn.DeniableError, match="per_value"):
        strictest(*requirements)
