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
from deniable.rivals.anatomy.mechanism import Anatomy

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
    with pytest.raises(RequirementError, match="amplification"):
        Pram(coin=0.2).plan(COUNTS, Privacy(rho1="1/3", rho2="1/2", adversary="any-prior"))
    assert Redraw().plan(COUNTS, Privacy(rho1="1/3", rho2="1/2", adversary="any-prior")).guarantee.gamma == 1
    with pytest.raises(RequirementError, match="needs rho1"):
        Redraw().plan(COUNTS, Privacy(rho2="1/2", adversary="any-prior"))
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


# -- Anatomy --------------------------------------------------------------------------------------------------------


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
