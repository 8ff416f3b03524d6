"""Retention replacement: coins from requirements, what columns promise alone and together, what is refused."""

import dataclasses
import datetime
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.channels import NumberRange, Replace
from deniable.core.errors import DeniableError, OptionError, RequirementError
from deniable.core.exact import SCALE, joint_limit, surest
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.retention import Retention, guarantee

JOBS = Histogram.of({"a": 60, "b": 30, "c": 10})


def channel(replace, histogram=JOBS, public=None):
    return Retention({"x": replace}).plan_column("x", histogram, public).cells[0].channel


def test_a_uniform_column_has_the_declared_coin_and_the_known_amplification():
    found = channel(Replace(coin=0.6))
    assert found.is_uniform
    assert found.coins[0] == pytest.approx(0.6)
    assert found.gamma == pytest.approx((0.6 + 0.4 / 3) / (0.4 / 3))


def test_identity_draws_from_the_noisy_histogram_and_swapping_from_the_exact_one():
    noisy = Histogram.of({"a": 58, "b": 31, "c": 11})
    raised = np.array([58, 31, 11]) + 2  # so that no value has fewer rows to draw from than it has
    assert channel(Replace(coin=0.5, replacing="identity"), public=noisy).replacing == pytest.approx(raised / 106)
    assert channel(Replace(coin=0.5, replacing="swapping"), public=noisy).replacing == pytest.approx([0.6, 0.3, 0.1])


@pytest.mark.parametrize("asked", [(1, "1/10", "1/2"), Privacy("1/10", "1/2")])
def test_noise_that_makes_a_rare_value_rarer_does_not_break_the_requirement(asked):
    """Drawn from 1 row instead of 5, a value would be believed at 80 % where 50 % are allowed."""
    counts = np.array([4000, *[1000] * 5, *[5] * 50])
    rng = np.random.default_rng(1)
    histogram = Histogram(tuple(range(56)), counts)
    for _ in range(20):
        noisy = Histogram(histogram.domain, np.maximum(counts + rng.integers(-6, 7, 56), 1))
        found = channel(Replace(privacy=asked, replacing="identity"), histogram, noisy)
        worst = [p for p, n in zip(surest(found.keep, found.replace, counts), counts, strict=True) if n < 1000]
        assert max(worst) < Fraction(1, 2)
        assert found.coins[0] > 0.8 * (4 / 9)  # and it costs little


def test_a_column_says_its_own_requirement():
    mechanism = Retention(
        {
            "a": Replace(privacy=(10, 0.1, 0.9)),
            "b": Replace(privacy=Privacy("1/4", "1/2")),
            "c": Replace(privacy=(1, 0.2, 0.4), replacing="identity"),
        }
    )
    columns = [mechanism.perturbed(name, mechanism.plan_column(name, JOBS, JOBS).cells[0].channel) for name in "abc"]
    said = guarantee(columns).also
    assert "less than 10 times as likely" in said[1]
    assert "below 90 % afterwards (as required" in said[1]
    assert "believed at up to 25 % is believed at 50 % at most" in said[2]
    assert "at up to 20 %, believes it below 40 %" in said[3]
    assert "All 3 perturbed columns together" in said[4]
    masses = [c.mass for c in columns]
    limit = joint_limit([c.coin for c in columns], masses, Fraction(1, 10), Fraction(19, 20))
    assert 0.999 * limit < stated_factor(said[4]) <= limit


def stated_factor(sentence):
    return float(re.search(r"less than (\S+) times as likely", sentence)[1])


@pytest.mark.parametrize("coins", [(0.6, 0.5), (0.7, 0.55), (0.33, 0.87)])
def test_what_is_said_of_all_columns_together_holds_for_the_values_that_there_are(coins):
    """Someone who holds the combination (0, 0), and all others in both columns differently: the worst there is."""
    columns = [dict.fromkeys(range(m), 1) for m in (5, 30)]
    mechanism = Retention({name: Replace(coin=coin) for name, coin in zip("ab", coins, strict=True)})
    planned = [
        mechanism.plan_column(name, Histogram.of(column), None).cells[0].channel
        for name, column in zip("ab", columns, strict=True)
    ]
    said = guarantee([mechanism.perturbed(*pair) for pair in zip("ab", planned, strict=True)]).also
    masses = [1 / 5, 1 / 30]
    prior = 0.9999 * stated_factor(said[3]) * math.prod(masses)
    assert prior < 0.1
    inside = math.prod(p + (1 - p) * b for p, b in zip(coins, masses, strict=True))
    outside = math.prod((1 - p) * b for p, b in zip(coins, masses, strict=True))
    posterior = prior * inside / (prior * inside + (1 - prior) * outside)
    assert 0.9 < posterior < 0.95
    for sentence, p, b in zip(said[1:3], coins, masses, strict=True):
        prior = min(stated_factor(sentence) * b, 0.1)
        assert prior * (p + (1 - p) * b) / (prior * p + (1 - p) * b) < 0.95


def test_what_is_said_of_a_set_holds_for_whoever_sees_which_of_its_values_is_shown():
    """A tenth in {0, 1} of 74 values, all of it in 0: the set is 3.7 times as likely as it is drawn, 0 7.4 times."""
    m, s, rho1, rho2 = 74, 5, 0.1, 0.9
    mechanism = Retention({"a": Replace(privacy=(s, rho1, rho2))})
    planned = mechanism.plan_column("a", Histogram.of(dict.fromkeys(range(m), 1)), None).cells[0].channel
    coin = float(planned.coins[0])

    def surest(first: float) -> float:
        return max((coin * p + (1 - coin) / m * rho1) / (coin * p + (1 - coin) / m) for p in (first, rho1 - first))

    assert surest(0.1) > rho2
    assert surest(0.9999 * s / m) < rho2
    said = guarantee([mechanism.perturbed("a", planned)]).also[1]
    assert "a set of values believed at up to 10 %, each of them less than 5 times as likely as its share" in said


def test_the_coin_follows_from_a_breach_that_must_not_be():
    assert channel(Replace(privacy=(68, 0.1, 0.95))).coins[0] == pytest.approx(0.2)
    assert channel(Replace(privacy=(1, 0.1, 0.5), replacing="identity")).coins[0] == pytest.approx(4 / 9)


@given(st.integers(2, 9), st.integers(10, 40), st.integers(2, 9))
def test_the_coin_follows_from_rho1_and_rho2_and_is_the_largest(m, inverse_rho1, inverse_rho2):
    privacy = Privacy(rho1=Fraction(1, inverse_rho1), rho2=Fraction(1, inverse_rho2))
    histogram = Histogram.of(dict.fromkeys(range(m), 1))
    found = channel(Replace(privacy=privacy), histogram)
    assert found.exact_gamma <= privacy.gamma
    assert found.gamma == pytest.approx(float(privacy.gamma), rel=1e-6)
    mechanism = Retention({"x": Replace(privacy=privacy, low=0, high=m - 1)})
    grid = mechanism.range_coin("x", NumberRange("integer", 0, m - 1, 1, 0))
    assert grid.exact_gamma <= privacy.gamma
    assert grid.keep == found.keep[0]


def test_epsilons_add_up_over_columns():
    mechanism = Retention({"a": Replace(coin=0.5), "b": Replace(coin=0.3, low=0, high=9)})
    job = mechanism.plan_column("a", JOBS, None).cells[0].channel
    grid = mechanism.range_coin("b", NumberRange("integer", 0, 9, 1, 0))
    columns = [mechanism.perturbed("a", job), mechanism.perturbed("b", grid)]
    assert guarantee(columns).adversary == "frequency"  # the list of values is evidence, too
    together = guarantee([dataclasses.replace(column, declared=True) for column in columns])
    assert together.gamma == job.exact_gamma * grid.exact_gamma
    assert together.epsilon == pytest.approx(math.log(4) + math.log(1 + 0.3 * 10 / 0.7), rel=1e-6)
    assert together.adversary == "any-prior"
    assert any("correlated" in line for line in together.not_protected)


def test_what_is_not_promised_is_said():
    mechanism = Retention(
        {
            "i": Replace(coin=0.5, replacing="identity"),
            "s": Replace(coin=0.5, replacing="swapping"),
            "n": Replace(coin=1),
        }
    )
    channels = {name: mechanism.plan_column(name, JOBS, JOBS).cells[0].channel for name in "isn"}
    columns = [mechanism.perturbed(name, channel, rows=JOBS.rows) for name, channel in channels.items()]
    said = guarantee(columns)
    words = " ".join([*said.also, *said.not_protected])
    assert said.gamma is None
    assert said.adversary == "frequency"
    for piece in (
        "exact histogram",
        "noisy distribution",
        "published as it is (p = 1)",
        "No local differential privacy",
    ):
        assert piece in words


@pytest.mark.parametrize("coin", [0, -0.1, 1.5, True, "half", float("nan"), 1e-12])
def test_a_coin_is_a_probability(coin):
    with pytest.raises(OptionError, match="coin"):
        Replace(coin=coin)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coin": 0.5, "privacy": (5, 0.1, 0.5)}, "not both"),
        ({"coin": 0.5, "low": 3}, "belong together"),
        ({"coin": 0.5, "low": 9, "high": 3}, "low = 9 is not below high = 3. Fix: low=3, high=9"),
        ({"coin": 0.5, "low": 9, "high": 9}, "two points or more"),
        ({"coin": 0.5, "low": 0, "high": float("inf")}, "finite"),
        ({"coin": 0.5, "low": 0, "high": datetime.date(2020, 1, 1)}, "two of a kind"),
        ({"coin": 0.5, "low": datetime.datetime(2020, 1, 1), "high": datetime.datetime(2021, 1, 1)}, "whole days"),
        ({"coin": 0.5, "low": 0, "high": 9, "replacing": "identity"}, "replacing='uniform'"),
        ({"coin": 0.5, "replacing": "unifrom"}, "Did you mean 'uniform'"),
        ({"coin": 0.5, "step": 2}, "give low and high"),
        ({"coin": 0.5, "low": 0, "high": 9, "step": 0}, "step"),
        ({"coin": 0.5, "low": 0, "high": 9, "step": 30}, "step = 30 is longer than the range from 0 to 9"),
        ({"privacy": (5, 0.1)}, "s, rho1, rho2"),
    ],
)
def test_declarations_that_contradict_themselves_are_refused(options, words):
    with pytest.raises(OptionError, match=words):
        Replace(**options)


def test_requirements_that_a_column_cannot_meet_are_refused():
    with pytest.raises(RequirementError, match="both rho1 and rho2"):
        channel(Replace(privacy=Privacy(rho2="1/2")))
    with pytest.raises(RequirementError, match="frequencies only"):
        channel(Replace(privacy=Privacy("1/10", "1/2", adversary="any-prior"), replacing="identity"))
    with pytest.raises(OptionError, match="needs its columns"):
        Retention().plan(JOBS, None)
    with pytest.raises(OptionError, match=r"Replace\(coin"):
        Retention({"x": 0.5})


def test_a_range_of_too_many_points_is_refused_with_a_way_out():
    with pytest.raises(DeniableError, match="step="):
        NumberRange("integer", 0, 10**9, 1, 0)


@given(st.integers(-50, 50), st.integers(1, 400), st.integers(1, 7), st.booleans())
def test_the_points_of_a_range_share_all_replacements(low, width, step, missing):
    grid = NumberRange("integer", low, low + width, step, SCALE // 3, missing)
    assert grid.weights().sum() == pytest.approx(1)
    assert len(grid.weights()) == grid.points == width // step + 1 + missing
    places = np.arange(grid.grid)
    assert np.array_equal(grid.position(grid.numbers(places)), places)
    assert NumberRange.from_dict(grid.to_dict()) == grid


def test_decimals_come_back_as_people_write_them():
    grid = NumberRange("number", 0.3, 2.7, 0.1, 0)
    assert grid.numbers(np.arange(grid.grid)).tolist() == [round(0.3 + 0.1 * i, 1) for i in range(25)]
