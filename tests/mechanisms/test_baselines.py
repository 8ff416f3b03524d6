"""Baselines with channels: redraw and invariant PRAM keep distributions, and never promise what they do not hold."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.pram import Pram
from deniable.mechanisms.redraw import Redraw

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))
NOISY = Histogram(COUNTS.domain, COUNTS.counts + np.array([2, -1, 0, 3, -2, 1, 0, -1]))


def brute_force(channel, counts) -> float:
    """The largest Pr[x | y] by the whole joint distribution."""
    joint = channel.matrix() * counts
    return float((joint / joint.sum(1, keepdims=True)).max())


@pytest.mark.parametrize("mechanism", [Redraw(), Pram(), Pram(coin="1/3", coins={"a": 0.1, "h": 0.9})])
def test_posteriors_are_those_of_the_joint_distribution(mechanism):
    assert isinstance(mechanism, Mechanism)
    plan = mechanism.plan(COUNTS, None)
    assert float(plan.guarantee.worst) == pytest.approx(brute_force(plan.cells[0].channel, COUNTS.counts), rel=1e-9)
    assert plan.guarantee.gamma == plan.cells[0].channel.exact_gamma
    json.dumps(dict(plan.options))


@pytest.mark.parametrize("mechanism", [Pram(), Pram(coin=0.1), Pram(coin="1/3", coins={"a": 0.1, "h": 0.9})])
def test_pram_leaves_expected_counts_as_they_are(mechanism):
    channel = mechanism.plan(COUNTS, None).cells[0].channel
    assert np.allclose(channel.apply(COUNTS.counts), COUNTS.counts, rtol=1e-6)
    uniform = channel.__class__.of(channel.values, channel.coins)
    assert not np.allclose(uniform.apply(COUNTS.counts), COUNTS.counts, rtol=0.02)


def test_with_a_noisy_histogram_counts_stay_up_to_its_noise_and_none_can_be_read_off():
    plan = Pram(coin=0.5).plan(COUNTS, None, public=NOISY)
    channel = plan.cells[0].channel
    assert np.allclose(channel.apply(NOISY.counts), NOISY.counts, rtol=1e-6)
    assert np.abs(channel.apply(COUNTS.counts) - COUNTS.counts).max() < 4
    assert any("noisy histogram" in line for line in plan.guarantee.not_protected)
    assert any("exact count" in line for line in Pram().plan(COUNTS, None).guarantee.not_protected)
    assert np.allclose(Redraw().plan(COUNTS, None, public=NOISY).cells[0].channel.replacing * 10_002, NOISY.counts)


def test_where_nothing_is_required_the_sentence_is_in_whole_percent():
    """30.01 % of 10,000 rows would be the exact count of the most frequent value."""
    assert "at most 31 % sure" in str(Redraw().plan(COUNTS, None).guarantee)
    assert "at most 33.3 % sure" in str(Redraw().plan(COUNTS, Privacy(rho2="1/3")).guarantee)
    said = str(Pram(coin="1/3").plan(COUNTS, None).guarantee)
    assert f"at most {math.ceil(100 * Pram(coin='1/3').plan(COUNTS, None).guarantee.worst)} % sure" in said


def test_redraw_tells_nothing_about_a_row_and_its_weights_no_exact_count():
    plan = Redraw().plan(COUNTS, None)
    assert plan.guarantee.gamma == 1
    assert plan.guarantee.worst == Fraction(3001, 10_000)
    assert not plan.cells[0].channel.invertible
    other = Histogram(COUNTS.domain, COUNTS.counts + np.array([0, 0, 0, 0, 0, 0, 1, -1]))
    assert np.array_equal(plan.cells[0].channel.replace, Redraw().plan(other, None).cells[0].channel.replace)
    assert np.allclose(plan.cells[0].channel.replacing, COUNTS.relative, rtol=0.06)


def test_a_requirement_is_checked_and_never_weakened():
    with pytest.raises(RequirementError, match=r"86 % sure.*50 % is required.*coin=0\.285"):
        Pram(coin=0.8).plan(COUNTS, Privacy(rho2="1/2"))
    assert Pram(coin=0.285).plan(COUNTS, Privacy(rho2="1/2")).guarantee.worst <= Fraction(1, 2)
    with pytest.raises(RequirementError):
        Pram(coin=0.287).plan(COUNTS, Privacy(rho2="1/2"))
    for mechanism in (Pram(coin=0.2), Redraw()):
        with pytest.raises(RequirementError, match="evidence itself"):
            mechanism.plan(COUNTS, Privacy(rho1="1/3", rho2="1/2", adversary="any-prior"))
    with pytest.raises(RequirementError, match="'a' alone is 30 %"):
        Redraw().plan(COUNTS, Privacy(rho2="1/4"))
    assert Redraw().plan(COUNTS, Privacy(rho2="1/4", exempt=["a"])).guarantee.worst == Fraction(2003, 10_000)
    fine = Privacy(per_value={"h": ("1/10", "1/5")})
    assert Pram(coin=0.1).plan(COUNTS, fine).guarantee.worst <= Fraction(1, 5)
    with pytest.raises(RequirementError, match="sure of 'h'"):
        Pram(coin=0.3).plan(COUNTS, fine)


def test_bad_options_are_named():
    with pytest.raises(RequirementError, match=r"coin = 1\.5"):
        Pram(coin=1.5)
    with pytest.raises(OptionError, match="'flu'"):
        Pram(coins={"flu": 0.5}).plan(COUNTS, None)
    with pytest.raises(TableError, match="one single value"):
        Redraw().plan(Histogram.of({"a": 5}), None)
