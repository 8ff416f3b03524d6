"""SPLU's own iteration: Eq. 13 to the letter, and where it would end."""

from __future__ import annotations

import numpy as np

from deniable.estimation.decoys import four_states
from reproduction.splu_iteration import splu_iteration


def matrix(a: float, c: int) -> np.ndarray:
    return np.array([[1 - a, a], [(c - 1) / c, 1 / c]])


def test_splus_own_iteration_starts_at_the_published_counts_and_stops_at_a_change_of_one_per_cent():
    """Eq. 13 by hand, round by round, for c = 5."""
    y = np.array([[950.0, 50], [90, 10]])
    x, rounds = y, 0
    while True:
        m = matrix(x[:, 1].sum() / x.sum(), 5)
        following = np.array([x[q] * (m @ (y[q] / (x[q] @ m))) for q in (0, 1)])
        rounds += 1
        done = (np.abs(following - x) <= 0.01 * x).all()
        x = following
        if done:
            break
    found = splu_iteration([y, y], [5])
    assert np.allclose(found.rows, [x, x], rtol=1e-12)
    assert found.rounds.tolist() == [rounds, rounds]
    assert rounds > 3
    sooner = splu_iteration(y, [5], stop=0.05)
    assert sooner.rounds < rounds
    assert np.allclose(splu_iteration(y, [5], most=0).rows, y)


def test_run_to_the_end_splus_iteration_is_the_fixed_point():
    y = np.random.default_rng(4).integers(20, 60, (4, 2, 2)).astype(float)
    y[:, :, 0] += 600
    ends = splu_iteration(y, [5], stop=1e-6, most=20_000).rows
    assert np.allclose(ends, four_states(y, 5, others="as published"), rtol=1e-3, atol=0.2)
    x = np.array([[[900.0, 90], [60, 30]], [[700, 50], [80, 40]]])
    a = [x[:, 1].sum() / x.sum(), x[:, :, 1].sum() / x.sum()]
    full = np.kron(np.eye(2), np.kron(matrix(a[0], 4), matrix(a[1], 3)))
    both = (x.ravel() @ full).reshape(2, 2, 2)
    assert np.allclose(splu_iteration(both, [4, 3], stop=1e-6, most=20_000).rows, x, rtol=1e-2)
