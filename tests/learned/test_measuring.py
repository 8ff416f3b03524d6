"""Noise, choices and thresholds hold what they promise: exactly, and with power to see when they do not."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import deniable as dn
from deniable.learned import measuring
from deniable.tables.keys import Keystream, Secret

SOURCE = Keystream(Secret.from_key(bytes(range(32))), "test")
GAMMA = Fraction(12, 5)


class Listed:
    """A source whose words are given, each a few digits; asking for more than there are is an error."""

    def __init__(self, words: tuple[int, ...], digit: int) -> None:
        self.given = np.array(words, dtype=np.uint64) << np.uint64(64 - digit)

    def words(self, start: int, count: int) -> Any:
        if start + count > len(self.given):
            raise IndexError
        return self.given[start : start + count]


def enumerated(draw: Callable[[Listed], int], digit: int, words: int) -> tuple[Counter[int], Fraction]:
    """How many sequences of words lead to each outcome, and the share that would need more words."""
    found: Counter[int] = Counter()
    more = 0
    for given in itertools.product(range(2**digit), repeat=words):
        try:
            found[draw(Listed(given, digit))] += 1
        except IndexError:
            more += 1
    return found, Fraction(more, 2 ** (digit * words))


def laplace(k: int, epsilon: Fraction, scale: float = 1.0) -> float:
    a = math.exp(-float(epsilon) / scale)
    return (1 - a) / (1 + a) * a ** abs(k)


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(7, 10), Fraction(3)])
def test_every_sequence_of_bits_leads_to_discrete_laplace_noise(epsilon: Fraction) -> None:
    digit, words = 6, 2
    found, more = enumerated(lambda source: int(measuring.discrete_laplace(source, 1, epsilon, digit)[0]), digit, words)
    total = 2 ** (digit * words)
    assert more < Fraction(1, 50)
    off = sum(abs(found[k] / total - laplace(k, epsilon)) for k in range(-80, 81))
    assert off <= 2 * float(more) + 1e-9
    assert all(found[k] / total <= laplace(k, epsilon) + 1e-12 for k in found)


@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1, 3), Fraction(2)])
def test_noise_has_its_scale_and_a_test_sees_five_percent(epsilon: Fraction) -> None:
    draws = measuring.noisy(SOURCE.subkey(str(epsilon)), np.zeros((2, 100_000), dtype=np.int64), 2 * epsilon).ravel()
    edge = math.ceil(6 / float(epsilon))
    seen = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=2 * edge + 1)

    def p_value(scale: float) -> float:
        expected = np.array([laplace(k, epsilon, scale) for k in range(-edge, edge + 1)])
        expected[[0, -1]] += (1 - expected.sum()) / 2
        kept = expected * len(draws) >= 5
        folded = np.append(expected[kept], expected[~kept].sum()) * len(draws)
        counted = np.append(seen[kept], seen[~kept].sum())
        some = folded > 0
        return float(stats.chi2.sf(((counted - folded)[some] ** 2 / folded[some]).sum(), some.sum() - 1))

    assert p_value(1.0) > 1e-6
    assert p_value(1.05) < 1e-6
    assert p_value(0.95) < 1e-6


def test_noise_is_a_function_of_the_key_and_the_entry() -> None:
    whole = measuring.discrete_laplace(SOURCE, 3_000_000, Fraction(1, 10))
    assert (measuring.discrete_laplace(SOURCE, 1000, Fraction(1, 10)) == whole[:1000]).all()
    assert (measuring.discrete_laplace(SOURCE.subkey("other"), 1000, Fraction(1, 10)) != whole[:1000]).any()


def test_noise_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(dn.DeniableError, match="measure fewer tables"):
        measuring.discrete_laplace(SOURCE, 1, Fraction(1, 10**6))


def test_e_to_a_fraction_lies_between_its_bounds() -> None:
    for x in (Fraction(0), Fraction(1, 7), Fraction(5, 3), Fraction(40)):
        low, high = measuring.exp_minus(x, 40)
        assert low <= math.exp(-float(x)) * 2**40 * (1 + 1e-15)
        assert high >= math.exp(-float(x)) * 2**40 * (1 - 1e-15)
        assert high - low <= 4


@pytest.mark.parametrize("gamma", [Fraction(12, 5), Fraction(101, 100), Fraction(1000)])
def test_what_may_be_spent_stays_within_an_amplification(gamma: Fraction) -> None:
    epsilon = measuring.epsilon_of(gamma)
    assert measuring.is_within(epsilon, gamma)
    assert not measuring.is_within(epsilon + Fraction(1, measuring.PIECES), gamma)
    assert sum(measuring.shared(epsilon, [0.3, 1.0, 0.7])) <= epsilon


def outputs(values: list[int], costs: list[Fraction], edge: int) -> Any:
    """Pr[R | T] of the whole measuring step for three people with public bits 0, 0, 1: a table of one level and one of
    two, for every R; what lies beyond an edge is heaped on it, a function of the noisy entry that costs nothing."""
    bits = (0, 0, 1)
    one = [values.count(0), values.count(1)]
    two = [sum(v == s and b == g for v, b in zip(values, bits, strict=True)) for g in (0, 1) for s in (0, 1)]
    entries = [(count, costs[0] / 2) for count in one] + [(count, costs[1] / 2) for count in two]
    joint = np.ones(1)
    for count, epsilon in entries:
        each = np.array([laplace(shown - count, epsilon) for shown in range(-edge, edge + 1)])
        a = math.exp(-float(epsilon))
        each[0], each[-1] = a ** (edge + count) / (1 + a), a ** (edge - count) / (1 + a)
        joint = np.outer(joint, each).ravel()
    return joint


def test_no_output_of_the_measuring_step_tells_more_than_was_promised() -> None:
    costs = measuring.shared(measuring.epsilon_of(GAMMA), [1.0, 2.0])
    worst = 0.0
    for mine in (0, 1):
        here, there = outputs([mine, 1, 0], costs, 4), outputs([1 - mine, 1, 0], costs, 4)
        assert math.isclose(here.sum(), 1.0)
        worst = max(worst, (here / there).max())
    assert worst <= float(GAMMA) * (1 + 1e-9)
    assert worst > float(GAMMA) * 0.999  # and not less was bought: some output reaches it


def test_choosing_follows_the_exponential_mechanism() -> None:
    scores, epsilon, digit, words = [3, 0, 5, 5], Fraction(4, 5), 6, 2
    found, more = enumerated(
        lambda source: measuring.choose(source, scores, epsilon, measuring.MISFIT_SENSITIVITY, digit), digit, words
    )
    weights = [math.exp(float(epsilon) * score / (2 * measuring.MISFIT_SENSITIVITY)) for score in scores]
    assert more < Fraction(1, 200)
    for place, weight in enumerate(weights):
        share = found[place] / 2 ** (digit * words)
        assert weight / sum(weights) - float(more) - 1e-9 <= share <= weight / sum(weights) + 1e-9


def test_no_choice_tells_more_than_it_costs() -> None:
    rng, epsilon = np.random.default_rng(3), Fraction(1, 2)

    def chances(values: Any) -> Any:
        scores = []
        for column in public:
            counts = np.array([[np.sum((column == g) & (values == s)) for s in (0, 1, 2)] for g in (0, 1)])
            scores.append(measuring.misfit_score(counts, expected))
        weights = np.exp(float(epsilon) * np.array(scores) / (2 * measuring.MISFIT_SENSITIVITY))
        return weights / weights.sum()

    worst = 1.0
    for _ in range(300):
        public, values = rng.integers(0, 2, (4, 6)), rng.integers(0, 3, 6)
        expected, other = rng.integers(0, 3, (2, 3)), values.copy()
        other[0] = (other[0] + 1) % 3
        ratio = chances(values) / chances(other)
        worst = max(worst, ratio.max(), (1 / ratio).max())
    assert 1.2 < worst <= math.exp(float(epsilon)) * (1 + 1e-9)


def test_a_value_of_one_row_is_listed_with_probability_below_delta() -> None:
    for epsilon, delta in ((Fraction(7, 128), Fraction(1, 10**6)), (Fraction(1), Fraction(1, 50))):
        threshold, a = measuring.least_listed(epsilon, delta), math.exp(-float(epsilon))
        assert a**threshold / (1 + a) <= delta < a ** (threshold - 1) / (1 + a)
    draws = 1 + measuring.discrete_laplace(SOURCE.subkey("listed"), 400_000, Fraction(1))
    listed = (draws > measuring.least_listed(Fraction(1), Fraction(1, 50))).mean()
    assert 0.005 < listed < 1 / 50


def test_default_tables_are_bands_of_ordered_columns_and_merge_rare_levels() -> None:
    rng = np.random.default_rng(1)
    rows = np.ones(20_000, dtype=np.int64)
    age, town = rng.integers(0, 90, 20_000), np.minimum(rng.geometric(0.3, 20_000) - 1, 30)
    columns = [measuring.Levels("age", age, 90), measuring.Levels("town", town, 31)]
    plan = measuring.default_measure(rows, columns, [True, False], 20, 1.0)
    by_name = {table.name: table for table in plan.tables}
    assert by_name["age"].size == measuring.FINE
    assert (np.diff(by_name["age"].codes[np.argsort(age)]) >= 0).all()
    assert 3 <= by_name["town"].size < 20
    assert math.isclose(sum(plan.weights), 1.0)
    assert {one.name for one in plan.smooth} == {"age in bands"}
