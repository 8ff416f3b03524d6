import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.bins import Bins, Quantiles, as_bins
from deniable.core.errors import OptionError


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


def test_quantile_edges_do_not_depend_on_single_rows():
    numbers = np.random.default_rng(0).lognormal(10, 1, 5000).round(2)
    all_rows = Quantiles(10).bins(numbers)
    changed = sum(Quantiles(10).bins(np.delete(numbers, i)) != all_rows for i in range(1, 4000, 97))
    assert len(all_rows.edges) == 11
    assert changed <= 2


@pytest.mark.parametrize("numbers", [np.arange(10.0), np.repeat([1.0, 2.0, 3.0], 40), np.full(200, np.nan)])
def test_quantiles_of_a_few_rows_are_refused(numbers):
    with pytest.raises(OptionError, match="single rows would decide"):
        Quantiles(5).bins(numbers)


@pytest.mark.parametrize("numbers", [np.full(400, 5.0), np.repeat([0.0, 1.0], [390, 10])])
def test_quantiles_that_would_be_one_bin_are_refused(numbers):
    with pytest.raises(OptionError, match="too few different numbers"):
        Quantiles(4).bins(numbers)


@pytest.mark.parametrize("given", ["quantiles:3", 10, [0, "x", 3], None])
def test_what_is_no_bins_is_refused_in_words(given):
    with pytest.raises(OptionError, match=r"Bins\.equal_width"):
        as_bins(given)
