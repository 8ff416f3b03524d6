"""Anatomy: what it leaves out and bounds; its groups are those of the greedy algorithm, many rounds at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deniable.core.errors import InternalError, OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab import Anatomy
from deniable.lab import anatomy as grouping
from deniable.lab.anatomy import AnatomyMoments, AnatomyTables, anatomy_groups, compositions
from deniable.planning.pools import CodedTable, sql_pool
from deniable.planning.prediction import BySelectivity
from deniable.tables.keys import Keystream, Secret

FALSE_ALARM = 1e-6
COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))


def by_hand(counts: list[int], l: int) -> list[int]:
    """Suppress rows of the most frequent value, one at a time, until no value has more than 1/l of the rows."""
    left = list(counts)
    while sum(left) and max(left) * l > sum(left):
        left[left.index(max(left))] -= 1
    return [f - g for f, g in zip(counts, left, strict=True)]


@pytest.mark.parametrize(
    "counts", [[50, 3, 3, 3], [50, 40, 3, 3, 3, 2], [10, 10, 10], [9, 9, 1, 1, 1], [100, 60, 30, 20, 10, 7, 3, 3]]
)
@pytest.mark.parametrize("l", [2, 3])
def test_anatomy_suppresses_rows_of_the_most_frequent_values_only_as_needed(counts, l):
    found = Anatomy(l=l).suppressed(Histogram(tuple(range(len(counts))), np.array(counts)))
    assert found.sum() == sum(by_hand(counts, l))
    assert sorted(np.array(counts) - found) == sorted(np.array(counts) - by_hand(counts, l))


def test_anatomy_refuses_what_it_cannot_group():
    with pytest.raises(OptionError, match="l = 1"):
        Anatomy(l=1)
    with pytest.raises(RequirementError, match="3 different values"):
        Anatomy(l=4).suppressed(Histogram.of({"a": 5, "b": 5, "c": 5, "d": 0}))
    with pytest.raises(TableError, match="no rows"):
        Anatomy(l=4).suppressed(Histogram.of({"a": 0, "b": 0}))


def test_anatomy_states_its_guarantee_and_checks_a_requirement():
    guarantee = Anatomy(l=3).guarantee(COUNTS, Privacy(rho2="1/3"))
    assert guarantee.worst == Fraction(1, 3)
    assert guarantee.gamma is None
    with pytest.raises(RequirementError, match="l=6"):
        Anatomy(l=3).guarantee(COUNTS, Privacy(rho2="1/6"))
    with pytest.raises(RequirementError, match="any-prior"):
        Anatomy(l=3).guarantee(COUNTS, Privacy(rho1="1/9", rho2="1/3", adversary="any-prior"))


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


def test_the_moments_of_anatomy_are_those_of_brute_force() -> None:
    """Shuffling who matches within each value many times gives the predicted mean and variance of the answer."""
    rng = np.random.default_rng(5)
    values = np.repeat(np.arange(6), [80, 70, 60, 50, 40, 30])
    sex = np.where(rng.random(len(values)) < 0.2 + 0.1 * values, "F", "M")
    table = CodedTable.of(pa.table({"sex": sex, "value": values}), "value")
    pool = sql_pool(table, "SELECT COUNT(*) FROM release WHERE sex = 'F' AND value IN (0, 3)")
    draws = Keystream(Secret.from_key(bytes(32)), "prediction")
    means, variances = AnatomyMoments(Anatomy(3), draws).moments(pool)
    bias, variance = means[0, 0], variances[0, 0]
    q = pool.by_value / table.histogram.counts
    groups = anatomy_groups(table.codes, 6, 3, draws.subkey("groups"), np.zeros(6, np.int64))
    tables = AnatomyTables.of_codes(table.codes, groups, 6)
    number = 20_000
    match = rng.random((number, len(values))) < q[0][table.codes]  # each row matches on its own
    inside = np.isin(table.codes, [0, 3])
    off = tables.counts(match)[:, [0, 3]].sum(1) - (match & inside).sum(1)
    assert off.mean() == pytest.approx(bias, abs=5 * math.sqrt(variance / number))
    assert off.var() == pytest.approx(variance, rel=0.05)  # five standard errors of a variance over 20,000 draws


def test_by_selectivity_each_group_with_the_value_is_off_by_one_row() -> None:
    """One value of a tenth, asked about half of its rows: Var = f q (1-q) (1 - 1/l) = 250 * 3/4."""
    histogram = Histogram.of({"x": 1000, **{f"other {number}": 100 for number in range(90)}})
    moments = AnatomyMoments(Anatomy(4), Keystream(Secret.from_key(bytes(32)), "prediction"))
    (error,) = BySelectivity(histogram, (0.05,)).errors_of(moments)
    assert error == pytest.approx(math.sqrt(2 / math.pi * 187.5) / 500)
