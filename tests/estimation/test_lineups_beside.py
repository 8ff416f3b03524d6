"""Line-ups beside other perturbed columns: one more factor of a tensor channel, with more published states."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.core.designs import ArcDesign
from deniable.estimation.model.lineups import LineUpFactor, LineUpStates
from deniable.estimation.model.tensor import Factor, Tensor

DESIGNS = [([1.0] * 5, 2, 0.5), ([3.0, 2.0, 2.0, 1.0, 1.0, 1.0], 3, 0.25), ([1.0] * 20, 4, 0.4)]


def factor_of(weights: list[float], size: int, truth: float, *, exempt: bool = False) -> LineUpFactor:
    return LineUpFactor(LineUpStates(ArcDesign.of(weights, size, truth), exempt))


def matrix_of(factor: LineUpFactor) -> np.ndarray:
    """P[S][x] from the formula alone."""
    design = factor.states.design
    sets, t = design.sets, design.share_true
    matrix = np.zeros((factor.published, factor.size))
    for number, (members, length) in enumerate(zip(sets.members, sets.lengths, strict=True)):
        chance = length / (design.orders * 2**40)
        matrix[number, : design.m] = chance * (1 - t)
        for x in members:
            matrix[number, x] += chance * t / design.inclusion[x]
    if factor.states.exempt:
        matrix[-1, -1] = 1.0
    return matrix


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("exempt", [False, True])
def test_every_operation_is_that_of_the_matrix(design: tuple[list[float], int, float], exempt: bool) -> None:
    factor = factor_of(*design, exempt=exempt)
    matrix, draw = matrix_of(factor), np.random.default_rng(1)
    assert np.allclose(matrix.sum(0), 1)
    x, y = draw.random((3, factor.size)), draw.random((3, factor.published))
    assert np.allclose(factor.apply(x), x @ matrix.T)
    assert np.allclose(factor.transposed(y), y @ matrix)
    weights = factor.weights(np.eye(factor.size))  # [asked for, set]
    assert np.allclose(weights @ matrix, np.eye(factor.size), atol=1e-8)  # E[w | x] = 1[x is asked for]
    assert np.allclose(factor.invert(y), y @ weights.T)
    assert np.allclose(factor.squares(y), y @ (weights**2).T)


def test_a_tensor_undoes_line_ups_and_coins_together() -> None:
    tensor = Tensor((factor_of(*DESIGNS[2]), Factor(0.4, np.full(3, 1 / 3)), factor_of(*DESIGNS[0])))
    assert tensor.shape == (20, 3, 5)
    assert tensor.published[0] > 20
    draw = np.random.default_rng(2)
    x, t = draw.random((2, *tensor.shape)), draw.random((2, *tensor.shape))
    seen = tensor.apply(x)
    assert seen.shape == (2, *tensor.published)
    assert np.allclose(tensor.invert(seen), x)
    assert np.allclose((tensor.weights(t) * seen).sum(), (t * x).sum())
    assert np.allclose(tensor.transposed(np.ones((1, *tensor.published))), 1.0)


def test_the_likeliest_counts_are_those_that_would_be_published() -> None:
    tensor = Tensor((factor_of(*DESIGNS[0]), Factor(0.5, np.full(2, 0.5))))
    truth = np.array([[100.0, 50.0], [30.0, 5.0], [10.0, 10.0], [60.0, 40.0], [80.0, 15.0]])
    assert np.allclose(tensor.likelihood(tensor.apply(truth)), truth, rtol=0.01)


def test_an_exempt_missing_line_up_counts_as_itself() -> None:
    factor = factor_of(*DESIGNS[0], exempt=True)
    x = np.arange(6.0)
    assert factor.apply(x)[-1] == 5.0
    assert np.allclose(factor.invert(factor.apply(x)), x)
