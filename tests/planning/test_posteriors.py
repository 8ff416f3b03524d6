"""Posteriors of a release equal what counting every possibility gives, in fractions, and what simulation shows."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from deniable.core.channels import Channel
from deniable.core.exact import SCALE
from deniable.owner.findings import FINE, expected_rows
from deniable.planning.posteriors import CellRows, Posteriors, revised


def enumerated(cells: list[CellRows], published: bool) -> dict[tuple[int | None, int], dict[int, Fraction]]:
    """Every row, every coin, every replacement: Pr[value, view], then divided by Pr[view]."""
    joint: dict[tuple[int | None, int], dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for number, cell in enumerate(cells):
        for x, rows in zip(cell.positions, cell.rows, strict=True):
            coin = Fraction(int(cell.channel.keep[cell.positions.index(x)]), SCALE)
            for y, weight in zip(cell.positions, cell.channel.replace.tolist(), strict=True):
                chance = (1 - coin) * Fraction(weight, SCALE) + (coin if x == y else 0)
                joint[(number if published else None, y)][x] += rows * chance
    return {
        view: {x: weight / total for x, weight in found.items() if weight}
        for view, found in joint.items()
        if (total := sum(found.values()))
    }


def random_cells(rng: np.random.Generator, m: int, cells: int) -> list[CellRows]:
    made = []
    for _ in range(cells):
        size = int(rng.integers(2, m + 1))
        places = tuple(sorted(rng.choice(m, size, replace=False).tolist()))
        coins = np.where(rng.random(size) < 0.15, rng.integers(0, 2, size), rng.random(size))
        replacing = np.where(rng.random(size) < 0.15, 0, rng.random(size)) + 0.0
        replacing[0] += 0.1
        channel = Channel.of(places, coins, replacing)
        made.append(CellRows(places, channel, tuple(rng.integers(0, 6, size).tolist())))
    return made


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("cells", [1, 3])
def test_every_posterior_equals_enumeration(published: bool, cells: int) -> None:
    rng = np.random.default_rng(cells)
    for _ in range(60):
        made = random_cells(rng, 5, cells)
        if not sum(sum(cell.rows) for cell in made):
            continue
        posteriors = Posteriors(made, published=published)
        truth = enumerated(made, published)
        assert {view for view in posteriors.views() if posteriors.given(view[1], view[0])} == set(truth)
        for (cell, y), expected in truth.items():
            assert posteriors.given(y, cell) == expected
        for belief in posteriors.beliefs:
            seen = {view: found.get(belief.position, Fraction(0)) for view, found in truth.items()}
            assert belief.highest == max(seen.values()) == seen[belief.most_telling]
            assert belief.lowest == min(seen.values()) == seen[belief.least_telling]
        assert {belief.position for belief in posteriors.beliefs} == {x for x, n in posteriors.totals.items() if n}


def test_amplification_of_cells_counts_the_cell_as_evidence() -> None:
    channel = Channel.uniform("ab", gamma=Fraction(3))
    cells = [CellRows((0, 1), channel, (9, 1)), CellRows((0, 1), channel, (1, 9))]
    inside = channel.exact_gamma
    assert inside is not None
    assert Posteriors(cells, published=True).amplification == 9 * inside
    apart = [CellRows((0, 1), channel, (9, 1)), CellRows((0, 2), channel, (1, 9))]
    assert Posteriors(apart, published=True).amplification is None


def test_the_worked_example_of_the_thesis() -> None:
    # THESIS Ex. 1: 1001 diseases, prior 1 %, diagonal 0.2: posterior 71.6 %.
    rest = 1000
    coin = (0.2 - 1 / 1001) / (1 - 1 / 1001)  # p + (1-p)/m = 0.2
    counts = (1000, *([99] * rest))
    cell = CellRows(tuple(range(1001)), Channel.of(range(1001), coin), counts)
    belief = Posteriors([cell], published=False).beliefs[0]
    assert float(belief.highest) == pytest.approx(0.716, abs=0.002)


def test_a_stronger_prior_follows_the_same_likelihood_ratio() -> None:
    channel = Channel.uniform("abc", gamma=Fraction(4, 3))
    belief = Posteriors([CellRows((0, 1, 2), channel, (1, 2, 2))], published=False).beliefs[0]
    # a at 1/2, b and c at 1/4 each: the same as a table with rows 2, 1, 1.
    stronger = Posteriors([CellRows((0, 1, 2), channel, (2, 1, 1))], published=False).beliefs[0]
    assert belief.at_prior(Fraction(1, 2)) == stronger.highest
    assert belief.at_prior(belief.prior) == belief.highest
    assert revised(Fraction(1, 3), Fraction(1, 10), Fraction(1)) == 1


def test_of_the_only_value_nobody_learns_anything() -> None:
    for prior in (Fraction(1, 3), Fraction(1)):
        assert revised(prior, Fraction(1), Fraction(1)) == prior


def test_a_cell_is_evidence_before_any_value_is_seen() -> None:
    channel = Channel.uniform("ab", gamma=Fraction(3))
    cells = [CellRows((0, 1), channel, (5, 5)), CellRows((1, 2), channel, (60, 30))]
    rare = Posteriors(cells, published=True).beliefs[0]
    assert rare.prior == Fraction(5, 100)
    assert rare.cell_only == Fraction(1, 2)
    assert rare.lowest == 0, "the other cell rules it out"


def test_posteriors_equal_simulation_on_a_large_table() -> None:
    rng = np.random.default_rng(11)
    m, n = 6, 400_000
    counts = np.array([40, 25, 15, 10, 6, 4]) * n // 100
    channel = Channel.of(range(m), rng.random(m) * 0.6, rng.random(m) + 0.2)
    posteriors = Posteriors([CellRows(tuple(range(m)), channel, tuple(counts.tolist()))], published=False)
    original = np.repeat(np.arange(m), counts)
    kept = rng.random(n) < channel.coins[original]
    published = np.where(kept, original, rng.choice(m, n, p=channel.replacing))
    for y in range(m):
        among = original[published == y]
        for x, posterior in posteriors.given(y).items():
            p = float(posterior)
            # 36 comparisons at 6 standard deviations: false alarm below 1e-7; a 5 % error in the largest is seen.
            assert abs((among == x).mean() - p) < 6 * np.sqrt(p * (1 - p) / len(among))


def test_expected_rows_of_cells_come_close_to_the_dealt_rows() -> None:
    rng = np.random.default_rng(5)
    truth = [np.array([30_000, 20_000, 0, 10_000]), np.array([0, 5_000, 30_000, 15_000])]
    places = [np.array([0, 1, 3]), np.array([1, 2, 3])]
    channels = [Channel.uniform(place.tolist(), gamma=Fraction(6)) for place in places]
    shown = []
    for rows, place, channel in zip(truth, places, channels, strict=True):
        published = sum(rng.multinomial(rows[x], channel.matrix()[:, i]) for i, x in enumerate(place.tolist()))
        full = np.zeros(4, dtype=np.int64)
        full[place] = published
        shown.append(full)
    found = expected_rows(truth[0] + truth[1], channels, places, shown)
    for rows, place, estimate in zip(truth, places, found, strict=True):
        # Fixed draw; the standard deviation of a reconstructed count is about 250 rows here.
        assert np.abs(estimate / FINE - rows[place]).max() < 1500
    assert sum(int(e.sum()) for e in found) == pytest.approx(110_000 * FINE, rel=1e-9)


def test_expected_rows_of_hidden_cells_hold_the_histogram() -> None:
    places = [np.array([0, 1]), np.array([1, 2])]
    channels = [Channel.of(place.tolist(), 0.0) for place in places]
    found = expected_rows(np.array([10, 20, 10]), channels, places, None)
    assert [rows.tolist() for rows in found] == [[10 * FINE, 10 * FINE], [10 * FINE, 10 * FINE]]
