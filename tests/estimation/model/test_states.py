"""States: what a published row counts for, value by value, adds up to weights of value sets and counts by value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.core.channels import Channel
from deniable.estimation.model.states import States

coins = st.floats(0.02, 0.98)
shares = st.floats(0.02, 1)


@st.composite
def cells(draw: st.DrawFn, m: int) -> tuple[Channel, np.ndarray]:
    """A cell over some of m values: with coins, with one value that has none, or redrawn altogether."""
    places = np.array(draw(st.lists(st.integers(0, m - 1), min_size=1, max_size=m, unique=True)))
    size = len(places)
    kept = np.array(draw(st.lists(coins, min_size=size, max_size=size)))
    kind = draw(st.sampled_from(["coins", "one without", "redrawn"]))
    if kind == "one without":
        kept[draw(st.integers(0, size - 1))] = 0.0
    weights = draw(st.lists(shares, min_size=size, max_size=size))
    return Channel.of(places.tolist(), 0.0 if kind == "redrawn" else kept, weights), places


@st.composite
def states(draw: st.DrawFn) -> States:
    m = draw(st.integers(1, 6))
    made = draw(st.lists(cells(m), min_size=1, max_size=4))
    return States(m, tuple(channel for channel, _ in made), tuple(places for _, places in made))


@st.composite
def mixtures(draw: st.DrawFn) -> States:
    """The channel of a whole release whose cells are hidden; mostly kept, so that it can be inverted, or not at all."""
    m = draw(st.integers(1, 6))
    noise = np.array(draw(st.lists(shares, min_size=m * m, max_size=m * m))).reshape(m, m)
    kept = draw(st.sampled_from([0.0, 0.3, 0.8]))
    mixture = kept * np.eye(m) + (1 - kept) * noise / noise.sum(0)
    if kept == 0.0:
        mixture = np.tile(mixture[:, :1], m)  # whatever is published, it tells nothing
    return States(m, (), (np.arange(m),), mixture)


@pytest.mark.parametrize("made", [states(), mixtures()], ids=["cells", "mixture"])
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_counts_and_squares_by_value_are_sums_of_weights(made: st.SearchStrategy[States], data: st.DataObject) -> None:
    """invert(n)[x] = sum over states of w_x n,   squares(n)[x] = sum over states of w_x^2 n."""
    found = data.draw(made)
    counts = np.random.default_rng(data.draw(st.integers(0, 2**31))).integers(0, 1000, (2, 3, found.count)) * 1.0
    weights = found.weights(np.eye(found.m, dtype=bool))
    assert weights.shape == (found.m, found.count)
    for by_value, factors in ((found.invert(counts), weights), (found.squares(counts), weights**2)):
        expected = counts @ factors.T
        assert by_value.shape == (2, 3, found.m)
        assert by_value == pytest.approx(expected, rel=1e-6, abs=1e-6 * max(np.abs(expected).max(), 1))


@pytest.mark.parametrize("made", [states(), mixtures()], ids=["cells", "mixture"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_weights_of_a_set_are_those_of_its_values_added_up(
    made: st.SearchStrategy[States], data: st.DataObject
) -> None:
    found = data.draw(made)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=found.m, max_size=found.m)))
    singles = found.weights(np.eye(found.m, dtype=bool))
    expected = singles[chosen].sum(0)
    assert found.weights(chosen) == pytest.approx(expected, rel=1e-6, abs=1e-6 * max(np.abs(singles).max(), 1))


@settings(max_examples=100, deadline=None)
@given(states())
def test_every_row_counts_once_in_all(found: States) -> None:
    """Over all values the weights of a state add up to one: no row is lost, and none invented."""
    assert found.weights(np.eye(found.m, dtype=bool)).sum(0) == pytest.approx(np.ones(found.count), abs=1e-6)
    everything = np.ones(found.m, dtype=bool)
    assert (found.weights(everything) == 1).all()
    assert (found.weights(~everything) == 0).all()


@settings(max_examples=200, deadline=None)
@given(mixtures(), st.floats(0, 9))
def test_one_inverse_decides_and_weighs_as_singular_values_and_a_solution_each_would(
    hidden: States, nearer: float
) -> None:
    assert hidden.mixture is not None
    alike = np.tile(hidden.mixture.mean(1, keepdims=True), hidden.m)  # the nearer to it, the worse its inverse
    channel = alike + 10.0**-nearer * (hidden.mixture - alike)
    condition = np.linalg.cond(channel)
    assume(not 0.999e6 < condition < 1.001e6)  # there the last digits decide
    made = States(hidden.m, (), (np.arange(hidden.m),), channel)
    assert made.unbiased == (condition < 1e6)
    if made.unbiased and hidden.m > 1:
        every = np.eye(hidden.m, dtype=bool)
        solved = np.linalg.solve(channel.T, every.astype(float).T).T
        np.testing.assert_allclose(made.weights(every), solved, rtol=1e-9, atol=1e-9 * np.abs(solved).max())


def test_many_hidden_values_are_inverted_without_their_singular_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.linalg, "cond", lambda *_: pytest.fail("singular values of a channel that is far from one"))
    rng = np.random.default_rng(0)
    channel = 0.2 * np.eye(300) + 0.8 * rng.dirichlet(np.ones(300), 300).T
    assert States(300, (), (np.arange(300),), channel).unbiased
