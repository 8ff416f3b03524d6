"""Intervals of small counts, and of what is picked out of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import deniable as dn
from deniable.estimation.asking import Options
from deniable.estimation.limits import Cumulants, limits

RELEASES, TOWNS = 12, 300


@pytest.fixture(scope="module")
def drawn() -> tuple[pa.Table, list[dn.Release]]:
    """300 towns of 40 rows, in which a rare value has 0 to 9 rows."""
    rng = np.random.default_rng(4)
    rare = np.repeat(np.arange(TOWNS) % 10, 40) > np.tile(np.arange(40), TOWNS)
    job = np.where(rare, "rare", rng.choice(list("abcd"), 40 * TOWNS))
    table = pa.table({"town": np.repeat(np.arange(TOWNS), 40), "job": job})
    options = {"sensitive": "job", "privacy": dn.Privacy("1/3", "9/10"), "mechanism": "uniform"}
    return table, [dn.publish(table, key=bytes([i]) * 32, **options) for i in range(RELEASES)]


def rare(release: dn.Release, **options: Any) -> pa.Table:
    return release.group_by("town", {"job": "rare"}, **options).sort_by("town")


def test_small_counts_are_covered_as_often_as_they_should(drawn: tuple[pa.Table, list[dn.Release]]) -> None:
    """3,600 intervals, +- 5 standard errors of 0.4 %: 93 to 97 of 100, for 0 to 4 rows and for 5 to 9."""
    truth = np.arange(TOWNS) % 10
    inside = []
    for release in drawn[1]:
        answer = rare(release)
        inside.append((answer["value_low"].to_numpy() <= truth) & (truth <= answer["value_high"].to_numpy()))
    for some in (truth < 5, truth >= 5):
        covered = np.mean(np.array(inside)[:, some])
        assert 0.925 < covered < 0.985, covered
    ones = np.mean(np.array(inside)[:, truth == 1])
    assert ones > 0.89, ones


def test_all_ways_to_ask_state_the_same_interval(drawn: tuple[pa.Table, list[dn.Release]]) -> None:
    release, where = drawn[1][0], {"town": 3, "job": "rare"}
    one = release.count(where)
    many = release.count_many([where])
    grouped = rare(release).to_pylist()[3]
    (row,) = release.sql("SELECT COUNT(*) AS n FROM release WHERE town = 3 AND job = 'rare'").to_pylist()
    for low, high in ((many.low[0], many.high[0]), (grouped["value_low"], grouped["value_high"])):
        assert (low, high) == pytest.approx((one.low, one.high))
    assert (row["n_low"], row["n_high"]) == pytest.approx((one.low, one.high))
    rest = release.count({"town": 3, "job": dn.not_("rare")})
    assert (40 - rest.high, 40 - rest.low) == pytest.approx((one.low, one.high)), "the others, mirrored"


def test_few_hits_have_the_tails_of_their_number() -> None:
    """Of 1,000 rows each shows a value with 1 % if it has another, and with 51 % if it has it."""
    rows, other, own = 1000.0, 0.01, 0.51
    spread = [other * (1 - other), own * (1 - own)]
    third = [part * (1 - 2 * chance) for part, chance in zip(spread, (other, own), strict=True)]
    scale = 1 / (own - other)
    known = Cumulants(
        *np.array(
            [
                [rows * spread[0] * scale**2],
                [(spread[1] - spread[0]) * scale**2],
                [rows * third[0] * scale**3],
                [(third[1] - third[0]) * scale**3],
            ]
        )
    )
    for hits in (11, 14, 22, 40):
        value = np.array([(hits - rows * other) * scale])
        low, high = limits(value, known.at(value)[0], np.zeros(1), np.full(1, rows), 1.96, known, whole=True)
        exact = []
        for truth in range(200):
            chances = np.convolve(
                stats.binom.pmf(range(1001), 1000 - truth, other), stats.binom.pmf(range(201), truth, own)
            )
            exact.append((chances[hits:].sum() - chances[hits] / 2, chances[: hits + 1].sum() - chances[hits] / 2))
        within = [truth for truth, tails in enumerate(exact) if min(tails) >= 0.025]
        assert abs(low[0] - within[0]) <= 1
        assert abs(high[0] - within[-1]) <= 1


def test_simultaneous_intervals_hold_together(drawn: tuple[pa.Table, list[dn.Release]]) -> None:
    truth = np.arange(TOWNS) % 10
    missed = {False: 0, True: 0}
    for release in drawn[1]:
        for together in missed:
            answer = rare(release, simultaneous=together)
            outside = (answer["value_low"].to_numpy() > truth) | (truth > answer["value_high"].to_numpy())
            missed[together] += bool(outside.any())
    assert missed[False] == RELEASES, "of 300 intervals some miss, every time"
    assert missed[True] <= 5


def test_z_grows_with_what_is_claimed() -> None:
    options = Options(simultaneous=True)
    assert options.z_of(1) == Options().z
    assert stats.norm.cdf(options.z_of(20)) * 2 - 1 == pytest.approx(0.95 ** (1 / 20))
    assert options.z_of(20) < stats.norm.ppf(1 - 0.025 / 20), "sharper than Bonferroni"
    assert Options().z_selected(5, 100) == pytest.approx(stats.norm.ppf(1 - 0.05 * 5 / 100 / 2))
    with pytest.raises(dn.DeniableError, match="selected"):
        Options(simultaneous="both")  # type: ignore[arg-type]


PICKED = (
    "SELECT town, COUNT(*) AS n FROM release WHERE job = 'rare' GROUP BY town HAVING n_low > 6 ORDER BY n DESC LIMIT 20"
)


def test_what_is_picked_by_its_estimates_says_so_or_is_adjusted(drawn: tuple[pa.Table, list[dn.Release]]) -> None:
    """Of the towns that are picked out by their bounds, plain intervals miss many, adjusted ones few."""
    held: dict[Any, list[bool]] = {False: [], True: [], "selected": []}
    for release in drawn[1]:
        for choice, inside in held.items():
            answer = release.sql(PICKED, simultaneous=choice)
            noted = "picked among 300" in str((answer.schema.metadata or {}).get(b"deniable note"))
            assert noted == (choice is False)
            inside += [row["n_low"] <= row["town"] % 10 <= row["n_high"] for row in answer.to_pylist()]
    shares = {choice: np.mean(inside) if inside else 1.0 for choice, inside in held.items()}
    assert shares[False] < 0.9, shares
    assert shares["selected"] > 0.93, shares
    assert len(held[True]) - sum(held[True]) <= 4, "one picked in a wrong release, now and then"
    plain = "SELECT town, COUNT(*) AS n FROM release WHERE job = 'rare' GROUP BY town ORDER BY town"
    assert drawn[1][0].sql(plain).schema.metadata is None
