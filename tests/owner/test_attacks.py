"""Each attack succeeds against the mechanism it was invented for and fails where theory says it must.

Seeds are fixed. "At most p" is tested as p + 5.5 standard deviations of the trials: false alarm below 1e-7 a test.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from deniable.core.channels import Channel
from deniable.core.errors import OptionError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms.decoys import Decoys
from deniable.mechanisms.designed import Designed
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.uniform import Uniform
from deniable.owner.attacks import (
    AttackResult,
    Evidence,
    corruption,
    decoy_reconstruction,
    duplicates,
    homogeneity,
    linking,
    minimality,
    repeated,
    views_of,
)
from deniable.planning.attackers import classifier, interval
from reproduction.corruption_story import corruption_story

Codes = npt.NDArray[np.int64]
M = 10
SHARES = np.array([14, 13, 12, 11, 10, 10, 9, 8, 7, 6])
RHO2 = 0.25


def people(n: int, seed: int) -> Codes:
    """Values in random order, in exact proportion to SHARES."""
    values = np.repeat(np.arange(M), SHARES * n // 100)
    return np.random.default_rng(seed).permutation(values)


def perturbed(values: Codes, channel: Channel, rng: np.random.Generator) -> Codes:
    kept = rng.random(len(values)) < channel.coins[values]
    return np.where(kept, values, rng.choice(channel.m, len(values), p=channel.replacing))


def protected(values: Codes, mechanism: object, seed: int) -> tuple[Codes, Evidence]:
    """Views and evidence of a release by a real plan; rows stay where they are, so that the test can judge."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(values, minlength=M)
    plan = mechanism.plan(Histogram(tuple(range(M)), counts), Privacy(rho2=Fraction(1, 4)))  # type: ignore[attr-defined]
    cells = np.zeros(len(values), dtype=np.int64)
    for value in range(M):
        dealt = [(i, cell.rows.get(value, 0)) for i, cell in enumerate(plan.cells)]
        rows = rng.permutation(np.flatnonzero(values == value))
        cells[rows] = np.repeat([i for i, _ in dealt], [n for _, n in dealt])
    shown = np.zeros_like(values)
    places = [plan.positions(cell) for cell in plan.cells]
    for i, cell in enumerate(plan.cells):
        inside = cells == i
        own = np.searchsorted(places[i], values[inside])
        shown[inside] = places[i][perturbed(own, cell.channel, rng)]
    evidence = Evidence.of_channels(
        counts, [cell.channel for cell in plan.cells], places, [cell.rows.counts for cell in plan.cells]
    )
    return views_of(shown, M, cells), evidence


def anatomy(values: Codes, l: int, rng: np.random.Generator) -> Codes:
    """Anatomy's groups (mathematics 9): one random row from each of the l largest buckets, ties at random."""
    buckets = [rng.permutation(np.flatnonzero(values == value)).tolist() for value in range(M)]
    groups = np.full(len(values), -1)
    number = 0
    while sum(1 for bucket in buckets if bucket) >= l:
        order = sorted(range(M), key=lambda v: (-len(buckets[v]), rng.random()))[:l]
        for value in order:
            groups[buckets[value].pop()] = number
        number += 1
    assert (groups >= 0).sum() > 0.99 * len(values)
    return groups


def margin(bound: float, result: AttackResult) -> float:
    return 5.5 * float(np.sqrt(bound * (1 - bound) / result.trials))


def at_most(result: AttackResult, bound: float) -> bool:
    return result.success <= bound + margin(bound, result)


MECHANISMS = [Uniform(), SmallDomain(), Designed()]
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)


# -- linking -----------------------------------------------------------------------------------------------------------


def test_linking_finds_everyone_in_an_unprotected_table() -> None:
    values = people(10_000, 1)
    public = np.arange(len(values))
    result = linking(public, values, Evidence.as_published(np.bincount(values)), public, values)
    assert result.success == 1
    assert result.baseline == pytest.approx(0.14)


@each_mechanism
def test_linking_is_right_at_most_as_often_as_rho2_allows(mechanism: object) -> None:
    values = people(60_000, 2)
    public = np.arange(len(values))
    views, evidence = protected(values, mechanism, 3)
    result = linking(public, views, evidence, public, values)
    assert at_most(result, RHO2)
    # The success that theory predicts exactly: sum over views of the largest joint probability.
    predicted = float((evidence.likelihood * evidence.prior).max(1).sum())
    assert abs(result.success - predicted) < margin(predicted, result)
    assert result.low <= result.success <= result.high


def test_linking_among_rows_that_share_public_values_averages_over_them() -> None:
    values = people(10_000, 4)
    public = np.random.default_rng(5).permutation(np.arange(len(values)) // 5)
    unprotected = linking(public, values, Evidence.as_published(np.bincount(values)), public, values)
    assert 0.2 < unprotected.success < 0.5, "one of five rows, or more where they agree"
    nobody = linking(public[:0], values[:0], Evidence.as_published(np.bincount(values)), public, values)
    assert nobody.success == pytest.approx(nobody.baseline)


# -- homogeneity -------------------------------------------------------------------------------------------------------


def test_homogeneity_breaks_generalization_where_groups_agree() -> None:
    rng = np.random.default_rng(6)
    groups = np.arange(9_000) // 3
    values = np.where(rng.random(3_000) < 0.2, rng.integers(0, M, 3_000), -1)[groups]
    values = np.where(values >= 0, values, rng.integers(0, M, 9_000))
    result = homogeneity(groups, values, groups, values)
    assert result.success == 1
    assert result.trials > 1_500


def test_homogeneity_finds_nothing_in_anatomy() -> None:
    values = people(6_000, 7)
    groups = anatomy(values, 4, np.random.default_rng(8))
    inside = groups >= 0
    result = homogeneity(groups[inside], values[inside], groups[inside], values[inside])
    assert result.trials == 0
    assert (result.low, result.high) == (0, 1)


@each_mechanism
def test_groups_that_agree_by_chance_mislead_against_perturbation(mechanism: object) -> None:
    values = people(20_000, 9)
    groups = np.arange(len(values)) // 2  # pairs; the true values differ as often as chance has it
    views, _ = protected(values, mechanism, 10)
    shown = views % M
    result = homogeneity(groups, shown, groups, values)
    assert result.trials > 1_000
    assert at_most(result, RHO2), "the other row is drawn by itself, so each is bound by its own posterior"


# -- corruption --------------------------------------------------------------------------------------------------------


def test_anatomy_falls_to_corruption() -> None:
    values = people(6_000, 11)
    groups = anatomy(values, 4, np.random.default_rng(12))
    values, groups = values[groups >= 0], groups[groups >= 0]
    evidence = Evidence.as_published(np.bincount(values, minlength=M))
    seat = _seats(groups)
    rates = [corruption(groups, values, evidence, values, seat < known).success for known in range(4)]
    n = groups.max() + 1
    for known, rate in enumerate(rates):
        expected = 1 / (4 - known)
        assert abs(rate - expected) < 5.5 * np.sqrt(expected * (1 - expected) / n) + 1e-12
    assert rates[3] == 1


@each_mechanism
def test_randomization_does_not_fall_to_corruption(mechanism: object) -> None:
    values = people(20_000, 13)
    views, evidence = protected(values, mechanism, 14)
    groups = np.arange(len(values)) // 4
    seat = _seats(groups)
    blind = corruption(groups, views, evidence, values, seat < 0)
    knowing = corruption(groups, views, evidence, values, seat < 3)
    assert at_most(knowing, RHO2)
    assert at_most(blind, RHO2)
    # Even someone who has found the person's own row is bound by rho2, whoever else they know.
    alone = corruption(np.arange(len(values)), views, evidence, values, seat < 3)
    assert at_most(alone, RHO2)


def test_the_story_of_the_paper_is_reproduced_on_a_made_up_census() -> None:
    story = corruption_story(seed=1, rows=18_000)
    assert story == corruption_story(seed=1, rows=18_000)
    by_method: dict[str, list[float]] = {}
    for line in story:
        by_method.setdefault(line["method"], []).append(line["success"])
    assert [round(1 / rate) for rate in by_method["anatomy"]] == [6, 5, 4, 3, 2, 1]
    for method in ("uniform", "small-domain"):
        # 3,000 people a line, 1/6 at most: 5.5 standard deviations
        assert max(by_method[method]) < 1 / 6 + 5.5 * np.sqrt(5 / 36 / 3_000)
    trials = {line["method"]: line["trials"] for line in story}
    assert by_method["generalize"][0] < 1 / 6 + 5.5 * np.sqrt(5 / 36 / trials["generalize"]), "as promised"
    assert by_method["generalize"][-1] == 1, "and broken by whoever knows the others"
    sampled = by_method["perturbed-generalization"]
    assert max(sampled) < 1 / 6 + 5.5 * np.sqrt(5 / 36 / trials["perturbed-generalization"])


def test_the_matchings_of_the_corruption_attack_are_bayes_rule() -> None:
    """Three members, one known: all orders of the rows and all values of the unknown ones, by enumeration."""
    from itertools import permutations, product

    rng = np.random.default_rng(15)
    likelihood = rng.random((4, 3))
    likelihood /= likelihood.sum(0)
    prior = np.array([0.5, 0.3, 0.2])
    evidence = Evidence(likelihood, prior)
    from deniable.owner.attacks import _beliefs

    views, values = np.array([[2, 0, 3]]), np.array([[1, 2, 0]])
    known = np.array([[False, False, True]])
    found = _beliefs(views, values, known, evidence)[0]
    truth = np.zeros(3)
    for mine, other in product(range(3), repeat=2):
        for rows in permutations(views[0].tolist()):
            chance = likelihood[rows[0], mine] * likelihood[rows[1], other] * likelihood[rows[2], 0]
            truth[mine] += prior[mine] * prior[other] * chance
    assert found / found.sum() == pytest.approx(truth / truth.sum())


def test_groups_too_large_for_every_matching_are_refused() -> None:
    values = people(100, 16)
    blurred = Evidence(np.full((M, M), 0.05) + 0.5 * np.eye(M), np.full(M, 1 / M))
    with pytest.raises(OptionError, match="at most 12"):
        corruption(np.zeros(100, np.int64), values, blurred, values, np.zeros(100, dtype=bool))


# -- repeated publication ----------------------------------------------------------------------------------------------


@each_mechanism
def test_fresh_keys_give_values_away_and_the_same_key_does_not(mechanism: object) -> None:
    values = people(4_000, 17)
    releases = [protected(values, mechanism, 100 + k) for k in range(60)]
    evidence = releases[0][1]
    once = repeated([releases[0][0]], evidence, values)
    same = repeated([releases[0][0]] * 60, evidence, values)
    fresh = repeated([views for views, _ in releases], evidence, values)
    assert at_most(once, RHO2)
    assert same.success == once.success
    assert fresh.success > 0.7
    assert "1 of them different" in same.note


# -- decoys ------------------------------------------------------------------------------------------------------------


def decoys(values: Codes, c: int, rng: np.random.Generator) -> tuple[Codes, Codes, Codes]:
    """Decoy groups (mathematics 7), in group order: true values, published values, groups."""
    groups = anatomy(values, c, rng)
    order = np.argsort(groups[groups >= 0], kind="stable")
    true, groups = values[groups >= 0][order], groups[groups >= 0][order]
    members = true.reshape(-1, c)
    lent = members[np.arange(len(true)) // c, rng.integers(0, c, len(true))]
    return true, lent, groups


def test_decoy_groups_are_found_in_rows_that_were_not_shuffled_and_only_there() -> None:
    rng = np.random.default_rng(18)
    _, _, groups = decoys(people(6_000, 19), 5, rng)
    assert decoy_reconstruction(groups, 5).success == 1
    shuffled = decoy_reconstruction(rng.permutation(groups), 5)
    assert at_most(shuffled, shuffled.baseline + 1e-3)


def test_knowing_the_algorithm_does_not_beat_symmetric_decoys() -> None:
    rng = np.random.default_rng(20)
    values = people(20_000, 21)
    true, lent, groups = decoys(values, 5, rng)
    # The attacker runs the grouping on the published counts and reads off who lends to whom.
    guessed, _, _ = decoys(rng.permutation(lent), 5, rng)
    members = guessed.reshape(-1, 5)
    joint = np.zeros((M, M))
    for i in range(5):
        for j in range(5):
            np.add.at(joint, (members[:, i], members[:, j]), 0.2)
    rebuilt = Evidence(joint / joint.sum(0), joint.sum(0) / joint.sum())
    result = minimality(lent, rebuilt, true, promised=0.2)
    assert result.trials == 0 or at_most(result, 0.2)
    everyone = linking(np.arange(len(true)), lent, rebuilt, np.arange(len(true)), true)
    assert at_most(everyone, 0.2)
    assert groups.max() > 0


def test_whoever_knows_the_plan_of_decoys_is_right_once_in_c() -> None:
    values = people(60_000, 33)
    views, evidence = protected(values, Decoys(c=5, leftovers="drop"), 34)
    everyone = np.arange(len(values))
    without_cells = Evidence(evidence.likelihood.reshape(-1, M, M).sum(0), evidence.prior)
    result = linking(everyone, views % M, without_cells, everyone, values)
    assert abs(result.success - 0.2) < margin(0.2, result)


def test_knowing_the_algorithm_breaks_decoys_that_only_the_sensitive_value_has() -> None:
    """Minimality: only value 0 is hidden behind one of three decoys, which are published as they are."""
    rng = np.random.default_rng(22)
    values = people(20_000, 23)
    hides = values == 0
    lent = np.where(hides, rng.integers(0, 3, len(values)), values)
    likelihood = np.eye(M)
    likelihood[:3, 0] = 1 / 3
    rebuilt = Evidence(likelihood, np.bincount(values) / len(values))
    result = minimality(lent, rebuilt, values, promised=1 / 3)
    zero = lent == 0
    assert (values[zero] == 0).all(), "whoever shows the value has it"
    assert result.success > 0.7
    assert result.trials > 1_000


# -- classifier --------------------------------------------------------------------------------------------------------


def correlated(n: int, seed: int) -> tuple[list[Codes], Codes]:
    """Three public columns that each say something about the value."""
    rng = np.random.default_rng(seed)
    values = people(n, seed)
    columns = [
        np.where(rng.random(n) < 0.6, (values * k + k) % M, rng.integers(0, M, n)).astype(np.int64) for k in (1, 3, 7)
    ]
    return columns, values


def test_a_classifier_learns_from_an_unprotected_table_and_from_anatomy() -> None:
    columns, values = correlated(20_000, 24)
    evidence = Evidence.as_published(np.bincount(values))
    raw = classifier(columns, values, evidence.weights, evidence.prior, columns, values)
    assert raw.success > 0.6
    groups = anatomy(values, 4, np.random.default_rng(25))
    inside = groups >= 0
    shares = np.zeros((groups.max() + 1, M))
    np.add.at(shares, (groups[inside], values[inside]), 0.25)
    grouped = classifier([c[inside] for c in columns], groups[inside], shares, evidence.prior, columns, values)
    assert grouped.success > 0.4


def test_a_classifier_learns_the_population_from_perturbed_rows_too() -> None:
    columns, values = correlated(100_000, 26)
    views, evidence = protected(values, Designed(), 27)
    result = classifier(columns, views, evidence.weights, evidence.prior, columns, values)
    assert result.success > 0.5, "privacy is for people, not for what the data say"


def test_a_classifier_learns_nothing_where_there_is_nothing_to_learn() -> None:
    columns, values = correlated(20_000, 28)
    rng = np.random.default_rng(29)
    evidence = Evidence.as_published(np.bincount(values))
    unrelated = [rng.permutation(column) for column in columns]
    blind = classifier(unrelated, values, evidence.weights, evidence.prior, unrelated, values)
    assert at_most(blind, blind.baseline + 0.02), "three columns of ten values can be overfitted by this much"
    redrawn = np.broadcast_to(evidence.prior[:, None], (M, M))  # DBR: published values say nothing
    shown = rng.choice(M, len(values), p=evidence.prior)
    deaf = Evidence(np.array(redrawn), evidence.prior)
    nothing = classifier(columns, shown, deaf.weights, deaf.prior, columns, values)
    assert at_most(nothing, nothing.baseline)


# -- duplicates --------------------------------------------------------------------------------------------------------


def insertion_scheme(records: Codes, possible: int, alpha: float, beta: float, rng: np.random.Generator) -> Codes:
    """The (alpha, beta) scheme of Rastogi, Suciu and Hong (THESIS 2.3): every record of the table stays with
    probability alpha + beta; then every record that is possible at all is inserted with probability beta, once."""
    kept = records[rng.random(len(records)) < alpha + beta]
    inserted = np.flatnonzero(rng.random(possible) < beta)
    return rng.permutation(np.concatenate([kept, inserted]))


def test_duplicates_are_certain_under_the_insertion_scheme() -> None:
    rng = np.random.default_rng(30)
    combinations = 3_000
    public = rng.integers(0, combinations, 6_000)
    original = public * M + people(6_000, 31)
    shown = insertion_scheme(original, combinations * M, alpha=0.2, beta=0.1, rng=rng)
    real = np.isin(shown, original).mean()
    assert real < 0.6, "a single record is often fake"
    result = duplicates(shown, original, M)
    assert result.trials > 200
    assert result.success == 1
    assert result.baseline < 0.5


def test_duplicates_say_little_under_perturbation() -> None:
    rng = np.random.default_rng(32)
    public = np.arange(40_000) // 2
    values = rng.permuted(np.tile(np.arange(M), (20_000, 1)), axis=1)[:, :2].reshape(-1)  # two different values each
    channel = Channel.uniform(range(M), gamma=Fraction(3))
    shown = public * M + perturbed(values, channel, rng)
    result = duplicates(shown, public * M + values, M)
    # Two rows of values a != b show the same value, and it is a or b: 2 g / (2 g + m - 2) at gamma g.
    expected = 2 * 3 / (2 * 3 + M - 2)
    assert result.trials > 1_000
    assert abs(result.success - expected) < margin(expected, result)


# -- results -----------------------------------------------------------------------------------------------------------


def test_intervals_cover() -> None:
    """Clopper-Pearson at p = 0.3, 40 trials: exact coverage by the binomial sum is at least 95 %."""
    from scipy import stats

    covered = sum(stats.binom.pmf(k, 40, 0.3) for k in range(41) if interval(k, 40)[0] <= 0.3 <= interval(k, 40)[1])
    assert 0.95 <= covered < 0.99
    assert interval(0, 10)[0] == 0
    assert interval(10, 10)[1] == 1


def test_a_result_reads_as_a_sentence() -> None:
    text = str(AttackResult("linking", 0.2, 0.1, 0.3, 0.15, 1_000, "a note"))
    assert text == "linking: right in 20 % of 1,000 guesses (10 % to 30 %), 15 % without the release; a note"


def _seats(groups: Codes) -> Codes:
    """0, 1, 2, ... inside each group, in row order."""
    order = np.argsort(groups, kind="stable")
    starts = np.r_[0, np.flatnonzero(np.diff(groups[order])) + 1]
    seats = np.empty(len(groups), dtype=np.int64)
    seats[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
    return seats
