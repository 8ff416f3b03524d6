"""Attackers on learned releases: who compares neighbours, who knows all other rows, who lists all outputs, who watches
what publishing reads, and who waits for a rare value to be listed.

What they compute is written here, from the files or the published tables alone. The only thing of the package that is
touched is what a test breaks on purpose, to see that the attacker would notice.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse, stats

import deniable as dn
from deniable.learned import ledger as ledgers
from deniable.learned import measuring
from deniable.learned.levels import Crossed
from deniable.mechanisms import Synthetic
from deniable.tables.dataset import LocalDataset
from deniable.tables.keys import Keystream, Secret

EPSILON = 1.0
FALSE_ALARM = 1e-7
GROUPS, ROWS = 400, 160


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


# -- Neighbours, many at a time: the person of a group has "a" (even groups) or "b" (odd ones) -------------------------


def neighbours() -> pa.Table:
    group = np.repeat(np.arange(GROUPS), ROWS)
    value = np.tile(np.array(["c", "a", "b", "c"])[np.arange(ROWS) % 4], GROUPS)
    value[::ROWS] = np.where(np.arange(GROUPS) % 2 == 0, "a", "b")
    return pa.table({"g": group.astype(str), "ill": value})


def seen(runs: int) -> tuple[Any, Any]:
    """How often a group's noisy counts speak for "a" the most that they can, where its person has "a", and "b"."""
    table, often, at_all = neighbours(), np.zeros(2), np.zeros(2)
    for run in range(runs):
        release = dn.publish(
            table,
            sensitive="ill",
            mechanism=Synthetic(tables=(("g",),)),
            privacy=dn.Privacy(epsilon=EPSILON),
            domain=["a", "b", "c"],
            key=key(run),
            shuffle=False,
        )
        learned = release.manifest.parts[0].learned
        (measured,) = learned.measured
        group = np.array([int(mark) for mark in learned.codings[0].marks])
        counts = measured.counts[measured.places[: len(group)]]
        says = (counts[:, 0] > ROWS // 4) & (counts[:, 1] <= ROWS // 4)
        for side in (0, 1):
            often[side] += says[group % 2 == side].sum()
            at_all[side] += (group % 2 == side).sum()
    return often, at_all


def bounds(runs: int) -> tuple[float, float]:
    """Epsilon is above the first and, for this event, below the second, but for a false alarm."""
    (a, b), (of_a, of_b) = seen(runs)
    low = [stats.beta.ppf(FALSE_ALARM, k, n - k + 1) for k, n in ((a, of_a), (b, of_b))]
    high = [stats.beta.isf(FALSE_ALARM, k + 1, n - k) for k, n in ((a, of_a), (b, of_b))]
    return math.log(low[0] / high[1]), math.log(high[0] / low[1])


def test_neighbours_are_told_apart_as_well_as_promised_and_no_better():
    low, high = bounds(30)
    assert low < EPSILON
    assert high > 0.95 * EPSILON
    assert low > 0.7 * EPSILON


@pytest.mark.long
def test_epsilon_from_a_hundred_thousand_runs_is_below_what_is_promised():
    low, high = bounds(500)
    assert 0.9 * EPSILON < low < EPSILON
    assert high > EPSILON


@pytest.mark.long
def test_noise_that_is_a_tenth_too_small_is_noticed(monkeypatch):
    monkeypatch.setattr(ledgers, "noisy", lambda source, counts, cost: measuring.noisy(source, counts, cost * 11 / 10))
    low, _ = bounds(500)
    assert low > EPSILON


# -- Who knows all other rows ------------------------------------------------------------------------------------------


def log_likelihoods(release: Any, table: pa.Table, row: int) -> Any:
    """Log Pr[noisy tables | the person has v] for every value v, by an attacker who knows every other row."""
    part = release.manifest.parts[0]
    learned, domain = part.learned, part.domain
    values = table["ill"].to_pylist()
    levels = []
    for coding in learned.codings:
        mark = {one: place for place, one in enumerate(coding.marks)}
        levels.append([mark.get(one, len(mark)) for one in table[coding.column].to_pylist()])
    sizes = [len(coding.marks) + 1 + coding.missing for coding in learned.codings]
    found = np.zeros(len(domain))
    for one in learned.measured:
        place = np.zeros(table.num_rows, dtype=int)
        for column in one.columns:
            place = place * sizes[column] + np.array(levels[column])
        level = one.places[place]
        assert (level >= 0).all()
        exact = np.zeros(one.counts.shape, dtype=int)
        for number in range(table.num_rows):
            if number != row:
                exact[level[number], domain.index(values[number])] += 1
        for number in range(len(domain)):
            exact[level[row], number] += 1
            found[number] -= float(one.epsilon / 2) * np.abs(one.counts - exact).sum()
            exact[level[row], number] -= 1
    return found


def test_who_knows_all_other_rows_learns_no_more_than_epsilon():
    rng = np.random.default_rng(5)
    n = 90
    table = pa.table(
        {
            "sex": np.array(["F", "M"])[rng.integers(0, 2, n)],
            "town": np.array(["A", "B", "C"])[rng.integers(0, 3, n)],
            "ill": np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)],
        }
    )
    spreads = []
    for run in range(60):
        release = dn.publish(
            table,
            sensitive="ill",
            mechanism=Synthetic(tables=(("sex",), ("town",), ("sex", "town"))),
            privacy=dn.Privacy(epsilon=EPSILON),
            domain=["a", "b", "c", "d"],
            key=key(run),
            shuffle=False,
        )
        whole = release.manifest.parts[0].learned.epsilon
        assert whole <= Fraction(EPSILON)
        told = log_likelihoods(release, table, row=run)
        spreads.append(told.max() - told.min())
        assert spreads[-1] <= float(whole) + 1e-9
    assert max(spreads) > 0.7 * EPSILON  # the attacker sees what there is to see


# -- Every output of every look, for tables of two people --------------------------------------------------------------


class Given:
    """Noise that is given, and how likely it is; what lies beyond an edge is heaped on it."""

    def __init__(self, edge: int) -> None:
        self.edge, self.noise, self.chance = edge, (), 1.0

    def draw(self, source: Any, size: int, epsilon: Fraction, digit: int = 64) -> Any:
        assert size == len(self.noise)
        a = math.exp(-float(epsilon))
        for k in self.noise:
            self.chance *= a ** abs(k) / (1 + a) * (1 if abs(k) == self.edge else 1 - a)
        return np.array(self.noise)


def outputs(monkeypatch: Any, look: Any, values: tuple[int, ...], size: int, edge: int) -> dict[Any, float]:
    """Pr[R | T] of what a look at two people's values tells, all noise enumerated."""
    found: dict[Any, float] = {}
    given = Given(edge)
    for module in (measuring, ledgers):
        monkeypatch.setattr(module, "discrete_laplace", given.draw)
    for noise in itertools.product(range(-edge, edge + 1), repeat=size):
        given.noise, given.chance = noise, 1.0
        told = look(ledgers.Ledger(Keystream(Secret.from_key(bytes(32)), "enumerated")), values)
        found[told] = found.get(told, 0.0) + given.chance
    assert math.isclose(sum(found.values()), 1.0)
    return found


COST, DELTA = Fraction(3, 2), Fraction(1, 20)


def counts_of(values: tuple[int, ...]) -> Any:
    return np.bincount(values, minlength=2)


def table_look(ledger: Any, values: tuple[int, ...]) -> Any:
    """Counts of two values at two levels, a person in each; and how far noise moved them at the most."""
    counts = np.eye(2, dtype=np.int64)[list(values)]
    crossed = Crossed(np.arange(2, dtype=np.uint64), np.zeros((2, 1), np.int64), sparse.csr_array(counts))
    told = ledger.table(crossed, measuring.Levels("g", np.arange(2), 2), COST)
    return int(np.abs(told - counts).max()), tuple(told.ravel().tolist())


def largest_look(ledger: Any, values: tuple[int, ...]) -> Any:
    return ledger.largest(counts_of(values), COST)


def listed_look(ledger: Any, values: tuple[int, ...]) -> Any:
    """Values that nobody has are not there to be listed."""
    known = np.unique(values)
    return tuple(known[ledger.listed("ill", counts_of(values)[known], COST, DELTA)].tolist())


LOOKS = {"table": (table_look, 4, 3), "largest": (largest_look, 1, 40), "listed": (listed_look, 0, 12)}


def excess(monkeypatch: Any, name: str) -> tuple[float, float]:
    """For neighbours, both ways: the largest Pr[R | T] / Pr[R | T'], and the sum of Pr[R | T] - e^cost Pr[R | T']
    where that is above 0. What noise reaches only from beyond an edge is no output."""
    look, size, edge = LOOKS[name]
    tables = list(itertools.product((0, 1), repeat=2))
    told = {values: outputs(monkeypatch, look, values, size or len(set(values)), edge) for values in tables}
    if name == "table":
        told = {values: {r: p for (far, r), p in found.items() if far < edge} for values, found in told.items()}
    worst, beyond = 0.0, 0.0
    for here, there in itertools.permutations(tables, 2):
        if sum(a != b for a, b in zip(here, there, strict=True)) != 1:
            continue
        both = [r for r in told[here] if r in told[there] and (name != "largest" or -30 < r < 30)]
        worst = max(worst, *(told[here][r] / told[there][r] for r in both))
        beyond = max(beyond, sum(max(p - math.exp(COST) * told[there].get(r, 0.0), 0.0) for r, p in told[here].items()))
    return worst, beyond


@pytest.mark.parametrize("name", ["table", "largest"])
def test_every_output_of_a_look_is_within_its_cost_and_some_reach_it(monkeypatch, name):
    worst, _ = excess(monkeypatch, name)
    assert worst <= math.exp(COST) * (1 + 1e-9)
    assert worst > 0.999 * math.exp(COST)


@pytest.mark.parametrize("broken", [False, True])
def test_every_list_is_within_its_cost_but_for_delta(monkeypatch, broken):
    """Broken by a threshold that is one row too low."""
    least = measuring.least_listed(COST / 2, DELTA) - broken
    monkeypatch.setattr(ledgers, "least_listed", lambda epsilon, delta: least)
    _, beyond = excess(monkeypatch, "listed")
    assert (beyond > float(DELTA)) is broken
    assert beyond > float(DELTA) / 4


@pytest.mark.parametrize("name", ["table", "largest"])
def test_a_look_whose_noise_is_a_tenth_too_small_is_seen_in_its_outputs(monkeypatch, name):
    """Broken where the ledger asks for noise, of each look."""
    honest = {"table": ledgers.Ledger.table, "largest": ledgers.Ledger.largest}[name]
    monkeypatch.setattr(ledgers.Ledger, name, lambda self, *told: honest(self, *told[:-1], told[-1] * 11 / 10))
    worst, _ = excess(monkeypatch, name)
    assert worst > 1.05 * math.exp(COST)


# -- Nothing but the ledger tells of values ----------------------------------------------------------------------------


@pytest.mark.parametrize("listing", ["declared", "threshold", "bins", "quantiles"])
def test_with_the_same_noisy_numbers_other_values_publish_the_same(monkeypatch, listing):
    """Whatever publishing does beside asking the ledger does not depend on the values."""
    table = neighbours().slice(0, 40 * ROWS)
    values = np.random.default_rng(1).permutation(table["ill"].to_pylist())
    if listing != "threshold":  # the list of values is told by its own noise, which is not fixed here
        values[::3] = "a"
    other = table.set_column(1, "ill", pa.array(values))
    monkeypatch.setattr(ledgers.Ledger, "largest", _fixed("largest", lambda counts, cost: 3000))
    monkeypatch.setattr(ledgers.Ledger, "table", _table)
    monkeypatch.setattr(ledgers.Ledger, "edges", _edges)
    monkeypatch.setattr(LocalDataset, "digest", lambda self, *args, **options: "0" * 64)
    options: dict[str, Any] = {"domain": ["a", "b", "c"]} if listing == "declared" else {}
    both = [table, other]
    if listing in ("bins", "quantiles"):  # one of them has numbers in one bin alone
        numbers = [np.where(one["ill"].to_numpy() == "a", 1, spread) for one, spread in zip(both, (1, 9), strict=True)]
        both = [one.set_column(1, "ill", pa.array(column)) for one, column in zip(both, numbers, strict=True)]
        options = {"bins": {"ill": [0, 5, 10, 15]} if listing == "bins" else {"ill": dn.Quantiles(3)}}
    published = [
        dn.publish(
            one,
            sensitive="ill",
            mechanism=Synthetic(),
            privacy=dn.Privacy(rho2="19/20"),
            key=bytes(32),
            shuffle=False,
            **options,
        )
        for one in both
    ]
    assert published[0].table.equals(published[1].table)
    assert published[0].manifest.to_dict() == published[1].manifest.to_dict()


def _edges(self: Any, name: str, numbers: Any, count: int, cost: Fraction, *, whole: bool) -> list[float]:
    self._paid(ledgers.Spent("edges", name, cost))
    return [5.0, 10.0]


def _fixed(what: str, answer: Any) -> Any:
    def told(self: Any, counts: Any, cost: Fraction) -> int:
        self._paid(ledgers.Spent(what, "", cost))  # type: ignore[arg-type]
        return int(answer(counts, cost))

    return told


def _table(self: Any, crossed: Any, levels: Any, cost: Fraction) -> Any:
    self._paid(ledgers.Spent("table", levels.name, cost))
    values = crossed.counts.shape[1]
    return np.arange(levels.size * values).reshape(levels.size, values) * 7 % 60


# -- Rare values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [False, True])
def test_a_value_of_one_row_is_listed_with_the_stated_probability_at_most(monkeypatch, broken):
    """6,000 values of one row each, 60 releases, delta a thousandth: 360 listed at the most, about."""
    singles, runs, delta = 6_000, 60, 1e-3
    if broken:  # a threshold that is one row too low
        least = measuring.least_listed
        monkeypatch.setattr(ledgers, "least_listed", lambda epsilon, delta: least(epsilon, delta) - 1)
    values = ["flu"] * 3_000 + ["cold"] * 3_000 + [f"rare {number}" for number in range(singles)]
    table = pa.table({"sex": np.array(["F", "M"])[np.arange(len(values)) % 2], "ill": values})
    listed = 0
    for run in range(runs):
        release = dn.publish(
            table,
            sensitive="ill",
            mechanism=Synthetic(delta=delta),
            privacy=dn.Privacy(epsilon=12),
            key=key(run),
            shuffle=False,
        )
        listed += sum(value.startswith("rare") for value in release.manifest.parts[0].domain)
    most = stats.binom.isf(FALSE_ALARM, singles * runs, delta)
    assert bool(listed > most) is broken
    assert listed > 0  # the threshold is where it has to be, not far above


# -- A series: everything that its publications say of one person, together --------------------------------------------


def test_all_publications_of_a_series_together_tell_no_more_than_its_budget(tmp_path: Path) -> None:
    """Who knows all other rows, and that nobody changed but one town's name, adds up what every noisy table says."""
    rng, times, n = np.random.default_rng(5), 4, 90
    ill = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)]
    spreads = []
    for run in range(20):
        whole, together = Fraction(0), np.zeros(4)
        for number in range(times):
            towns = np.where(np.arange(n) == 89 - number, "Z", np.array(["A", "B", "C"])[np.arange(n) % 3])
            table = pa.table({"sex": np.array(["F", "M"])[np.arange(n) % 2], "town": towns, "ill": ill})
            release = dn.publish(
                table,
                sensitive="ill",
                mechanism=Synthetic(tables=(("sex",), ("town",))),
                privacy=dn.Privacy(epsilon=EPSILON),
                domain=["a", "b", "c", "d"],
                series=tmp_path / str(run),
                publications=times,
                shuffle=False,
            )
            whole += release.manifest.parts[0].learned.epsilon
            together += log_likelihoods(release, table, row=run)
        assert whole <= Fraction(EPSILON)
        spreads.append(together.max() - together.min())
        assert spreads[-1] <= EPSILON + 1e-9
    assert max(spreads) > 0.4 * EPSILON  # the attacker sees what there is to see


# -- One key, one table, two budgets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["epsilon", "limit"])
def test_under_one_key_two_budgets_have_noise_of_their_own(how):
    """The same uniform numbers scaled by two budgets are two equations for each count."""
    rng, n = np.random.default_rng(0), 20_000
    town, ill = rng.integers(0, 20, n), rng.integers(0, 10, n)
    table = pa.table({"town": town.astype(str), "ill": ill.astype(str)})
    exact = np.bincount(town * 10 + ill, minlength=200).reshape(20, 10)
    noise = []
    for budget in (2, 3):
        asked = {"privacy": dn.Privacy(epsilon=budget), "mechanism": Synthetic()}
        if how == "limit":
            asked = {"privacy": dn.Privacy("1/100", "1/2", adversary="any-prior"), "epsilon_limit": budget}
        release = dn.publish(table, sensitive="ill", domain=[str(value) for value in range(10)], key=key(1), **asked)
        assert release.manifest.mechanism == "synthetic"
        (measured,) = release.manifest.parts[0].learned.measured
        marks = release.manifest.parts[0].learned.codings[0].marks
        places = [measured.places[marks.index(str(number))] for number in range(20)]
        noise.append((measured.counts[places] - exact).ravel())
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.45  # six standard deviations
