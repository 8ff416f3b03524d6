from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core import exact
from deniable.core.channels import Channel, coarsened, uniform_weights, weights_of
from deniable.core.errors import OptionError
from deniable.core.exact import SCALE


def channels(least_m=2, most_m=8):
    def build(m):
        coin = st.floats(0.01, 0.99)
        weight = st.floats(0.01, 1)
        return st.tuples(st.lists(coin, min_size=m, max_size=m), st.lists(weight, min_size=m, max_size=m)).map(
            lambda pair: Channel.of(range(m), pair[0], pair[1])
        )

    return st.integers(least_m, most_m).flatmap(build)


@pytest.mark.parametrize(
    ("m", "p", "q"),
    [
        (77, 4.9, 1.2),
        (70, 5.4, 1.4),
        (50, 7.4, 1.9),
        (14, 22.2, 5.6),
        (9, 30.8, 7.7),
        (7, 36.4, 9.1),
        (6, 40, 10),
        (2, 66.7, 16.7),
    ],
)
def test_sdr_table_1(m, p, q):
    channel = Channel.uniform(range(m), gamma=Fraction(5))
    assert round(100 * channel.coins[0], 1) == p
    assert round(100 * (1 - channel.coins[0]) / m, 1) == q


def test_thesis_example_1():
    counts = np.array([10, *[990 // 10] * 10])  # a prior of 1 % among 1000 rows; others share the rest
    prior = Fraction(1, 100)
    diagonal, off = Fraction(2, 10), Fraction(8, 10) / 1000
    assert round(float(prior * diagonal / (prior * diagonal + (1 - prior) * off)), 3) == 0.716
    coin = (diagonal - off) / (1 - off + off)
    channel = Channel.of(range(1001), float(coin))
    assert channel.diagonal[0] == pytest.approx(0.2, abs=1e-6)
    frequencies = np.array([1000, *[99] * 1000])
    assert float(exact.surest(channel.keep, channel.replace, frequencies)[0]) == pytest.approx(0.716, abs=5e-4)
    assert counts.sum() == 1000


def test_thesis_example_2():
    channel = Channel.uniform("abc", gamma=Fraction(4, 3))
    assert channel.matrix() == pytest.approx(np.full((3, 3), 0.3) + np.eye(3) * 0.1, abs=1e-8)


@given(st.integers(2, 3000), st.fractions(Fraction(101, 100), 1000, max_denominator=100), st.booleans())
def test_the_uniform_channel_never_exceeds_gamma_and_wastes_next_to_nothing(m, gamma, coarse):
    channel = Channel.uniform(range(m), gamma=gamma, coarse=coarse)
    assert channel.exact_gamma <= gamma
    exact_coin = float((gamma - 1) / (m - 1 + gamma))
    assert channel.coins[0] >= exact_coin * (1 - (2**-9 if coarse else 1e-5)) - 2 / SCALE


@given(channels())
def test_columns_of_the_matrix_add_up_to_one(channel):
    assert channel.matrix().sum(0) == pytest.approx(np.ones(channel.m))
    assert np.diag(channel.matrix()) == pytest.approx(channel.diagonal)


@given(channels(), st.integers(0, 2**31))
def test_applying_and_inverting_agree_with_the_dense_matrix(channel, seed):
    counts = np.random.default_rng(seed).integers(0, 1000, (3, channel.m))
    dense = channel.matrix()
    assert channel.apply(counts) == pytest.approx(counts @ dense.T)
    assert channel.invert(channel.apply(counts)) == pytest.approx(counts, abs=1e-4)
    chosen = np.random.default_rng(seed).integers(0, 2, (4, channel.m))
    assert channel.weights(chosen) == pytest.approx(chosen @ np.linalg.inv(dense), rel=1e-6, abs=1e-6)


@given(channels(), st.integers(0, 7))
def test_a_single_value_without_a_coin_still_inverts(channel, which):
    keep = channel.keep.copy()
    keep[which % channel.m] = 0
    one_zero = Channel(channel.values, keep, channel.replace)
    counts = np.arange(1, channel.m + 1)
    assert one_zero.invert(one_zero.apply(counts)) == pytest.approx(counts, abs=1e-5)
    dense = np.linalg.inv(one_zero.matrix())
    assert one_zero.weights(np.eye(channel.m)) == pytest.approx(dense, rel=1e-6, abs=1e-6)


@settings(max_examples=200)
@given(channels(1), st.none() | st.integers(0, 7), st.integers(0, 2**31))
def test_squares_are_those_of_the_dense_inverse(channel, without_coin, seed):
    """Also with one value that no coin keeps, for which the closed form cannot divide."""
    keep = channel.keep.copy()
    if without_coin is not None:
        keep[without_coin % channel.m] = 0
    drawn = Channel(channel.values, keep, channel.replace)
    observed = np.random.default_rng(seed).integers(0, 1000, (2, 3, channel.m))
    inverse = np.linalg.inv(drawn.matrix())
    dense = observed @ (inverse**2).T
    assert drawn.squares(observed) == pytest.approx(dense, rel=1e-6, abs=1e-6 * max(dense.max(), 1))
    assert drawn.squares(observed[0, 0]) == pytest.approx(drawn.squares(observed)[0, 0])
    by_value = [(drawn.weights(row) ** 2 * observed).sum(-1) for row in np.eye(channel.m)]
    assert drawn.squares(observed) == pytest.approx(np.stack(by_value, -1), rel=1e-6, abs=1e-6 * max(dense.max(), 1))


def test_a_channel_that_forgets_has_no_inverse():
    forgets = Channel.of("abc", [0.0, 0.0, 0.5])
    for question in (forgets.invert, forgets.squares, forgets.weights):
        with pytest.raises(OptionError, match="two or more of its values are always replaced"):
            question(np.ones(3))
    never_drawn = Channel.of("abc", [0.0, 0.3, 0.5], [0, 1, 1])
    with pytest.raises(OptionError, match="cannot be inverted"):
        never_drawn.squares(np.ones(3))


def _entries(channel):
    m, k, w = channel.m, channel.keep.tolist(), channel.replace.tolist()
    return [[(k[x] * SCALE if x == y else 0) + (SCALE - k[x]) * w[y] for x in range(m)] for y in range(m)]


@settings(max_examples=60)
@given(channels())
def test_amplification_equals_brute_force_over_all_pairs(channel):
    rows = _entries(channel)
    assert channel.exact_gamma == max(Fraction(max(row), min(row)) for row in rows)
    own = exact.own_amplifications(channel.keep, channel.replace)
    for y, row in enumerate(rows):
        assert own[y] == Fraction(row[y], min(row[x] for x in range(channel.m) if x != y))


@settings(max_examples=60)
@given(channels(), st.integers(0, 2**31))
def test_posteriors_equal_bayes_by_hand(channel, seed):
    counts = np.random.default_rng(seed).integers(0, 50, channel.m)
    counts[0] += 1
    rows = _entries(channel)
    sure = exact.surest(channel.keep, channel.replace, counts)
    for x in range(channel.m):
        posterior = [
            Fraction(int(counts[x]) * row[x], sum(int(f) * entry for f, entry in zip(counts, row, strict=True)))
            for row in rows
        ]
        assert sure[x] == max(posterior)


@given(st.integers(1, 5000))
def test_uniform_weights_are_the_sampler_s_own(m):
    weights = uniform_weights(m)
    assert weights.sum() == SCALE
    assert weights.max() - weights.min() <= 1
    edges = np.concatenate([[0], np.cumsum(weights)])
    for j in (0, m // 2, m - 1):  # the first and last number of an interval fall into it, their neighbours do not
        assert int(edges[j]) * m >> 32 == j
        assert (int(edges[j + 1]) - 1) * m >> 32 == j


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200).filter(lambda w: sum(w) > 1e-3))
def test_weights_of_a_distribution_add_up_and_keep_what_is_positive(shares):
    weights = weights_of(np.array(shares))
    assert weights.sum() == SCALE
    assert ((weights > 0) >= (np.array(shares) > 0)).all()
    assert np.abs(weights / SCALE - np.array(shares) / sum(shares)).max() < 1e-6


@given(st.integers(0, SCALE))
def test_coarse_thresholds_are_below_and_near(keep):
    rounded = int(coarsened(keep))
    assert rounded <= keep <= rounded * (1 + 2**-9)
    assert rounded == 0 or rounded % 2 ** max(keep.bit_length() - 10, 0) == 0
