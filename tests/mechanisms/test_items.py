"""The channel of items: within its budget, at the edge of it, and better than all others of the same budget."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.core.transforms import list_gamma
from deniable.mechanisms import Items
from deniable.mechanisms.items import channel_of

FULL = 2**32


def chances(keep, weight):
    absent = Fraction((FULL - keep) * weight, FULL**2)
    return Fraction(keep, FULL) + absent, absent


def noise(a, b, m, most):
    """The variances of all counts together, in rows, where everyone has ``most`` items."""
    return (most * a * (1 - a) + (m - most) * b * (1 - b)) / (a - b) ** 2


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 12), st.integers(1, 60), st.integers(1, 60))
def test_the_budget_is_kept_and_used(epsilon, m, most):
    limit, most = Fraction(math.exp(epsilon)), min(most, m)
    gamma = list_gamma(*chances(*channel_of(limit, m, most)), m, most)
    assert gamma <= limit
    assert math.log(gamma) > 0.999 * epsilon


@pytest.mark.parametrize(("epsilon", "m", "most"), [(2, 50, 1), (2, 50, 3), (4, 20, 5), (6, 8, 6), (3, 5, 5)])
def test_no_other_channel_of_this_budget_has_smaller_errors(epsilon, m, most):
    a, b = (float(chance) for chance in chances(*channel_of(Fraction(math.exp(epsilon)), m, most)))
    best = np.inf
    for present in np.linspace(0.02, 0.98, 97):
        for absent in np.linspace(0.001, present, 400, endpoint=False):
            ratios = sorted([math.log(present / absent), math.log((1 - absent) / (1 - present))])
            if most * ratios[1] + min(most, m - most) * ratios[0] <= epsilon:
                best = min(best, noise(present, absent, m, most))
                break
    assert noise(a, b, m, most) <= best * 1.000001


def test_a_cap_makes_answers_more_accurate():
    """50 items: of lists of up to 3 the errors are those of a budget eight times as large without a cap."""
    capped, free = (
        noise(*(float(c) for c in chances(*channel_of(Fraction(math.exp(4)), 50, most))), 50, 3) for most in (3, 50)
    )
    assert 50 < free / capped < 100


def table(rows=200):
    import pyarrow as pa

    return pa.table({"d": [["a", "b"], [], ["c"], ["a"]] * (rows // 4)})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mechanism": "items"}, "a requirement or a budget"),
        ({"mechanism": "items:budget=2", "privacy": dn.Privacy("1/4", "1/2")}, "a requirement or a budget"),
        ({"mechanism": "items", "privacy": dn.Privacy(rho2="1/2")}, "needs rho1, too"),
        ({"mechanism": "items", "privacy": dn.Privacy("1/4", "1/2", exempt=["a"])}, "per_value and exempt"),
        ({"mechanism": "items", "privacy": dn.Privacy("1/4", "1/2", adversary="any-prior")}, "not declared"),
        ({"mechanism": "items:budget=2,most=1"}, "more than most = 1"),
        ({"mechanism": "items:budget=2,separator=;"}, "holds lists already"),
        ({"mechanism": "items:budget=0"}, "budget"),
        ({"mechanism": "items:budget=2", "missing": "exempt"}, "missing"),
        ({"mechanism": "items:budget=2", "marginals": True}, "marginals"),
        ({"mechanism": "items:budget=2", "bins": {"d": [1, 2, 3]}}, "bins"),
        ({"mechanism": "items:budget=2", "suppress": 3}, "suppress"),
        ({"mechanism": "items:budget=2", "recode": {"d": dn.prefix(1)}}, "recode"),
        ({"mechanism": "items:budget=2", "domain": ["a", "b"]}, "declared domain"),
        ({"mechanism": "items:budget=2", "domain": ["a", "a", "b", "c"]}, "twice"),
        ({"mechanism": "uniform", "privacy": "1/2"}, "mechanism items"),
    ],
)
def test_what_does_not_go_with_lists_is_refused(options, words):
    with pytest.raises(dn.DeniableError, match=words):
        dn.publish(table(), sensitive="d", **options)


def test_a_histogram_has_no_lists():
    with pytest.raises(dn.DeniableError, match="publish"):
        dn.plan({"a": 3, "b": 4}, dn.Privacy("1/4", "1/2"), mechanism=Items())


def test_numbers_are_no_lists_and_one_column_is_enough():
    import pyarrow as pa

    numbers = pa.table({"d": [1, 2] * 50, "e": [["a"], []] * 50})
    with pytest.raises(dn.DeniableError, match="needs lists of items"):
        dn.publish(numbers.select(["d"]), sensitive="d", mechanism="items:budget=2")
    with pytest.raises(dn.DeniableError, match="one column of lists"):
        dn.publish(numbers, sensitive=["d", "e"], mechanism="items:budget=2")
