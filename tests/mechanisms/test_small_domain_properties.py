"""Small-domain randomization over random tables: partition, requirement, balance and optimality."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.core.errors import RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.partitioning import (
    COSTS,
    Rules,
    Sums,
    all_orders,
    balance,
    band_orders,
    cost_named,
    joined,
    merge,
    weights_for,
)
from deniable.mechanisms.small_domain import SmallDomain

tables = st.lists(st.integers(0, 400), min_size=2, max_size=14).map(lambda f: Histogram.of(dict(enumerate(f))))
thresholds = st.fractions(Fraction(1, 10), Fraction(9, 10), max_denominator=20)
options = st.fixed_dictionaries(
    {"cost": st.sampled_from(COSTS), "channels": st.sampled_from(["uniform", "fine-grain"])}
)
S = 2**32


def largest_posterior(cell, guarded) -> Fraction:
    """Bayes' rule written out over every pair of original and published value, from the channel's integers."""
    values = range(len(cell.rows.counts))
    f, keep, replace = cell.rows.counts.tolist(), cell.channel.keep.tolist(), cell.channel.replace.tolist()

    def joint(x, y):
        return f[x] * (Fraction(keep[x], S) * (x == y) + (1 - Fraction(keep[x], S)) * Fraction(replace[y], S))

    worst = Fraction(0)
    for y in values:
        total = sum(joint(x, y) for x in values)
        worst = max([worst, *(joint(x, y) / total for x in values if guarded[x] and total)])
    return worst


def planned(table, rho1, rho2, **kwargs):
    try:
        return SmallDomain(**kwargs).plan(table, Privacy(rho1=rho1, rho2=rho2))
    except RequirementError:
        return None


@given(tables, st.none() | thresholds, thresholds, options)
@settings(max_examples=150, deadline=None)
def test_cells_partition_the_table_and_meet_the_requirement_exactly(table, rho1, rho2, chosen):
    assume(table.rows > 0 and (rho1 is None or rho1 < rho2))
    protected = {x for x in table if rho1 is None or Fraction(table[x], table.rows) <= rho1}
    feasible = all(Fraction(table[x], table.rows) < rho2 for x in protected) and any(table[x] for x in protected)
    plan = planned(table, rho1, rho2, **chosen)
    assert (plan is not None) == feasible
    if plan is None:
        return
    taken = dict.fromkeys(table, 0)
    worst = Fraction(0)
    for cell in plan.cells:
        assert all(rows > 0 for rows in cell.rows.values())
        for value, rows in cell.rows.items():
            taken[value] += rows
        mine = largest_posterior(cell, [value in protected for value in cell.rows])
        assert mine <= rho2
        worst = max(worst, mine)
        if chosen["channels"] == "uniform":
            rho1_i = max(Fraction(rows, cell.size) for value, rows in cell.rows.items() if value in protected)
            assert cell.channel.exact_gamma <= rho2 * (1 - rho1_i) / (rho1_i * (1 - rho2))
    assert taken == dict(table)
    assert worst <= plan.guarantee.worst <= rho2
    assert plan.guarantee.worst <= worst * Fraction(102, 100)


@given(tables, st.none() | thresholds)
@settings(max_examples=200, deadline=None)
def test_groups_are_as_balanced_as_the_theorems_promise(table, rho1):
    counts, n = table.counts, table.rows
    protected = np.array([n > 0 and (rho1 is None or Fraction(f, n) <= rho1) for f in counts.tolist()])
    assume(counts[protected].any())
    groups = balance(counts, protected)
    everything = joined(groups)
    assert dict(zip(everything.positions.tolist(), everything.counts.tolist(), strict=True)) == {
        x: f for x, f in table.items() if f
    }
    inner = int(counts[protected].sum())
    theta = inner // int(counts[protected].max())
    for group in groups:
        guarded = protected[group.positions]
        size = int(group.counts[guarded].sum())
        assert size > 0
        # THESIS Lemma 4: theta'-balanced before exempt rows are dealt.
        assert int(group.counts[guarded].max()) * theta <= size
        # Each group gets its share of exempt rows, rounded down, so no protected value gains more than one row's worth.
        assert group.size >= size + size * (n - inner) // inner


@given(tables, thresholds)
@settings(max_examples=100, deadline=None)
def test_cells_are_theta_balanced_when_all_values_are_protected(table, rho2):
    assume(table.rows > 0)
    plan = planned(table, None, rho2)
    if plan is not None:
        theta = table.rows // int(table.counts.max())
        assert all(int(cell.rows.counts.max()) * theta <= cell.size for cell in plan.cells)


@given(tables, thresholds)
@settings(max_examples=60, deadline=None)
def test_an_infeasible_rho2_is_refused_and_the_named_one_works(table, rho2):
    assume(table.rows > 0 and Fraction(int(table.counts.max()), table.rows) >= rho2)
    with pytest.raises(RequirementError, match=r"smallest feasible rho2 is|no rho2 is feasible") as refusal:
        SmallDomain().plan(table, Privacy(rho2=rho2))
    if "no rho2 is feasible" in str(refusal.value):
        assert Fraction(int(table.counts.max()), table.rows) >= Fraction(999, 1000)
        return
    named = Fraction(str(refusal.value).split("smallest feasible rho2 is ")[1].split(",")[0])
    assert named < 1
    assert planned(table, None, named) is not None


# -- optimality -------------------------------------------------------------------------------------------------------


def price_of(name, counts, protected, rho2):
    """The cost of one set of groups, from its joined histogram."""
    weights = weights_for(name, counts)
    cost = cost_named(name, rho2=float(rho2), rows=int(counts.sum()), delta=0.05)

    def price(groups):
        cell = joined(list(groups))
        w = weights[cell.positions]
        numbers = (cell.size, cell.counts[protected[cell.positions]].max(), len(w), w @ cell.counts, w.sum())
        return float(cost(Sums(*(np.array([float(number)]) for number in numbers)))[0])

    return price, weights, cost


def contiguous(groups):
    for size in range(len(groups)):
        for inner in itertools.combinations(range(1, len(groups)), size):
            cuts = [0, *inner, len(groups)]
            yield [groups[a:b] for a, b in itertools.pairwise(cuts)]


def partitions(items):
    if not items:
        yield []
        return
    head, *rest = items
    for partition in partitions(rest):
        yield [[head], *partition]
        for k in range(len(partition)):
            yield [*partition[:k], [head, *partition[k]], *partition[k + 1 :]]


@given(st.lists(st.integers(1, 400), min_size=3, max_size=16), thresholds, st.sampled_from(COSTS), st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_merge_equals_the_best_of_all_contiguous_merges(f, rho2, name, some_exempt):
    counts = np.array(f)
    protected = counts < counts.max() if some_exempt and len(set(f)) > 1 else counts > 0
    groups = balance(counts, protected)
    assume(1 < len(groups) <= 9)
    price, weights, cost = price_of(name, counts, protected, rho2)
    best = min(sum(price(cell) for cell in cells) for cells in contiguous(groups))
    assert merge(groups, protected, weights, cost, Rules(np.zeros((0, len(f))))).cost == pytest.approx(best, rel=1e-9)


def test_merges_come_close_to_the_best_of_all_set_partitions():
    """Never better than the optimum over all partitions of the groups, and rarely more than a few per cent worse."""
    rng = np.random.default_rng(11)
    gaps = {name: [] for name in COSTS}
    while len(gaps["bound"]) < 40:
        counts = rng.integers(1, 60, rng.integers(5, 16)) ** rng.integers(1, 3)
        rho2, protected = rng.choice([0.34, 0.5, 0.6]), counts > 0
        groups = balance(counts, protected)
        if counts.max() >= rho2 * counts.sum() or not 3 <= len(groups) <= 6:
            continue
        for name in COSTS:
            price, weights, cost = price_of(name, counts, protected, rho2)
            priced = {
                chosen: price(groups[k] for k in chosen)
                for size in range(1, len(groups) + 1)
                for chosen in itertools.combinations(range(len(groups)), size)
            }
            optimum = min(
                sum(priced[tuple(sorted(cell))] for cell in cells) for cells in partitions(list(range(len(groups))))
            )
            orders = all_orders(groups, len(counts))
            rules = Rules(np.zeros((0, len(counts))))
            ours = min(merge([groups[k] for k in order], protected, weights, cost, rules).cost for _, order in orders)
            gaps[name].append(ours / optimum - 1)
    for gap in gaps.values():
        assert min(gap) >= -1e-9
        assert np.median(gap) < 1e-9
    assert np.mean(gaps["variance"]) < 0.01
    assert np.mean(gaps["bound"]) < 0.01


@given(tables, thresholds)
@settings(max_examples=60, deadline=None)
def test_more_orders_are_never_worse_than_the_papers(table, rho2):
    protected = table.counts > 0
    assume(protected.sum() >= 2)
    groups = balance(table.counts, protected)
    _, weights, cost = price_of("variance", table.counts, protected, rho2)
    rules = Rules(np.zeros((0, table.m)))

    def best(orders):
        return min(merge([groups[k] for k in order], protected, weights, cost, rules).cost for _, order in orders)

    every = list(all_orders(groups, table.m))
    assert all(sorted(order.tolist()) == list(range(len(groups))) for _, order in every)
    assert best(every) <= best(band_orders(groups, table.m))
