"""The kernel realises exactly the integers of its channels, on every path."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.channels import Channel, uniform_weights, weights_of
from deniable.core.errors import InternalError
from deniable.core.exact import SCALE
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import Kernel, WholeDomain, _AliasCells, _Pairs, _UniformCells, alias_table

STREAM = Keystream(Secret.from_key(bytes(range(32))), "kernel")


def masses(weights: np.ndarray) -> np.ndarray:
    """How many of the 2^32 numbers the alias table gives to each value, by exact bookkeeping."""
    threshold, choice = alias_table(weights)
    capacity = SCALE // len(threshold)
    assert ((threshold >= 0) & (threshold <= capacity)).all()
    total = np.zeros(len(weights), dtype=np.int64)
    np.add.at(total, choice[:, 0], threshold)
    np.add.at(total, choice[:, 1], capacity - threshold)
    return total


def reference(channels, positions, codes, draws, cells):
    """One row at a time, in Python integers, straight from the definition."""
    tables = [alias_table(channel.replace) for channel in channels]
    out = []
    for code, draw, cell in zip(codes.tolist(), draws.tolist(), cells.tolist(), strict=True):
        channel, place = channels[cell], positions[cell].tolist()
        high, low = draw >> 32, draw & (SCALE - 1)
        if high < int(channel.keep[place.index(code)]):
            out.append(code)
        elif all(c.is_uniform for c in channels):
            out.append(place[low * channel.m >> 32])
        else:
            threshold, choice = tables[cell]
            capacity = SCALE // len(threshold)
            bucket, offset = divmod(low, capacity)
            out.append(place[int(choice[bucket, 0 if offset < threshold[bucket] else 1])])
    return np.array(out)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200).filter(lambda ws: sum(ws) > 0))
def test_the_alias_table_realises_the_weights_exactly(weights):
    whole = weights_of(np.array(weights))
    assert np.array_equal(masses(whole), whole)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 50, 1023, 1024, 1025, 15_000])
def test_the_alias_table_realises_uniform_and_extreme_weights_exactly(m):
    extreme = np.ones(m, dtype=np.int64)
    extreme[m // 2] = SCALE - (m - 1)
    alone = np.zeros(m, dtype=np.int64)
    alone[-1] = SCALE
    for whole in (uniform_weights(m), extreme, alone):
        assert np.array_equal(masses(whole), whole)


def cases():
    uniform = Channel.uniform("abcde", gamma=Fraction(3))
    general = Channel.of("abcde", [0.1, 0.9, 0.0, 1.0, 0.5], [1, 2, 3, 4, 0])
    third = Channel.of("xyz", [0.2, 0.3, 0.4], [5, 1, 1])
    single = Channel.of("q", 0.3)
    five, shuffled = np.arange(5), np.array([4, 2, 0, 1, 3])
    return {
        "whole domain": ([uniform], [five], WholeDomain),
        "whole domain, always kept": ([Channel.of("abcde", 1.0)], [five], WholeDomain),
        "whole domain, never kept": ([Channel.of("abcde", 0.0)], [five], WholeDomain),
        "domain in another order": ([uniform], [shuffled], _UniformCells),
        "uniform cells": (
            [uniform, Channel.of("abc", 1.0), single],
            [shuffled, np.array([7, 0, 2]), [3]],
            _UniformCells,
        ),
        "one general channel": ([general], [five], _AliasCells),
        "general cells": ([general, third, uniform, single], [shuffled, [9, 8, 1], five, [0]], _AliasCells),
    }


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_every_path_does_what_the_definition_says(name, dtype):
    channels, positions, path = cases()[name]
    positions = [np.asarray(p) for p in positions]
    rng = np.random.default_rng(3)
    cells = rng.integers(0, len(channels), 5000)
    codes = np.array([rng.choice(positions[cell]) for cell in cells], dtype=dtype)
    draws = STREAM.words(0, 5000)
    # the edges of the comparisons: coins 0, just below and at each threshold, replacements first and last
    keeps = np.array(
        [channels[cell].keep[list(positions[cell]).index(code)] for cell, code in zip(cells, codes, strict=True)]
    )
    edge = np.clip(keeps + np.tile([-1, 0, 1, -SCALE, SCALE], 1000), 0, SCALE - 1).astype(np.uint64) << np.uint64(32)
    draws[2500:] = edge[2500:] | np.where(np.arange(2500) % 2, np.uint64(SCALE - 1), np.uint64(0))
    kernel = Kernel(channels, positions)
    assert isinstance(kernel._path, path)
    out = kernel.perturb(codes, draws, cells if len(channels) > 1 else None)
    assert out.dtype == dtype
    assert np.array_equal(out, reference(channels, positions, codes, draws, cells))


def test_the_alias_table_is_read_exactly_at_its_thresholds():
    channel = Channel.of(range(7), np.linspace(0, 0.9, 7), [1, 2, 3, 4, 5, 6, 7])
    threshold, _ = alias_table(channel.replace)
    capacity = SCALE // len(threshold)
    edges = np.arange(len(threshold)) * capacity + threshold
    low = np.concatenate([edges - 1, edges, edges + 1])
    draws = np.clip(low, 0, SCALE - 1).astype(np.uint64)
    codes = np.zeros(len(draws), dtype=np.uint8)  # the coin of value 0 never keeps it
    out = Kernel([channel], [np.arange(7)]).perturb(codes, draws)
    assert np.array_equal(out, reference([channel], [np.arange(7)], codes, draws, codes))


@pytest.mark.parametrize("name", cases())
def test_chunks_change_nothing(name):
    channels, positions, _ = cases()[name]
    rng = np.random.default_rng(4)
    cells = rng.integers(0, len(channels), 30_001)
    codes = np.array([rng.choice(positions[cell]) for cell in cells], dtype=np.uint8)
    given = cells if len(channels) > 1 else None
    kernel = Kernel(channels, positions)
    original = codes.copy()
    expected = kernel.perturb(codes, STREAM.words(11, 30_001), given)
    for chunk in (65_536, 1000, 777, 1, 30_000, 30_001):
        if chunk == 1:
            part = kernel.perturb_rows(codes[:50], STREAM, 11, None if given is None else given[:50], chunk=1)
            assert np.array_equal(part, expected[:50])
            continue
        assert np.array_equal(kernel.perturb_rows(codes, STREAM, 11, given, chunk=chunk), expected)
        assert np.array_equal(kernel.perturb(codes, STREAM.words(11, 30_001), given, chunk=chunk), expected)
    rest = None if given is None else given[20_000:]
    assert np.array_equal(kernel.perturb_rows(codes[20_000:], STREAM, 20_011, rest), expected[20_000:])
    assert np.array_equal(codes, original)


def test_draws_are_left_as_they_are_and_empty_batches_work():
    for channels, positions, _ in cases().values():
        kernel = Kernel(channels, positions)
        cells = np.zeros(1, np.int32) if len(channels) > 1 else None
        draws = STREAM.words(0, 1)
        kernel.perturb(np.array([positions[0][0]], np.uint8), draws, cells)
        assert np.array_equal(draws, STREAM.words(0, 1))
        none = kernel.perturb(np.zeros(0, np.uint8), draws[:0], None if cells is None else cells[:0])
        assert len(none) == 0
        assert len(kernel.perturb_rows(np.zeros(0, np.uint8), STREAM, 0, None if cells is None else cells[:0])) == 0


def test_thousands_of_cells_over_a_large_domain_need_no_dense_table():
    m, count = 15_000, 3000
    rng = np.random.default_rng(5)
    positions = [rng.choice(m, 8, replace=False) for _ in range(count)]
    channels = [Channel.of(range(8), rng.random(8), rng.random(8)) for _ in range(count)]
    assert _Pairs([np.asarray(p) for p in positions]).dense is None
    cells = rng.integers(0, count, 20_000)
    codes = np.array([positions[cell][k] for cell, k in zip(cells, rng.integers(0, 8, 20_000), strict=True)], np.uint16)
    out = Kernel(channels, positions).perturb(codes, STREAM.words(0, 20_000), cells)
    assert np.array_equal(out, reference(channels, positions, codes, STREAM.words(0, 20_000), cells))


def test_a_kernel_refuses_what_does_not_fit():
    channel = Channel.of(range(300), 0.5)
    with pytest.raises(InternalError, match="cannot hold"):
        Kernel([channel], [np.arange(300)]).perturb(np.zeros(1, np.uint8), STREAM.words(0, 1))
    with pytest.raises(InternalError, match="cell of each row"):
        Kernel([channel] * 2, [np.arange(300)] * 2).perturb(np.zeros(1, np.uint16), STREAM.words(0, 1))
    with pytest.raises(InternalError, match="one position"):
        Kernel([channel], [np.arange(299)])
    general = Channel.of("ab", [0.1, 0.2])
    kernel = Kernel([general, general], [[0, 1], [2, 3]])
    with pytest.raises(InternalError, match="does not have its value"):
        kernel.perturb(np.array([2], np.uint8), STREAM.words(0, 1), np.array([0]))
