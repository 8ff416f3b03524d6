from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.errors import RequirementError
from deniable.core.privacy import Privacy, amplification_limit, largest_prior, worst_posterior

inside = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)


def test_worked_numbers_of_the_thesis():
    assert Privacy("1/5", "1/4").gamma == Fraction(4, 3)
    assert Privacy("1/13", "1/6").gamma == Fraction(12, 5)


def test_a_float_means_the_decimal_that_it_prints_as():
    assert Privacy(0.1, 0.3).rho1 == Fraction(1, 10)


@given(inside, inside)
def test_the_limit_turns_a_belief_of_rho1_into_exactly_rho2(a, b):
    rho1, rho2 = sorted((a, b))
    if rho1 < rho2:
        gamma = amplification_limit(rho1, rho2)
        assert worst_posterior(rho1, gamma) == rho2
        assert largest_prior(rho2, gamma) == rho1


@pytest.mark.parametrize(
    ("rho1", "rho2", "words"),
    [
        ("1/3", "1/4", "rho1 = 1/3 must be smaller than rho2 = 1/4"),
        ("1/4", "1/4", "must be smaller"),
        (0, "1/4", "rho1 = 0 is not allowed: it must lie strictly between 0 and 1"),
        ("1/4", 1, "rho2 = 1 is not allowed"),
        ("one", "1/4", "rho1 = 'one' is not a number"),
        ("1/0", "1/4", "is not a number"),
        (float("nan"), "1/4", "is not a number"),
        (True, "1/4", "is not a number"),
        ("-1/4", "1/4", "strictly between"),
    ],
)
def test_a_wrong_requirement_says_what_is_wrong(rho1, rho2, words):
    with pytest.raises(RequirementError, match="(?s).*" + words.replace("(", r"\(")):
        Privacy(rho1, rho2)


def test_all_problems_are_reported_at_once():
    with pytest.raises(RequirementError) as caught:
        Privacy("x", 2, adversary="frequenzy")
    message = str(caught.value)
    assert "rho1" in message
    assert "rho2 = 2" in message
    assert "Did you mean 'frequency'?" in message


def test_rho2_cannot_be_left_out():
    with pytest.raises(RequirementError, match="rho2 is missing"):
        Privacy(rho1="1/3")


@pytest.mark.parametrize("common", [{"rho2": "1/2"}, {"rho1": "1/10"}, {"rho1": "1/10", "rho2": "1/2"}])
def test_per_value_requirements_and_a_common_one_exclude_each_other(common):
    """Some mechanisms would keep the one and some the other."""
    with pytest.raises(RequirementError, match="per_value excludes rho1 and rho2"):
        Privacy(**common, per_value={"hiv": ("1/10", "1/5")})


def test_per_value_requirements_are_checked_one_by_one():
    with pytest.raises(RequirementError, match="rho1 of 'hiv'"):
        Privacy(per_value={"hiv": ("1/2", "1/3"), "flu": ("1/3", "1/2")})


def test_a_value_cannot_be_exempt_and_have_a_requirement_of_its_own():
    with pytest.raises(RequirementError, match="'hiv': exempt, and in per_value as well"):
        Privacy(per_value={"hiv": ("1/10", "1/4")}, exempt=["hiv"])
