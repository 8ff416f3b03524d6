"""The sampler draws from its channel, transition by transition, and the test would notice coins that are 5 % off."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from deniable.core.channels import Channel
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import Kernel

FALSE_ALARM = 1e-6
ROWS = 4_000_000


def stream(purpose: str) -> Keystream:
    return Keystream(Secret.from_key(bytes(range(32))), "sampler", purpose)


def rejects(observed: np.ndarray, channel: Channel) -> bool:
    """Whether the counts of transitions x -> y (rows x) deviate from the channel.

    Two tests share the false alarm: a z-score for every transition, and chi-square over all of them.
    """
    probability = channel.matrix().T
    expected = observed.sum(1, keepdims=True) * probability
    possible = probability > 0
    if observed[~possible].any():
        return True
    spread = np.sqrt(expected * (1 - probability))
    z = np.abs(observed - expected)[spread > 0] / spread[spread > 0]
    freedom = int((possible.sum(1) - 1).sum())
    chi_square = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    by_transition = z.max() > stats.norm.isf(FALSE_ALARM / 4 / z.size)
    return bool(by_transition or stats.chi2.sf(chi_square, freedom) < FALSE_ALARM / 2)


def scaled(channel: Channel, factor: float) -> Channel:
    """The same channel with every coin higher or lower."""
    keep = np.minimum((channel.keep * factor).astype(np.int64), 2**32)
    return Channel(channel.values, keep, channel.replace)


def transitions(kernel: Kernel, codes: np.ndarray, m: int, purpose: str, cells: np.ndarray | None = None) -> np.ndarray:
    out = kernel.perturb_rows(codes, stream(purpose), cells=cells)
    return np.bincount(codes.astype(np.int64) * m + out, minlength=m * m).reshape(m, m)


def codes_of(m: int, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(m).integers(0, m, rows).astype(np.uint8)


CHANNELS = {
    "uniform, m = 2": Channel.uniform(range(2), gamma=Fraction(3)),
    "uniform, m = 50": Channel.uniform(range(50), gamma=Fraction(20)),
    "unequal coins and weights": Channel.of(range(7), [0.1, 0.2, 0.3, 0.5, 0.7, 0.05, 0.9], [1, 2, 3, 4, 5, 0, 9]),
    "unequal coins, m = 50": Channel.of(range(50), np.linspace(0.1, 0.6, 50), np.linspace(1, 4, 50)),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_every_transition_has_its_probability_and_no_other(name):
    channel = CHANNELS[name]
    observed = transitions(Kernel([channel], [np.arange(channel.m)]), codes_of(channel.m), channel.m, name)
    assert not rejects(observed, channel)
    assert rejects(observed, scaled(channel, 1.05))
    assert rejects(observed, scaled(channel, 0.95))


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_sampler_with_wrong_coins_is_rejected(factor):
    channel = CHANNELS["uniform, m = 50"]
    wrong = transitions(Kernel([scaled(channel, factor)], [np.arange(50)]), codes_of(50), 50, "wrong")
    assert rejects(wrong, channel)


def test_wrong_weights_are_rejected():
    channel = CHANNELS["unequal coins and weights"]
    observed = transitions(Kernel([channel], [np.arange(7)]), codes_of(7), 7, "weights")
    for factor in (0.95, 1.05):
        other = Channel.of(channel.values, channel.coins, channel.replacing * np.array([1, 1, factor, 1, 1, 1, 1]))
        assert rejects(observed, other)


@pytest.mark.parametrize("uniform", [True, False])
def test_every_cell_draws_from_its_own_channel(uniform):
    places = [np.array([0, 1, 2, 3]), np.array([5, 3, 4]), np.array([2, 0])]
    if uniform:
        channels = [Channel.of(p.tolist(), coin) for p, coin in zip(places, (0.2, 0.5, 0.7), strict=True)]
    else:
        channels = [Channel.of(p.tolist(), np.linspace(0.2, 0.6, len(p)), p + 1.0) for p in places]
    rng = np.random.default_rng(6)
    cells = rng.integers(0, 3, ROWS // 2)
    codes = np.zeros(len(cells), dtype=np.uint8)
    for cell, place in enumerate(places):
        codes[cells == cell] = rng.choice(place, (cells == cell).sum())
    out = Kernel(channels, places).perturb_rows(codes, stream("cells"), cells=cells)
    for cell, (place, channel) in enumerate(zip(places, channels, strict=True)):
        counts = np.zeros((6, 6), dtype=np.int64)
        np.add.at(counts, (codes[cells == cell], out[cells == cell]), 1)
        observed = counts[np.ix_(place, place)]
        assert observed.sum() == counts.sum()  # nothing leaves the sub-domain
        assert not rejects(observed, channel)
        assert rejects(observed, scaled(channel, 1.05))
        assert rejects(observed, scaled(channel, 0.95))


@pytest.mark.parametrize("edge", [0, 49])
def test_first_and_last_value_and_a_single_row(edge):
    channel = CHANNELS["uniform, m = 50"]
    kernel = Kernel([channel], [np.arange(50)])
    observed = np.zeros((50, 50), dtype=np.int64)
    codes = np.full(1_000_000, edge, dtype=np.uint8)
    observed[edge] = np.bincount(kernel.perturb_rows(codes, stream("edge")), minlength=50)
    assert observed[edge].min() > 0
    probability = channel.matrix()[:, edge]
    assert stats.chisquare(observed[edge], len(codes) * probability).pvalue > FALSE_ALARM
    for factor in (0.95, 1.05):
        wrong = scaled(channel, factor).matrix()[:, edge]
        assert stats.chisquare(observed[edge], len(codes) * wrong / wrong.sum()).pvalue < FALSE_ALARM
    # a table of one row, a million times: each is the row of that number in the whole
    singles = [int(kernel.perturb_rows(codes[:1], stream("edge"), row)[0]) for row in range(200)]
    assert singles == kernel.perturb_rows(codes, stream("edge"))[:200].tolist()


def test_neighbouring_rows_are_independent():
    channel = CHANNELS["unequal coins and weights"]
    codes = codes_of(7)
    out = Kernel([channel], [np.arange(7)]).perturb_rows(codes, stream("neighbours"))
    kept = (out == codes).astype(float) - channel.diagonal[codes]
    for lag in (1, 2, 32_768, 65_536):
        products = kept[:-lag] * kept[lag:]
        assert abs(products.mean()) < stats.norm.isf(FALSE_ALARM / 8) * products.std() / np.sqrt(len(products))


def test_coin_and_replacement_are_independent():
    """Published values of the replaced rows follow r, whatever coin replaced them."""
    channel = Channel.of(range(4), [0.2, 0.4, 0.6, 0.8], [1, 2, 3, 4])
    draws = stream("halves").words(0, ROWS)
    out = Kernel([channel], [np.arange(4)]).perturb(np.zeros(ROWS, np.uint8), draws)
    high = draws >> np.uint64(32)
    replaced = high >= np.uint64(channel.keep[0])
    quarter = (high[replaced] >> np.uint64(30)).astype(np.int64)
    table = np.zeros((4, 4))
    np.add.at(table, (quarter, out[replaced]), 1)
    expected = table.sum(1, keepdims=True) * channel.replacing
    assert stats.chi2.sf(((table - expected) ** 2 / expected).sum(), 12) > FALSE_ALARM


def test_the_same_key_gives_the_same_result_on_any_number_of_threads():
    for channel in CHANNELS.values():
        kernel, codes = Kernel([channel], [np.arange(channel.m)]), codes_of(channel.m, 1_000_003)
        one = kernel.perturb_rows(codes, stream("threads"))
        assert np.array_equal(kernel.perturb_rows(codes, stream("threads"), chunk=12_345), one)
        assert not np.array_equal(kernel.perturb_rows(codes, stream("another key")), one)
