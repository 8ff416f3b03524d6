"""Values that are alike are computed once: the same fractions as one by one, by brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core import exact
from deniable.core.channels import Channel
from deniable.core.exact import SCALE
from deniable.planning.posteriors import CellRows, Posteriors
from deniable_verify import sentence as recount

COINS = (0, 1, SCALE // 3, SCALE // 2, SCALE - 5)


@pytest.fixture(autouse=True)
def _always_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "FEW", 0)


@st.composite
def channels(draw: st.DrawFn) -> tuple[Channel, np.ndarray]:
    """Few different coins, replacements and counts, so that many values are alike."""
    m = draw(st.integers(2, 7))
    keep = np.array(draw(st.lists(st.sampled_from(COINS), min_size=m, max_size=m)), dtype=np.int64)
    shares = np.array(draw(st.lists(st.integers(0, 2), min_size=m, max_size=m)), dtype=np.int64)
    shares[draw(st.integers(0, m - 1))] += 1
    replace = shares * (SCALE // int(shares.sum()))
    replace[int(np.argmax(shares))] += SCALE - int(replace.sum())
    counts = np.array(draw(st.lists(st.integers(0, 3), min_size=m, max_size=m)), dtype=np.int64)
    return Channel(tuple(range(m)), keep, replace), counts


def chances(channel: Channel) -> list[list[int]]:
    """P[y][x] out of SCALE^2."""
    keep, replace = channel.keep.tolist(), channel.replace.tolist()
    return [
        [(keep[x] * SCALE if x == y else 0) + (SCALE - keep[x]) * replace[y] for x in range(channel.m)]
        for y in range(channel.m)
    ]


@given(channels())
def test_posteriors_are_those_of_every_view(made: tuple[Channel, np.ndarray]) -> None:
    channel, counts = made
    table = [[f * p for f, p in zip(counts.tolist(), row, strict=True)] for row in chances(channel)]
    seen = [sum(row) for row in table]
    m = channel.m
    same = [Fraction(table[x][x], seen[x]) if seen[x] else Fraction(0) for x in range(m)]
    other = [max([Fraction(table[y][x], seen[y]) for y in range(m) if y != x and seen[y]], default=0) for x in range(m)]
    surest = list(map(max, same, other))
    assert exact.surest(channel.keep, channel.replace, counts) == surest
    cell = {"values": range(m), "keep": channel.keep.tolist(), "replace": channel.replace.tolist()}
    assert recount.surest(cell, counts.tolist()) == surest
    if counts.sum():
        cell = CellRows(tuple(range(m)), channel, tuple(counts.tolist()))
        for belief in Posteriors([cell], published=False).beliefs:
            x = belief.position
            views = [Fraction(table[y][x], seen[y]) for y in range(m) if seen[y]]
            assert (belief.highest, belief.lowest) == (max(views), min(views))
            for view, posterior in ((belief.most_telling, max(views)), (belief.least_telling, min(views))):
                y = view[1]
                assert isinstance(y, int)
                assert Fraction(table[y][x], seen[y]) == posterior


@given(channels())
def test_amplifications_are_those_of_every_row(made: tuple[Channel, np.ndarray]) -> None:
    channel, _ = made
    rows = chances(channel)
    m = channel.m
    ratios = [None if min(row) == 0 < max(row) else Fraction(max(row), min(row)) for row in rows if max(row)]
    expected = None if None in ratios else max(Fraction(1), *ratios)
    assert exact.amplification(channel.keep, channel.replace) == expected
    for y, own in enumerate(exact.own_amplifications(channel.keep, channel.replace)):
        least = min(rows[y][k] for k in range(m) if k != y)
        assert own == (Fraction(rows[y][y], least) if least else None)
    if (channel.replace > 0).all():
        for x, against in enumerate(exact.downward_amplifications(channel.keep, channel.replace)):
            assert against == max(Fraction(row[k], row[x]) for row in rows for k in range(m) if k != x)


def test_a_million_values_are_a_few_fractions() -> None:
    alike = exact.distinct(np.arange(10**6) % 3, np.arange(10**6) % 2)
    assert len(alike.rows) == 6
    assert sum(alike.times) == 10**6
    assert [alike.rows[kind] for kind in alike.of[:4]] == [(0, 0), (1, 1), (2, 0), (0, 1)]


def test_pairs_that_stand_side_by_side_are_compared_once() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)
    assert exact.different_pairs([third, third, half, third], [half, half, half, None]) == [
        (third, half),
        (half, half),
        (third, None),
    ]
