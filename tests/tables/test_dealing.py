"""Rows are dealt to cells exactly as planned, at random, and whatever the batches are."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deniable.core.channels import Channel
from deniable.core.errors import TableError
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, PlannedPart
from deniable.tables import worker as dealing
from deniable.tables.keys import Keystream, Secret
from deniable.tables.worker import EXPLICIT, Dealer, DrawnCells, require_all_dealt

FALSE_ALARM = 1e-6


def part_of(*cells: dict[int, int], domain: int | None = None) -> PlannedPart:
    """A part over the values 0, 1, ... whose cells take these rows."""
    size = domain or max(max(cell) for cell in cells) + 1
    histogram = Histogram(tuple(range(size)), np.array([sum(cell.get(v, 0) for cell in cells) for v in range(size)]))
    channels = tuple(Cell(Histogram.of(rows), Channel.of(list(rows), 0.5)) for rows in cells)
    return PlannedPart(histogram=histogram, cells=channels, cells_published=True)


def stream(number: int = 0) -> Keystream:
    return Keystream(Secret.from_key(bytes(range(32))), "dealing test", str(number))


def dealt(part: PlannedPart, codes: np.ndarray, batch: int = 10**9, key: int = 0) -> np.ndarray:
    dealer = Dealer(part, stream(key))
    seen, cells = np.zeros_like(dealer.planned), []
    for first in range(0, len(codes), batch):
        cells.append(dealer.deal(codes[first : first + batch], seen))
        seen = seen + dealer.counts(codes[first : first + batch])
    require_all_dealt(seen, dealer.planned)
    return np.concatenate(cells)


def rows_of(part: PlannedPart, order: int | None = 1) -> np.ndarray:
    codes = np.repeat(np.arange(part.values.m, dtype=np.uint16), part.values.counts)
    return codes if order is None else np.random.default_rng(order).permutation(codes)


MIXED = part_of(
    {0: 3, 1: 20_000, 2: 7, 4: 2000},
    {1: 30_001, 2: 6, 5: 1, 6: 4097},
    {0: 4, 1: 1, 4: 2096, 6: 1, 7: 5000},
    {1: 5, 4: 1, 6: 70_000},
    domain=9,
)


@pytest.mark.parametrize("order", [None, 1, 2])
def test_cells_get_exactly_the_planned_rows(order):
    codes = rows_of(MIXED, order)
    cells = dealt(MIXED, codes, batch=10_000)
    for index, cell in enumerate(MIXED.cells):
        taken = np.bincount(codes[cells == index], minlength=9)
        assert taken.tolist() == [cell.rows.get(value, 0) for value in range(9)]


@pytest.mark.parametrize("batch", [997, 8192, 60_000])
def test_batches_do_not_matter(batch):
    codes = rows_of(MIXED)
    assert np.array_equal(dealt(MIXED, codes, batch), dealt(MIXED, codes))
    few = part_of({0: 3, 1: 9}, {0: 5, 1: 2}, {1: 1, 0: 1})
    assert np.array_equal(dealt(few, rows_of(few), 1), dealt(few, rows_of(few)))


@settings(max_examples=150, deadline=None)
@given(
    cells=st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 60), min_size=1), min_size=2, max_size=5),
    explicit=st.sampled_from([EXPLICIT, 10]),
    block=st.sampled_from([dealing._BLOCK_ROWS, 50]),
    data=st.data(),
)
def test_batches_are_dealt_in_any_order_and_as_often_as_one_likes(cells, explicit, block, data):
    """A batch's cells follow from its rows and how many came before, whatever the dealer has dealt already."""
    part = part_of(*cells, domain=6)
    codes = rows_of(part, data.draw(st.integers(0, 2**32)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(codes)), max_size=5)))
    with mock.patch.object(dealing, "EXPLICIT", explicit), mock.patch.object(dealing, "_BLOCK_ROWS", block):
        whole = Dealer(part, stream()).deal(codes, np.zeros(6, np.int64))
        dealer = Dealer(part, stream())
        for number in [*data.draw(st.permutations(range(len(cuts) + 1))), 0]:
            rows = slice([0, *cuts][number], [*cuts, len(codes)][number])
            seen = np.bincount(codes[: rows.start], minlength=6)
            before = seen.copy()
            assert np.array_equal(dealer.deal(codes[rows], seen), whole[rows])
            assert np.array_equal(seen, before)


def test_another_key_deals_otherwise_and_the_same_key_alike():
    codes = rows_of(MIXED)
    first = dealt(MIXED, codes)
    assert np.array_equal(first, dealt(MIXED, codes))
    assert not np.array_equal(first, dealt(MIXED, codes, key=1))


def test_the_cell_of_a_row_depends_on_its_rank_alone():
    """Rows of other values between them change nothing: the k-th row of a value gets the same cell in any order."""
    one, other = rows_of(MIXED, 1), rows_of(MIXED, 2)
    first, second = dealt(MIXED, one), dealt(MIXED, other)
    for value in range(9):
        assert np.array_equal(first[one == value], second[other == value])


def places(rows: int, number: int) -> np.ndarray:
    """The permutation of 0..rows-1 itself: a plan whose cells take one row each."""
    part = part_of(*[{0: 1}] * rows)
    return dealt(part, np.zeros(rows, np.uint8), key=number)


def test_every_permutation_of_a_few_rows_is_equally_likely():
    codes = np.repeat(np.arange(20_000, dtype=np.uint16), 4)
    # 20,000 values of four rows, dealt to four cells: each value shows one permutation of 24
    part = part_of(*[dict.fromkeys(range(20_000), 1)] * 4)
    cells = dealt(part, codes).reshape(-1, 4)
    seen = np.bincount(cells @ np.array([64, 16, 4, 1]), minlength=256)
    observed = seen[seen > 0]
    assert len(observed) == 24
    assert stats.chisquare(observed).pvalue > FALSE_ALARM


@pytest.mark.parametrize("rows", [EXPLICIT, EXPLICIT + 1, 5000])
def test_large_permutations_are_permutations(rows):
    assert np.array_equal(np.sort(places(rows, 0)), np.arange(rows))


@pytest.mark.parametrize("rows", [3000, 6000])  # a list, a Feistel network
def test_places_are_uniform_and_neighbours_independent(rows):
    values = 100
    half = part_of(*[dict.fromkeys(range(values), rows // 8)] * 8)
    codes = np.tile(np.arange(values, dtype=np.uint8), rows)
    cells = dealt(half, codes).reshape(rows, values).T
    # the cell at each stretch of ranks: 8 stretches x 8 cells, margins fixed by the plan
    table = np.zeros((8, 8))
    np.add.at(table, (np.repeat(np.arange(8), rows // 8)[None, :].repeat(values, 0), cells), 1)
    assert uniform_p_value(table, 49) > FALSE_ALARM
    # cells of rows that follow each other, and of the same rank of neighbouring values
    for first, second in ((cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:]), (cells[:, :-64], cells[:, 64:])):
        pairs = np.zeros((8, 8))
        np.add.at(pairs, (first, second), 1)
        assert uniform_p_value(pairs, 49) > FALSE_ALARM
    # power: the same test sees 5 % of the rows sent to the cell of their neighbour
    broken = cells.copy()
    broken[:, 1:] = np.where(np.random.default_rng(1).random((values, rows - 1)) < 0.05, cells[:, :-1], cells[:, 1:])
    pairs = np.zeros((8, 8))
    np.add.at(pairs, (broken[:, :-1], broken[:, 1:]), 1)
    assert uniform_p_value(pairs, 49) < FALSE_ALARM


def uniform_p_value(table: np.ndarray, freedom: int) -> float:
    expected = table.sum() / table.size
    return float(stats.chi2.sf(((table - expected) ** 2 / expected).sum(), freedom))


def test_first_row_of_a_feistel_network_lands_anywhere():
    """Over many keys, the place of ranks 0, 1 and f - 1 is uniform over ten stretches."""
    rows = 5000
    part = part_of(*[{0: 500}] * 10)
    codes = np.zeros(rows, np.uint8)
    found = np.array([dealt(part, codes, key=key)[[0, 1, rows - 1]] for key in range(600)])
    for rank in range(3):
        assert stats.chisquare(np.bincount(found[:, rank], minlength=10)).pvalue > FALSE_ALARM
    assert stats.chi2.sf(_pair_statistic(found[:, 0], found[:, 1]), 99) > FALSE_ALARM


def _pair_statistic(first: np.ndarray, second: np.ndarray) -> float:
    table = np.zeros((10, 10))
    np.add.at(table, (first, second), 1)
    expected = len(first) / 100
    return float(((table - expected) ** 2 / expected).sum())


def test_one_cell_takes_everything_and_values_without_rows_do_no_harm():
    part = part_of({0: 5, 1: 0, 2: 3}, domain=4)
    assert dealt(part, rows_of(part)).tolist() == [0] * 8


@pytest.mark.parametrize("change", ["more of a value", "fewer", "a new value", "a value without rows"])
def test_a_table_that_changed_is_noticed(change):
    codes = rows_of(MIXED)
    changed = {
        "more of a value": np.append(codes, 1),
        "fewer": codes[:-1],
        "a new value": np.append(codes, 100),
        "a value without rows": np.append(codes, 8),
    }[change]
    with pytest.raises(TableError, match="changed while it was being read"):
        dealt(MIXED, changed.astype(np.uint16), batch=50_000)


def test_thousands_of_cells_and_values_are_dealt():
    rng = np.random.default_rng(8)
    cells = [dict.fromkeys(rng.choice(15_000, 10, replace=False).tolist(), 3) for _ in range(3000)]
    part = part_of(*cells, domain=15_000)
    codes = rows_of(part)
    found = dealt(part, codes, batch=20_000)
    pairs = np.unique(np.stack([found, codes]), axis=1, return_counts=True)
    assert pairs[0].shape[1] == 30_000
    assert (pairs[1] == 3).all()


def test_rows_that_draw_their_own_cells_do_so_in_the_planned_proportions():
    """Words at equal distances meet every cell as often as its share of the value's rows says, to one word at each end:
    what is promised of a cell rests on the frequencies in it."""
    part = part_of({0: 3, 1: 1, 3: 7}, {0: 1, 1: 2, 3: 90}, {1: 5, 3: 903}, domain=4)
    words = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    for code, rows in enumerate(
        [(3, 1, 0), (1, 2, 5), (1, 0, 0), (7, 90, 903)]
    ):  # nobody holds value 2: any cell will do
        cells = DrawnCells(part).cells(np.full(len(words), code), words)
        drawn = np.bincount(cells, minlength=3) / len(words)
        assert np.abs(drawn - np.array(rows) / sum(rows)).max() <= 2 / len(words)
