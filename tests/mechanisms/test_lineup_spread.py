"""What sizes of line-ups leave, predicted without making the sets, beside the sets themselves."""

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.core.designs import BlockDesign
from deniable.core.lineups import COIN, TRUTH_STEP, LineUpDesign, orders_for
from deniable.mechanisms.lineup import balanced_inverse, by_amplification, equal_error, equal_inverse


def measured(design: LineUpDesign) -> float:
    """The square root of the mean variance of a count over values, for one row, from J itself."""
    inverse, t = np.linalg.inv(design.joint()), design.share_true
    return float(np.sqrt(np.mean((design.inclusion / t) ** 2 * (np.diag(inverse) - (1 - t**2) / design.size**2))))


def designed(m: int, size: int, gamma: float) -> BlockDesign:
    t = (gamma - 1) * size / (m + (gamma - 1) * size)
    return BlockDesign(m, size, int(t * COIN) * TRUTH_STEP, orders_for(m, size))


@pytest.mark.parametrize(("m", "size"), [(7, 2), (12, 5), (50, 4), (50, 10), (50, 13), (120, 31), (200, 48)])
def test_the_predicted_error_is_that_of_the_sets(m, size):
    design = designed(m, size, 2.4)
    assert equal_error(m, size, design.share_true) == pytest.approx(measured(design), rel=1e-6)


@pytest.mark.parametrize(("m", "size"), [(3, 1), (8, 3), (50, 14), (500, 149)])
def test_no_design_is_better_than_balanced_sets(m, size):
    assert balanced_inverse(m, size) <= equal_inverse(m, size, orders_for(m, size)) * (1 + 1e-12)


def test_a_block_that_looks_the_same_after_some_places_tells_nothing():
    """One block of 2 of 4 values is {x, x + 2}, which every second shift repeats, or {x, x + 1}: J is singular."""
    assert equal_inverse(4, 2, 1) == math.inf
    assert equal_inverse(4, 2, 64) < math.inf


@pytest.mark.parametrize(
    ("m", "gamma"), [(20, Fraction(12, 5)), (50, Fraction(12, 5)), (60, Fraction(6)), (30, Fraction(9))]
)
def test_the_size_that_is_chosen_leaves_the_least_error(m, gamma):
    chosen = by_amplification(m, gamma, None, None)
    errors = [measured(designed(m, size, float(gamma))) for size in range(1, m // 2)]
    assert measured(chosen) <= 1.001 * min(errors)


def uniform(m: int, gamma: float) -> float:
    """The same deviation of uniform perturbation: a row weighs (1 - q) / p for the value that it shows, else -q / p."""
    p = (gamma - 1) / (gamma - 1 + m)
    q = (1 - p) / m
    return math.sqrt(((1 - q) ** 2 / m + (1 - 1 / m) * q**2) / p**2 - 1 / m)


@pytest.mark.parametrize(("m", "most"), [(50, 0.43), (500, 0.141), (1200, 0.0925)])
def test_against_any_prior_line_ups_leave_a_fraction_of_the_error_of_uniform_perturbation(m, most):
    """At (1/13, 1/6): less than half at 50 values and less than a tenth at 1,200; all sets of a size would leave
    .422, .138 and .089."""
    chosen = by_amplification(m, Fraction(12, 5), None, None)
    assert equal_error(m, chosen.size, chosen.share_true) / uniform(m, 2.4) < most


def test_large_domains_are_planned_in_seconds():
    design = by_amplification(15_000, Fraction(12, 5), None, None)
    assert design.orders * design.m * design.size <= 2**23
    assert design.size > 200
