"""What sizes of line-ups leave, predicted without making the sets, beside the sets themselves."""

from fractions import Fraction

import numpy as np
import pytest

from deniable.core.lineup import LineUpDesign, orders_for
from deniable.mechanisms.lineup_choice import by_amplification, designed, equal_error
from deniable.mechanisms.lineup_spread import equal_inverse, one_order


def measured(design: LineUpDesign) -> float:
    """The square root of the mean variance of a count over values, for one row, from J itself."""
    inverse, t = np.linalg.inv(design.joint()), design.share_true
    return float(np.sqrt(np.mean((design.inclusion / t) ** 2 * (np.diag(inverse) - (1 - t**2) / design.size**2))))


def truth(m: int, size: int, gamma: float) -> float:
    return (gamma - 1) * size / (m + (gamma - 1) * size)


@pytest.mark.parametrize(("m", "size"), [(7, 2), (12, 5), (50, 4), (50, 10), (50, 13), (50, 15), (120, 31), (200, 48)])
def test_the_predicted_error_is_that_of_the_sets(m, size):
    """Within three hundredths, also where size and m share a divisor (10 and 50, 48 and 200)."""
    t = truth(m, size, 2.4)
    design = designed(np.ones(m), size, t)
    assert equal_error(m, size, design.share_true) == pytest.approx(measured(design), rel=0.03)


def test_the_spectrum_of_one_order_is_that_of_its_joint_inclusion():
    whole = designed(np.ones(16), 3, 0.5)
    one = LineUpDesign(whole.arcs, whole.truth, 1, 0)
    assert np.sort(one_order(16, 3)) == pytest.approx(np.linalg.eigvalsh(one.joint())[:-1], abs=1e-6)


@pytest.mark.parametrize(
    ("m", "gamma"), [(20, Fraction(12, 5)), (50, Fraction(12, 5)), (60, Fraction(6)), (30, Fraction(9))]
)
def test_the_size_that_is_chosen_leaves_the_least_error(m, gamma):
    chosen = by_amplification(m, gamma, None, None)
    errors = {size: measured(designed(np.ones(m), size, truth(m, size, float(gamma)))) for size in range(1, m // 2, 2)}
    assert measured(chosen.design) <= 1.02 * min(errors.values())


def test_sizes_that_make_orders_repeat_themselves_are_not_chosen():
    """100 of 500 values are five sets for each order: fewer sets than values, so nothing can be estimated."""
    assert equal_inverse(500, 100, orders_for(500, 100)) > 1000  # of balanced sets: 6
    design = by_amplification(500, Fraction(12, 5), None, None).design
    assert len(design.sets.members) == 500 * 64
    assert measured(design) < 3.8  # 149, the size nearest to m / (gamma + 1) that used to be taken, leaves 4.7


def test_large_domains_are_planned_in_seconds():
    design = by_amplification(15_000, Fraction(12, 5), None, None).design
    assert np.gcd(design.size, 15_000) == 1
    assert design.orders >= 8
