"""What public columns give away: planted dependences are found with the right figures, random columns never are."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.core.channels import Channel
from deniable.owner.public import (
    ALL,
    DETERMINES,
    FOLLOWS,
    NEARLY_DETERMINES,
    NEARLY_FOLLOWS,
    carriers,
    dependence,
    functions_of,
    gain_of,
)
from deniable.planning.attackers import ChannelRows, NothingShown

M = 8
ROWS = 6_000


def uniform_rows(coin: float, m: int = M) -> ChannelRows:
    kept = Fraction(str(coin))
    channel = Channel.uniform([str(value) for value in range(m)], gamma=(1 + kept * (m - 1)) / (1 - kept))
    return ChannelRows.of(m, [channel], [np.arange(m)], [np.ones(m)], cells_shown=False)


def halves(rows: int) -> np.ndarray:
    return np.random.default_rng(0).random(rows) < 0.5


@pytest.mark.parametrize("seed", range(12))
def test_random_columns_are_no_alarm_however_many_values_they_have(seed: int) -> None:
    draw = np.random.default_rng(seed)
    shares = draw.dirichlet(np.full(M, 0.5))
    original = draw.choice(M, ROWS, p=shares)
    sizes = (2, 7, 50, 600, 3_000, ROWS, 10 * ROWS)
    columns = {f"c{size}": draw.integers(0, size, ROWS) for size in sizes}
    columns["one"] = np.zeros(ROWS, np.int64)
    columns["name"] = draw.permutation(ROWS)
    assert dependence("s", columns, original, M, uniform_rows(0.3), 0.5) is None
    for codes in columns.values():
        assert gain_of(codes, original, M, halves(ROWS)).mean < 0.01


def test_a_column_that_says_all_explains_all_and_one_that_says_a_tenth_a_tenth() -> None:
    draw = np.random.default_rng(1)
    original = draw.integers(0, M, ROWS)
    gain = gain_of(original, original, M, halves(ROWS))
    assert gain.explained > 0.99
    assert gain.is_real
    # Right with probability q, else any value: the information is ln m - H, by hand.
    q = 0.5
    noisy = np.where(draw.random(ROWS) < q, original, draw.integers(0, M, ROWS))
    own = q + (1 - q) / M
    information = np.log(M) + own * np.log(own) + (M - 1) * (1 - q) / M * np.log((1 - q) / M)
    measured = gain_of(noisy, original, M, halves(ROWS))
    assert abs(measured.mean - information) < 6 * measured.error
    assert measured.mean > 0.85 * information


def test_the_share_above_rho2_is_that_of_the_posterior_by_hand() -> None:
    draw = np.random.default_rng(2)
    given_column = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    column = draw.integers(0, 2, 40_000)
    original = (draw.random(40_000)[:, None] > np.cumsum(given_column[column], axis=1)).sum(1)
    coin, rho2 = 0.25, 0.6
    channel = coin * np.eye(3) + (1 - coin) / 3  # [value, published], symmetric
    joint = 0.5 * given_column[:, :, None] * channel[None]
    posterior = joint / joint.sum(axis=1, keepdims=True)
    exact = float(joint[posterior > rho2].sum())
    found = dependence("s", {"c": column}, original, 3, uniform_rows(coin, 3), rho2)
    assert found is not None
    (one,) = found.columns
    people = one.informed.people
    assert people == 8_000
    assert abs(one.informed.after.above_rho2 - exact) < 6 * np.sqrt(exact * (1 - exact) / people)
    alone = float(0.5 * given_column[given_column > rho2].sum())
    assert abs(one.informed.before.above_rho2 - alone) < 6 * np.sqrt(alone * (1 - alone) / people)


def test_a_coarser_copy_and_a_finer_one_are_found_exactly() -> None:
    draw = np.random.default_rng(3)
    original = draw.integers(0, M, ROWS)
    columns = {
        "chapter": original // 2,
        "code": original * 5 + draw.integers(0, 5, ROWS),
        "sex": draw.integers(0, 2, ROWS),
    }
    assert functions_of(columns, original) == {"chapter": FOLLOWS, "code": DETERMINES}
    found = dependence("s", columns, original, M, uniform_rows(0.3), 0.5)
    assert found is not None
    assert {one.column: one.function for one in found.columns} == {"code": DETERMINES, "chapter": FOLLOWS, ALL: ""}
    assert [one.column for one in carriers(found)] == ["code", "chapter"]
    spoilt = {**columns, "chapter": columns["chapter"].copy(), "code": columns["code"].copy()}
    for name in ("chapter", "code"):
        spoilt[name][0] = spoilt[name][(original != original[0]).argmax()]
    assert functions_of(spoilt, original) == {"chapter": NEARLY_FOLLOWS, "code": NEARLY_DETERMINES}
    noisy = np.where(draw.random(ROWS) < 0.1, draw.integers(0, M, ROWS), original)
    assert functions_of({"noisy": noisy}, original) == {}


def test_columns_that_tell_only_together_are_found_together() -> None:
    draw = np.random.default_rng(4)
    one, other = draw.integers(0, 4, ROWS), draw.integers(0, 4, ROWS)
    original = (one + other) % 4
    found = dependence("s", {"one": one, "other": other}, original, 4, uniform_rows(0.3, 4), 0.6)
    assert found is not None
    assert [giveaway.column for giveaway in found.columns] == ["one with other", ALL]
    assert found.columns[-1].informed.after.above_nearly > 0.99
    three = draw.integers(0, 4, (3, ROWS))  # no pair of them says anything
    found = dependence("s", dict(zip("abc", three, strict=True)), three.sum(0) % 4, 4, uniform_rows(0.3, 4), 0.6)
    assert found is not None
    assert [giveaway.column for giveaway in found.columns] == [ALL]
    assert [one.column for one in carriers(found)] == [ALL]


def test_a_pair_that_tells_only_together_is_found_beside_columns_that_say_nothing() -> None:
    draw = np.random.default_rng(6)
    one, other = draw.integers(0, 4, ROWS), draw.integers(0, 4, ROWS)
    noise = {f"noise {size}": draw.integers(0, size, ROWS) for size in (3, 30, 300, ROWS)}
    found = dependence("s", {**noise, "one": one, "other": other}, (one + other) % 4, 4, uniform_rows(0.3, 4), 0.6)
    assert found is not None
    assert [giveaway.column for giveaway in found.columns] == ["one with other", ALL]
    assert [one.column for one in carriers(found)] == ["one with other"]


def test_what_says_a_little_carries_nothing_and_nothing_shown_changes_nothing() -> None:
    draw = np.random.default_rng(5)
    original = draw.choice(4, 20_000, p=[0.4, 0.3, 0.2, 0.1])
    column = np.where(draw.random(20_000) < 0.25, original, draw.integers(0, 4, 20_000))
    found = dependence("s", {"c": column}, original, 4, uniform_rows(0.45, 4), 0.75)
    assert found is not None
    assert carriers(found) == []
    plain = dependence("s", {"c": column}, original, 4, NothingShown(4), None)
    assert plain is not None
    assert plain.columns[0].informed.after.right == plain.columns[0].informed.before.right
    assert carriers(plain) == []


@pytest.mark.parametrize("rho2", [0.25, 0.5, 0.8])
def test_a_column_carries_a_value_from_half_of_what_rho2_leaves_deniable(rho2: float) -> None:
    """The same copy, right for q of the people, is one where q is beyond (1 + rho2) / 2, and none below it."""
    draw = np.random.default_rng(7)
    original = draw.integers(0, M, 40_000)
    for right, carries in (((1 + rho2) / 2 + 0.06, True), ((1 + rho2) / 2 - 0.06, False)):
        wrong = (original + draw.integers(1, M, len(original))) % M
        column = np.where(draw.random(len(original)) < right, original, wrong)
        found = dependence("s", {"copy": column}, original, M, NothingShown(M), rho2)
        assert found is not None
        assert [one.column for one in carriers(found) if one.column == "copy"] == ["copy"] * carries


def test_people_whose_value_is_not_protected_are_learnt_from_and_do_not_count() -> None:
    """Children have no occupation, and their age says so: nothing is given away of anyone who has one."""
    draw = np.random.default_rng(8)
    age = draw.integers(0, 80, 20_000)
    original = np.where(age < 15, 0, draw.integers(1, M, len(age)))
    found = dependence("s", {"age": age}, original, M, NothingShown(M), 0.5)
    assert found is not None
    assert [one.column for one in carriers(found)] == ["age"]
    counted = np.arange(M) > 0
    found = dependence("s", {"age": age}, original, M, NothingShown(M), 0.5, counted=counted)
    assert found is None or carriers(found) == []


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


@given(PAIRS)
def test_functions_are_functions_and_no_accident(pairs: list[tuple[int, int]]) -> None:
    column, original = (np.array(side) for side in zip(*pairs, strict=True))
    found = functions_of({"c": column}, original).get("c")
    results, arguments = defaultdict(set), defaultdict(set)
    for value, sensitive in pairs:
        results[value].add(sensitive)
        arguments[sensitive].add(value)
    if found == DETERMINES:
        assert all(len(values) == 1 for values in results.values())
    if found == FOLLOWS:
        assert all(len(values) == 1 for values in arguments.values())
    if len(set(column.tolist())) == 1 or len(pairs) < 12:  # a constant says nothing, few rows prove nothing
        assert found not in (FOLLOWS, NEARLY_FOLLOWS)


def test_a_function_of_few_rows_is_chance_and_of_many_is_not() -> None:
    few, many = np.tile(np.arange(2), 8), np.tile(np.arange(2), 40)
    assert functions_of({"c": few}, few) == {}
    assert functions_of({"c": many}, many) == {"c": DETERMINES}
    assert functions_of({"name": np.arange(500)}, np.arange(500) % 7) == {}  # a name determines everything
