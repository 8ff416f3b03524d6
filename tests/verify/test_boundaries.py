"""Checks at their very edge: what just holds, holds, and what just does not, fails."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable_verify.coverage import _can_be_frequent, noise_slack
from deniable_verify.folder import type_of
from deniable_verify.learned import numbers_check
from deniable_verify.lineups import lines
from deniable_verify.numbers import FULL
from deniable_verify.promises import per_value, promise_of
from deniable_verify.rows import SURE, copies_check

COINS = st.lists(st.integers(0, 8), min_size=2, max_size=5)


@given(COINS, st.integers(0, 4), st.integers(1, 5))
def test_a_values_own_limit_is_that_of_its_worst_row(coins: list[int], place: int, before: int) -> None:
    """Against every entry of the channel: P[x][x] beside the smallest P[x][y] of any other value y."""
    m, place = len(coins), place % len(coins)
    keep, replace = [FULL // 9 * coin for coin in coins], [FULL // m] * (m - 1) + [FULL - FULL // m * (m - 1)]
    chance = [[k * FULL * (x == y) + (FULL - k) * w for y, k in enumerate(keep)] for x, w in enumerate(replace)]
    on, off = chance[place][place], min(chance[place][y] for y in range(m) if y != place)
    rho1 = Fraction(before, 10)
    after = Fraction(rho1 * on, rho1 * on + (1 - rho1) * off)
    part = {"domain": [[x] for x in range(m)], "columns": ["s"], "range": None}
    part["cells"] = [{"values": list(range(m)), "keep": keep, "replace": replace}]  # type: ignore[list-item]
    for rho2, holds in ((after, True), (after - Fraction(1, FULL**2), False)):
        promise = SimpleNamespace(limits=[(place, rho1, rho2)])
        (check,) = per_value.recheck(promise, part, {})
        assert check.holds is (holds or rho2 >= 1)


@pytest.mark.parametrize("cells", [[], [{}, {}]])
def test_a_values_own_limit_is_of_one_channel_for_two_values(cells: list[Any]) -> None:
    part = {"domain": [["a"], ["b"]], "cells": cells}
    assert not per_value.recheck(SimpleNamespace(limits=[]), part, {})[0].holds
    alone = {"domain": [["a"]], "cells": [{"values": [0], "keep": [0], "replace": [FULL]}]}
    assert not per_value.recheck(SimpleNamespace(limits=[]), alone, {})[0].holds


@pytest.mark.parametrize("limits", [[], [(0, "1/4", "1/2"), (5, "1/4", "1/2")]])
def test_limits_of_no_value_or_of_one_that_has_no_channel_do_not_hold(limits: list[Any]) -> None:
    cell = {"values": [0, 1], "keep": [0, 0], "replace": [FULL // 2, FULL // 2]}
    stated = [(place, Fraction(before), Fraction(after)) for place, before, after in limits]
    part = {"domain": [["a"], ["b"]], "cells": [cell]}
    assert not per_value.recheck(SimpleNamespace(limits=stated), part, {})[0].holds


def test_a_single_value_is_too_frequent_only_beyond_what_noise_allows() -> None:
    counts = [300, 100, 200, 400]
    part: dict[str, Any] = {"domain": [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]]}
    part["marginal"] = {"counts": counts, "epsilon": 0.5}
    slack = 2 * noise_slack(part) * 2  # the root of four counts
    assert noise_slack(part) == 28
    edge = Fraction(400 + slack, 1000 - slack)
    for line, frequent in ((edge - Fraction(1, 10**9), True), (edge, False), (edge + Fraction(1, 10**9), False)):
        assert _can_be_frequent(SimpleNamespace(rho1=line, rho2=Fraction(1)), part, 0, "a") is frequent
        assert _can_be_frequent(SimpleNamespace(rho1=None, rho2=line), part, 0, "a") is frequent
    never = SimpleNamespace(rho1=Fraction(99, 100), rho2=Fraction(1))
    assert not _can_be_frequent(never, part, 0, "a")
    assert _can_be_frequent(never, {**part, "marginal": None}, 0, "a")
    assert _can_be_frequent(SimpleNamespace(rho1=None, rho2=None), part, 0, "a")


FREQUENCY = {"kind": "frequency", "rho1": None, "rho2": "1/2", "exempt": [], "per_value": [], "above": [], "loose": []}


@pytest.mark.parametrize(
    ("named", "known"),
    [
        *[({"loose": [list(pair)]}, True) for pair in ((0, 0), (0, 2), (1, 0), (1, 1))],
        *[({"loose": [list(pair)]}, False) for pair in ((-1, 0), (2, 0), (0, -1), (0, 3), (1, 2))],
        ({"loose": [[0, 0], [0, 3]]}, False),
        *[({name: [5]}, True) for name in ("exempt", "above")],
        *[({name: [place]}, False) for name in ("exempt", "above") for place in (-1, 6)],
        ({"per_value": [[5, "1/4", "1/2"]]}, True),
        ({"per_value": [[6, "1/4", "1/2"]]}, False),
    ],
)
def test_a_promise_names_values_that_are_there(named: dict[str, Any], known: bool) -> None:
    part = {"domain": [[a, b] for a in "xyz" for b in (0, 1)], "columns": ["a", "b"]}
    if known:
        assert promise_of({**FREQUENCY, **named}, part)[0].kind == "frequency"
        return
    with pytest.raises(ValueError, match=r"not there|not in the domain"):
        promise_of({**FREQUENCY, **named}, part)


@pytest.mark.parametrize(("equal", "holds"), [(899, True), (900, False), (901, False)])
@pytest.mark.parametrize("beside", [0, 900])
def test_a_public_column_of_a_learned_release_is_a_copy_from_nine_tenths_on(
    equal: int, holds: bool, beside: int
) -> None:
    """Whatever stands in rows, or is shown, of no value of the domain: the last row and column."""
    assert SURE == 0.9
    table = np.zeros((3, 3))
    table[0, 0], table[1, 1], table[0, 1] = equal - 100, 100, 1000 - equal - 1
    table[1, 2], table[2, 2] = 1, beside
    raw = {"parts": [{"columns": ["job"], "learned": {}}]}
    (check,) = copies_check({("work", 0): table}, raw)
    assert check.holds is holds
    apart = np.zeros((3, 3))
    apart[0, 0], apart[2, 2] = 499, 501
    assert list(copies_check({("work", 0): apart}, raw)) == []  # fewer than half of its values are the column's


def test_the_file_of_tables_has_no_count_where_nothing_was_measured() -> None:
    m, raw = 2, {"tables": [{"places": [0, 1], "epsilon": 0.5}, {"places": [0, 0, 2], "epsilon": None}]}
    sizes = [1, 2, 3]
    numbers = {
        "table": np.repeat([-1, 0, 1], np.array(sizes) * m),
        "level": np.concatenate([np.repeat(np.arange(size), m) for size in sizes]),
        "value": np.tile(np.arange(m), sum(sizes)),
        "count": np.array([0] * m + [5, 6, 7, 8] + [0] * 3 * m),
        "theta": np.zeros(sum(sizes) * m),
    }

    def holds(**changed: Any) -> bool | None:
        (check,) = numbers_check(raw, m, {**numbers, **changed})
        return check.holds

    assert holds()
    for place in (0, 1, 6, 7, 11):  # of all rows together, and of the table that was not measured
        count = numbers["count"].copy()
        count[place] = 1
        assert not holds(count=count)
    for name in ("table", "level", "value"):
        for place in (0, 5, 11):
            other = numbers[name].copy()
            other[place] += 1
            assert not holds(**{name: other}), (name, place)
    assert not holds(count=numbers["count"][:-1])


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.float32(), pa.string(), pa.large_string(), pa.bool_(), pa.date32(), pa.timestamp("us")),
        *(
            pa.timestamp("ms", "Europe/Zurich"),
            pa.timestamp("ns", "+02:00"),
            pa.decimal128(12, 2),
            pa.decimal256(40, -3),
        ),
        *(pa.list_(pa.field("item", pa.string())), pa.list_(pa.field("element", pa.timestamp("s", "UTC")))),
        pa.duration("ms"),
    ],
)
def test_a_type_is_read_as_it_is_written(kind: pa.DataType) -> None:
    assert type_of(str(kind)) == kind


@pytest.mark.parametrize("kind", ["list<item: nothing>", "decimal64(1)", "timestamp[h, tz=UTC]", "xdecimal128(3, 1)"])
def test_no_other_type_is_read(kind: str) -> None:
    with pytest.raises((ValueError, KeyError, AttributeError)):
        type_of(kind)


def test_every_set_of_a_design_is_there_once() -> None:
    design = {"values": 6, "size": 2, "orders": 3, "seed": 4}
    made = list(lines(design))
    assert len({tuple(sorted(line.members)) for line in made}) == len(made)
    drawn = np.zeros(6, dtype=object)
    for line in made:
        assert len(line.members) == len(line.draws) == 2
        assert all(type(number) is int for number in (*line.members, *line.draws, line.blind))
        np.add.at(drawn, list(line.members), line.draws)
    assert len(set(drawn)) == 1  # a truth is in as many sets as any other, and each of them is drawn
    assert sum(line.blind for line in made) == drawn[0]
