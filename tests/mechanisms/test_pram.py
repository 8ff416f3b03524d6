"""PRAM with a fitted coin, and PRAM within strata: the largest coins that work, and what they promise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable.core.channel import SCALE, Channel
from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.one_cell import surest
from deniable.mechanisms.pram import Pram

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))
NOISY = Histogram(COUNTS.domain, COUNTS.counts + np.array([2, -1, 0, 3, -2, 1, 0, -1]))
STEP = 1 + Fraction(1, 512)  # coins have ten bits: the next one is at most this much larger
NORTH = Histogram.of({"a": 900, "b": 600, "c": 300, "d": 200})
SOUTH = Histogram.of({"a": 500, "b": 800, "d": 400, "e": 300})
STRATA = [NORTH, SOUTH]


def larger(channel: Channel, factor: Fraction) -> Channel:
    keep = [min(int(k * factor) + 1, SCALE) for k in channel.keep.tolist()]
    return Channel(channel.values, np.array(keep), channel.replace)


# -- a fitted coin ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("public", [None, NOISY])
@pytest.mark.parametrize(
    "privacy",
    [
        Privacy(rho2="1/2"),
        Privacy(rho1="1/13", rho2="1/6"),
        Privacy(rho2="1/3", exempt=["a"]),
        Privacy(per_value={"h": ("1/20", "1/5"), "g": ("1/20", "1/8")}),
    ],
    ids=str,
)
def test_without_a_coin_the_largest_that_meets_the_requirement_is_used(privacy, public):
    plan = Pram().plan(COUNTS, privacy, public=public)
    channel = plan.cells[0].channel
    assert len(set(channel.keep.tolist())) == 1
    limit = privacy.rho2 or Fraction(1, 5)
    assert plan.guarantee.worst <= limit
    counts = COUNTS.counts if public is None else public.counts
    assert np.allclose(channel.apply(counts), counts, rtol=1e-6)
    if public is None:
        with pytest.raises(RequirementError, match="coin="):
            Pram(coin=Fraction(int(channel.keep[0]), SCALE) * STEP).plan(COUNTS, privacy)


def test_the_fitted_coin_is_the_formula_of_identity_when_the_histogram_is_exact():
    coin = Pram().plan(COUNTS, Privacy(rho2="1/2")).cells[0].channel.coins[0]
    share = 3001 / 10_000
    assert coin == pytest.approx((0.5 - share) / (1 - share), rel=1 / 512)


def test_it_shows_no_exact_count():
    near = Histogram(COUNTS.domain, COUNTS.counts + np.array([1, -1, 0, 0, 0, 0, 0, 0]))
    coins = {int(Pram().plan(h, Privacy(rho2="1/2")).cells[0].channel.keep[0]) for h in (COUNTS, near)}
    assert len(coins) == 1


def test_any_prior_is_refused_since_replacements_follow_the_table():
    with pytest.raises(RequirementError, match="that is evidence itself"):
        Pram().plan(COUNTS, Privacy(rho1="1/3", rho2="1/2", adversary="any-prior"))


def test_a_plan_can_be_made_again_from_its_options():
    plan = Pram().plan(COUNTS, Privacy(rho1="1/13", rho2="1/6"))
    again = Pram(**plan.options).plan(COUNTS, Privacy(rho1="1/13", rho2="1/6"))
    assert np.array_equal(plan.cells[0].channel.keep, again.cells[0].channel.keep)


def test_without_a_requirement_the_coin_is_as_before():
    assert Pram().plan(COUNTS, None).cells[0].channel.coins[0] == pytest.approx(0.8)
    assert Pram(coins={"a": 0.1}).plan(COUNTS, None).cells[0].channel.coins[1] == pytest.approx(0.8)


def test_no_coin_is_refused_rather_than_a_useless_one():
    even = Histogram.of({"a": 2_000_000_000, "b": 2_000_000_001})
    with pytest.raises(RequirementError, match="no coin"):
        Pram().plan(even, Privacy(rho2=even.frequency("b") + Fraction(1, 10**12)))


# -- strata -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", [None, Privacy(rho2="1/2"), Privacy(rho1="1/3", rho2="1/2")], ids=str)
def test_each_stratum_has_an_invariant_channel_over_its_own_values(privacy):
    plan = Pram(strata="region").plan_strata(STRATA, privacy)
    assert plan.cells_published
    assert dict(plan.histogram) == {"a": 1400, "b": 1400, "c": 300, "d": 600, "e": 300}
    for cell, stratum in zip(plan.cells, STRATA, strict=True):
        assert cell.rows == stratum
        assert np.allclose(cell.channel.apply(stratum.counts), stratum.counts, rtol=1e-6)
        other = [700, 500, 500, 300]
        assert not np.allclose(cell.channel.apply(other), other, rtol=0.01)


def test_the_requirement_is_met_within_each_stratum_with_its_own_largest_coin():
    privacy = Privacy(rho2="1/2")
    plan = Pram(strata="region").plan_strata(STRATA, privacy)
    coins = [cell.channel.coins[0] for cell in plan.cells]
    assert coins[0] != coins[1]
    for cell in plan.cells:
        assert max(surest(cell.channel, cell.rows)) <= Fraction(1, 2)
        assert max(surest(larger(cell.channel, STEP), cell.rows)) > Fraction(1, 2)
        joint = cell.channel.matrix() * cell.rows.counts
        assert float((joint / joint.sum(1, keepdims=True)).max()) <= 0.5 + 1e-9
    assert plan.guarantee.worst <= Fraction(1, 2)
    assert "with the same region" in plan.guarantee.sentence
    assert plan.guarantee.promises[0].gammas == tuple(cell.channel.exact_gamma for cell in plan.cells)
    assert any("never published there" in line for line in plan.guarantee.not_protected)


def test_a_value_is_protected_by_its_share_of_the_table_or_of_the_stratum():
    # 'c' is 7.5 % of the table and 15 % of the north: rho1 = 1/10 protects it there too; 'd' is 15 % of the table,
    # but 10 % of the north, where rho1 protects it.
    plan = Pram(strata="region").plan_strata(STRATA, Privacy(rho1="1/10", rho2="1/4"))
    north = dict(zip("abcd", surest(plan.cells[0].channel, NORTH), strict=True))
    assert north["c"] <= Fraction(1, 4)
    assert north["d"] <= Fraction(1, 4)
    assert north["a"] > Fraction(1, 4)


def test_exempt_values_and_requirements_of_single_values_may_be_absent_from_a_stratum():
    plan = Pram(strata="region").plan_strata(STRATA, Privacy(rho2="1/2", exempt=["c", "e"]))
    assert plan.guarantee.worst <= Fraction(1, 2)
    fine = Privacy(per_value={"e": ("1/10", "1/5")})
    plan = Pram(strata="region", coins={"c": 0.5}, coin=0.02).plan_strata(STRATA, fine)
    assert plan.cells[0].channel.coins.round(2).tolist() == [0.02, 0.02, 0.5, 0.02]
    south = dict(zip("abde", surest(plan.cells[1].channel, SOUTH), strict=True))
    assert south["e"] <= Fraction(1, 5)


def test_noisy_counts_make_the_channels_and_the_requirement_is_checked_against_the_true_ones():
    noisy = [Histogram(h.domain, h.counts + np.array([3, -2, 1, 0])) for h in STRATA]
    plan = Pram(strata="region").plan_strata(STRATA, Privacy(rho2="1/2"), public=noisy)
    for cell, shown in zip(plan.cells, noisy, strict=True):
        assert np.allclose(cell.channel.apply(shown.counts), shown.counts, rtol=1e-6)
        assert np.abs(cell.channel.apply(cell.rows.counts) - cell.rows.counts).max() < 3
        assert max(surest(cell.channel, cell.rows)) <= Fraction(1, 2)


def test_what_cannot_be_done_is_refused_without_a_count():
    with pytest.raises(RequirementError, match=r"1 of 2 strata hold fewer than min_rows = 100 rows.*coarser") as found:
        Pram(strata="region").plan_strata([NORTH, Histogram.of({"a": 41, "b": 23})], None)
    assert "64" not in str(found.value)
    assert "41" not in str(found.value)
    with pytest.raises(RequirementError, match="1 of 2 strata hold one single sensitive value"):
        Pram(strata="region").plan_strata([NORTH, Histogram.of({"a": 410})], None)
    with pytest.raises(RequirementError, match=r"in 1 of 2 strata.*coarser strata"):
        Pram(strata="region").plan_strata(STRATA, Privacy(rho2="0.42"))
    with pytest.raises(RequirementError, match="any-prior"):
        Pram(strata="region").plan_strata(STRATA, Privacy(rho1="1/3", rho2="1/2", adversary="any-prior"))
    with pytest.raises(RequirementError, match="leave coin out"):
        Pram(strata="region", coin=0.5).plan_strata(STRATA, Privacy(rho2="1/2"))
    with pytest.raises(OptionError, match="one histogram"):
        Pram(strata="region").plan(COUNTS, None)
    with pytest.raises(OptionError, match="twice"):
        Pram(strata=("region", "region"))
    with pytest.raises(OptionError, match="min_rows = 1"):
        Pram(strata="region", min_rows=1)
    with pytest.raises(OptionError, match="'flu'"):
        Pram(strata="region", coins={"flu": 0.5}).plan_strata(STRATA, None)
