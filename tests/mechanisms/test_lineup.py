"""Line-ups as a mechanism: every promise kept exactly, by an enumeration that shares no code with the planner."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.core import lineups as lineup_exact
from deniable.core.histogram import Histogram
from deniable.mechanisms import Lineup
from deniable.mechanisms.lineup import DOUBT
from deniable_verify import lineups as recount

TWENTY = Histogram(tuple("abcdefghijklmnopqrst"), np.array([700, 650, *range(600, 60, -30)]))


def posteriors(design, counts):
    """The largest Pr[x | S] of each value over all sets, walked through by the code that verifies."""
    return recount.surest_at_least(design.integers(), counts.tolist(), 0)


def planned(histogram, privacy, **options):
    return Lineup(**options).plan(histogram, privacy).parts[0].lineups


def test_two_programs_count_the_same_sets():
    design = planned(TWENTY, dn.Privacy(rho2="1/5"))
    sets = design.sets
    mine = {
        tuple(members): (points, tuple(hits))
        for members, points, hits in zip(sets.members.tolist(), sets.lengths.tolist(), sets.hits.tolist(), strict=True)
    }
    assert mine == {row.members: (row.blind, tuple(row.draws)) for row in recount.lines(design.integers())}
    assert lineup_exact.lineup_amplification(design) == recount.amplification(design.integers())
    assert lineup_exact.surest_in_lineups(design, TWENTY.counts) == posteriors(design, TWENTY.counts)


def test_the_default_is_a_fair_coin_and_says_so():
    plan = Lineup().plan(TWENTY, dn.Privacy(rho2="1/5"))
    assert plan.parts[0].lineups.share_true == 0.5
    assert "A fair coin decides whether the line-up is made around the person's value" in str(plan.guarantee)
    assert (
        Fraction("0.49") <= plan.guarantee.promises[0].stays <= lineup_exact.stays(plan.parts[0].lineups, TWENTY.counts)
    )
    assert plan.guarantee.worst <= Fraction(1, 5)


def shares_left(design, prior):
    """By which share of itself every belief is left, over all sets: plain fractions over the recounted draws."""
    coin, total, left = design.coin, int(prior.sum()), []
    for row in recount.lines(design.integers()):
        given = [(2**18 - coin) * row.blind] * design.m
        for x, draws in zip(row.members, row.draws, strict=True):
            given[x] += coin * draws
        shown = sum(int(rows) * one for rows, one in zip(prior, given, strict=True))
        left += [Fraction(one * total, shown) for one in given]
    return left


def test_no_belief_falls_below_what_is_promised_to_stay():
    skewed = Histogram(tuple(range(30)), np.array([int(10_000 / (x + 1) ** 1.5) + 1 for x in range(30)]))
    for noise in (0, 3):
        public = Histogram(skewed.domain, skewed.counts + noise * (-1) ** np.arange(30))
        plan = Lineup().plan(skewed, dn.Privacy(rho2="1/2"), public=public)
        design, stays = plan.parts[0].lineups, plan.guarantee.promises[0].stays
        least = min(shares_left(design, skewed.counts))
        assert least == lineup_exact.stays(design, skewed.counts) < 1 - Fraction(design.truth, 2**32)
        assert Fraction(95, 100) * least < stays <= least
        assert f"No belief falls below {float(100 * stays):g} % of what it was" in plan.guarantee.also[0]


def test_what_stays_follows_from_noisy_counts_and_holds_for_the_true_ones():
    skewed = Histogram(tuple(range(12)), np.array([int(900 / (x + 1)) + 1 for x in range(12)]))
    draw, rows = np.random.default_rng(5), int(skewed.counts.sum())
    design = Lineup().plan(skewed, dn.Privacy(rho2="1/2")).parts[0].lineups
    least = lineup_exact.stays(design, skewed.counts)
    assert lineup_exact.stays_by(design, skewed.counts, rows, 0.0) == pytest.approx(float(least), rel=1e-12)
    for noise in draw.laplace(scale=2, size=(300, 12)).round().astype(int):
        assert lineup_exact.stays_by(design, np.maximum(skewed.counts + noise, 1), rows, DOUBT) < least
    # Without room for the noise it is too much where counts look smaller than they are.
    assert any(lineup_exact.stays_by(design, skewed.counts - one, rows, 0.0) > least for one in (2, 5))


def test_no_belief_of_anyone_falls_below_what_is_promised_to_stay_against_any_prior():
    """Who all but knows that the value is another one is shown a line-up with that one, and without this one."""
    privacy = dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior")
    plan = Lineup().plan(TWENTY, privacy)
    design, stays = plan.parts[0].lineups, plan.guarantee.promises[0].stays
    sure = np.ones(design.m, dtype=np.int64)
    sure[3] = 10**9
    assert stays == 1 / plan.guarantee.gamma
    assert stays < min(shares_left(design, sure)) < stays * (1 + Fraction(1, 10**6)) < 1 - Fraction(design.truth, 2**32)
    assert "No belief falls below 41.6 % of what it was" in plan.guarantee.also[0]


def test_truth_1_is_offered_and_says_what_it_gives_up():
    plan = Lineup(truth=1).plan(TWENTY, dn.Privacy(rho2="1/5"))
    assert plan.parts[0].lineups.share_true == 1
    assert plan.guarantee.gamma is None
    assert any("ruled out for certain" in said for said in plan.guarantee.not_protected)
    assert plan.guarantee.also == ()


@pytest.mark.parametrize("noise", [0, 3, 12])
@pytest.mark.parametrize("truth", [None, 1, "1/4"])
def test_a_noisy_histogram_never_breaks_the_promise(noise, truth):
    rng = np.random.default_rng(noise)
    for _ in range(5):
        public = Histogram(TWENTY.domain, np.maximum(TWENTY.counts + rng.integers(-noise, noise + 1, 20), 1))
        plan = Lineup(truth=truth).plan(TWENTY, dn.Privacy(rho2="1/5"), public=public)
        assert max(posteriors(plan.parts[0].lineups, TWENTY.counts)) <= Fraction(1, 5)


histograms = st.lists(
    st.one_of(st.integers(0, 3), st.integers(0, 100), st.integers(0, 5000)), min_size=3, max_size=14
).map(lambda counts: Histogram(tuple(range(len(counts))), np.array(counts)))


@settings(max_examples=150, deadline=None)
@given(histograms, st.fractions(Fraction(1, 20), Fraction(9, 10)), st.sampled_from([None, 1, "1/3"]), st.data())
def test_no_histogram_lets_a_posterior_exceed_its_limit(histogram, rho2, truth, data):
    exempt = data.draw(st.sets(st.sampled_from(histogram.domain), max_size=2))
    try:
        design = planned(histogram, dn.Privacy(rho2=rho2, exempt=exempt), truth=truth)
    except dn.DeniableError:
        return
    for x, belief in enumerate(posteriors(design, histogram.counts)):
        assert x in exempt or belief <= rho2
    assert lineup_exact.surest_in_lineups(design, histogram.counts)[0] <= 1


@settings(max_examples=60, deadline=None)
@given(histograms, st.data())
def test_requirements_per_value_are_kept_each(histogram, data):
    named = data.draw(st.sets(st.sampled_from(histogram.domain), min_size=1))
    per_value = {value: ("1/10", Fraction(data.draw(st.integers(11, 80)), 100)) for value in named}
    try:
        design = planned(histogram, dn.Privacy(per_value=per_value))
    except dn.DeniableError:
        return
    beliefs = posteriors(design, histogram.counts)
    for value, (rho1, rho2) in per_value.items():
        covered = histogram.frequency(value) <= Fraction(rho1)
        assert not covered or beliefs[value] <= rho2


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(2, 12), st.integers(1, 30))
def test_against_any_prior_the_amplification_is_exact_and_counts_do_not_matter(m, odds, more):
    rho1 = Fraction(1, odds + 1)
    privacy = dn.Privacy(rho1=rho1, rho2=rho1 + (1 - rho1) * Fraction(more, 40), adversary="any-prior")
    one, other = (
        planned(Histogram(tuple(range(m)), np.array(counts)), privacy)
        for counts in ([1] * m, [5000, *[0] * (m - 2), 2])
    )
    assert one.integers() == other.integers()
    gamma = recount.amplification(one.integers())
    assert gamma <= privacy.gamma
    assert (gamma - 1) / (privacy.gamma - 1) > Fraction(99, 100)  # and next to nothing is given away


def test_a_value_that_would_always_stand_in_the_line_up_does_not():
    """Its rows would look like all rows: nobody could count it."""
    histogram = Histogram(tuple("abcdefgh"), np.array([5000, 100, 100, 100, 100, 100, 100, 100]))
    design = planned(histogram, dn.Privacy(rho2="1/3", exempt=["a"]))
    assert design.inclusion.max() <= 0.75
    assert np.linalg.cond(design.joint()) < 1000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 0}, "size = 0"),
        ({"size": 2.5}, "size = 2.5"),
        ({"truth": 0}, "truth = 0"),
        ({"truth": "3/2"}, "truth = '3/2'"),
        ({"truth": "x"}, "truth = 'x'"),
    ],
)
def test_options_that_are_none_are_refused(options, said):
    with pytest.raises(dn.DeniableError, match=said):
        Lineup(**options)


@pytest.mark.parametrize(
    ("options", "privacy", "said"),
    [
        ({"size": 2, "truth": 1}, dn.Privacy(rho2="1/5"), "Fix: size="),
        ({"size": 19}, dn.Privacy(rho2="1/5"), "size = 19 is not possible with 20 values"),
        ({}, dn.Privacy(rho2="1/5", adversary="any-prior"), "needs rho1"),
        ({"truth": "9/10"}, dn.Privacy("1/13", "1/6", adversary="any-prior"), "truth = 9/10"),
        ({}, None, "needs a requirement"),
        ({}, dn.Privacy(rho2="7/100"), "rho2 = 7/100 cannot be met"),
    ],
)
def test_what_cannot_be_met_is_refused_with_the_fix(options, privacy, said):
    with pytest.raises(dn.DeniableError, match=said) as refused:
        Lineup(**options).plan(TWENTY, privacy)
    assert "Fix:" in str(refused.value) or "exempt" in str(refused.value) or "--rho2" in str(refused.value)
