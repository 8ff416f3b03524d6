"""Estimates from decoy groups: exact where they must be, and where each is biased, measured."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from deniable.core.errors import QuestionError
from deniable.core.histogram import Histogram
from deniable.core.part import Grouping
from deniable.core.plan import Plan
from deniable.estimation.decoys import four_states, inverted, several_columns
from deniable.estimation.model.tensor import Dense
from deniable.mechanisms.decoys import Decoys, full_channel, replanned
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import Kernel
from deniable.tables.worker import Dealer


def matrix(a: float, c: int) -> np.ndarray:
    return np.array([[1 - a, a], [(c - 1) / c, 1 / c]])


def chance(f: float, rows: float, c: int, others: str) -> float:
    return f / rows if others == "as published" else f * (c - 1) / (c * (rows - f))


@pytest.mark.parametrize("estimate", [lambda y, c, others: inverted(y, [c], others=others), four_states])
@pytest.mark.parametrize("others", ["exact", "as published"])
def test_expected_observations_give_the_truth_back(estimate, others):
    for c, x in [(2, [[500.0, 80], [300, 120]]), (5, [[800, 20], [100, 80]]), (10, [[9000, 100], [700, 200]])]:
        x = np.array(x)
        a = chance(x[:, 1].sum(), x.sum(), c, others)
        found = estimate(x @ matrix(a, c), c, others=others)
        assert np.allclose(found, x, rtol=1e-6)


@pytest.mark.parametrize("estimate", [inverted, several_columns])
def test_several_columns_are_a_tensor_product(estimate):
    rng = np.random.default_rng(1)
    sizes = (5, 3)
    questions = []
    for _ in range(3):
        x = rng.integers(20, 100, (2, 2, 2)).astype(float)
        x[:, 0, :] *= 12
        x[:, :, 0] *= 4
        a = [chance(x[:, 1].sum(), x.sum(), 5, "exact"), chance(x[:, :, 1].sum(), x.sum(), 3, "exact")]
        full = np.kron(np.eye(2), np.kron(matrix(a[0], 5), matrix(a[1], 3)))
        questions.append((x, (x.ravel() @ full).reshape(2, 2, 2)))
    found = estimate([y for _, y in questions], sizes)
    assert np.allclose(found, [x for x, _ in questions], rtol=1e-3)


def test_one_column_by_the_general_rule_is_the_four_state_estimate():
    y = np.random.default_rng(2).integers(1, 60, (40, 2, 2)).astype(float)
    y[:, :, 0] += 200
    assert np.allclose(several_columns(y, (4,)), four_states(y, 4), atol=0.05)


def test_the_bayesian_rule_is_at_its_fixed_point_and_possible():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 50, (200, 2, 2)).astype(float)
    y += np.array([[300, 0], [40, 0]])
    x = four_states(y, 5)
    assert (x >= -1e-9).all()
    assert np.allclose(x.sum(2), y.sum(2))
    for row, seen in zip(x[:50], y[:50], strict=True):
        n, f = seen.sum(), row[:, 1].sum()
        if not 0 < f < 0.999 * n / 5:
            continue
        m = matrix(chance(f, n, 5, "exact"), 5)
        assert np.allclose(row * ((seen / (row @ m)) @ m.T), row, atol=1e-4)


def test_many_questions_are_one_array_operation_and_shapes_come_back():
    y = np.random.default_rng(4).integers(1, 60, (3, 7, 2, 2)).astype(float)
    y[..., 0] += 300
    assert four_states(y, 5).shape == y.shape
    assert np.array_equal(four_states(y, 5)[1, 2], four_states(y[1, 2], 5))
    with pytest.raises(QuestionError, match="8 states"):
        several_columns(np.ones((2, 2)), (5, 5))


def test_a_value_in_every_group_shows_nothing():
    y = np.array([[300.0, 75], [100, 25]])  # 100 of 500 rows, c = 5
    assert np.isnan(inverted(y, [5])).all()
    assert np.isfinite(several_columns(y, (5,))).all()


# -- the full channel -----------------------------------------------------------------------------------------------


def plan_for(counts: np.ndarray, c: int, grouping: str = "mixed") -> Plan:
    return Decoys(c=c, grouping=grouping).plan(Histogram(tuple(range(len(counts))), counts), None)


def test_the_full_channel_is_what_the_cells_do():
    plan = plan_for(np.array([12, 8, 6, 5, 4, 3, 1, 1, 1, 1]), 3)
    channel = full_channel(plan.parts[0])
    assert np.allclose(channel.sum(0), 1)
    assert np.allclose(np.diag(channel), 1 / 3)
    assert np.allclose(channel @ plan.histogram.counts, plan.histogram.counts)
    for x, y in product(range(10), repeat=2):
        share = sum(
            cell.rows.get(x, 0) / plan.histogram.counts[x] / 3
            for cell in plan.cells
            if y in cell.rows and x in cell.rows
        )
        assert channel[y, x] == pytest.approx(share)


def test_values_that_only_ever_meet_each_other_cannot_be_told_apart():
    channel = full_channel(plan_for(np.array([10] * 6), 3, "balanced").parts[0])
    assert np.linalg.matrix_rank(channel) == 2
    with pytest.raises(QuestionError, match="'x' cannot be told apart"):
        Dense("x", channel).weights(np.eye(6)[0])
    assert np.allclose(channel.T @ [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0])  # those that meet are told from the others


def zipf_counts(c: int, m: int = 20, n: int = 20_000) -> np.ndarray:
    f = np.arange(1, m + 1) ** -0.5
    counts = np.floor(f / f.sum() * n).astype(np.int64)
    counts[-1] += (-counts.sum()) % c
    return counts


def simulate(plan: Plan, matching: np.ndarray, codes: np.ndarray, keys: int) -> np.ndarray:
    """Published counts [keys, (not Q, Q), m] through the engine's dealing and sampling."""
    kernel = Kernel([cell.channel for cell in plan.cells], [plan.positions(cell) for cell in plan.cells])
    m = plan.histogram.m
    found = []
    for key in range(keys):
        stream = Keystream(Secret.from_key(bytes(range(32))), "decoy estimates", str(key))
        cells = Dealer(plan.parts[0], stream.subkey("dealing")).deal(codes, np.zeros(m, np.int64))
        shown = kernel.perturb(codes, stream.words(0, len(codes)), cells)
        found.append(np.bincount(matching * m + shown, minlength=2 * m).reshape(2, m))
    return np.array(found)


def full_weights(channel: Dense, wanted: np.ndarray) -> np.ndarray:
    """What a published row counts for; not a number where values cannot be told apart."""
    try:
        return channel.weights(wanted)
    except QuestionError:
        return np.full(len(wanted), np.nan)


def errors(
    grouping: str, correlated: bool, against: str | None = None, keys: int = 300, c: int = 5, s: int = 3
) -> dict[str, tuple[float, ...]]:
    """Mean, spread and standard error of the relative error of a value's count in Q, by estimator, and the spread that
    the full channel claims. A correlated predicate prefers s and the five values that share most groups with it under
    the grouping ``against``; by default the one that is measured, which is the hardest for it."""
    counts = zipf_counts(c)
    plan = plan_for(counts, c, grouping)
    channel = Dense("x", full_channel(plan.parts[0]))
    codes = np.repeat(np.arange(20, dtype=np.uint8), counts)
    share = np.full(20, 0.2)
    if correlated:
        met = full_channel(plan_for(counts, c, against or grouping).parts[0])[s]
        share = np.full(20, 0.05)
        share[np.argsort(-met * (np.arange(20) != s))[:5]] = 0.6
        share[s] = 0.3
    matching = (np.random.default_rng(5).random(len(codes)) < share[codes]).astype(np.int64)
    true = int(((codes == s) & (matching == 1)).sum())
    seen = simulate(plan, matching, codes, keys)
    shown = seen[:, :, s]
    states = np.stack([seen.sum(2) - shown, shown], axis=2)
    weights = full_weights(channel, np.eye(20)[s])
    value, variance = seen[:, 1] @ weights, seen[:, 1] @ (weights**2 - weights)
    found = {
        "exact": inverted(states, [c])[:, 1, 1],
        "as published": inverted(states, [c], others="as published")[:, 1, 1],
        "full": value,
    }
    result: dict[str, tuple[float, ...]] = {
        name: (e.mean() / true - 1, e.std() / true, e.std() / true / math.sqrt(keys)) for name, e in found.items()
    }
    return {**result, "claimed": (0.0, math.sqrt(variance.mean()) / true, 0.0)}


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, bool], dict[str, tuple[float, ...]]]:
    return {(g, correlated): errors(g, correlated) for g in ("mixed", "balanced") for correlated in (False, True)}


def test_the_full_channel_is_unbiased_whatever_the_predicate_and_states_its_error(measured):
    for correlated in (False, True):
        bias, spread, error = measured["mixed", correlated]["full"]
        assert abs(bias) < 5 * error
        assert 0.85 * spread < measured["mixed", correlated]["claimed"][1] < 1.4 * spread


def test_balanced_groups_leave_the_full_channel_without_an_answer(measured):
    assert math.isnan(measured["balanced", True]["full"][0])


def test_four_states_are_unbiased_for_predicates_that_are_independent_of_the_value(measured):
    for grouping in ("mixed", "balanced"):
        bias, _, error = measured[grouping, False]["exact"]
        assert abs(bias) < 5 * error


def test_four_states_are_biased_for_correlated_predicates_less_so_with_mixed_groups(measured):
    """Each grouping against the predicate that is hardest for it: mixing helps, and does not cure."""
    balanced, mixed = (measured[grouping, True]["exact"] for grouping in ("balanced", "mixed"))
    assert balanced[0] > 3
    assert 0.5 < mixed[0] < balanced[0] / 3


def test_the_published_chance_is_biased_even_then(measured):
    """a = f_s / N is c / (c-1) times too large: the reconstructed counts add up to about c / (c+1) of the true ones."""
    bias, _, error = measured["mixed", False]["as published"]
    assert bias < -5 * error
    assert abs(bias + 1 / 6) < 5 * error


def test_the_noisy_histogram_gives_nearly_the_same_channel():
    counts = zipf_counts(5)
    plan = plan_for(counts, 5)
    noise = np.random.default_rng(6).integers(-3, 4, 20)
    public = replanned(Histogram(plan.histogram.domain, counts + noise), Grouping(5))
    nearly = Dense("x", full_channel(public.parts[0]))
    expected = nearly.weights(np.eye(20)) @ full_channel(plan.parts[0])
    assert np.abs(expected - np.eye(20)).max() < 0.1
    assert np.abs(expected @ counts / counts - 1).max() < 0.03


def test_noise_at_the_limit_of_what_can_be_grouped_is_cut():
    public = replanned(Histogram(tuple("abcde"), np.array([104, 98, 101, 0, 99])), Grouping(4))
    assert public.options["c"] == 4
    assert public.parts[0].groups == Grouping(4)
    assert public.histogram["d"] == 0
