"""The likeliest counts: the same as the iterative Bayesian rule run for long, only sooner."""

import time
import tracemalloc
from functools import reduce

import numpy as np
import pytest

from deniable.estimation.model.fixed_point import LARGE_PRECISE, PRECISE, WINDOW
from deniable.estimation.model.tensor import Factor, Tensor


def tensor_of(shape, seed, coins=(0.4, 0.9)):
    rng = np.random.default_rng(seed)
    return Tensor(tuple(Factor(rng.uniform(*coins), rng.dirichlet(np.full(size, 3.0))) for size in shape))


def dense(tensor):
    return reduce(np.kron, [factor.apply(np.eye(factor.size)).T for factor in tensor.factors])


def published(tensor, n, seed):
    """Rows of a sparse table, perturbed."""
    rng = np.random.default_rng(seed)
    share = tensor.apply(rng.dirichlet(np.full(np.prod(tensor.shape), 0.3)).reshape(tensor.shape))
    return rng.multinomial(n, share.reshape(-1) / share.sum()).astype(float).reshape(tensor.shape)


def blame(tensor, x, y):
    """g = A^T (y / A x): 1 for every count above zero, and nowhere above 1, at the maximum (Karush, Kuhn, Tucker)."""
    seen = tensor.apply(x)
    return tensor.transposed(np.divide(y, seen, out=np.zeros_like(y), where=seen > 0))


SHAPES = [(2,), (2, 2), (2, 2, 2), (2, 2, 2, 2), (5, 3), (20, 2), (3, 17, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_rule_s_own_fixed_point(shape):
    tensor = tensor_of(shape, len(shape))
    n = 20_000
    y = published(tensor, n, 7)
    matrix = dense(tensor)
    slow = np.full(y.size, n / y.size)
    for _ in range(40_000):
        slow = slow * (matrix.T @ (y.reshape(-1) / (matrix @ slow)))
    found = tensor.likelihood(y).reshape(-1)
    assert np.abs(found - slow).max() < 2e-6 * n
    assert found.sum() == pytest.approx(n, rel=1e-9)
    assert (found >= 0).all()


@pytest.mark.parametrize("k", [4, 8, 12])
def test_no_count_could_grow_with_profit(k):
    tensor = tensor_of((2,) * k, k, (0.6, 0.9))
    y = published(tensor, 50_000, k)
    x = tensor.likelihood(y)
    g = blame(tensor, x, y)
    assert g.max() < 1 + 1e-4
    assert np.abs(g[x > 1] - 1).max() < 1e-4
    cut = np.maximum(tensor.invert(y), 0.01)
    cut *= y.sum() / cut.sum()
    assert np.abs(blame(tensor, cut, y)[cut > 1] - 1).max() > 1e-3  # power: the inverse, cut at zero, is no maximum


def test_a_batch_is_its_questions_one_by_one_and_may_hold_empty_ones():
    tensor = tensor_of((2, 3, 2), 3)
    y = np.stack([published(tensor, n, n) for n in (10, 500, 40_000)] + [np.zeros(tensor.shape)])
    together = tensor.likelihood(y)
    for one, found in zip(y, together, strict=True):
        assert np.allclose(found, tensor.likelihood(one), atol=1e-6 * max(one.sum(), 1))
    assert (together[3] == 0).all()
    assert tensor.likelihood(y[:0]).shape == (0, 2, 3, 2)


def test_columns_that_are_not_perturbed_are_returned_as_they_are():
    tensor = Tensor((Factor(1.0, np.array([0.5, 0.5])), Factor(1.0, np.array([0.2, 0.3, 0.5]))))
    y = np.array([[5.0, 0, 3], [0, 0, 1]])
    assert np.allclose(tensor.likelihood(y), y, atol=1e-9)


def test_large_factors_and_exempt_states_are_not_multiplied_out():
    wide = Factor(0.5, np.full(3000, 1 / 3000), fixed=1)
    tensor = Tensor((wide, Factor(0.7, np.array([0.4, 0.6]))))
    y = np.random.default_rng(1).poisson(3, tensor.shape).astype(float)
    tracemalloc.start()
    found = tensor.likelihood(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * y.nbytes  # a matrix of the wide column alone would be 1500 times as large
    assert np.allclose(found[-1].sum(), y[-1].sum(), atol=1e-6)
    assert blame(tensor, found, y).max() < 1 + 1e-3


@pytest.mark.parametrize("coin", [0.9, 0.7])
def test_sixteen_columns_converge_in_a_fraction_of_a_second(coin):
    tensor = Tensor(tuple(Factor(coin, np.array([0.5, 0.5])) for _ in range(16)))
    rng = np.random.default_rng(4)
    n = 100_000
    place = rng.random(n)
    pattern = np.zeros(n, np.int64)
    for i in range(16):
        answer = rng.random(n) < 0.15 + 0.7 * ((place * (i + 1)) % 1)
        pattern = pattern * 2 + np.where(rng.random(n) < coin, answer, rng.random(n) < 0.5)
    y = np.bincount(pattern, minlength=2**16).astype(float).reshape((2,) * 16)
    tracemalloc.start()
    began = time.process_time()
    fit = tensor.fit(y)
    took = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit.gain < LARGE_PRECISE
    assert fit.leaps < 400
    assert fit.counts.sum() == pytest.approx(n)
    assert peak < 40 * y.nbytes  # 2^16 states: tens of arrays like y, nothing like 4^16
    assert took < 3  # measured 0.1 to 0.3 seconds; benchmarks/cube.py prints it


def test_what_it_took_is_told():
    tensor = tensor_of((2, 2), 9)
    fit = tensor.fit(published(tensor, 1000, 9))
    assert fit.gain <= PRECISE
    assert 0 < fit.leaps <= 2000


@pytest.mark.parametrize("scale", [1 / 100_000, 1e-9])
def test_shares_are_fitted_as_well_as_the_counts_that_they_are_of(scale):
    """A gain in log-likelihood is a matter of rows: as a number it is 10^5 times smaller for shares of 10^5 rows."""
    tensor = Tensor(tuple(Factor(0.6, np.array([0.6, 0.4])) for _ in range(6)))
    y = published(tensor, 100_000, 3)
    counts = tensor.fit(y)
    shares = tensor.fit(y * scale)
    assert np.abs(shares.counts / scale - counts.counts).sum() < 1e-4 * 100_000
    assert counts.leaps > 10 * WINDOW  # stopping at 10^-9 of one row, not of 10^5 rows, is off by 10^-3 and more
