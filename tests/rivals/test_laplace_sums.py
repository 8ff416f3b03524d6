"""Laplace under requirements on sums: the budget that they allow, what is promised, and that the promise is kept."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import deniable as dn
from deniable.audit.verify.certificate import certificate
from deniable.core.errors import RequirementError
from deniable.core.noisy_sums import large_reached, largest_epsilon, small_reached, smallest_epsilon
from deniable.core.promise import NoisySums
from deniable.mechanisms import Laplace

SMALL = dn.SmallSums(error=0.3, below=3, at_least="2/3")
LARGE = dn.LargeSums(error=0.1, above=1000, at_most=0.05)
COUNTS = dn.Histogram.of({"a": 3000, "b": 1500, "c": 400, "d": 2})
FALSE_ALARM = 1e-6


def test_epsilon_ln_2_keeps_small_sums_uncertain_to_two_thirds() -> None:
    assert largest_epsilon(SMALL) == pytest.approx(math.log(2), rel=1e-9)
    assert largest_epsilon(SMALL) <= math.log(2)
    assert small_reached(SMALL, largest_epsilon(SMALL)) >= Fraction(2, 3)
    assert small_reached(SMALL, math.log(2) * 1.001) < Fraction(2, 3)
    budget = Laplace(questions=1).budget(COUNTS, dn.Privacy(small_sums=SMALL, large_sums=LARGE))
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


def test_the_promise_is_stated_and_recomputed_from_the_manifest() -> None:
    table = pa.table({"member": [True, False] * 2500, "ill": ["a"] * 3000 + ["b"] * 1500 + ["c"] * 498 + ["d"] * 2})
    asked = dn.Privacy(rho2="4/5", small_sums=SMALL, large_sums=LARGE)
    release = dn.publish(
        table, sensitive="ill", privacy=asked, mechanism=Laplace(questions=4), domain={"ill": list("abcde")}
    )
    promise = release.manifest.parts[0].promise
    assert isinstance(promise, NoisySums)
    assert promise.epsilon <= math.log(2)
    assert any("prefers no count" in said for said in release.manifest.guarantee["also"])
    raw = release.manifest.to_dict()
    checks = {check.what: check.holds for check in certificate(raw).checks}
    assert checks["small sums"]
    assert checks["large sums"]
    assert checks["required small sums"]
    assert not checks["answers"], "that noise was added can only be believed"
    (part,) = raw["parts"]
    for epsilon, failing in ((0.8, "small sums"), (0.05, "large sums")):
        changed = {**raw, "parts": [{**part, "promise": {**part["promise"], "epsilon": epsilon}}]}
        assert not {check.what: check.holds for check in certificate(changed).checks}[failing]


def test_answers_are_off_as_often_as_promised() -> None:
    """400 answers about two rows, of a table without other columns: off by two thirds, which is promised exactly."""
    table = pa.table({"ill": ["a"] * 1000 + ["d"] * 2})
    mechanism, off, answers = Laplace(questions=1), 0, 400
    for key in range(answers):
        release = dn.publish(
            table,
            sensitive="ill",
            privacy=dn.Privacy(small_sums=SMALL, large_sums=LARGE),
            mechanism=mechanism,
            domain={"ill": list("abcd")},
            key=key.to_bytes(32, "big"),
        )
        off += abs(release.count({"ill": "d"}).value - 2) > 0.6
    assert stats.binom.cdf(off, answers, 2 / 3) > FALSE_ALARM
    assert stats.binom.sf(off - 1, answers, 2 / 3) > FALSE_ALARM
    assert stats.binom.sf(off - 1, answers, 0.5) < FALSE_ALARM, "noise of epsilon ln 3 would be told apart"
    assert release.manifest.rows == 1002


def test_what_cannot_be_kept_is_refused_with_a_fix() -> None:
    with pytest.raises(RequirementError, match=r"does not keep small sums uncertain.*Fix: epsilon=0\.693 or less"):
        Laplace(epsilon=1).budget(COUNTS, dn.Privacy(small_sums=SMALL))
    both = dn.Privacy(small_sums=SMALL, large_sums=LARGE)
    with pytest.raises(RequirementError, match=r"does not keep large sums accurate.*Fix: questions=(\d+) or fewer"):
        Laplace(questions=100).budget(COUNTS, both)
    most = int(largest_epsilon(SMALL) / smallest_epsilon(LARGE))
    assert Laplace(questions=most).budget(COUNTS, both) == largest_epsilon(SMALL)
    with pytest.raises(RequirementError, match="questions"):
        Laplace(questions=most + 1).budget(COUNTS, both)
    with pytest.raises(RequirementError, match=r"not declared.*small_sums.*Fix: domain="):
        dn.publish(
            pa.table({"ill": list("aabbcd")}),
            sensitive="ill",
            privacy=dn.Privacy(small_sums=SMALL),
            mechanism="laplace",
        )


def test_large_sums_alone_take_the_smallest_budget_and_beliefs_still_count() -> None:
    assert Laplace(questions=10).budget(COUNTS, dn.Privacy(large_sums=LARGE)) == 10 * smallest_epsilon(LARGE)
    strict = dn.Privacy(rho1="1/2", rho2="11/20", small_sums=SMALL)
    assert Laplace().budget(COUNTS, strict) == pytest.approx(math.log(11 / 9), rel=1e-6)
    plain = Laplace().guarantee(COUNTS, dn.Privacy(rho1="1/2", rho2="11/20"))
    assert not plain.also
    assert Laplace().guarantee(COUNTS, strict).worst == plain.worst
