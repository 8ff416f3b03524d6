"""PRAM with a fitted coin: the largest that works, and what it promises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable.core.channels import Channel
from deniable.core.errors import RequirementError
from deniable.core.exact import SCALE
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.pram import Pram

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))
NOISY = Histogram(COUNTS.domain, COUNTS.counts + np.array([2, -1, 0, 3, -2, 1, 0, -1]))
STEP = 1 + Fraction(1, 512)  # coins have ten bits: the next one is at most this much larger


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
