"""Worked numbers of docs/explanation/mathematics.md that no other test holds: the package gives what the page says."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel
from deniable.core.exact import belief_limit, joint_posterior
from deniable.core.privacy import largest_prior, worst_posterior
from deniable.estimation.model.likelihood import likelihood_counts
from deniable.estimation.model.states import States
from deniable.lab.laplace import largest_epsilon, smallest_epsilon
from deniable.tables.keys import discrete_laplace_variance

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "explanation" / "mathematics.md"


def said(*words: str) -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    missing = [one for one in words if one not in page]
    assert not missing, f"the page does not say {missing} any more: this test holds what nobody reads"


def test_section_2_a_cell_is_evidence_and_identity_covers_beliefs() -> None:
    said("is believed at 14/26", "beliefs up to 0.9375 stay below 0.95")
    assert worst_posterior(Fraction(1, 13), Fraction(14)) == Fraction(14, 26)
    assert belief_limit(Fraction(1, 5), Fraction(95, 100)) == Fraction(9375, 10_000)
    assert largest_prior(Fraction(1, 6), Fraction(12, 5)) == Fraction(1, 13)


def test_section_6_rows_needed() -> None:
    said("that is 590,221")
    needed = dn.rows_needed(0.5, 0.01)
    assert needed.theorem == math.ceil(4 * math.log(2 / 0.05) / (0.5 * 0.01) ** 2) == 590_221


def test_section_7_noise_that_keeps_small_sums_uncertain_lasts_for_23_questions() -> None:
    said("needs epsilon = .0301", "lasts for 23 questions")
    small = dn.SmallSums(error="0.3", below=3, at_least="2/3")
    one = smallest_epsilon(dn.LargeSums(error="0.1", above=1000, at_most="0.05"))
    assert one == pytest.approx(0.0301, abs=5e-5)
    assert 2 * math.exp(-100 * one) / (1 + math.exp(-one)) == pytest.approx(0.05, rel=1e-6)
    assert math.floor(largest_epsilon(small) / one) == 23


def test_section_8_the_noise_of_a_published_histogram() -> None:
    said("v = 7.84 and a count is exact with probability .24", "v = 1.84 and .46")
    z = np.arange(-400, 401)
    for epsilon, variance, exactly in ((0.5, 7.84, 0.24), (1.0, 1.84, 0.46)):
        share = np.exp(-epsilon * np.abs(z))
        share /= share.sum()
        assert share[400] == pytest.approx(exactly, abs=0.005)
        assert (share * z**2).sum() == pytest.approx(variance, abs=0.005)
        assert discrete_laplace_variance(epsilon) == pytest.approx((share * z**2).sum())
    jobs = pa.table({"job": ["cook", "nurse", "judge"] * 30})
    release = dn.publish(jobs, sensitive="job", privacy="1/2", mechanism="uniform", key=bytes(32))
    assert release.manifest.parts[0].marginal.variance == pytest.approx(7.84, abs=0.005)


def test_section_8_reconstruction() -> None:
    said("the inverse is (200, 0, -100), the maximum likelihood (100, 0, 0)")
    channel = Channel.uniform(("a", "b", "c"), gamma=Fraction(4, 3))
    states = States(3, (channel,), (np.arange(3),))
    for observed, inverse, likeliest in (
        ((30, 35, 35), (0, 50, 50), (0, 50, 50)),
        ((50, 30, 20), (200, 0, -100), (100, 0, 0)),
    ):
        assert channel.invert(np.array(observed, float)) == pytest.approx(inverse, abs=1e-5)
        assert likelihood_counts(states, np.array([observed], float))[0] == pytest.approx(likeliest, abs=1e-5)


def test_section_13_columns_that_always_agree() -> None:
    said("42 % by one column, 83 % by two columns that always agree, 99.9 % by five")
    for columns, percent in ((1, 42), (2, 83), (5, 99.9)):
        sure = joint_posterior(0.1, [0.356] * columns, [0.1] * columns)
        assert 100 * sure == pytest.approx(percent, abs=0.5 if columns < 5 else 0.05)
