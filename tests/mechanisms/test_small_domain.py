"""Small-domain randomization: the worked numbers of mathematics 4, its options, its guarantee and its figures."""

from __future__ import annotations

import itertools
import math
import os
import re
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from deniable.core.channels import Channel, coarsened
from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.partitioning import (
    Rules,
    all_orders,
    balance,
    band_orders,
    cost_named,
    cuthill_mckee,
    joined,
    merge,
    value_variances,
    weights_for,
)
from deniable.mechanisms.requirement import EVERY_RELEASE
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.uniform import Uniform

EXAMPLE = np.array([12, 8, 6, 5, 4, 3, 1, 1, 1, 1])
TABLE = Histogram.of(dict(zip("abcdefghij", EXAMPLE.tolist(), strict=True)))


def zipf(m: int, exponent: float, n: int) -> Histogram:
    weights = np.arange(1, m + 1) ** -float(exponent)
    return Histogram.of(dict(enumerate(np.maximum(1, np.round(n * weights / weights.sum())).astype(int).tolist())))


def rows_of(groups, m=10):
    dense = np.zeros((len(groups), m), dtype=int)
    for row, group in zip(dense, groups, strict=True):
        row[group.positions] = group.counts
    return dense.tolist()


def predicted_rmse(plan) -> float:
    variance = np.zeros(plan.histogram.m)
    for cell in plan.cells:
        variance[plan.positions(cell)] += value_variances(cell.rows.counts, cell.channel)
    return math.sqrt(variance.mean())


def bound_of(groups, order, m=10, rho2=2 / 3) -> float:
    rows = sum(group.size for group in groups)
    cost = cost_named("bound", rho2=rho2, rows=rows, delta=0.05)
    everything = np.ones(m, dtype=bool)
    return merge([groups[k] for k in order], everything, np.ones(m), cost, Rules(np.zeros((0, m)))).cost


# -- the phases, on the worked example ------------------------------------------------------------------


def test_balance_makes_the_five_groups_of_the_example():
    assert rows_of(balance(EXAMPLE, EXAMPLE > 0)) == [
        [6, 6, 6, 0, 0, 0, 0, 0, 0, 0],
        [4, 0, 0, 4, 4, 0, 0, 0, 0, 0],
        [2, 2, 0, 0, 0, 2, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
    ]


def test_balance_deals_exempt_rows_in_proportion_and_the_residue_to_the_last_group():
    assert rows_of(balance(EXAMPLE, EXAMPLE != 12)) == [
        [6, 5, 5, 5, 0, 0, 0, 0, 0, 0],
        [3, 3, 0, 0, 3, 3, 0, 0, 0, 0],
        [1, 0, 1, 0, 1, 0, 1, 0, 0, 0],
        [2, 0, 0, 0, 0, 0, 0, 1, 1, 1],
    ]


def test_several_exempt_values_are_dealt_most_frequent_first():
    counts = np.array([30, 50, 5, 5, 5, 5])
    groups = balance(counts, counts == 5)
    assert joined(groups).counts.tolist() == counts.tolist()
    assert len(groups) == 1
    counts = np.array([20, 40, 8, 4, 4, 4, 4])
    first, *_, last = rows_of(balance(counts, counts <= 8), 7)
    assert first[1] > 0
    assert first[0] == 0
    assert last[0] > 0


def test_the_reconstructed_order_of_the_paper_is_the_printed_one():
    _, order = next(band_orders(balance(EXAMPLE, EXAMPLE > 0), 10))
    assert (order + 1).tolist() == [1, 3, 2, 4, 5]


def test_merge_reaches_the_bound_of_the_paper_where_scipys_order_alone_does_not():
    groups = balance(EXAMPLE, EXAMPLE > 0)
    costs = {name: bound_of(groups, order) for name, order in all_orders(groups, 10)}
    assert min(costs.values()) == pytest.approx(2.0196, abs=5e-5)
    assert costs["Cuthill-McKee"] == pytest.approx(2.0196, abs=5e-5)
    assert costs["Cuthill-McKee (SciPy)"] == pytest.approx(2.0303, abs=5e-5)


def test_the_unpartitioned_bound_is_larger():
    cost = cost_named("bound", rho2=2 / 3, rows=42, delta=0.05)
    whole = merge([joined(balance(EXAMPLE, EXAMPLE > 0))], EXAMPLE > 0, np.ones(10), cost, Rules(np.zeros((0, 10))))
    # At the cell's own rho1 = 12/42 gamma is 5; mathematics 4 prints the bound at gamma = 4 (rho1 = 1/3), 2.57.
    a = 2 * math.sqrt(math.log(40))
    assert whole.cost == pytest.approx(a / math.sqrt(42) * (10 / 4 + 1))
    assert a / math.sqrt(42) * (10 / 3 + 1) == pytest.approx(2.57, abs=5e-3)


def test_cells_of_the_example():
    plan = SmallDomain(cost="bound").plan(TABLE, Privacy(rho1="1/3", rho2="2/3"))
    first, second = plan.cells
    assert dict(first.rows) == {"a": 12, "b": 8, "c": 6, "d": 4, "e": 4, "f": 2}
    assert dict(second.rows) == {"d": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1}
    assert [cell.channel.gamma for cell in plan.cells] == pytest.approx([4, 10], rel=3e-3)
    assert first.channel.diagonal == pytest.approx([4 / 9] * 6, rel=3e-3)
    assert second.channel.diagonal == pytest.approx([2 / 3] * 6, rel=3e-3)
    assert first.channel.gamma <= 4
    assert second.channel.gamma <= 10
    assert plan.cells_published
    unpartitioned = Uniform().plan(TABLE, Privacy(rho1="1/3", rho2="2/3")).cells[0].channel
    assert unpartitioned.diagonal == pytest.approx([4 / 13] * 10)


def test_an_exempt_value_may_be_more_frequent_than_rho2():
    table = Histogram.of({"flu": 700, "a": 100, "b": 80, "c": 60, "d": 60})
    plan = SmallDomain().plan(table, Privacy(rho2="1/4", exempt=["flu"]))
    assert plan.guarantee.worst <= Fraction(1, 4)


# -- the variance that the costs minimise ---------------------------------------------------------------


def test_predicted_variances_equal_a_sum_over_all_rows_and_outcomes():
    counts = np.array([7, 4, 2, 9])
    for channel in (Channel.of("abcd", 0.3), Channel.of("abcd", [0.5, 0.2, 0.1, 0.9])):
        P, inverse = channel.matrix(), np.linalg.inv(channel.matrix())
        brute = np.zeros(4)
        for x in range(4):
            for original in range(4):
                mean = sum(P[y, original] * inverse[x, y] for y in range(4))
                square = sum(P[y, original] * inverse[x, y] ** 2 for y in range(4))
                brute[x] += counts[original] * (square - mean**2)
        assert value_variances(counts, channel) == pytest.approx(brute)


def test_predicted_variances_agree_with_simulation():
    counts, draws = np.array([300, 150, 50, 500]), 40_000
    channel = Channel.of("abcd", 0.25)
    rng = np.random.default_rng(7)
    observed = sum(rng.multinomial(n, column, size=draws) for n, column in zip(counts, channel.matrix().T, strict=True))
    measured = channel.invert(observed).var(axis=0, ddof=1)
    # The spread of a variance over 40,000 draws is sqrt(2/40000) = 0.7 %; 3.6 % is five times that, a false alarm
    # has a chance of 6e-7 for each value, and an error of 5 % is found.
    assert measured == pytest.approx(value_variances(counts, channel), rel=0.036)


@pytest.mark.parametrize("cost", ["variance", "relative"])
def test_the_cost_of_a_cell_is_its_weighted_variance(cost):
    groups = balance(EXAMPLE, EXAMPLE > 0)
    cell = joined(groups[:3])
    weights = weights_for(cost, EXAMPLE)
    price = merge(
        [cell], EXAMPLE > 0, weights, cost_named(cost, rho2=2 / 3, rows=42, delta=0.05), Rules(np.zeros((0, 10)))
    )
    rho1 = Fraction(int(cell.counts.max()), cell.size)
    gamma = Fraction(2, 3) * (1 - rho1) / (rho1 * Fraction(1, 3))
    channel = Channel.uniform(range(len(cell.counts)), gamma=gamma)
    assert price.cost == pytest.approx(weights[cell.positions] @ value_variances(cell.counts, channel), rel=1e-6)


def test_a_coin_of_zero_has_infinite_variance():
    assert np.isinf(value_variances(np.array([1, 2]), Channel.of("ab", [0.0, 0.5]))).all()


def test_variance_cost_predicts_the_figures_on_zipf():
    table, privacy = zipf(50, 0.5, 300_000), Privacy("1/13", "1/6")
    rmse = {cost: predicted_rmse(SmallDomain(cost=cost).plan(table, privacy)) for cost in ("bound", "variance")}
    assert rmse["bound"] == pytest.approx(1072, rel=0.005)
    assert rmse["variance"] == pytest.approx(633, rel=0.005)
    assert rmse["variance"] < 0.75 * rmse["bound"]
    one_cell = Uniform().plan(table, Privacy(rho2="1/6", exempt=[0]))
    assert predicted_rmse(one_cell) == pytest.approx(1668, rel=0.005)


def test_fine_grain_channels_are_never_worse_than_uniform_ones():
    better = False
    for table, privacy in (
        (zipf(50, 1, 300_000), Privacy("1/10", "1/3")),
        (zipf(60, 0.5, 9_000), Privacy("1/13", "1/6")),
        (TABLE, Privacy("1/4", "2/3")),
    ):
        plain = predicted_rmse(SmallDomain(cost="variance").plan(table, privacy))
        fine = SmallDomain(cost="variance", channels="fine-grain").plan(table, privacy)
        assert all(cell.channel.invertible for cell in fine.cells)
        assert predicted_rmse(fine) <= plain * (1 + 1e-12)
        better |= predicted_rmse(fine) < 0.999 * plain
    assert better


# -- real data and size ---------------------------------------------------------------------------------


def census() -> Histogram:
    places = [os.environ.get("DENIABLE_DATA"), Path(__file__).parents[3] / "shared" / "data"]
    for place in places:
        path = Path(place or "/nonexistent") / "census_occ100k.parquet"
        if path.is_file():
            import pyarrow.parquet as pq

            counts = pq.read_table(path, columns=["occupation"])["occupation"].value_counts().to_pylist()
            return Histogram.of(
                {row["values"]: row["counts"] for row in sorted(counts, key=lambda r: str(r["values"]))}
            )
    pytest.skip("census_occ100k.parquet is not there: set DENIABLE_DATA to the folder that holds it")


def test_census_gives_the_groups_and_cells_of_the_paper():
    table, privacy = census(), Privacy("1/13", "1/6")
    assert len(balance(table.counts, table.counts > 0)) == 17
    plan = SmallDomain(cost="bound", orders="band").plan(table, privacy)
    assert len(plan.cells) in (14, 15)
    assert np.mean([cell.rows.m for cell in plan.cells]) == pytest.approx(15, abs=0.5)
    assert np.mean([cell.channel.coins[0] for cell in plan.cells]) == pytest.approx(0.09, abs=0.006)
    assert predicted_rmse(SmallDomain().plan(table, privacy)) <= predicted_rmse(plan)


def test_fifteen_thousand_values_are_planned_in_seconds():
    started = time.process_time()
    plan = SmallDomain().plan(zipf(15_000, 1, 10**8), Privacy(rho2="1/6"))
    assert time.process_time() - started < 15  # 3 s on a free machine; see benchmarks/small_domain_planning.py
    assert len(plan.cells) > 1000


def test_long_cells_beyond_the_limit_change_nothing_where_short_ones_win():
    table = zipf(300, 1, 100_000)
    everything, cost = table.counts > 0, cost_named("variance", rho2=1 / 3, rows=table.rows, delta=0.05)
    groups = balance(table.counts, everything)
    free = merge(groups, everything, np.ones(300), cost, Rules(np.zeros((0, 300))))
    longest = int(np.diff(free.cuts).max())
    assert longest < len(groups)
    assert merge(groups, everything, np.ones(300), cost, Rules(np.zeros((0, 300))), longest=longest) == free
    shorter = merge(groups, everything, np.ones(300), cost, Rules(np.zeros((0, 300))), longest=longest - 1)
    assert shorter.cost > free.cost


def test_the_whole_table_is_tried_however_short_cells_must_be():
    groups, everything = balance(EXAMPLE, EXAMPLE > 0), EXAMPLE > 0
    cost = cost_named("bound", rho2=2 / 3, rows=42, delta=0.05)
    assert merge(groups, everything, np.ones(10), cost, Rules(np.zeros((0, 10))), longest=1).cuts == (0, 5)


# -- options --------------------------------------------------------------------------------------------

PAIRS = Histogram.of({"hiv": 50, "syphilis": 50, "flu": 40, "cold": 40})


def test_a_pair_that_is_kept_apart_makes_up_no_cell():
    table = Histogram.of({"hiv": 80, "syphilis": 80, "flu": 20, "cold": 20})
    free = SmallDomain(cost="variance").plan(table, Privacy(rho2="3/4"))
    apart = SmallDomain(cost="variance", keep_apart=(("syphilis", "hiv"),)).plan(table, Privacy(rho2="3/4"))
    assert {"hiv", "syphilis"} in [set(cell.rows) for cell in free.cells]
    assert {"hiv", "syphilis"} not in [set(cell.rows) for cell in apart.cells]


def test_no_cell_lies_within_a_larger_set_that_is_kept_apart():
    table = zipf(30, 0.3, 30_000)
    apart = tuple(range(15))
    plan = SmallDomain(cost="variance", keep_apart=(apart,)).plan(table, Privacy(rho2="1/6"))
    assert all(not set(cell.rows.domain) <= set(apart) for cell in plan.cells)


def test_how_sure_one_becomes_of_a_category_is_said_where_categories_are_given():
    """20 values, equally frequent, 4 of them cancers: of each at most 1/3, of a cancer far more (issue 31.8)."""
    table = Histogram.of({f"cancer {i}" if i < 4 else f"other {i}": 500 for i in range(20)})
    kinds = {value: str(value).split()[0] for value in table.domain}
    for mechanism in (SmallDomain(categories=kinds), SmallDomain(categories=kinds, cost="bound")):
        plan = mechanism.plan(table, Privacy(rho2="1/3"))
        joints = [(cell, cell.channel.matrix() * cell.rows.counts) for cell in plan.cells]
        cancers = [np.array([kinds[value] == "cancer" for value in cell.rows.domain]) for cell in plan.cells]
        surest = max(
            float((joint[:, mine].sum(1) / joint.sum(1)).max())
            for (_, joint), mine in zip(joints, cancers, strict=True)
        )
        said = plan.guarantee.also[-1]
        assert "odds of 'cancer' grow most" in said
        assert "at 20 % of anyone" in said
        stated = float(re.search(r"up to (\S+) %\.$", said)[1]) / 100
        assert 0.4 < surest <= stated <= surest + 0.01
        assert "not of sets of values" in plan.guarantee.sentence
    assert not any("categories" in text for text in SmallDomain().plan(table, Privacy(rho2="1/3")).guarantee.also)


def test_every_cell_holds_the_required_categories():
    table = zipf(40, 0.7, 50_000)
    categories = {value: value // 8 for value in table}
    free = SmallDomain(cost="variance").plan(table, Privacy(rho2="1/6"))
    plan = SmallDomain(cost="variance", categories=categories, min_categories=4).plan(table, Privacy(rho2="1/6"))

    def fewest(p):
        return min(len({categories[value] for value in cell.rows}) for cell in p.cells)

    assert fewest(free) < 4 <= fewest(plan)


def test_every_cell_holds_the_required_rows():
    table = zipf(40, 1, 50_000)
    plan = SmallDomain(min_rows=1000).plan(table, Privacy(rho2="1/3"))
    assert (
        min(cell.size for cell in plan.cells)
        >= 1000
        > min(c.size for c in SmallDomain().plan(table, Privacy(rho2="1/3")).cells)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep_apart": (("hiv", "syphilis", "flu", "cold"),)}, "holds no other values"),
        ({"categories": dict.fromkeys(PAIRS, "std"), "min_categories": 2}, "values of 1 categories only"),
        ({"min_rows": 1000}, "min_rows = 1,000 cannot be met"),
    ],
)
def test_rules_that_even_one_cell_breaks_are_refused_with_the_reason(options, words):
    with pytest.raises(RequirementError, match=words):
        SmallDomain(**options).plan(PAIRS, Privacy(rho2="1/2"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cost": "varience"}, "Did you mean 'variance'"),
        ({"channels": "fine"}, "channels = 'fine' is not known"),
        ({"delta": 0}, "strictly between 0 and 1"),
        ({"min_categories": 2}, "needs a category map"),
        ({"min_categories": 0}, "at least 1 category"),
        ({"keep_apart": (("hiv",),)}, "at least two values"),
        ({"keep_apart": ("hiv",)}, "at least two values"),
    ],
)
def test_options_that_are_not_allowed_are_named(options, words):
    with pytest.raises(OptionError, match=words):
        SmallDomain(**options)


def test_values_that_are_not_in_the_column_are_named():
    with pytest.raises(OptionError, match="Did you mean 'hiv'"):
        SmallDomain(keep_apart=(("hivv", "flu"),)).plan(PAIRS, Privacy(rho2="1/2"))
    with pytest.raises(OptionError, match="'cold' belongs"):
        SmallDomain(categories={"hiv": 1, "syphilis": 1, "flu": 2}).plan(PAIRS, Privacy(rho2="1/2"))


# -- the requirement and the guarantee ------------------------------------------------------------------


def test_a_belief_of_any_strength_is_refused_and_uniform_named_instead():
    with pytest.raises(RequirementError, match=r"cell is published and is evidence.*mechanism='uniform'"):
        SmallDomain().plan(TABLE, Privacy("1/3", "2/3", adversary="any-prior"))


def test_a_value_that_everybody_has_leaves_no_rho2_to_name():
    """1.001 was named as the smallest feasible one."""
    with pytest.raises(
        RequirementError, match=r"'a' alone is 100 % of the rows; no rho2 is feasible. Fix: exempt 'a' with"
    ):
        SmallDomain().plan(Histogram.of({"a": 9, "b": 0}), Privacy(rho2="1/2"))


def test_a_value_more_frequent_than_rho2_is_refused_with_the_smallest_feasible_rho2():
    with pytest.raises(RequirementError, match=r"'a' alone is 28.6 % .*smallest feasible rho2 is 0.286"):
        SmallDomain().plan(TABLE, Privacy(rho2="1/4"))


def test_a_table_with_nothing_to_protect_is_refused():
    with pytest.raises(RequirementError, match="No value is protected"):
        SmallDomain().plan(Histogram.of({"a": 10, "b": 10, "c": 0}), Privacy("1/10", "1/2"))


def test_a_rho2_without_room_for_a_coin_is_refused():
    with pytest.raises(RequirementError, match="useful coin"):
        SmallDomain().plan(Histogram.of({"a": 10, "b": 10}), Privacy(rho2="0.50000000001"))


def test_values_without_rows_belong_to_no_cell():
    plan = SmallDomain().plan(Histogram.of({"x": 0, "a": 30, "b": 30, "y": 0, "c": 30}), Privacy(rho2="1/2"))
    assert {value for cell in plan.cells for value in cell.rows} == {"a", "b", "c"}
    assert plan.guarantee.gamma is None


def test_one_cell_of_all_values_states_its_amplification():
    plan = SmallDomain().plan(Histogram.of({"a": 30, "b": 30, "c": 30}), Privacy(rho2="1/2"))
    (cell,) = plan.cells
    assert plan.guarantee.gamma == cell.channel.exact_gamma


def test_the_guarantee_says_what_the_cells_reveal():
    guarantee = SmallDomain().plan(zipf(50, 0.5, 300_000), Privacy("1/13", "1/6")).guarantee
    assert guarantee.adversary == "frequency"
    assert set(EVERY_RELEASE) < set(guarantee.not_protected)
    text = " ".join(guarantee.not_protected)
    for words in ("one of its cell's values is revealed", "no downward guarantee", "held a protected value at 7.69 %"):
        assert words in text
    assert "already knows a row's cell, any belief up to" in guarantee.also[0]
    assert Fraction(1, 6) * Fraction(99, 100) < guarantee.worst <= Fraction(1, 6)


def test_a_stronger_belief_grows_as_the_guarantee_says():
    table = zipf(50, 1, 300_000)
    plan = SmallDomain().plan(table, Privacy("1/13", "1/6"))
    belief, worst_cell = 1 / 13, 0.0
    for cell in plan.cells:
        for value, rows in cell.rows.items():
            if table[value] / table.rows <= 1 / 13:
                others = (cell.size - rows) / (table.rows - table[value])
                here = belief * rows / table[value]
                worst_cell = max(worst_cell, here / (here + (1 - belief) * others))
    sentence = next(text for text in plan.guarantee.not_protected if text.startswith("Beliefs stronger"))
    stated = float(sentence.split("(up to ")[1].split(" %")[0]) / 100
    assert worst_cell <= stated <= worst_cell + 0.01


def test_knowing_the_cell_any_belief_up_to_the_stated_one_is_covered():
    plan = SmallDomain().plan(zipf(50, 1, 300_000), Privacy("1/13", "1/6"))
    stated = Fraction(plan.guarantee.also[0].split("up to ")[1].split(" %")[0]) / 100
    for gamma in plan.guarantee.promises[0].gammas:
        assert stated * gamma / (1 + stated * (gamma - 1)) <= Fraction(1, 6)


@pytest.mark.parametrize("channels", ["uniform", "fine-grain"])
def test_what_is_published_of_a_plan_has_about_three_digits(channels):
    plan = SmallDomain(channels=channels).plan(zipf(50, 1, 300_000), Privacy("1/13", "1/5"))
    for cell in plan.cells:
        assert np.array_equal(coarsened(cell.channel.keep), cell.channel.keep)
    assert (plan.guarantee.worst * 1000).denominator == 1


def test_rows_of_a_small_cell_taken_together_say_more_as_the_guarantee_warns():
    plan = SmallDomain(cost="bound").plan(TABLE, Privacy("1/3", "2/3"))
    channel = plan.cells[1].channel  # six values, one row each
    P = channel.matrix()
    # Every way to assign the six values to the rows that were published as 0..5.
    likelihood = {order: math.prod(P[y, x] for y, x in enumerate(order)) for order in itertools.permutations(range(6))}
    together = sum(weight for order, weight in likelihood.items() if order[0] == 0) / sum(likelihood.values())
    assert together == pytest.approx(0.93, abs=0.005)
    assert any("combine the rows of that cell" in text for text in plan.guarantee.not_protected)
    assert "by the cell and the value published for that person" in str(plan.guarantee)


def test_small_domain_is_a_mechanism_and_records_its_options():
    assert isinstance(SmallDomain(), Mechanism)
    assert SmallDomain(cost="bound").plan(TABLE, Privacy("1/3", "2/3")).options["cost"] == "bound"


def test_cuthill_mckee_visits_every_group_once():
    rng = np.random.default_rng(1)
    linked = rng.random((30, 30)) < 0.05
    assert sorted(cuthill_mckee(linked | linked.T).tolist()) == list(range(30))


def test_a_plan_explains_itself_cell_by_cell() -> None:
    counts = dict(zip("abcdefghij", (12, 8, 6, 5, 4, 3, 1, 1, 1, 1), strict=True))
    plan = SmallDomain(cost="bound").plan(Histogram.of(counts), Privacy(rho1="1/3", rho2="2/3"))
    told = plan.explain().splitlines()
    assert told[0].startswith("small-domain: 2 cells (published) of 10 values")
    assert str(plan.guarantee) in told
    assert [line.split()[:2] for line in told[-2:]] == [["0", "6"], ["1", "6"]]


@pytest.mark.parametrize("longest", [3, 40])
def test_values_taken_together_give_the_cut_of_values_taken_one_by_one(monkeypatch: pytest.MonkeyPatch, longest: int):
    from deniable.mechanisms import partitioning as merging

    table = zipf(300, 1, 100_000)
    everything, cost = table.counts > 0, cost_named("variance", rho2=1 / 3, rows=table.rows, delta=0.05)
    groups = balance(table.counts, everything)
    cuts = []
    for wide in (0, 10**9):
        monkeypatch.setattr(merging, "WIDE", wide)
        cuts.append(merge(groups, everything, np.ones(300), cost, Rules(np.zeros((0, 300))), longest=longest))
    assert cuts[0] == cuts[1]
