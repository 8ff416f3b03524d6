"""Anatomy's groups are those of its greedy algorithm, however many rounds are taken at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deniable.core.errors import InternalError
from deniable.engines.randomness import Keystream, Secret
from deniable.rivals.anatomy import groups as grouping
from deniable.rivals.anatomy.estimate import AnatomyTables
from deniable.lab.anatomy import anatomy_groups, compositions

FALSE_ALARM = 1e-6


def stream(number: object = 0) -> Keystream:
    return Keystream(Secret.from_key(bytes(range(32))), "grouping test", str(number))


def check_greedy(counts: np.ndarray, groups: np.ndarray, l: int) -> np.ndarray:
    """Replay: each group must hold l values with the l largest remaining counts. Gives what remains."""
    left = counts.copy()
    for group in groups:
        assert len(set(group.tolist())) == l
        others = np.delete(left, group)
        assert left[group].min() >= max(int(others.max(initial=0)), 1)
        left[group] -= 1
    assert (left > 0).sum() < l
    return left


def eligible(counts: list[int], l: int) -> bool:
    return sum(counts) > 0 and max(counts) * l <= sum(counts)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 150), min_size=2, max_size=14), st.integers(2, 6), st.integers(0, 10))
def test_every_group_takes_the_most_frequent_values(counts, l, key):
    if not eligible(counts, l):
        return
    f = np.array(counts)
    groups, joined = compositions(f, l, stream(key))
    left = check_greedy(f, groups, l)
    assert left.max() <= 1
    assert sorted(joined[:, 1].tolist()) == np.flatnonzero(left).tolist()
    for group, value in joined.tolist():
        assert value not in groups[group]


@pytest.mark.parametrize(
    ("counts", "l"), [([900] * 8, 6), ([901] + [900] * 7, 6), ([700, 600, 500, *[433] * 3, *[432] * 5, 20, 3], 4)]
)
def test_blocks_side_by_side_are_greedy_too(counts, l, monkeypatch):
    f = np.array(counts)
    used = []
    inner = grouping._blocks
    monkeypatch.setattr(grouping, "_blocks", lambda *given: used.append(given[3]) or inner(*given))
    groups, _ = compositions(f, l, stream(1))
    check_greedy(f, groups, l)
    assert sum(used) > 50


def pairs_and_runs(f: np.ndarray, l: int, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """How often two values share a group, and share two groups in a row, over many keys; with sums of squares."""
    totals = np.zeros((2, 2))
    for key in range(keys):
        groups, _ = compositions(f, l, stream(key))
        member = np.zeros((len(groups), len(f)), dtype=bool)
        member[np.arange(len(groups))[:, None], groups] = True
        together = float((member[:, -1] & member[:, -2]).sum())
        again = float((member[1:, -1] & member[:-1, -1]).sum())
        totals += [[together, together**2], [again, again**2]]
    means = totals[:, 0] / keys
    return means, np.sqrt((totals[:, 1] / keys - means**2) / keys)


@pytest.mark.parametrize("counts", [[61] + [60] * 7, [100, *[50] * 3, *[49] * 4], [60] * 8])
def test_many_rounds_at_once_are_distributed_as_single_rounds(counts, monkeypatch):
    f, keys, l = np.array(counts), 300, 6 if len(set(counts)) < 3 else 4
    means, errors = pairs_and_runs(f, l, keys)

    def one_round(left, level, size, noise):
        order = np.lexsort((noise.take(len(left)), -left))
        return order[None, :size]

    monkeypatch.setattr(grouping, "_side_by_side", one_round)
    single, single_errors = pairs_and_runs(f, l, keys)
    z = np.abs(means - single) / np.maximum(np.hypot(errors, single_errors), 1e-12)
    assert z.max() < stats.norm.isf(FALSE_ALARM / 12)
    assert (np.hypot(errors, single_errors) < 0.02 * single).all()  # 5 % would be noticed, nearly always


def rows_of(counts: list[int], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts), dtype=np.uint16), counts))


def test_rows_are_dealt_to_groups_with_different_values():
    counts = [500, 450, 400, 300, 200, 111, 50, 7, 1]
    codes = rows_of(counts)
    cell = anatomy_groups(codes, 9, 4, stream())
    assert cell.min() == 0
    sizes = np.bincount(cell)
    assert sizes.min() == 4
    assert len(sizes) == sum(counts) // 4
    assert len(np.unique(cell * 9 + codes)) == len(codes)
    assert np.array_equal(cell, anatomy_groups(codes, 9, 4, stream()))
    assert not np.array_equal(cell, anatomy_groups(codes, 9, 4, stream("other")))


def test_suppressed_rows_have_no_group_and_are_chosen_at_random():
    codes = rows_of([90, 20, 20, 10])
    suppressed = np.array([65, 0, 0, 0])
    lost = [np.flatnonzero(anatomy_groups(codes, 4, 3, stream(key), suppressed) < 0) for key in range(60)]
    assert all(len(rows) == 65 and (codes[rows] == 0).all() for rows in lost)
    times = np.bincount(np.concatenate(lost), minlength=len(codes))[codes == 0]
    z = (times - 60 * 65 / 90) / math.sqrt(60 * 65 / 90 * 25 / 90)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 180)
    assert times.std() > 0
    with pytest.raises(InternalError, match="cannot be grouped"):
        anatomy_groups(codes, 4, 3, stream())


@pytest.mark.parametrize("place", [0, 1, 3])
def test_rows_are_left_out_of_whichever_value_stands_anywhere_in_the_domain(place):
    counts = [20, 20, 20, 20]
    counts[place] = 90
    codes, suppressed = rows_of(counts), np.zeros(4, np.int64)
    suppressed[place] = 60
    groups = anatomy_groups(codes, 4, 3, stream(), suppressed)
    assert (groups < 0).sum() == 60
    assert (codes[groups < 0] == place).all()
    pairs = groups[groups >= 0] * 4 + codes[groups >= 0]
    assert len(np.unique(pairs)) == len(pairs)


def test_ties_are_broken_at_random_and_not_by_neighbourhood():
    """All values equally frequent: any two share a group equally often."""
    f = np.full(20, 600)
    groups, _ = compositions(f, 5, stream())
    met = np.zeros((20, 20))
    for group in groups:
        met[np.ix_(group, group)] += 1
    off = met[~np.eye(20, dtype=bool)]
    expected = len(groups) * 5 * 4 / (20 * 19)
    assert np.abs(off - expected).max() < 6 * math.sqrt(expected)


def test_the_estimate_is_the_sum_over_groups():
    counts = [50, 45, 40, 30, 20, 11]
    codes = rows_of(counts)
    cell = anatomy_groups(codes, 6, 3, stream())
    tables = AnatomyTables.of_codes(codes, cell, 6)
    matching = np.random.default_rng(2).random((5, len(codes))) < 0.4
    found = tables.counts(matching)
    for question, rows in enumerate(matching):
        for value in range(6):
            expected = sum(
                (rows & (cell == g)).sum() * ((cell == g) & (codes == value)).sum() / (cell == g).sum()
                for g in range(cell.max() + 1)
            )
            assert found[question, value] == pytest.approx(expected)
    assert tables.counts(np.ones((1, len(codes)), dtype=bool))[0].tolist() == pytest.approx(counts)
