"""A model learned from noisy tables, the rows dealt from it, and how far both may be off."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import deniable as dn
from deniable.core.learned import Dealt
from deniable.lab import made_up
from deniable.learned import dealing, measuring, model
from deniable.tables.keys import Keystream, Secret

SIZES, VALUES, EPSILON = (12, 2, 5), 8, Fraction(1)
LARGE = ((300_000, 3), (1_000_000, 1), (1_000_000, 3))  # people and epsilon


class Learned(NamedTuple):
    columns: list[measuring.Levels]
    rows: Any
    counts: Any  # combination x value
    learner: model.Learner
    fitted: model.Fitted
    shares: Any


def learned(people: int, seed: int, strength: float = 0.7) -> Learned:
    """A table whose values follow its columns and, a little, their pairs; measured, and learned from the tables."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, people) for size in SIZES], axis=1)
    effects = [strength * np.cumsum(rng.normal(0, 0.5, (SIZES[0], VALUES)), axis=0) / 2]
    effects += [strength * rng.normal(0, 1, (size, VALUES)) for size in SIZES[1:]]
    logits = -0.3 * np.arange(VALUES) + sum(effect[codes[:, j]] for j, effect in enumerate(effects))
    logits += 0.15 * strength * rng.normal(0, 1, (SIZES[0] * SIZES[2], VALUES))[codes[:, 0] * SIZES[2] + codes[:, 2]]
    values = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    distinct, of = np.unique(codes, axis=0, return_inverse=True)
    of = of.ravel()
    counts = np.bincount(of * VALUES + values, minlength=len(distinct) * VALUES).reshape(-1, VALUES)
    columns = [measuring.Levels(f"c{j}", distinct[:, j], size, (j,)) for j, size in enumerate(SIZES)]
    rows = counts.sum(axis=1)
    plan = measuring.default_measure(rows, columns, [True, False, False], VALUES, float(EPSILON))
    costs = measuring.shared(EPSILON, plan.weights)
    source = Keystream(Secret.from_key(seed.to_bytes(32, "big")), "learning")
    noisy = []
    for table, cost in zip(plan.tables, costs, strict=True):
        exact = np.zeros((table.size, VALUES), dtype=np.int64)
        np.add.at(exact, table.codes, counts)
        noisy.append(measuring.noisy(source.subkey(table.name), exact, cost))
    variances = [measuring.laplace_variance(cost / 2) for cost in costs]
    learner = model.Learner(rows, plan.tables, noisy, variances, plan.smooth)
    fitted = learner.fit()
    shares = learner.design.shares(fitted, np.arange(len(rows)))
    return Learned(columns, rows, counts, learner, fitted, shares)


@pytest.fixture(scope="module")
def case() -> Learned:
    return learned(40_000, 1)


def groups(case: Learned, number: int) -> list[Any]:
    """Groups of combinations with one to three conditions."""
    rng, found = np.random.default_rng(5), []
    for _ in range(number):
        keep = np.ones(len(case.rows), dtype=bool)
        for j in rng.choice(len(SIZES), rng.integers(1, 3), replace=False):
            keep &= case.columns[j].codes == rng.integers(SIZES[j])
        found.append(np.flatnonzero(keep))
    return found


def test_counts_are_far_closer_than_independence_and_than_noise(case: Learned) -> None:
    off, independent = [], []
    for group in groups(case, 60):
        true, n = case.counts[group].sum(axis=0), case.rows[group].sum()
        some = true >= 200
        off += (np.abs(case.rows[group] @ case.shares[group] - true) / np.maximum(true, 1))[some].tolist()
        independent += (np.abs(n * case.counts.sum(axis=0) / case.rows.sum() - true) / np.maximum(true, 1))[
            some
        ].tolist()
    assert np.mean(off) < 0.05
    assert np.mean(off) < 0.1 * np.mean(independent)


def test_the_same_noisy_tables_give_the_same_model(case: Learned) -> None:
    again = learned(40_000, 1)
    assert (again.fitted.theta == case.fitted.theta).all()
    assert (case.fitted.theta / model.ROUNDED == np.round(case.fitted.theta / model.ROUNDED)).all()


def test_counts_of_rows_are_the_models(case: Learned) -> None:
    source = Keystream(Secret.from_key(bytes(32)), "rows")
    counts = dealing.dealt(case.rows, lambda some: case.shares[some], case.columns, VALUES, source)
    assert (counts.sum(axis=1) == case.rows).all()
    for column in case.columns:
        short = np.zeros((column.size, VALUES))
        np.add.at(short, column.codes, case.rows[:, None] * case.shares - counts.toarray())
        assert np.abs(short).max() < 8
    again = dealing.dealt(case.rows, lambda some: case.shares[some], case.columns, VALUES, source)
    assert (again != counts).nnz == 0
    other = dealing.dealt(case.rows, lambda some: case.shares[some], case.columns, VALUES, source.subkey("other"))
    assert (other != counts).nnz > 0


def test_a_rows_value_follows_from_its_combination_and_rank(case: Learned) -> None:
    source = Keystream(Secret.from_key(bytes(32)), "rows")
    counts = dealing.dealt(case.rows, lambda some: case.shares[some], case.columns, VALUES, source)
    combinations = np.repeat(np.arange(len(case.rows)), case.rows)
    ranks = np.arange(len(combinations)) - np.repeat(np.cumsum(case.rows) - case.rows, case.rows)
    deal = dealing.Deal(Dealt(combinations, counts.indptr, counts.indices, counts.data), source)
    values = deal.values(combinations, ranks)
    got = np.bincount(combinations * VALUES + values, minlength=counts.shape[0] * VALUES).reshape(counts.shape)
    assert (got == counts.toarray()).all()
    shuffled = np.random.default_rng(0).permutation(len(values))
    assert (deal.values(combinations[shuffled], ranks[shuffled]) == values[shuffled]).all()


def test_a_small_table_tells_nothing_and_says_so() -> None:
    small = learned(300, 4)
    assert np.isfinite(small.fitted.theta).all()
    assert (small.fitted.theta**2).sum() < 0.1 * (learned(40_000, 4).fitted.theta ** 2).sum()


# Counts that are large beside their noise: from far away, a descent that is not led there ends anywhere.
@pytest.mark.parametrize(
    ("people", "epsilon"), [(50_000, 12), *(pytest.param(*large, marks=pytest.mark.long) for large in LARGE)]
)
def test_what_many_rows_or_a_large_epsilon_tell_is_learned_to_the_end(people: int, epsilon: int) -> None:
    table, strongest = made_up.census(people), dn.Privacy(epsilon=epsilon)
    release = dn.publish(
        table, sensitive="occupation", privacy=strongest, mechanism="synthetic", epsilon_limit=None, key=bytes(32)
    )
    dn.verify(release)
    for column in ("education", "workclass"):
        true = table.group_by([column, "occupation"]).aggregate([([], "count_all")]).to_pandas()
        given = release.table.group_by([column, "occupation"]).aggregate([([], "count_all")]).to_pandas()
        both = true.merge(given, on=[column, "occupation"], how="left").fillna(0)
        often = both["count_all_x"] >= people / 200
        off = (both["count_all_x"] - both["count_all_y"]).abs() / both["count_all_x"]
        assert off[often].mean() < 0.02
