import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.errors import OptionError
from deniable.core.transforms import Bins, Quantiles, as_bins, edge_chances, require_fixed, round_numbers


@given(
    st.lists(st.integers(-50, 50), min_size=3, max_size=20, unique=True), st.lists(st.integers(-60, 60), max_size=50)
)
def test_each_number_falls_into_the_one_bin_that_holds_it(edges, numbers):
    bins = Bins(tuple(sorted(edges)))
    places = bins.places(np.array(numbers, dtype=float))
    for number, place in zip(numbers, places, strict=True):
        last = len(bins.edges) - 2
        inside = [
            i
            for i in range(last + 1)
            if bins.edges[i] <= number < bins.edges[i + 1] or (i == last and number == bins.edges[-1])
        ]
        assert ([place] if place >= 0 else []) == inside


def test_an_edge_is_what_its_label_prints():
    bins = Bins.equal_width(0, 1, 10)
    assert bins.places(np.arange(10) / 10).tolist() == list(range(10))
    assert Bins((0, 0.1 + 0.2, 1)).places(np.array([0.3])).tolist() == [1]
    with pytest.raises(OptionError, match="overlap"):
        Bins((0, 0.3, 0.1 + 0.2))


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ((0, 1), "3 to"),
        ((0, 2, 1), "bins overlap: edge 1 follows 2"),
        ((0, 1, float("inf")), "finite"),
        ((0, 1, 1), "overlap"),
    ],
)
def test_wrong_edges_are_refused_in_words(edges, words):
    with pytest.raises(OptionError, match=words):
        Bins(edges)


@pytest.mark.parametrize("count", [2, 5, 10])
def test_quantile_edges_do_not_depend_on_single_rows(count):
    """Exactly: a row more, less or other changes the chance of every edge by a factor of at most e^epsilon'."""
    quantiles, grid = Quantiles(count), round_numbers(whole=False)
    numbers = np.sort(np.random.default_rng(0).lognormal(10, 1, 400).round(2))
    others = [
        numbers[1:],
        numbers[:-1],
        np.delete(numbers, 200),
        np.sort([*numbers, 1e9]),
        np.sort([*numbers[1:], 1e9]),
    ]
    largest = 0.0
    for share in np.arange(1, count) / count:
        chances = edge_chances(numbers, grid, share, quantiles.epsilon)
        assert chances.sum() == pytest.approx(1)
        for other in others:
            ratio = edge_chances(other, grid, share, quantiles.epsilon) / chances
            largest = max(largest, ratio.max(), (1 / ratio).max())
    assert largest <= np.exp(quantiles.epsilon) * (1 + 1e-9)
    assert largest > np.exp(0.55 * quantiles.epsilon)  # so an exponent without its half would be noticed: 1.1 epsilon
    assert quantiles.epsilon * (count - 1) == pytest.approx(1)


def test_quantile_edges_are_round_and_near_the_quantiles():
    numbers = np.random.default_rng(0).lognormal(10, 1, 50_000)
    bins = Quantiles(10).bins(numbers, np.random.default_rng(1).random(9))
    shares = np.bincount(bins.places(numbers)) / len(numbers)
    assert len(shares) == 10
    assert shares == pytest.approx(0.1, abs=0.02)  # an edge is one of three digits
    assert all(float(f"{edge:.3g}") == edge for edge in bins.edges[1:-1])
    whole = Quantiles(5).bins(numbers.round(), np.random.default_rng(1).random(4), whole=True)
    assert all(edge == int(edge) for edge in whole.edges)


@pytest.mark.parametrize("numbers", [np.arange(999.0), np.repeat([1.0, 2.0, 3.0], 300), np.full(2000, np.nan)])
def test_quantiles_of_a_few_rows_are_refused(numbers):
    with pytest.raises(OptionError, match="needs 1,000 numbers"):
        Quantiles(5).bins(numbers, np.full(4, 0.5))


@pytest.mark.parametrize("numbers", [np.full(700, 5.0), np.repeat([0.0, 1.0], [690, 10])])
@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_quantiles_that_would_be_one_bin_are_refused(numbers, chance):
    with pytest.raises(OptionError, match="too few different numbers"):
        Quantiles(4).bins(numbers, np.full(3, chance))


def test_quantiles_are_refused_where_something_else_must_know_them():
    require_fixed({"pay": [0, 1, 2]}, "a profile")
    with pytest.raises(OptionError, match=r"'pay' are quantiles.* a profile"):
        require_fixed({"pay": Quantiles(3)}, "a profile")


@pytest.mark.parametrize("given", ["quantiles:3", 10, [0, "x", 3], None])
def test_what_is_no_bins_is_refused_in_words(given):
    with pytest.raises(OptionError, match=r"Bins\.equal_width"):
        as_bins(given)
