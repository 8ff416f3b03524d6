"""Designed channels and identity perturbation: every posterior at or below rho2, exactly, and near it."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from deniable.core import exact
from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.designed import Designed, Identity, constant_coin, covers, designed_coins, tolerance
from deniable.mechanisms.one_cell import keeps, posterior_curve, profile_error, value_variances
from deniable.mechanisms.uniform import Uniform

DATA = Path(os.environ.get("DENIABLE_DATA", Path(__file__).parents[3] / "shared" / "data"))
MECHANISMS = [Designed(), Designed("frequency"), Designed("uniform"), Identity()]


def names(mechanism: Designed | Identity) -> str:
    return f"{mechanism.name} {getattr(mechanism, 'replacing', '')}"


def skewed(seed: int, m: int, n: int = 20_000) -> Histogram:
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(m, 2.0))
    return Histogram(tuple(range(m)), rng.multinomial(n, share))


def posteriors(plan, counts: np.ndarray) -> list[Fraction]:
    channel = plan.cells[0].channel
    return exact.surest(channel.keep, channel.replace, counts)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=names)
@pytest.mark.parametrize("seed", range(5))
def test_no_posterior_exceeds_rho2(mechanism: Designed | Identity, seed: int) -> None:
    rows = skewed(seed, m=8 + 5 * seed)
    rho2 = Fraction(int(rows.counts.max()), rows.rows) * Fraction(5, 4)
    plan = mechanism.plan(rows, Privacy(rho2=rho2))
    worst = max(posteriors(plan, rows.counts))
    assert worst <= rho2
    assert worst <= plan.guarantee.worst <= rho2
    assert plan.cells[0].channel.invertible


def test_posteriors_agree_with_bayes_on_the_whole_matrix() -> None:
    rows = skewed(1, m=12)
    plan = Designed().plan(rows, Privacy(rho2="1/3"))
    joint = plan.cells[0].channel.matrix() * rows.relative
    bayes = joint / joint.sum(1, keepdims=True)
    assert bayes.max() <= 1 / 3
    assert bayes.max() == pytest.approx(float(max(posteriors(plan, rows.counts))))


def test_the_fixed_point_makes_all_posteriors_equal_and_keeps_rho2_of_the_rows() -> None:
    prior = np.array([0.11, 0.10, 0.09, 0.08, 0.07, 0.06, 0.06, 0.05, 0.05, 0.04, 0.04, 0.25])
    prior /= prior.sum()
    for power in (0.5, 1.0):
        r = prior**power / (prior**power).sum()
        [coins] = designed_coins(prior, r[None], np.full(12, 0.4), np.ones((1, 12)))
        assert coins is not None
        S = prior @ (1 - coins)
        posterior = prior * (coins + (1 - coins) * r) / (prior * coins + r * S)
        assert posterior == pytest.approx(np.full(12, 0.4), abs=1e-9)
        assert prior @ (coins + (1 - coins) * r) == pytest.approx(0.4, abs=1e-9)


def test_identity_has_the_closed_form_coin() -> None:
    prior = np.array([0.3, 0.25, 0.25, 0.2])
    assert constant_coin(prior, prior, np.full(4, 0.45)) == pytest.approx((0.45 - 0.3) / 0.7, abs=1e-9)
    two = np.array([0.67, 0.33])  # also where r + rho2 is above 1
    assert constant_coin(two, two, np.full(2, 0.87)) == pytest.approx((0.87 - 0.67) / 0.33, abs=1e-9)
    over = 1.02 * two  # a cover: the bound holds for it, exactly at one of the values
    coin = constant_coin(over, two, np.full(2, 0.87))
    left = 1 - coin * over.sum()
    same = over * (coin + (1 - coin) * two) / (over * coin + two * left)
    assert max(same.max(), (over * (1 - coin) / left).max()) == pytest.approx(0.87, abs=1e-9)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=names)
def test_exempt_values_and_values_without_rows(mechanism: Designed | Identity) -> None:
    rows = Histogram.of({"none": 60_000, "a": 12_000, "b": 9_000, "c": 9_000, "d": 6_000, "e": 4_000, "never": 0})
    plan = mechanism.plan(rows, Privacy(rho1="1/5", rho2="1/4"))
    assert max(posteriors(plan, rows.counts)[1:]) <= Fraction(1, 4)
    assert plan.cells[0].channel.invertible
    assert (plan.cells[0].channel.replace > 0).all()
    assert any("1 of 7 values are exempt" in line for line in plan.guarantee.not_protected)


def test_per_value_limits() -> None:
    rows = skewed(3, m=15)
    rarest = int(np.argmin(rows.counts))
    share = rows.frequency(rarest)
    plan = Designed().plan(rows, Privacy(per_value={rarest: (share, 2 * share), 0: ("1/2", "3/4")}))
    result = posteriors(plan, rows.counts)
    assert result[rarest] <= 2 * share
    assert result[rarest] > Fraction(9, 5) * share
    assert plan.guarantee.rho2 is None


def test_the_tolerance_rule_binds_at_each_values_own_share() -> None:
    """Also for values of few rows, whose stated requirement is far coarser than their share."""
    rows = Histogram(tuple("abcdefg"), [30_011, 24_017, 20_021, 15_003, 3_005, 57, 3])
    plan = Designed().plan(rows, tolerance(rows, 3))
    for value, posterior in zip(rows, posteriors(plan, rows.counts), strict=True):
        assert posterior <= 3 * rows.frequency(value)
    assert "its own rho2" in str(plan.guarantee)


def test_no_coin_and_no_replacement_depends_on_an_exact_count() -> None:
    """Two tables that differ in one row, inside the same step of the cover, get the same channel."""
    first = Histogram(tuple("abcdef"), [4001, 3201, 2401, 1601, 801, 57])
    second = Histogram(tuple("abcdef"), [4000, 3202, 2401, 1601, 801, 57])
    channels = [Designed().plan(rows, Privacy(rho2="2/5")).cells[0].channel for rows in (first, second)]
    assert np.array_equal(channels[0].keep, channels[1].keep)
    assert np.array_equal(channels[0].replace, channels[1].replace)


def test_covers_are_never_below_the_counts_and_cost_almost_nothing() -> None:
    rows = skewed(4, m=50, n=100_000)
    noisy = Histogram(rows.domain, np.maximum(rows.counts + np.random.default_rng(1).integers(-20, 20, 50), 1))
    for cover in [*covers(rows), *covers(rows, noisy)]:
        assert (cover.prior >= rows.counts).all()
        assert cover.prior.sum() < 1.03 * rows.rows
        assert not np.array_equal(cover.base, rows.counts)
    tight = Designed("frequency").plan(rows, Privacy(rho2="1/6")).record_utility
    assert 0.98 / 6 < tight <= 1 / 6


def test_a_tight_requirement_is_met_and_its_cost_is_said() -> None:
    rows = Histogram(tuple("abcdef"), [2003, 1999, 1600, 1400, 1000, 998])
    plan = Designed().plan(rows, Privacy(rho2=Fraction(2009, 9000)))
    assert max(posteriors(plan, rows.counts)) <= Fraction(2009, 9000)
    assert any("three digits" in line for line in plan.guarantee.not_protected)
    roomy = Designed().plan(rows, Privacy(rho2="1/3"))
    assert not any("three digits" in line for line in roomy.guarantee.not_protected)


def test_a_noisy_histogram_serves_instead_of_the_true_one() -> None:
    rows = skewed(5, m=20, n=50_000)
    noisy = Histogram(rows.domain, np.maximum(rows.counts + np.random.default_rng(2).integers(-3, 4, 20), 1))
    plan = Designed("frequency").plan(rows, Privacy(rho2="1/4"), public=noisy)
    assert max(posteriors(plan, rows.counts)) <= Fraction(1, 4)
    start = noisy.counts + max(-((noisy.rows - rows.rows) // rows.m), 0)
    expected = (start + 8) / (start + 8).sum()  # the smallest margin
    assert plan.cells[0].channel.replacing == pytest.approx(expected, abs=1e-8)
    with pytest.raises(OptionError, match="same values"):
        Designed().plan(rows, Privacy(rho2="1/4"), public=Histogram.of({"x": 1}))


def test_a_channel_that_exceeds_a_limit_is_found_out() -> None:
    rows = skewed(6, m=10)
    channel = Designed().plan(rows, Privacy(rho2="3/5")).cells[0].channel
    assert keeps(rows, channel, [Fraction(3, 5)] * 10)
    assert not keeps(rows, channel, [Fraction(1, 2)] * 10)
    assert keeps(rows, channel, [None] * 10)


def test_value_variances_equal_the_weights_formula() -> None:
    rows = skewed(7, m=9)
    channel = Designed().plan(rows, Privacy(rho2="1/2")).cells[0].channel
    w = channel.weights(np.eye(9))
    expected = (channel.apply(rows.counts) * w**2).sum(1) - rows.counts
    got = value_variances(channel.coins, channel.replacing, rows.counts.astype(float))
    assert got == pytest.approx(expected, rel=1e-9)


def test_posterior_curve_is_bayes_rule() -> None:
    rows = skewed(8, m=6)
    channel = Designed().plan(rows, Privacy(rho2="1/2")).cells[0].channel
    own = rows.relative[2]
    curve = posterior_curve(channel, 2, [own, 0.6], rows)
    assert curve[0] == pytest.approx(float(exact.surest(channel.keep, channel.replace, rows.counts)[2]))
    prior = np.where(np.arange(6) == 2, 0.6, 0.4 * rows.relative / (1 - own))
    joint = channel.matrix() * prior
    assert curve[1] == pytest.approx((joint[:, 2] / joint.sum(1)).max())


def test_the_wrong_adversary_is_refused_with_what_to_use_instead() -> None:
    with pytest.raises(RequirementError, match="'uniform' or 'fine-grain'"):
        Designed().plan(skewed(1, 5), Privacy("1/3", "1/2", adversary="any-prior"))


def test_requirements_that_cannot_be_met_are_refused() -> None:
    rows = Histogram.of({"a": 50, "b": 50})
    with pytest.raises(RequirementError, match="smallest feasible rho2"):
        Designed().plan(rows, Privacy(rho2="1/3"))
    with pytest.raises(RequirementError, match="too close to the share of rows of 'a'"):
        Designed().plan(Histogram.of({"a": 500_000, "b": 500_000}), Privacy(rho2=Fraction(500_001, 1_000_000)))
    with pytest.raises(RequirementError, match="No value is protected"):
        Designed().plan(rows, Privacy(rho2="2/3", exempt=["a", "b"]))


def test_wrong_options_are_explained() -> None:
    with pytest.raises(OptionError, match="Did you mean 'frequency'"):
        Designed("frequncy")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="selectivities"):
        Designed(profile=(0.0,))


def test_the_guarantee_says_who_it_does_not_withstand_and_gives_no_count_away() -> None:
    guarantee = Designed().plan(skewed(2, 30, n=123_457), Privacy(rho2="1/6")).guarantee
    assert any("knows more about a person" in line for line in guarantee.not_protected)
    assert 10_000 % guarantee.worst.denominator == 0 or guarantee.worst == Fraction(1, 6)


@pytest.mark.skipif(not (DATA / "census_occ100k.parquet").exists(), reason="CENSUS OCC-100k is not on this machine")
def test_on_census_designed_beats_identity_beats_uniform() -> None:
    import pyarrow.parquet as pq

    column = pq.read_table(DATA / "census_occ100k.parquet", columns=["occupation"])["occupation"].to_numpy()
    values, counts = np.unique(column, return_counts=True)
    rows = Histogram(tuple(values.tolist()), counts)
    privacy = Privacy("1/13", "1/6")
    errors, kept = [], []
    for mechanism in (Uniform(), Identity(), Designed("frequency"), Designed("optimised")):
        plan = mechanism.plan(rows, privacy)
        channel = plan.cells[0].channel
        errors.append(profile_error(channel.coins, channel.replacing, counts.astype(float), (0.001, 0.005, 0.01)))
        kept.append(plan.record_utility)
    assert errors[0] > 3 * errors[1] > 3.5 * errors[2] > 3.5 * errors[3]
    assert 0.99 / 6 < kept[2] <= 1 / 6
    assert 0.99 / 6 < kept[3] <= 1 / 6
