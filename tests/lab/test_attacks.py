"""Attacks on groups: what they succeed against, and where theory says they must fail.

Attackers see what groups show: they look up each person's box by public values, and read the values of its rows.
Seeds are fixed. "At most p" is tested as p + 5.5 standard deviations of the trials: false alarm below 1e-7 a test.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from deniable.core.errors import OptionError, RequirementError
from deniable.core.privacy import Privacy
from deniable.lab import Anatomy, Generalize, Laplace, PerturbedGeneralization, attack
from deniable.lab.attacks import Buckets, de_finetti, foreground
from deniable.lab.made_up import census
from deniable.lab.rival import Rival
from deniable.owner.attacks import Evidence, corruption, homogeneity, linking, sample_corruption
from deniable.planning.attackers import AttackResult, classifier
from deniable.planning.pools import CodedTable
from deniable.tables.keys import Keystream, Secret

Codes = npt.NDArray[np.int64]
N, M = 6_000, 8


def people() -> tuple[pa.Table, Codes]:
    """A disease that goes with where people live, so that small groups agree; and with nothing else."""
    rng = np.random.default_rng(3)
    district = rng.integers(0, 16, N)
    common = rng.permutation(np.arange(16) % M)[district]
    values = np.where(rng.random(N) < 0.9, common, rng.integers(0, M, N))
    table = pa.table({"district": district, "age": rng.integers(18, 90, N), "disease": values})
    return table, values


def released(table: pa.Table, k: int, l: int) -> tuple[Codes, Codes, Codes]:
    """The shown rows' groups and values, and the group in which an attacker finds each person."""
    coded = CodedTable.of(table, "disease")
    kept, boxed = Generalize(k=k, l=l).group(coded, Keystream(Secret.from_key(bytes(32)), "test"))
    assert len(kept) == N, "nobody is left out of this table"
    return boxed.groups, coded.codes.astype(np.int64), boxed.groups


def at_most(result: AttackResult, bound: float) -> bool:
    return result.success <= bound + 5.5 * float(np.sqrt(bound * (1 - bound) / result.trials))


def test_homogeneity_breaks_k_anonymity_and_not_diversity() -> None:
    table, values = people()
    cells, shown, found = released(table, 5, 1)
    result = homogeneity(cells, shown, found, values)
    assert result.trials > 500, "groups of 5 that agree"
    assert result.success == 1
    cells, shown, found = released(table, 5, 4)
    assert homogeneity(cells, shown, found, values).trials == 0


def test_linking_is_bounded_by_diversity_and_by_nothing_else() -> None:
    table, values = people()
    evidence = Evidence.as_published(np.bincount(values, minlength=M))
    cells, shown, found = released(table, 5, 1)
    assert linking(cells, shown, evidence, found, values).success > 0.7
    cells, shown, found = released(table, 5, 4)
    diverse = linking(cells, shown, evidence, found, values)
    assert diverse.success <= 0.25, "exact: the most frequent value of a group has a quarter of it at most"
    assert diverse.success > diverse.baseline


def test_generalization_falls_to_corruption() -> None:
    table, values = people()
    _, _, found = released(table, 8, 4)
    evidence = Evidence.as_published(np.bincount(values, minlength=M))
    nobody, everybody_else = np.zeros(N, dtype=bool), np.ones(N, dtype=bool)
    everybody_else[np.unique(found, return_index=True)[1]] = False
    assert at_most(corruption(found, values, evidence, values, nobody), 0.25)
    knowing = corruption(found, values, evidence, values, everybody_else)
    assert knowing.success == 1
    assert knowing.trials == found.max() + 1


def test_counting_what_is_left_is_what_all_matchings_give() -> None:
    """With exact evidence the permanent is a count; groups of 4 with two known, against every order of the rows."""
    rng = np.random.default_rng(7)
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    for _ in range(50):
        values = rng.integers(0, 4, 4)
        known = np.array([False, True, True, False])
        weight = np.zeros(4)
        for order in permutations(range(4)):
            for first, last in product(range(4), repeat=2):
                shown = values[list(order)]
                if shown.tolist() == [first, values[1], values[2], last]:
                    weight[first] += prior[first] * prior[last]
        guess = int(np.isclose(weight, weight.max()).argmax())
        found = corruption(np.zeros(4, np.int64), values, Evidence.as_published(prior), values, known)
        assert found.success == float(guess == values[0])


def test_a_sampled_row_is_attacked_by_bayes_rule() -> None:
    """Three members, one known, one row published: all members it may belong to and all values of the unknown ones."""
    rng = np.random.default_rng(8)
    likelihood = rng.random((3, 3))
    likelihood /= likelihood.sum(0)
    prior = np.array([0.4, 0.35, 0.25])
    evidence = Evidence(likelihood, prior)
    known = np.array([False, False, True])
    for shown, value in product(range(3), repeat=2):
        truth = np.zeros(3)
        for mine, other in product(range(3), repeat=2):
            drawn = [likelihood[shown, mine], likelihood[shown, other], likelihood[shown, value]]
            truth[mine] += prior[mine] * prior[other] * sum(drawn) / 3
        for own in range(3):
            original = np.array([own, 0, value])
            found = sample_corruption(np.zeros(3, np.int64), np.array([shown]), evidence, original, known)
            assert found.success == float(truth.argmax() == own)


@pytest.mark.parametrize("known", [0.0, 0.5, 1.0])
def test_a_sampled_and_perturbed_row_withstands_corruption(known: float) -> None:
    rng = np.random.default_rng(9)
    values = rng.integers(0, M, 40_000)
    groups = np.arange(len(values)) // 10
    likelihood = np.full((M, M), 0.1) + 0.2 * np.eye(M)  # a posterior of 0.3 for whoever knows the row's owner
    member = np.arange(4_000) * 10 + rng.integers(0, 10, 4_000)
    kept = rng.random(4_000) < 0.2
    shown = np.where(kept, values[member], rng.integers(0, M, 4_000))
    corrupted = (np.arange(len(values)) % 10 > 0) & (rng.random(len(values)) < known)
    result = sample_corruption(groups, shown, Evidence(likelihood, np.full(M, 1 / M)), values, corrupted)
    assert result.trials == 4_000
    assert at_most(result, 0.3)
    naked = sample_corruption(groups, values[member], Evidence.as_published(np.ones(M)), values, corrupted)
    assert known < 1 or naked.success > result.success, "without perturbation the row's owner is given away"


def test_a_classifier_learns_the_population_from_boxes_and_nothing_where_there_is_nothing() -> None:
    table, values = people()
    cells, shown, found = released(table, 5, 4)
    evidence = Evidence.as_published(np.bincount(values, minlength=M))
    district = table["district"].to_numpy()
    shares = np.zeros((cells.max() + 1, M))
    np.add.at(shares, (cells, shown), 1.0)
    shares /= shares.sum(1, keepdims=True)
    learnt = classifier([district], found, shares, evidence.prior, [district], values)
    assert learnt.success > learnt.baseline + 0.05
    unrelated = np.random.default_rng(1).permutation(district)
    nothing = classifier([unrelated], found, shares, evidence.prior, [unrelated], values)
    assert at_most(nothing, nothing.baseline + 0.04), "sixteen districts can be overfitted by this much"


# -- attacks on rivals, as anyone plays them ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def half_alone() -> CodedTable:
    """Half of the people are alone in their public values, the others come in threes; the side says a little."""
    rng, rows, m = np.random.default_rng(1), 20_000, 10
    value = rng.permutation(np.repeat(np.arange(m), np.array([14, 13, 12, 11, 10, 10, 9, 8, 7, 6]) * rows // 100))
    place = np.r_[np.arange(rows // 2), rows // 2 + np.arange(rows // 2) // 3]
    side = np.where(rng.random(rows) < 0.5, value % 3, rng.integers(0, 3, rows))
    side[rows // 2 :] = 0
    return CodedTable.of(pa.table({"place": place, "side": side, "value": value}), "value")


def played(rival: Rival, table: CodedTable) -> dict[str, list[AttackResult]]:
    found: dict[str, list[AttackResult]] = {}
    for result in attack(rival, table):
        found.setdefault(result.name, []).append(result)
    return found


@pytest.mark.parametrize("rival", [Anatomy(4), Generalize(k=4, l=4)], ids=repr)
def test_groups_of_true_values_hold_against_linking_and_fall_to_corruption(
    rival: Rival, half_alone: CodedTable
) -> None:
    found = played(rival, half_alone)
    assert at_most(found["linking"][0], 0.25)
    assert found["homogeneity"][0].trials == 0
    none, half, everybody = found["corruption"]
    assert at_most(none, 0.25)
    assert none.success < half.success < everybody.success == 1
    assert everybody.trials > 500


def test_anatomy_leaves_one_in_l_less_the_known_and_nothing_when_it_is_repeated(half_alone: CodedTable) -> None:
    found = played(Anatomy(4), half_alone)
    none, half, _ = found["corruption"]
    for result, expected in ((none, 1 / 4), (half, 1 / 3)):  # one of three others known leaves three values
        assert abs(result.success - expected) < 5.5 * np.sqrt(expected * (1 - expected) / result.trials)
    assert found["repeated publication"][0].low > found["linking"][0].high


def test_homogeneity_breaks_boxes_that_need_not_be_diverse() -> None:
    rng = np.random.default_rng(3)
    district = rng.integers(0, 40, 4_000)
    rows = pa.table({"district": district, "age": rng.integers(0, 80, 4_000), "value": district % 10})
    result = played(Generalize(k=5, l=1), CodedTable.of(rows, "value"))["homogeneity"][0]
    assert result.success == 1
    assert result.trials > 1_000


# -- de Finetti --------------------------------------------------------------------------------------------------------

L, ROWS = 4, 8000


def grouped(strength: float, seed: int = 1) -> tuple[Buckets, list[Codes], Codes, Codes]:
    """Groups of l rows with l different values; two public columns that equal the value with some probability."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.permutation(8)[:L] for _ in range(ROWS // L)])
    groups = np.repeat(np.arange(ROWS // L), L)
    columns = [np.where(rng.random(ROWS) < strength, values, rng.integers(8, size=ROWS)) for _ in range(2)]
    shares = np.zeros((ROWS // L, 8))
    shares[groups, values] = 1 / L
    return Buckets(groups, shares, columns), columns, groups, values


def test_correlated_columns_break_the_promise_of_one_in_l() -> None:
    released = grouped(0.5)
    learnt, once = (learner(*released) for learner in (de_finetti, foreground))
    assert once.low > 1.5 / L, "one step is already well above what the group promises"
    assert learnt.success >= once.success - 0.02
    # An attacker who knew Pr[column | value] exactly: the group's values by how many of the columns equal each.
    buckets, columns, groups, values = released
    fits = sum((np.arange(8) == column[:, None]) * np.log(0.5625 / 0.0625) for column in columns)
    best = (np.where(buckets.shares[groups] > 0, fits, -np.inf)).argmax(1)
    assert learnt.success > (best == values).mean() - 0.05


def test_columns_that_tell_nothing_leave_one_in_l() -> None:
    for learner in (de_finetti, foreground):
        result = learner(*grouped(0.0, seed=2))
        sure = 5.5 * np.sqrt((1 / L) * (1 - 1 / L) / ROWS)
        assert abs(result.success - 1 / L) <= sure


def test_nobody_to_attack_is_no_result() -> None:
    buckets, columns, _, _ = grouped(0.5)
    nobody = np.zeros(0, np.int64)
    result = de_finetti(buckets, [column[:0] for column in columns], nobody, nobody)
    assert result.trials == 0


@pytest.mark.parametrize("name", ["foreground", "de Finetti"])
def test_anatomy_falls_to_who_learns_from_its_groups(name: str) -> None:
    rng = np.random.default_rng(7)
    disease = rng.integers(6, size=1200)
    ward = np.where(rng.random(1200) < 0.7, disease, rng.integers(6, size=1200))
    table = pa.table({"id": np.arange(1200), "ward": ward, "disease": disease})
    by_name = {result.name: result for result in attack(Anatomy(3), CodedTable.of(table, "disease"))}
    assert by_name[name].low > 1 / 3


def test_every_attack_is_played_on_every_rival_that_shows_rows() -> None:
    """Corruption takes values out of groups until one is left; one perturbed row of a box keeps what it promises."""
    table = CodedTable.of(census(6_000, seed=4), "occupation")
    privacy = Privacy(rho2="1/6")
    everywhere = ["linking", "homogeneity", "corruption", "corruption", "corruption", "classifier"]
    more = {"anatomy": ["foreground", "de Finetti", "repeated publication"]}
    for rival in (Anatomy(6), Generalize(6, 6), PerturbedGeneralization(6)):
        found = attack(rival, table, privacy=privacy)
        assert [result.name for result in found] == [*everywhere, *more.get(rival.name, [])]
        by_known = {result.note.split()[0]: result for result in found if result.name == "corruption"}
        assert at_most(by_known["none"], 1 / 6)
        if isinstance(rival, PerturbedGeneralization):
            assert at_most(by_known["all"], 1 / 6)
        else:
            assert by_known["all"].success == 1
        assert attack(rival, table, privacy=privacy) == found, "the same groups give the same figures"
    with pytest.raises(OptionError, match="shows no rows"):
        attack(Laplace(), table)
    with pytest.raises(RequirementError, match="l=6"):
        attack(Anatomy(3), table, privacy=privacy)
