"""Counting by key in bounded memory: the same counts whatever is held, and nothing left in the temporary folder."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.tables.counting import Tally, pair_keys, spread

BATCHES = st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=12)


@given(BATCHES, st.sampled_from([2, 7, 50, 10**6]))
def test_every_key_is_counted_once_with_its_least_and_its_greatest_number(batches, held):
    tally = Tally({"rows": "u4", "low": "i4", "high": "i4"}, held)
    rows, numbers = Counter(), {}
    for place, batch in enumerate(batches):
        keys = spread(np.array(batch, np.uint64))
        tally.add(keys, rows=1, low=np.arange(len(batch)) - place, high=np.arange(len(batch)) - place)
        rows.update(keys.tolist())
        for number, key in enumerate(keys.tolist()):
            numbers.setdefault(key, []).append(number - place)
    for _ in range(2):  # it can be read again
        records = [one for records in tally.ranges() for one in records.tolist()]
        assert [key for key, *_ in records] == sorted(rows)
        assert {key: count for key, count, _, _ in records} == rows
        assert {key: (low, high) for key, _, low, high in records} == {
            key: (min(own), max(own)) for key, own in numbers.items()
        }


def test_no_more_is_held_than_allowed_and_no_file_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tally = Tally({"rows": "u4"}, held=1000)
    words = np.arange(50_000, dtype=np.uint64)
    for start in range(0, len(words), 500):
        tally.add(spread(words[start : start + 500]), rows=1)
    assert list(tmp_path.iterdir()) == []
    ranges = [records["key"] for records in tally.ranges()]
    assert max(map(len, ranges)) <= 1000
    assert np.array_equal(np.concatenate(ranges), np.sort(spread(words)))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_pairs_of_codes_have_keys_of_their_own_and_those_of_one_stand_together(codes, second):
    first = np.array(sorted(set(codes)), np.int64)
    keys = pair_keys(np.repeat(first, 2), np.tile([second, second ^ 1], len(first)))
    assert len(np.unique(keys)) == 2 * len(first)
    assert len(np.unique(keys >> np.uint64(32))) == len(first)
    assert np.array_equal(keys[::2] & np.uint64(2**32 - 1), np.full(len(first), second, np.uint64))


def test_spread_is_one_to_one_and_even() -> None:
    words = spread(np.arange(2**20, dtype=np.uint64))
    assert len(np.unique(words)) == 2**20
    in_ranges = np.bincount((words >> np.uint64(54)).astype(np.int64), minlength=1024)
    assert abs(in_ranges - 1024).max() < 6.5 * 32  # six and a half standard deviations of a binomial count
