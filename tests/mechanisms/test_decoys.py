"""Decoy groups: what is planned, what is promised, and that published counts are binomial."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import deniable as dn
from deniable.core import memory
from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import LargeSums, Privacy, SmallSums, miss
from deniable.mechanisms.decoys import Decoys, anatomy_groups, balanced_groups, largest_size, mixed_groups
from deniable.planning.posteriors import Posteriors, cells_from
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import Kernel
from deniable.tables.worker import Dealer

FALSE_ALARM = 1e-6


def histogram(*counts: int) -> Histogram:
    return Histogram(tuple(f"v{i}" for i in range(len(counts))), np.array(counts))


def stream(*purpose: str) -> Keystream:
    return Keystream(Secret.from_key(bytes(range(32))), "decoys test", *purpose)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=2, max_size=25), st.integers(2, 8))
@pytest.mark.parametrize("grouping", [balanced_groups, mixed_groups])
def test_groups_have_c_different_values_and_leave_only_what_they_must(grouping, counts, c):
    f = np.array(counts, dtype=np.int64)
    if largest_size(f) < c:
        return
    groups, left = grouping(f, c)
    taken = np.zeros(len(f), dtype=np.int64)
    for places, h in groups:
        assert len(set(places.tolist())) == c
        assert h >= 1
        taken[places] += h
    taken[left] += 1
    assert taken.tolist() == counts
    assert len(left) == sum(counts) % c


def test_many_groups_are_planned_at_once():
    rng = np.random.default_rng(1)
    f = np.sort(rng.zipf(1.3, 2000) % 50_000 + 1)
    groups, _ = balanced_groups(f, min(5, largest_size(f)))
    assert sum(h for _, h in groups) == f.sum() // 5
    assert len(groups) < 3 * len(f)
    groups, _ = mixed_groups(f, 5)
    assert sum(h for _, h in groups) == f.sum() // 5
    assert len(groups) <= len(f) + 1


def test_anatomys_groups_are_of_the_values_with_the_most_rows_left():
    """Against one group at a time: the kinds of groups that many at once make leave the same counts at every stage."""
    rng = np.random.default_rng(3)
    for c in (2, 3, 5):
        for _ in range(30):
            f = rng.integers(0, 60, 11)
            if largest_size(f) < c:
                continue
            groups, left = anatomy_groups(f, c)
            assert sum(h for _, h in groups) == f.sum() // c
            assert len(left) == f.sum() % c
            assert all(len(set(places.tolist())) == c for places, _ in groups)
            used = np.bincount(np.concatenate([np.repeat(places, h) for places, h in groups]), minlength=len(f))
            assert np.array_equal(np.bincount(left, minlength=len(f)), f - used)
            rest, greedy = f.copy(), np.zeros(len(f), dtype=np.int64)
            for _ in range(int(f.sum()) // c):
                chosen = np.argsort(-rest, kind="stable")[:c]
                rest[chosen] -= 1
                greedy[chosen] += 1
            # Ties are broken otherwise, so that equally frequent values may differ by a row, and no others.
            assert np.abs(used - greedy).max() <= 1


def test_anatomys_groups_of_a_billion_rows_cost_no_more_than_those_of_a_thousand():
    f = np.array([7, 7, 6, 5, 5, 5, 3, 2, 1, 1])
    groups, left = anatomy_groups(f * 10**9, 4)
    assert sum(h for _, h in groups) == f.sum() * 10**9 // 4
    assert not len(left)
    assert len(groups) < 4000


def test_mixing_lets_every_value_meet_every_other():
    f = np.full(40, 1000)
    for grouping, least in ((mixed_groups, 35), (anatomy_groups, 35), (balanced_groups, 5)):
        met = np.zeros((40, 40), dtype=bool)
        for places, _ in grouping(f, 5)[0]:
            met[np.ix_(places, places)] = True
        assert met.sum(1).min() >= least


def test_a_plan_draws_uniformly_in_its_groups_and_hides_them():
    plan = Decoys(c=3).plan(histogram(12, 8, 6, 5, 4, 3, 1, 1, 1, 1), None)
    assert not plan.cells_published
    for cell in plan.cells:
        assert cell.channel.m == 3
        assert not cell.channel.keep.any()
        assert np.ptp(cell.channel.replace) <= 1
        assert len(set(cell.rows.counts.tolist())) == 1
    assert plan.guarantee.worst == Fraction(1, 3)
    assert plan.guarantee.gamma is None
    assert plan.guarantee.adversary == "frequency"
    json.dumps(dict(plan.options))


def posteriors(plan: Plan) -> np.ndarray:
    """Pr[x | y] for an attacker who knows the whole plan, by counting."""
    m = plan.histogram.m
    joint = np.zeros((m, m))
    for cell in plan.cells:
        places = plan.positions(cell)
        joint[np.ix_(places, places)] += cell.channel.matrix() * cell.rows.counts
    return joint / np.maximum(joint.sum(1, keepdims=True), 1e-300)


@pytest.mark.parametrize("grouping", ["mixed", "apart", "balanced", "anatomy"])
@pytest.mark.parametrize("c", [2, 3, 5])
def test_no_published_value_speaks_for_a_value_with_more_than_one_in_c(c, grouping):
    rng = np.random.default_rng(c)
    for _ in range(20):
        f = rng.integers(0, 40, 12)
        if largest_size(f) < c:
            continue
        plan = Decoys(c=c, leftovers="drop", grouping=grouping).plan(histogram(*f), None)
        left_out = plan.parts[0].left_out
        published = plan if left_out is None else kept(plan, left_out)
        found = posteriors(published)
        assert found.max() <= 1 / c + 1e-12
        assert np.allclose(np.diag(found)[published.histogram.counts > 0], 1 / c, rtol=1e-9)


@pytest.mark.parametrize("grouping", ["mixed", "apart", "balanced", "anatomy"])
def test_the_size_that_is_found_meets_the_requirement_in_exact_fractions_and_no_smaller_one_does(grouping):
    """The mixture channel of the plan, recomputed by the audit in whole numbers from the sampler's own thresholds."""
    f = histogram(30, 33, 21, 17, 12, 9, 5, 3, 1, 1)
    plan = Decoys(grouping=grouping, leftovers="drop").plan(f, Privacy(rho2="0.3"))
    assert plan.options["c"] == 4
    for c, wanted in ((2, False), (3, False), (4, True)):
        made = Decoys(c=c, grouping=grouping, leftovers="drop").plan(f, None)
        rows = [cell.rows.counts * (i != made.parts[0].left_out) for i, cell in enumerate(made.cells)]
        cells = cells_from([cell.channel for cell in made.cells], [made.positions(cell) for cell in made.cells], rows)
        beliefs = Posteriors(cells, published=False).beliefs
        assert max(belief.highest for belief in beliefs) == Fraction(1, c) == made.guarantee.worst
        assert (Fraction(1, c) <= Fraction(3, 10)) == wanted


def kept(plan: Plan, left_out: int) -> Plan:
    """The plan without the cell that is not published."""
    cells = tuple(cell for index, cell in enumerate(plan.cells) if index != left_out)
    counts = plan.histogram.counts.copy()
    counts[plan.positions(plan.cells[left_out])] -= 1
    return Plan.of_cells("decoys", Histogram(plan.histogram.domain, counts), cells, plan.guarantee)


# -- bad input ------------------------------------------------------------------------------------------------------


def test_too_large_a_group_is_refused_and_the_largest_that_works_is_named():
    with pytest.raises(RequirementError, match=r"'v0' alone is 40 %.*c=2, the largest") as error:
        Decoys(c=4).plan(histogram(4000, 3000, 2000, 1000), None)
    assert "4000" not in str(error.value)
    assert Decoys(c=2).plan(histogram(4000, 3000, 2000, 1000), None).guarantee.worst == Fraction(1, 2)


@pytest.mark.parametrize("c", [1, 0, -3, 2.5, True, "5"])
def test_a_size_that_is_no_size_is_refused(c):
    with pytest.raises(OptionError, match="2 rows or more"):
        Decoys(c=c)


def test_a_table_shorter_than_a_group_is_refused():
    with pytest.raises(RequirementError, match=r"only 3 rows.*c=3"):
        Decoys(c=5).plan(histogram(1, 1, 1, 0, 0, 0), None)


def test_a_table_of_equal_values_is_refused():
    with pytest.raises(RequirementError, match=r"'v1' alone is 100 %.*No size works"):
        Decoys(c=2).plan(histogram(0, 30), None)
    with pytest.raises(TableError, match="one single value"):
        Decoys(c=2).plan(histogram(30), None)
    with pytest.raises(TableError, match="no rows"):
        Decoys(c=2).plan(histogram(0, 0), None)


def test_rows_left_over_are_refused_or_dropped():
    f = histogram(5, 4, 4, 3, 1)
    with pytest.raises(RequirementError, match=r"2 rows cannot be grouped.*leftovers='drop'"):
        Decoys(c=3).plan(f, None)
    plan = Decoys(c=3, leftovers="drop").plan(f, None)
    assert plan.parts[0].left_out == len(plan.cells) - 1
    assert plan.cells[-1].rows.counts.tolist() == [1, 1]
    assert Decoys(c=3).plan(histogram(5, 4, 4, 3, 2), None).parts[0].left_out is None
    with pytest.raises(RequirementError, match="c=2, which leaves none"):
        Decoys(c=3).plan(histogram(4, 4, 4, 4), None)
    with pytest.raises(OptionError, match="Did you mean 'drop'"):
        Decoys(leftovers="drp")  # type: ignore[arg-type]


# -- requirements ---------------------------------------------------------------------------------------------------


def test_a_requirement_decides_the_smallest_group():
    f = histogram(*[100] * 12)
    assert Decoys().plan(f, Privacy(rho2="1/6")).options["c"] == 6
    assert Decoys().plan(f, Privacy(rho2="1/2")).options["c"] == 2
    assert Decoys().plan(f, Privacy(rho2="0.3")).options["c"] == 4
    assert Decoys().plan(f, None).options["c"] == 5
    assert Decoys().plan(f, Privacy(rho1="1/12", rho2="1/8")).options["c"] == 8
    with pytest.raises(RequirementError, match="No value is protected"):
        Decoys().plan(f, Privacy(rho1="1/100", rho2="1/8"))
    with pytest.raises(RequirementError, match=r"c = 20 is too large.*c=12, the largest"):
        Decoys().plan(f, Privacy(rho2="1/20"))
    assert Decoys(c=6).plan(f, Privacy(rho2="1/6")).guarantee.rho2 == Fraction(1, 6)
    with pytest.raises(RequirementError, match="c=6"):
        Decoys(c=5).plan(f, Privacy(rho2="1/6"))
    with pytest.raises(RequirementError, match="any-prior"):
        Decoys(c=5).plan(f, Privacy(rho1="1/13", rho2="1/2", adversary="any-prior"))
    per_value = Privacy(per_value={"v0": ("1/10", "1/8"), "v1": ("1/100", "1/50")})
    assert Decoys(leftovers="drop").plan(f, per_value).options["c"] == 8  # v1 is more frequent than 1/100: exempt


def test_the_size_is_found_from_what_sums_must_be():
    f = histogram(*[1000] * 60)
    small, large = SmallSums(error=0.3, below=3, at_least=0.6), LargeSums(error=0.1, above=1000, at_most=0.05)
    found = Decoys(leftovers="drop").plan(f, Privacy(small_sums=small, large_sums=large))
    c = found.options["c"]
    assert small.holds(c)
    assert not small.holds(c - 1)
    assert large.holds(c)
    asked = Privacy(large_sums=LargeSums(error=0.2, above=100, at_most="0.04"))
    most = Decoys(leftovers="drop").plan(f, asked)
    c = most.options["c"]
    assert LargeSums(error=0.2, above=100, at_most="0.04").holds(c)
    assert not LargeSums(error=0.2, above=100, at_most="0.04").holds(c + 1)
    assert any("exact binomial tail" in line and "Chebyshev" in line for line in most.guarantee.also)


def test_what_no_size_keeps_is_refused_with_the_reason():
    f = histogram(*[1000] * 60)
    with pytest.raises(RequirementError, match=r"from 2 to 60.*small sums are off with probability 0\.\d+, not 0\.9"):
        Decoys().plan(f, Privacy(small_sums=SmallSums(at_least=0.9)))
    with pytest.raises(RequirementError, match="raise above"):
        Decoys().plan(f, Privacy(large_sums=LargeSums(error=0.1, above=100, at_most=0.01)))
    with pytest.raises(RequirementError, match="which small_sums needs"):
        Decoys().plan(f, Privacy(small_sums=SmallSums(), large_sums=LargeSums(error=0.2, above=50, at_most=0.12)))
    with pytest.raises(RequirementError, match="does not keep this promise: a sum of 1 to 3 rows"):
        Decoys(c=2).plan(f, Privacy(small_sums=SmallSums()))


def test_a_bound_on_beliefs_and_what_sums_must_be_are_both_kept():
    f = histogram(*[1000] * 60)
    large = LargeSums(error=0.2, above=100, at_most="0.04")
    assert Decoys(leftovers="drop").plan(f, Privacy(rho2="1/9", small_sums=SmallSums())).options["c"] == 9
    found = Decoys(leftovers="drop").plan(f, Privacy(rho2="1/3", small_sums=SmallSums()))
    assert found.options["c"] == 7
    assert found.guarantee.worst == Fraction(1, 7)
    with pytest.raises(RequirementError, match="raise above"):
        Decoys(leftovers="drop").plan(f, Privacy(rho2="1/50", large_sums=large))
    with pytest.raises(RequirementError, match=r"c = 70 is too large.*c=60"):
        Decoys(leftovers="drop").plan(f, Privacy(rho2="1/70", small_sums=SmallSums()))
    with pytest.raises(RequirementError, match="any-prior"):
        Decoys().plan(f, Privacy(small_sums=SmallSums(), adversary="any-prior"))


def test_nothing_is_said_about_sums_that_nobody_asked_for():
    """A noisy histogram may be published then, which tells small counts to within two rows."""
    plan = Decoys(c=10).plan(histogram(*[1000] * 60), Privacy(rho2="1/2"))
    assert plan.guarantee.also == ()
    assert not any("sums" in line for line in plan.guarantee.not_protected)


# -- the distribution, through the engine ---------------------------------------------------------------------------


def kernel_of(plan: Plan) -> Kernel:
    return Kernel([cell.channel for cell in plan.cells], [plan.positions(cell) for cell in plan.cells])


def published_counts(plan: Plan, kernel: Kernel, codes: np.ndarray, key: str) -> np.ndarray:
    keys = stream(key)
    cells = Dealer(plan.parts[0], keys.subkey("dealing")).deal(codes, np.zeros(plan.histogram.m, np.int64))
    return np.bincount(kernel.perturb(codes, keys.words(0, len(codes)), cells), minlength=plan.histogram.m)


def simulated(counts: list[int], c: int, keys: int) -> np.ndarray:
    plan = Decoys(c=c).plan(histogram(*counts), None)
    codes = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    kernel = kernel_of(plan)
    return np.array([published_counts(plan, kernel, codes, f"{c} {key}") for key in range(keys)])


def rejects(draws: np.ndarray, trials: int, chance: float) -> bool:
    """Chi-square of one value's published counts against Binomial(trials, chance), cells of at least 8 expected."""
    expected = stats.binom.pmf(np.arange(trials + 1), trials, chance) * len(draws)
    observed = np.bincount(draws, minlength=trials + 1).astype(float)
    edges = [0]
    total = 0.0
    for x, e in enumerate(expected):
        total += e
        if total >= 8 and expected[x + 1 :].sum() >= 8:
            edges.append(x + 1)
            total = 0.0
    o, e = np.add.reduceat(observed, edges), np.add.reduceat(expected, edges)
    return bool(stats.chi2.sf(((o - e) ** 2 / e).sum(), len(o) - 1) < FALSE_ALARM / 30)


COUNTS = [10, 10, 10, 9, 9, 9, 8, 8, 8, 7, 7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1]  # 165 rows
EVEN = {2: [*COUNTS, 1], 5: COUNTS, 10: [*COUNTS, *[1] * 5]}
DRAWS = dict.fromkeys(EVEN, 4000)


@pytest.fixture(scope="module")
def draws() -> dict[int, np.ndarray]:
    return {c: simulated(counts, c, DRAWS[c]) for c, counts in EVEN.items()}


@pytest.mark.parametrize("c", EVEN)
def test_published_counts_are_binomial(draws, c):
    for value, f in enumerate(EVEN[c]):
        assert not rejects(draws[c][:, value], c * f, 1 / c)
    assert rejects(draws[c][:, 0], c * 10, 1.05 / c)


@pytest.mark.parametrize("c", [2, 5, 10])
def test_a_group_size_off_by_one_is_noticed(c):
    """The variance f (1 - 1/c) tells c = 10 from c = 11 by one percent: it takes many groups to see that.

    In a group the squared deviations of its c values add up to c (1 - 1/c) on average, and groups are independent.
    """
    values, keys = 3000, 2000 * c // 30
    plan = Decoys(c=c).plan(histogram(*[1] * values), None)
    codes = np.arange(values, dtype=np.uint16)
    group = np.concatenate([plan.positions(cell) for cell in plan.cells])
    kernel = kernel_of(plan)
    counts = np.array([published_counts(plan, kernel, codes, f"off by one {key}") for key in range(keys)])
    sums = ((counts[:, group] - 1) ** 2).reshape(-1, c).sum(1)
    error = sums.std() / math.sqrt(sums.size)
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(sums.mean() - (c - 1)) < limit * error
    for wrong in (c - 1, c + 1):
        assert abs(sums.mean() - c * (1 - 1 / wrong)) > limit * error


@pytest.mark.parametrize("c", EVEN)
def test_small_sums_are_as_uncertain_as_promised(draws, c):
    error = Fraction(3, 10)
    for value, f in enumerate(EVEN[c]):
        promised = float(miss(f, c, error, strictly=True))
        off = int((np.abs(draws[c][:, value] - f) > float(error) * f + 1e-9).sum())
        assert stats.binomtest(off, DRAWS[c], promised).pvalue > FALSE_ALARM / 100
    reached = float(SmallSums(error=error, below=10).reached(c))
    shares = (np.abs(draws[c] - EVEN[c]) > 0.3 * np.array(EVEN[c]) + 1e-9).mean(0)
    assert shares.min() > reached - 5 * math.sqrt(reached * (1 - reached) / DRAWS[c])


def tails(f: int, c: int, chance: float) -> tuple[float, float]:
    """Pr[f' < .7 f] and Pr[f' > 1.3 f] for f' ~ Binomial(c f, chance)."""
    low, high = math.ceil(0.7 * f - 1e-9) - 1, math.floor(1.3 * f + 1e-9)
    return float(stats.binom.cdf(low, c * f, chance)), float(stats.binom.sf(high, c * f, chance))


def breaks(draws: np.ndarray, counts: np.ndarray, c: int) -> bool:
    """Whether, for some f, the share of draws in a tail is not the promised one (keys are independent)."""
    limit = stats.norm.isf(FALSE_ALARM / 60)  # 3 sizes, 10 counts, 2 tails
    for f in range(1, 11):
        mine = draws[:, counts == f]
        for far, promised in zip((mine < 0.7 * f - 1e-9, mine > 1.3 * f + 1e-9), tails(f, c, 1 / c), strict=True):
            by_key = far.mean(1)
            if abs(by_key.mean() - promised) > limit * max(by_key.std() / math.sqrt(len(by_key)), 1e-9):
                return True
    return False


@pytest.mark.parametrize("c", EVEN)
def test_both_tails_are_as_promised_at_every_count_up_to_ten(draws, c):
    """The promise about sums is the sum of the two tails. Power: the same number of draws with a chance 5 % off is
    noticed for every c, which is asserted, so that a change which blunts the test fails it."""
    counts = np.array(EVEN[c])
    for f in range(1, 11):
        assert sum(tails(f, c, 1 / c)) == pytest.approx(float(miss(f, c, Fraction(3, 10), strictly=True)), abs=1e-9)
    assert not breaks(draws[c], counts, c)
    rng = np.random.default_rng(c)
    for wrong in (0.95, 1.05):
        assert breaks(rng.binomial(c * counts, wrong / c, draws[c].shape), counts, c)


def test_more_kinds_of_groups_than_memory_holds_are_refused_with_the_size_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "limit", lambda: 2**30)
    # 20,000 kinds of groups of 5 among 100,000 values, 8 bytes each: 16e9 bytes.
    with pytest.raises(RequirementError, match=r"needs 14\.9 GB here: 100,000 values make 20,000 kinds .* 1\.0 GB are"):
        Decoys(c=5).plan(Histogram(tuple(range(100_000)), np.full(100_000, 10)), None)
    assert len(Decoys(c=5).plan(Histogram(tuple(range(1000)), np.full(1000, 10)), None).cells) >= 200


@pytest.mark.parametrize(
    ("rows", "grouping"), [([1, 1, 1], "mixed"), ([10, 10], "balanced"), ([10, 10, 10], "anatomy")]
)
def test_groups_of_one_kind_are_published_as_any_groups_are(rows, grouping):
    jobs = np.repeat([f"job {number}" for number in range(len(rows))], rows)
    mechanism = Decoys(c=len(rows), grouping=grouping)
    release = dn.publish(pa.table({"job": jobs}), sensitive="job", mechanism=mechanism, key=bytes(32))
    (part,) = release.manifest.parts
    assert part.channels == ()
    release.verify()
