"""Laplace: the budget that a requirement on beliefs or on sums allows, what it bounds, and what it refuses."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy, amplification_limit, worst_posterior
from deniable.lab import Laplace, laplace
from deniable.lab.laplace import large_reached, largest_epsilon, small_reached, smallest_epsilon
from deniable.tables import keys as noises

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))


@pytest.mark.parametrize("adversary", ["frequency", "any-prior"])
def test_the_budget_is_the_logarithm_of_the_amplification_limit_and_never_above_it(adversary):
    for rho1, rho2 in [("1/13", "1/6"), ("1/2", "3/4"), ("1/3", "0.34"), ("0.02", "0.9")]:
        privacy = Privacy(rho1=rho1, rho2=rho2, adversary=adversary)
        mechanism = Laplace(questions=7)
        budget = mechanism.budget(COUNTS, privacy)
        limit = amplification_limit(Fraction(rho1), Fraction(rho2))
        assert budget == pytest.approx(math.log(limit), rel=1e-8)
        assert mechanism.amplification(budget) <= limit
        assert mechanism.guarantee(COUNTS, privacy).worst <= Fraction(rho2)


def test_without_rho1_every_value_is_its_own_prior_and_no_exact_count_can_be_read_off():
    limit = min(amplification_limit(COUNTS.frequency(x), Fraction(1, 2)) for x in COUNTS)
    budget = Laplace().budget(COUNTS, Privacy(rho2="1/2"))
    assert 0.99 * math.log(limit) < budget <= math.log(limit)
    assert budget == pytest.approx(float(f"{budget:.3g}"), rel=1e-12)
    without = Laplace().budget(COUNTS, Privacy(rho2="1/2", exempt=["a"]))
    second = amplification_limit(COUNTS.frequency("b"), Fraction(1, 2))
    assert 0.99 * math.log(second) < without <= math.log(second)
    near = Histogram(COUNTS.domain, COUNTS.counts + np.array([1, -1, 0, 0, 0, 0, 0, 0]))
    assert Laplace().budget(near, Privacy(rho2="1/2")) == budget


def test_per_value_requirements_are_respected():
    pairs = {"g": ("1/20", "1/5"), "h": ("1/40", "1/4")}
    limits = [amplification_limit(Fraction(low), Fraction(high)) for low, high in pairs.values()]
    for adversary in ("frequency", "any-prior"):
        privacy = Privacy(per_value=pairs, adversary=adversary)
        assert Laplace().budget(COUNTS, privacy) == pytest.approx(math.log(min(limits)), rel=1e-8)
    # 'g' is more frequent than the belief that is to be covered: 'h' alone decides against those who know that
    frequent = {"g": ("1/100", "1/50"), "h": ("1/40", "1/4")}
    assert Laplace().budget(COUNTS, Privacy(per_value=frequent)) == pytest.approx(math.log(limits[1]), rel=1e-8)
    other = amplification_limit(Fraction(1, 100), Fraction(1, 50))
    any_prior = Privacy(per_value=frequent, adversary="any-prior")
    assert Laplace().budget(COUNTS, any_prior) == pytest.approx(math.log(other), rel=1e-8)


def test_without_a_requirement_the_budget_is_one():
    assert Laplace().budget(COUNTS, None) == 1.0
    assert Laplace(epsilon=3).budget(COUNTS, None) == 3.0


def test_a_budget_that_exceeds_the_requirement_is_refused_with_the_largest_that_works():
    privacy = Privacy(rho1="1/13", rho2="1/6")
    with pytest.raises(RequirementError, match=r"epsilon = 0\.88 is more.*epsilon=0\.875, the largest"):
        Laplace(epsilon=0.88).guarantee(COUNTS, privacy)
    assert Laplace(epsilon=0.875).guarantee(COUNTS, privacy).gamma <= Fraction(12, 5)


@pytest.mark.parametrize(
    ("budget", "questions"), [(0.01, 1), (0.01, 100), (0.5, 3), (1.0, 7), (math.log(3), 3), (20.0, 1), (500.0, 100)]
)
def test_gamma_is_e_to_the_epsilon_that_is_spent_rounded_up(budget, questions):
    gamma = Laplace(epsilon=budget, questions=questions).amplification(budget)
    with localcontext() as context:
        context.prec = 80
        spent = Fraction(budget / questions) * questions
        exact = Fraction((Decimal(spent.numerator) / Decimal(spent.denominator)).exp())
    assert exact <= gamma <= exact * (1 + Fraction(2, 10**9))


def test_the_shares_that_are_allowed_are_those_the_noise_is_made_for():
    assert (laplace.LEAST, laplace.MOST) == (noises.SMALLEST_EPSILON, noises.LARGEST_EPSILON)
    with pytest.raises(OptionError, match="questions=10,000 or fewer"):
        Laplace(questions=20_000).budget(COUNTS, None)
    with pytest.raises(OptionError, match=r"allowed are 0\.0001 to 20"):
        Laplace(epsilon=100, questions=2)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "1", 501])
def test_bad_budgets_are_named(epsilon):
    with pytest.raises(OptionError, match="epsilon = "):
        Laplace(epsilon=epsilon)


@pytest.mark.parametrize("questions", [0, -3, 1.5, True, 10**7])
def test_bad_numbers_of_questions_are_named(questions):
    with pytest.raises(OptionError, match="questions = "):
        Laplace(questions=questions)


def test_requirements_that_no_answer_can_meet_are_refused():
    with pytest.raises(RequirementError, match="needs rho1"):
        Laplace().guarantee(COUNTS, Privacy(rho2="1/2", adversary="any-prior"))
    with pytest.raises(RequirementError, match="'a' alone is 30 %"):
        Laplace().guarantee(COUNTS, Privacy(rho2="1/4"))
    with pytest.raises(RequirementError, match="per_value names 'flu'"):
        Laplace().guarantee(COUNTS, Privacy(per_value={"flu": ("1/9", "1/3")}))
    with pytest.raises(TableError, match="no rows"):
        Laplace().guarantee(Histogram.of({"a": 0, "b": 0}), None)


def test_the_sentence_rounds_to_the_safe_side():
    assert "at most 2.719" in Laplace().guarantee(COUNTS, None).sentence  # e


# -- brute force ------------------------------------------------------------------------------------------------------


def answers(counts, epsilon, spread):
    """Pr[answer | true count] for each possible answer, the tail left out."""
    a = math.exp(-epsilon)
    noise = np.abs(np.arange(-spread, spread + 1)[None, :] - np.asarray(counts)[:, None])
    return (1 - a) / (1 + a) * a**noise


def posteriors(tables, priors, questions, epsilon, x, spread=60):
    """The largest Pr[person 0 has x | both answers], over all pairs of answers."""
    first, second = (answers([question(table) for table in tables], epsilon, spread) for question in questions)
    joint = priors[:, None, None] * first[:, :, None] * second[:, None, :]
    mine = np.array([table[0] == x for table in tables])
    return float((joint[mine].sum(0) / joint.sum(0)).max())


def test_no_answers_take_a_belief_beyond_the_bound_and_some_take_it_there():
    """Bayes over all tables of three people: values independent, or the exact histogram known."""
    budget, values, x = 0.9, "abc", "a"
    mechanism = Laplace(epsilon=budget, questions=2)
    gamma, share = mechanism.amplification(budget), mechanism.share(budget)
    questions = (lambda t: t.count(x), lambda t: int(t[0] == x))  # everyone, and person 0 alone
    for belief in (Fraction(1, 13), Fraction(1, 3), Fraction(3, 4)):
        law = {"a": float(belief), "b": float(1 - belief) / 3, "c": 2 * float(1 - belief) / 3}
        tables = list(itertools.product(values, repeat=3))
        # The others hold no 'a', so only person 0 moves the answers: this is where the bound is met.
        priors = np.array([law[t[0]] * ("a" not in t[1:]) / 4 for t in tables])
        found = posteriors(tables, priors, questions, share, x)
        bound = float(worst_posterior(belief, gamma))
        assert found <= bound * (1 + 1e-9)
        assert found > 0.999 * bound  # a budget overspent by 5 % would be seen
        independent = np.array([math.prod(law[v] for v in t) for t in tables])
        assert posteriors(tables, independent, questions, share, x) <= bound * (1 + 1e-9)
    known = sorted(set(itertools.permutations("aabbbc")))
    bound = float(worst_posterior(Fraction(2, 6), gamma))
    for pair in ((lambda t: t[:3].count(x), lambda t: int(t[0] == x)), (lambda t: t[:2].count(x),) * 2):
        assert posteriors(known, np.full(len(known), 1 / len(known)), pair, share, x) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("more", ["600000001/1000000000", "60000001/100000000", "60001/100000"])
def test_a_requirement_that_leaves_next_to_nothing_is_answered_at_once(more):
    privacy = Privacy("6/10", more)
    budget = Laplace(questions=1)._largest(privacy.gamma, False)
    assert Laplace(questions=1).amplification(budget) <= privacy.gamma
    assert budget < 0.0001
    with pytest.raises(OptionError, match="for each: allowed are"):
        Laplace().guarantee(Histogram.of({"flu": 3, "hiv": 2}), privacy)


# -- sums --------------------------------------------------------------------------------------------------------------

SMALL = dn.SmallSums(error=0.3, below=3, at_least="2/3")
LARGE = dn.LargeSums(error=0.1, above=1000, at_most=0.05)
SUMMED = dn.Histogram.of({"a": 3000, "b": 1500, "c": 400, "d": 2})


def test_epsilon_ln_2_keeps_small_sums_uncertain_to_two_thirds() -> None:
    assert largest_epsilon(SMALL) == pytest.approx(math.log(2), rel=1e-9)
    assert largest_epsilon(SMALL) <= math.log(2)
    assert small_reached(SMALL, largest_epsilon(SMALL)) >= Fraction(2, 3)
    assert small_reached(SMALL, math.log(2) * 1.001) < Fraction(2, 3)
    budget = Laplace(questions=1).budget(SUMMED, dn.Privacy(small_sums=SMALL, large_sums=LARGE))
    assert budget == pytest.approx(math.log(2), rel=1e-9)


@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(["1/10", "1/3", "1/2", "9/10"]))
def test_the_budget_is_the_largest_and_the_smallest_that_keeps_sums(rows: int, tenths: int, chance: str) -> None:
    error = Fraction(tenths, 10)
    small = dn.SmallSums(error=error, below=rows, at_least=chance)
    epsilon = largest_epsilon(small)
    assert small_reached(small, epsilon) >= small.at_least > small_reached(small, epsilon * 1.000001)
    large = dn.LargeSums(error=error, above=rows, at_most=chance)
    epsilon = smallest_epsilon(large)
    assert large_reached(large, epsilon) <= large.at_most < large_reached(large, epsilon * 0.999999)


def test_tails_are_those_of_the_noise_summed_up() -> None:
    """Pr[|z| >= h] by adding up the probabilities; small sums of one answer by adding up, too, where w = 0."""
    epsilon = 0.07
    z = np.arange(-4000, 4001)
    chance = np.exp(-epsilon * np.abs(z))
    chance /= chance.sum()
    assert float(large_reached(LARGE, epsilon)) == pytest.approx(chance[np.abs(z) >= 100].sum(), rel=1e-9)
    assert float(small_reached(SMALL, epsilon)) == pytest.approx(1 - chance[z == 0].sum(), rel=1e-9)


@pytest.mark.parametrize("questions", [1, 2, 3])
@pytest.mark.parametrize("error", ["0.3", "0.7"])
def test_no_rule_that_prefers_no_count_tells_a_small_sum_better(questions: int, error: str) -> None:
    """Brute force over all answers: means, medians and the likeliest count, rounded either way, against the bound."""
    small = dn.SmallSums(error=error, below=2, at_least="1/2")
    epsilon = largest_epsilon(small)
    width = math.floor(small.error * 2)
    reach = 60 if questions < 3 else 40
    z = np.arange(-reach, reach + 1)
    one = np.exp(-epsilon / questions * np.abs(z))
    one /= one.sum()
    drawn = np.array(list(itertools.product(z, repeat=questions)))
    chance = np.prod(one[drawn + reach], axis=1)
    ordered = np.sort(drawn, axis=1)
    rules = [np.floor(drawn.mean(axis=1) + 0.5), np.ceil(drawn.mean(axis=1) - 0.5), *ordered.T]
    for estimate in rules:
        off = chance[np.abs(estimate) > width].sum() / chance.sum()
        assert off >= 0.5 - 1e-3, (questions, error, off)  # what lies beyond the reach is below 1e-3


def test_what_cannot_be_kept_is_refused_with_a_fix() -> None:
    with pytest.raises(RequirementError, match=r"does not keep small sums uncertain.*Fix: epsilon=0\.693 or less"):
        Laplace(epsilon=1).budget(SUMMED, dn.Privacy(small_sums=SMALL))
    both = dn.Privacy(small_sums=SMALL, large_sums=LARGE)
    with pytest.raises(RequirementError, match=r"does not keep large sums accurate.*Fix: questions=(\d+) or fewer"):
        Laplace(questions=100).budget(SUMMED, both)
    most = int(largest_epsilon(SMALL) / smallest_epsilon(LARGE))
    assert Laplace(questions=most).budget(SUMMED, both) == largest_epsilon(SMALL)
    with pytest.raises(RequirementError, match="questions"):
        Laplace(questions=most + 1).budget(SUMMED, both)


def test_large_sums_alone_take_the_smallest_budget_and_beliefs_still_count() -> None:
    assert Laplace(questions=10).budget(SUMMED, dn.Privacy(large_sums=LARGE)) == 10 * smallest_epsilon(LARGE)
    strict = dn.Privacy(rho1="1/2", rho2="11/20", small_sums=SMALL)
    assert Laplace().budget(SUMMED, strict) == pytest.approx(math.log(11 / 9), rel=1e-6)
    plain = Laplace().guarantee(SUMMED, dn.Privacy(rho1="1/2", rho2="11/20"))
    assert Laplace().guarantee(SUMMED, strict).worst == plain.worst
