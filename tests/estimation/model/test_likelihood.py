"""Maximum likelihood without iteration, against the iterative Bayesian rule by the book."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from deniable.core.channels import Channel
from deniable.estimation.model import likelihood
from deniable.estimation.model.likelihood import bayesian, most_likely


def by_the_book(matrix, observed, steps=200_000, tolerance=1e-13):
    """x_p <- sum_q y_q a_qp x_p / sum_r a_qr x_r, until it stands still."""
    x = np.full(matrix.shape[1], observed.sum() / matrix.shape[1])
    for _ in range(steps):
        new = x * (matrix.T @ (observed / (matrix @ x)))
        if np.abs(new - x).max() <= tolerance * observed.sum():
            return new
        x = new
    return x


def log_likelihood(matrix, observed, f):
    expected = matrix @ f
    return float((observed[observed > 0] * np.log(expected[observed > 0])).sum())


def test_worked_example_of_spec_8():
    channel = Channel.uniform("abc", gamma=Fraction(4, 3))
    inside = most_likely(channel, np.array([[30.0, 35, 35], [50, 30, 20]]))
    np.testing.assert_allclose(inside[0], [0, 50, 50], atol=1e-5)
    assert (inside[1] >= 0).all()
    assert inside[1].sum() == pytest.approx(100)
    np.testing.assert_allclose(inside[1], [100, 0, 0], atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_one_coin_equals_the_converged_bayesian_iteration(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 9))
    channel = Channel.uniform(list(range(m)), gamma=Fraction(6))
    observed = rng.multinomial(500, rng.dirichlet(np.ones(m))).astype(float)
    reference = by_the_book(channel.matrix(), observed)
    np.testing.assert_allclose(most_likely(channel, observed[None])[0], reference, atol=1e-8 * 500)


@pytest.mark.parametrize("seed", range(8))
def test_many_coins_equal_the_converged_bayesian_iteration(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 9))
    channel = Channel.of(list(range(m)), rng.uniform(0.3, 0.9, m), rng.dirichlet(np.full(m, 2.0)))
    observed = rng.multinomial(500, rng.dirichlet(np.ones(m))).astype(float)
    reference = by_the_book(channel.matrix(), observed)
    np.testing.assert_allclose(most_likely(channel, observed[None])[0], reference, atol=1e-8 * 500)
    np.testing.assert_allclose(bayesian(channel.matrix(), observed[None])[0], reference, atol=1e-6 * 500)


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2**31), st.booleans())
def test_no_neighbour_is_more_likely(m, seed, one_coin):
    rng = np.random.default_rng(seed)
    coins = np.full(m, rng.uniform(0.05, 0.9)) if one_coin else rng.uniform(0.02, 1, m)
    channel = Channel.of(list(range(m)), coins, rng.dirichlet(np.full(m, 0.7)))
    observed = rng.multinomial(60, rng.dirichlet(np.full(m, 0.5))).astype(float)
    found = most_likely(channel, observed[None])[0]
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(60, rel=1e-7)
    best = log_likelihood(channel.matrix(), observed, found)
    for other in rng.dirichlet(np.full(m, 0.5), 50) * 60:
        for step in (1e-3, 0.1, 1.0):
            assert log_likelihood(channel.matrix(), observed, (1 - step) * found + step * other) <= best + 1e-6


def test_a_batch_is_its_questions_one_by_one():
    rng = np.random.default_rng(5)
    channel = Channel.of(list(range(6)), rng.uniform(0.1, 0.9, 6), rng.dirichlet(np.ones(6)))
    observed = rng.poisson(5, (40, 6)).astype(float)
    observed[7] = 0
    batch = most_likely(channel, observed)
    np.testing.assert_allclose(batch, np.concatenate([most_likely(channel, row[None]) for row in observed]), atol=1e-9)
    assert (batch[7] == 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_channels_with_few_entries_are_fitted_as_if_all_were_multiplied(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    m = 12
    matrix = 0.5 * np.eye(m) + 0.5 * np.roll(np.eye(m), 1 + seed, axis=0)
    observed = rng.multinomial(500, rng.dirichlet(np.ones(m)), size=3).astype(float)
    dense = bayesian(matrix, observed)
    monkeypatch.setattr(likelihood, "SMALL", 0)
    monkeypatch.setattr(likelihood, "csr_array", lambda given: made.append(given) or csr_array(given))
    made: list[np.ndarray] = []
    np.testing.assert_allclose(bayesian(matrix, observed), dense, rtol=1e-9, atol=1e-9 * 500)
    assert len(made) == 2
