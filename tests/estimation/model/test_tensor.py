"""Tensor channels: factor by factor as if built, the Bayesian fixed point, and the noise that they magnify."""

import time
import tracemalloc
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.channels import NumberRange
from deniable.core.errors import QuestionError
from deniable.estimation.model.tensor import Factor, Tensor
from deniable.estimation.precision import rows_needed


def dense(factor):
    m = len(factor.masses)
    matrix = np.eye(m + factor.fixed)
    matrix[:m, :m] = factor.coin * np.eye(m) + (1 - factor.coin) * np.outer(factor.masses, np.ones(m))
    return matrix


factors = st.builds(
    lambda p, b, fixed: Factor(p, np.array(b) / sum(b), fixed),
    st.floats(0.1, 1.0),
    st.lists(st.floats(0.05, 1.0), min_size=2, max_size=4),
    st.integers(0, 2),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(factors, min_size=1, max_size=4), st.integers(0, 2**32))
def test_every_operation_is_that_of_the_kronecker_product(parts, seed):
    tensor = Tensor(tuple(parts))
    whole = reduce(np.kron, [dense(part) for part in parts])
    inverse = np.linalg.inv(whole)
    x = np.random.default_rng(seed).uniform(0, 100, tensor.shape)
    for found, matrix in (
        (tensor.apply(x), whole),
        (tensor.transposed(x), whole.T),
        (tensor.invert(x), inverse),
        (tensor.weights(x), inverse.T),
        (tensor.squares(x), inverse**2),
    ):
        assert np.allclose(found.ravel(), matrix @ x.ravel(), rtol=1e-8, atol=1e-6)
    perturbed = all(not part.fixed for part in parts)
    assert not perturbed or tensor.condition == pytest.approx(np.linalg.cond(whole, 1), rel=1e-6)


def test_the_replacing_masses_of_the_worked_example():
    ages = NumberRange("number", 0.0, 100.0, 0.01, 0)
    share = ages.share(int(ages.position(np.array([30.0]))[0]), int(ages.position(np.array([45.0]))[0]))
    assert share == pytest.approx(0.15, abs=2e-4)
    salary = NumberRange("number", 25e3, 200e3, 1.0, 0)
    assert salary.share(25_000, 95_000) == pytest.approx(0.4, abs=2e-5)
    rent = NumberRange("number", 500.0, 2500.0, 0.01, 0)
    assert rent.share(20_000, 90_000) == pytest.approx(0.35, abs=1e-5)
    whole = NumberRange("integer", 17, 90, 1, 0)
    assert whole.share(8, 28) == pytest.approx(21 / 74, abs=1e-9)  # integers are counted: (45 - 25 + 1) / (90 - 17 + 1)


def test_batches_are_answered_as_one_array():
    tensor = Tensor((Factor(0.5, np.array([0.85, 0.15])), Factor(0.4, np.array([0.6, 0.4]))))
    y = np.random.default_rng(1).uniform(1, 50, (7, 2, 2))
    assert np.allclose(tensor.invert(y), [tensor.invert(each) for each in y])
    assert np.allclose(tensor.likelihood(y), [tensor.likelihood(each) for each in y], atol=1e-3)


def test_the_likelihood_estimate_is_the_fixed_point_of_the_bayesian_rule():
    tensor = Tensor(tuple(Factor(p, np.array([1 - b, b])) for p, b in [(0.5, 0.15), (0.4, 0.4), (0.6, 0.35)]))
    y = np.array([5.0, 0, 0, 50, 3, 0, 200, 1]).reshape(2, 2, 2)
    whole = reduce(np.kron, [dense(part) for part in tensor.factors])
    slow = np.full(8, y.sum() / 8)
    for _ in range(5000):
        slow = slow * (whole.T @ (y.ravel() / (whole @ slow)))
    found = tensor.likelihood(y)
    assert np.allclose(found.ravel(), slow, atol=1e-2)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(y.sum())


def test_the_likelihood_estimate_is_the_inverse_where_that_is_possible():
    tensor = Tensor((Factor(0.5, np.array([0.85, 0.15])), Factor(0.4, np.array([0.6, 0.4]))))
    y = tensor.apply(np.array([[400.0, 300.0], [200.0, 100.0]]))
    assert np.allclose(tensor.likelihood(y), tensor.invert(y), atol=1e-2)


def test_sixteen_columns_take_milliseconds_and_never_four_to_the_sixteen():
    tensor = Tensor(tuple(Factor(0.7, np.array([0.6, 0.4])) for _ in range(16)))
    y = np.random.default_rng(2).poisson(5, (2,) * 16).astype(float)
    tracemalloc.start()
    began = time.perf_counter()
    x = tensor.invert(y)
    took = time.perf_counter() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose(tensor.apply(x), y)
    assert took < 0.5
    assert peak < 20 * y.nbytes


def test_a_hopeless_condition_number_is_said_in_words():
    good = Tensor((Factor(0.5, np.array([0.5, 0.5])),))
    assert good.condition_in_words() == ""
    bad = Tensor(tuple(Factor(0.2, np.array([0.9, 0.1])) for _ in range(6)))
    assert "6 perturbed columns" in bad.condition_in_words()
    assert bad.condition > 0.2**-6


def test_a_column_without_a_coin_cannot_be_looked_behind():
    with pytest.raises(QuestionError, match="always replaced"):
        Tensor((Factor(0.0, np.array([0.5, 0.5])),)).invert(np.ones(2))


def test_the_rows_that_a_share_needs_are_enough():
    rng = np.random.default_rng(3)
    p, b, error = 0.4, 0.3, 0.05
    n = rows_needed(p, error).theorem
    seen = rng.binomial(n, p * 0.25 + (1 - p) * b, 2000) / n
    off = np.abs((seen - (1 - p) * b) / p - 0.25) > error
    assert off.mean() < 0.05
