"""The fast path of the kernel gives what the exact one gives, row by row, at every edge of a coin and of a step."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.channels import Channel
from deniable.core.errors import InternalError
from deniable.core.exact import SCALE
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import GUIDED_ROWS, LARGEST, Buffers, Guide, Kernel, _Work

STREAM = Keystream(Secret.from_key(bytes(range(32))), "guide")


def edge_words(path, cell: int, keeps: np.ndarray) -> np.ndarray:
    """Words whose halves lie just before, at and after every threshold of a coin and every edge of a step."""
    edges, _ = path.steps(cell)
    low = np.unique(np.clip(np.concatenate([edges - 1, edges, edges + 1]), 0, SCALE - 1))
    high = np.unique(np.clip(np.concatenate([keeps - 1, keeps, keeps + 1]), 0, SCALE - 1))
    coins = (np.resize(high, len(low)).astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    replaced = (np.uint64(SCALE - 1) << np.uint64(32)) | low.astype(np.uint64)
    return np.concatenate([coins, replaced])


def compared(kernel: Kernel, codes, draws, cells) -> None:
    """Run both paths over the same rows."""
    path = kernel._path
    guide = Guide.of(path, codes.dtype)
    assert guide is not None
    exact, guided = np.empty_like(codes), np.empty_like(codes)
    path.run(codes, draws, cells, exact, _Work(len(codes), codes.dtype))
    guide.run(codes, draws, cells, guided, Buffers.of(len(codes), codes.dtype))
    assert np.array_equal(guided, exact)


@st.composite
def kernels(draw):
    """Channels of one to five cells over parts of a domain, coins of 0 and 1 among them."""
    m = draw(st.integers(2, 40))
    cells = draw(st.integers(1, 5))
    uniform = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    channels, places = [], []
    for _ in range(cells):
        place = rng.permutation(m)[: rng.integers(1, m + 1)]
        size = len(place)
        coins = rng.choice([0.0, 1.0, *rng.random(3)], size)
        weights = rng.choice([0.0, 1e-9, 1.0, 5.0], size)
        weights[rng.integers(size)] = 1.0
        general = Channel.of(range(size), coins, weights)
        channels.append(Channel.uniform(range(size), gamma=Fraction(7, 3)) if uniform else general)
        places.append(place)
    return channels, places, rng


@settings(max_examples=60, deadline=None)
@given(kernels(), st.sampled_from([np.uint8, np.uint16, np.uint32]))
def test_both_paths_agree_at_every_edge(case, dtype):
    channels, places, rng = case
    kernel = Kernel(channels, places)
    if not hasattr(kernel._path, "steps"):
        return  # one uniform channel over its whole domain needs no guide
    codes, draws, cells = [], [], []
    for cell, (channel, place) in enumerate(zip(channels, places, strict=True)):
        words = np.concatenate([edge_words(kernel._path, cell, channel.keep), STREAM.words(0, 501)])
        draws.append(words)
        codes.append(rng.choice(place, len(words)))
        cells.append(np.full(len(words), cell, dtype=np.int32))
    order = rng.permutation(sum(map(len, draws)))
    several = np.concatenate(cells)[order] if len(channels) > 1 else None
    compared(kernel, np.concatenate(codes)[order].astype(dtype), np.concatenate(draws)[order], several)


@pytest.mark.parametrize("m", [256, 300, 3_000, 15_000])
def test_large_domains_agree_where_draws_take_more_bits(m):
    channel = Channel.of(range(m), np.linspace(0, 1, m), np.linspace(1, 3, m))
    kernel = Kernel([channel], [np.arange(m)])
    words = np.concatenate([edge_words(kernel._path, 0, channel.keep), STREAM.words(0, 20_000)])
    codes = np.random.default_rng(1).integers(0, m, len(words)).astype(np.min_scalar_type(m - 1))
    compared(kernel, codes, words, None)
    # a guide of another kind in the same buffers afterwards finds nothing of it
    small = Kernel([Channel.of(range(5), 0.5, [1, 2, 3, 4, 5])], [np.arange(5)])
    compared(small, (codes % 5).astype(codes.dtype), words, None)


def test_many_rows_take_the_guide_and_few_do_not():
    channel = Channel.of(range(50), np.linspace(0.1, 0.6, 50), np.linspace(1, 3, 50))
    kernel = Kernel([channel], [np.arange(50)])
    codes = np.random.default_rng(2).integers(0, 50, GUIDED_ROWS + 1).astype(np.uint8)
    few = kernel.perturb(codes[:100], STREAM.words(0, 100))
    assert not kernel._guides
    many = kernel.perturb(codes, STREAM.words(0, len(codes)))
    assert kernel._guides[codes.dtype] is not None
    assert np.array_equal(few, many[:100])


def test_tables_that_would_not_fit_are_not_made():
    rng = np.random.default_rng(3)
    channels = [Channel.of(range(60), rng.random(60), rng.random(60)) for _ in range(LARGEST // 2**12)]
    kernel = Kernel(channels, [np.arange(60)] * len(channels))
    assert Guide.of(kernel._path, np.dtype(np.uint8)) is None


@pytest.mark.parametrize("places", [[[0, 1], [2, 3]], [[0, 1], [0, 1]]])
def test_a_row_in_a_cell_that_lacks_its_value_is_refused(places):
    general = Channel.of("ab", [0.1, 0.2])
    kernel = Kernel([general, general], places)
    codes, cells = np.tile(np.array(places[0], np.uint8), GUIDED_ROWS), np.zeros(2 * GUIDED_ROWS, np.int32)
    kernel.perturb(codes, STREAM.words(0, len(codes)), cells)
    for wrong in (codes.copy(), codes.copy()):
        wrong[-1] = 2
        with pytest.raises(InternalError, match="does not have its value"):
            kernel.perturb(wrong, STREAM.words(0, len(codes)), cells)
    cells[7] = 2
    with pytest.raises((InternalError, IndexError)):
        kernel.perturb(codes, STREAM.words(0, len(codes)), cells)
