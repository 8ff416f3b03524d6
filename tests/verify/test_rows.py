"""Rows, the tables beside them and models, piece by piece: against what defines them."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import deniable as dn
import deniable_verify
from deniable_verify import (
    lineup_table_check,
    lineups,
    model_table_check,
    weight_table_check,
)
from deniable_verify.folder import Rows, array_of
from deniable_verify.learned import Combined, Model
from deniable_verify.learned import level_codes as level_codes_again
from deniable_verify.rows import States, _shares_values, tally
from deniable_verify.signature import P, _point
from deniable_verify.weights import Cell, _cells_of, _compact, _scores, _values, weights_table

GOOD = Path(__file__).parents[2] / "docs" / "reference" / "vectors" / "good"


def on_grid(column: pa.Array, *, gone: str = "value", **scope: Any) -> bool:
    """Whether a column's values are points of a range."""
    known = {"kind": "number", "low": 0, "high": 10, "step": 1, "keep": 1, "missing": False} | scope
    part = {"columns": ["x"], "range": known, "lineups": None, "cells_published": False, "domain": [], "missing": gone}
    try:
        shown = States(part, pa.schema([("x", column.type)])).of({"x": column})
    except deniable_verify.DamagedError:
        return False
    return shown.tolist() == [0] * len(column)


@pytest.mark.parametrize(
    ("column", "scope", "right"),
    [
        (pa.array([0, 5, 10]), {}, True),
        (pa.array([-1]), {}, False),
        (pa.array([11]), {}, False),
        (pa.array([3.0]), {}, True),
        (pa.array([3.1]), {}, False),
        (pa.array([0.3, 0.7, 9.9]), {"step": 0.1}, True),
        (pa.array([0.35]), {"step": 0.1}, False),
        (pa.array([0.3 + 2e-7]), {"step": 0.1}, False),
        (pa.array([0.3, 0.7], pa.float32()), {"step": 0.1}, True),
        (pa.array([0.3001], pa.float32()), {"step": 0.1}, False),
        (pa.array([1, 4, 7]), {"low": 1, "step": 3}, True),
        (pa.array([2]), {"low": 1, "step": 3}, False),
        (pa.array([1, None]), {}, False),
        (pa.array([1, None]), {"missing": True}, True),
        (pa.array([datetime.date(2024, 3, 1)]), {"kind": "date", "low": "2024-02-28", "high": "2024-03-01"}, True),
        (pa.array([datetime.date(2024, 3, 2)]), {"kind": "date", "low": "2024-02-28", "high": "2024-03-01"}, False),
        (pa.array([datetime.date(2024, 2, 27)]), {"kind": "date", "low": "2024-02-28", "high": "2024-03-01"}, False),
    ],
)
def test_numbers_and_dates_are_points_of_their_range(column: pa.Array, scope: dict[str, Any], right: bool) -> None:
    assert on_grid(column, **scope) is right


def test_a_missing_number_that_is_exempt_is_no_point_and_no_fault() -> None:
    assert on_grid(pa.array([1, None]), gone="exempt")
    assert not on_grid(pa.array([1, 12]), gone="exempt")


def shown_in(table: pa.Table, **part: Any) -> list[int] | str:
    """The states of rows, or what is wrong with one."""
    whole = {"range": None, "lineups": None, "cells_published": False, "missing": "value", "cells": []} | part
    try:
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        return States(whole, table.schema).of(columns).tolist()
    except deniable_verify.DamagedError as damage:
        return str(damage)


NONE = pa.array([None], pa.int64())
WORDS = {"columns": ["w"], "domain": [["b"], ["a"], ["c"]]}
PAIRS = {"columns": ["w", "n"], "domain": [["a", 1], ["b", 1], ["b", None], ["a", 2]]}
IN_CELLS = {"cells_published": True, "cells": [{"values": [0, 2]}, {"values": [1]}]}


@pytest.mark.parametrize(
    ("columns", "part", "states"),
    [
        ({"w": ["c", "a", "b"]}, WORDS, [2, 1, 0]),
        ({"w": ["c", "d"]}, WORDS, "'w'"),
        ({"w": ["c", None]}, WORDS, "'w'"),
        ({"w": ["c", None]}, WORDS | {"missing": "exempt"}, [2, 3]),
        ({"w": ["c", None]}, WORDS | {"domain": [[None], ["c"]]}, [1, 0]),
        ({"w": ["a", "b", "b"], "n": [2, None, 1]}, PAIRS, [3, 2, 1]),
        ({"w": ["a"], "n": NONE}, PAIRS, "'w'"),
        ({"w": ["a"], "n": [3]}, PAIRS, "'n'"),
        ({"w": NONE.cast(pa.string()), "n": [1]}, PAIRS | {"missing": "exempt"}, "'w'"),
        ({"w": ["a", "c", "b"], "cell": [1, 0, 0]}, WORDS | IN_CELLS, [2, 1, 0]),
        ({"w": ["a"], "cell": [0]}, WORDS | IN_CELLS, "'w'"),
        ({"w": ["a"], "cell": [2]}, WORDS | IN_CELLS, "'cell'"),
        ({"w": ["a"], "cell": [-1]}, WORDS | IN_CELLS, "'cell'"),
        ({"w": ["a", None], "cell": [1, None]}, WORDS | IN_CELLS | {"missing": "exempt"}, [2, 3]),
        ({"w": ["a"], "cell": NONE}, WORDS | IN_CELLS, "'cell'"),
    ],
)
def test_every_row_shows_a_value_of_its_domain(
    columns: dict[str, list[Any]], part: dict[str, Any], states: list[int] | str
) -> None:
    found = shown_in(pa.table(columns), **part)
    assert found == states if isinstance(states, list) else f"a value of {states} that" in found


SETS = {"columns": ["w"], "domain": [["b"], ["a"], ["c"]]}
BLOCKS = {"values": 3, "size": 2, "truth": 2**31, "orders": 1, "seed": 1}


def test_rows_of_sets_show_their_numbers() -> None:
    kind, names = pa.list_(pa.string()), ["b", "a", "c"]
    members = [[names[x] for x in line.members] for line in lineups.lines(BLOCKS)]
    part = SETS | {"lineups": BLOCKS}
    assert shown_in(pa.table({"w": pa.array([*members, members[1][::-1]], kind)}), **part) == [0, 1, 2, 1]
    for wrong in (["a", "a"], ["a", "d"], ["a"], ["a", "b", "c"], None):
        assert "'w'" in shown_in(pa.table({"w": pa.array([members[0], wrong], kind)}), **part)
    exempt = part | {"missing": "exempt"}
    assert shown_in(pa.table({"w": pa.array([None, members[2]], kind)}), **exempt) == [3, 2]


def test_rows_of_codes_show_their_numbers() -> None:
    design = {"values": 20, "size": 17, "truth": 2**31, "orders": 2, "seed": 1}
    part = {"columns": ["w"], "domain": [[f"v{x}"] for x in range(20)], "lineups": design}
    codes = lineups.sets_of(design).codes
    column = pa.array([codes[3], codes[-1]], pa.int32())
    assert shown_in(pa.table({"w": column}), **part) == [3, len(codes) - 1]
    for wrong in (-1, int(codes[-1]) + 1):
        assert "'w'" in shown_in(pa.table({"w": pa.array([wrong], pa.int32())}), **part)


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5, 6], [datetime.date(2024, 1, day) for day in range(1, 7)]])
def test_line_ups_of_numbers_and_dates_hold(values: list[Any]) -> None:
    table = pa.table({"when": values * 100})
    release = dn.publish(table, sensitive="when", privacy=dn.Privacy(rho2="1/2"), mechanism="lineup", key=bytes(32))
    assert dn.verify(release).holds


def test_lists_of_dates_are_read_from_their_texts() -> None:
    kind = pa.list_(pa.date32())
    days = [datetime.date(2024, 1, day) for day in range(1, 5)]
    texts = [[str(days[0]), str(days[1])], None, [], [str(days[2]), str(days[3])]]
    assert array_of(texts, kind).to_pylist() == [days[:2], [], [], days[2:]]
    assert array_of([str(days[0]), None], pa.date32()).to_pylist() == [days[0], None]


@pytest.mark.parametrize(
    ("kinds", "alike"),
    [
        (("string", "string"), True),
        (("string", "large_string"), True),
        (("int64", "int64"), True),
        (("int64", "string"), False),
        (("bool", "bool"), False),
    ],
)
def test_columns_of_one_kind_may_be_copies(kinds: tuple[str, str], alike: bool) -> None:
    schema = pa.schema([("public", kinds[0]), ("w", kinds[1])])
    values = {"int64": [1, 2, 3], "bool": [True, False, None]}.get(kinds[1], ["a", "b", "c"])
    part = {"columns": ["w"], "domain": [[value] for value in values], "range": None, "cells_published": False}
    assert _shares_values(schema, "public", States(part, schema)) is alike
    few = part | {"domain": part["domain"][:2]}
    assert not _shares_values(schema, "public", States(few, schema))


def test_rare_values_are_one_value_of_a_model() -> None:
    model = object.__new__(Model)
    model.rows, model.variance = np.array([600.0, 400]), np.array([4.0, 9])
    model.base = np.log([0.997, 0.001, 0.002])  # of 1,000 rows: 2 standard deviations of noise are 4
    model.theta, model.noisy = np.array([[1.0, 5, 5], [2, 6, 6]]), np.array([[9.0, 1, 2], [8, 3, 4]])
    theta, base, noisy, variance = model.together()
    assert theta.tolist() == [[1, 5], [2, 6]]
    assert np.exp(base) == pytest.approx([0.997, 0.003])
    assert noisy.tolist() == [[9, 3], [8, 7]]
    assert variance.tolist() == [[4, 8], [9, 18]]
    model.theta[0, 1] = 4
    with pytest.raises(ValueError, match="do not share"):
        model.together()
    model.base = np.log([0.5, 0.499, 0.001])  # one alone is itself
    assert [numbers.tolist() for numbers in model.together()[::2]] == [model.theta.tolist(), model.noisy.tolist()]


def test_points_of_the_curve_are_written_in_one_way() -> None:
    assert _point((P - 1).to_bytes(32, "little"))[:2] == (0, P - 1)
    for number in (P, P + 1, (P - 1) | 1 << 255, 2):  # y is no less than P; x is 0 and odd; no x at all
        with pytest.raises(ValueError, match="no point"):
            _point(number.to_bytes(32, "little"))


def rows_of(name: str, file: str) -> Rows:
    table = pq.read_table(GOOD / name / f"{file}.parquet")
    return Rows(table.schema, table.num_rows, table=table)


def other(rows: Rows, column: str, change: Any) -> Rows:
    """The same table with another column."""
    table = rows.table
    assert table is not None
    place = table.column_names.index(column)
    table = table.set_column(place, column, change(table[column]))
    return Rows(table.schema, table.num_rows, table=table)


def beside(check: Any, name: str, **tables: Rows) -> list[bool | None]:
    raw = json.loads((GOOD / name / "manifest.json").read_text())
    return [one.holds for one in check(raw, {"data": rows_of(name, "data"), **tables})]


def test_tables_beside_the_rows_are_there_where_they_say_something_and_nowhere_else() -> None:
    codes, numbers = rows_of("line-ups-by-codes", "lineups"), rows_of("synthetic", "tables")
    weights = rows_of("uniform", "weights")
    assert beside(lineup_table_check, "line-ups-by-codes", lineups=codes) == [True]
    assert beside(lineup_table_check, "line-ups-by-codes") == [False]
    assert beside(lineup_table_check, "line-ups-by-codes", lineups=weights) == [False]
    moved = other(codes, "place", lambda column: pc.add(column, pa.scalar(1, pa.int32())))
    assert beside(lineup_table_check, "line-ups-by-codes", lineups=moved) == [False]
    assert beside(lineup_table_check, "uniform", lineups=codes) == [False]
    assert beside(lineup_table_check, "uniform") == []
    assert beside(model_table_check, "synthetic", tables=numbers) == [True]
    assert beside(model_table_check, "synthetic") == [None]
    assert beside(model_table_check, "synthetic", tables=weights) == [False]
    halves = other(numbers, "count", lambda column: column.cast(pa.float64()))
    assert beside(model_table_check, "synthetic", tables=halves) == [False]
    noisier = other(numbers, "value", lambda column: pc.add(column, 1))
    assert beside(model_table_check, "synthetic", tables=noisier) == [False]
    assert beside(model_table_check, "uniform", tables=numbers) == [False]
    assert beside(model_table_check, "uniform") == []
    assert beside(weight_table_check, "uniform", weights=weights) == [True]
    assert beside(weight_table_check, "uniform") == [False]
    assert beside(weight_table_check, "uniform", weights=codes) == [False]
    larger = other(weights, "w", lambda column: pc.multiply(column, 1.00001))
    assert beside(weight_table_check, "uniform", weights=larger) == [False]
    nearly = other(weights, "w", lambda column: pc.multiply(column, 1.0000001))
    assert beside(weight_table_check, "uniform", weights=nearly) == [True]
    assert beside(weight_table_check, "redraw", weights=weights) == [False]
    assert beside(weight_table_check, "redraw") == []


# -- Weights -----------------------------------------------------------------------------------------------------------


def channel(keep: list[float], share: list[float]) -> tuple[Cell, np.ndarray]:
    """Coins and replacements, and P[y][x] of them."""
    coins, drawn = np.array(keep), np.array(share)
    return Cell(None, np.arange(len(keep)), coins, drawn), np.diag(coins) + np.outer(drawn, 1 - coins)


@pytest.mark.parametrize("keep", [[0.5, 0.25, 0.125], [0.5, 0.0, 0.125], [1.0, 1.0, 1.0], [0.5, 1.0, 0.25]])
def test_weights_turn_the_channel_round(keep: list[float]) -> None:
    cell, p = channel(keep, [0.5, 0.25, 0.25])
    assert cell.weights() @ p == pytest.approx(np.eye(3))
    if min(keep) > 0:
        short = _compact(cell, {})
        assert np.diag(short["own"]) - np.outer(short["share"], short["rest"]) == pytest.approx(cell.weights())
    assert channel([0.3], [1.0])[0].weights().tolist() == [[1]]
    assert [numbers.tolist() for numbers in _compact(channel([0.3], [1.0])[0], {}).values()] == [[1], [0], [0]]


def coins(*cells: tuple[list[int], list[int]]) -> dict[str, Any]:
    listed = [{"values": list(range(len(k))), "keep": k, "replace": w} for k, w in cells]
    several = len(cells) > 1
    return {"domain": [["a"], ["b"]], "range": None, "cells": listed, "cells_published": several, "mixture": None}


HALF = 2**31


def test_channels_that_cannot_be_turned_round_have_no_weights() -> None:
    fair, zero, never = ([HALF] * 2, [HALF] * 2), ([0, HALF], [HALF] * 2), ([0, HALF], [0, 2 * HALF])
    for cells, number in (([fair], 1), ([zero], 1), ([fair, zero], 2)):
        made = _cells_of(coins(*cells))
        assert isinstance(made, list)
        assert len(made) == number
        assert [cell.number for cell in made] == ([None] if number == 1 else [0, 1])
    assert _cells_of(coins(never)) is None
    assert _cells_of(coins(([0, 0], [HALF] * 2))) is None
    assert _cells_of(coins(fair, never)) is None
    assert _cells_of(coins(fair, fair) | {"cells_published": False}) is None
    assert _cells_of(coins() | {"mixture": [[0.5, 0.5], [0.5, 0.5]]}) is None
    matrix = np.array([[0.75, 0.5], [0.25, 0.5]])
    assert _cells_of(coins() | {"mixture": (3 * matrix).tolist()}) == pytest.approx(np.linalg.inv(matrix))
    (learned,) = _cells_of(coins() | {"learned": {}})  # type: ignore[misc]
    assert (learned.keep.tolist(), learned.replace.tolist()) == ([1, 1], [0.5, 0.5])
    scope = {"kind": "integer", "low": 1, "high": 3, "step": 1, "keep": HALF, "missing": False}
    (drawn,) = _cells_of(coins() | {"range": scope})  # type: ignore[misc]
    assert drawn.replace * 2**32 == pytest.approx([2**32 // 3 + 1, 2**32 // 3, 2**32 // 3], abs=1)
    assert (drawn.replace.sum(), drawn.keep.tolist()) == (1, [0.5] * 3)
    assert _cells_of(coins() | {"range": scope | {"keep": 0}}) is None


@pytest.mark.parametrize(
    "design",
    [
        {"values": 4, "size": 2, "truth": HALF, "orders": 4, "seed": 1},
        {"arcs": [3 * (HALF // 2)] * 2 + [HALF // 2] * 2, "truth": HALF, "orders": 64, "seed": 1},
    ],
)
def test_scores_of_line_ups_estimate_every_value(design: dict[str, Any]) -> None:
    """sum over S of P(S | x) sum of the scores of its members = 1 at x, and 0 elsewhere."""
    m, scores, total = 4, _scores(design, 4), np.zeros((4, 4))
    assert scores is not None
    for members, blind, draws in lineups.lines(design):
        likely = np.full(m, 0.5 * blind)
        likely[list(members)] += 0.5 * np.array(draws)
        total += np.outer(scores[:, list(members)].sum(axis=1), likely / 2**40 / design["orders"])
    assert total == pytest.approx(np.eye(m), abs=1e-6)


def weight_columns(name: str) -> list[str] | None:
    raw = json.loads((GOOD / name / "manifest.json").read_text())
    made = weights_table(raw, pq.read_schema(GOOD / name / "data.parquet"))
    return None if made is None else list(made)


def test_long_tables_of_weights_are_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, name, size, short in (
        ("LISTED", "uniform", 64, ["value_job", "own", "rest", "share"]),
        ("LISTED", "small-domain", 84, ["cell", "value_job", "own", "rest", "share"]),
        ("LISTED_SETS", "line-ups-any-prior", 8 * 28, ["place", "member_job", "value_job", "w"]),
    ):
        monkeypatch.setattr(f"deniable_verify.weights.{limit}", size)
        assert (weight_columns(name) or [])[-1] == "w"
        assert weight_columns(name) != short
        monkeypatch.setattr(f"deniable_verify.weights.{limit}", size - 1)
        assert weight_columns(name) == short
    monkeypatch.setattr("deniable_verify.weights.MOST_LISTED", 64)
    assert weight_columns("line-ups-any-prior") == ["place", "member_job", "value_job", "w"]
    monkeypatch.setattr("deniable_verify.weights.MOST_LISTED", 63)
    assert weight_columns("line-ups-any-prior") is None


# -- Models ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("column", "marks", "ordered", "levels"),
    [
        (pa.array([5, 10, 15, 20, 25, None]), [10, 20], True, [0, 1, 1, 2, 2]),
        (pa.array([0.5, 1.0, 1.5, float("nan")]), [1.0], True, [0, 1, 1]),
        (pa.array([datetime.date(2024, 1, day) for day in (1, 2, 3)] + [None]), ["2024-01-02"], True, [0, 1, 1]),
        (pa.array([datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2), None]), ["2024-01-02"], True, [0, 1]),
        (pa.array([decimal.Decimal("1.5"), decimal.Decimal("2.5"), None]), ["2.5"], True, [0, 1]),
        (pa.array(["M", "F", "X", None]), ["F", "M"], False, [1, 0, 2]),
    ],
)
def test_levels_lie_between_edges_or_are_named(
    column: pa.Array, marks: list[Any], ordered: bool, levels: list[int], missing: bool
) -> None:
    coding = {"column": "x", "marks": marks, "ordered": ordered, "missing": missing}
    assert level_codes_again(coding, column).tolist() == [*levels, len(marks) + missing]


@pytest.mark.parametrize("most", [2**26, 1])
def test_rows_are_counted_by_their_levels_and_values(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("deniable_verify.learned.MOST_COMBINATIONS", most)
    codings = [{"column": name, "marks": ["F"], "ordered": False, "missing": False} for name in ("sex", "town")]
    tables = [{"columns": [0, 1], "places": [0, 1, 2, 3]}, {"columns": [1], "places": [1, 0]}]
    combined = Combined({"learned": {"codings": codings, "tables": tables}, "domain": [["a"], ["b"]]})
    for sex, town, values in ((["F", "M", "M"], ["F", "M", "M"], [0, 1, 2]), (["M", "F"], ["M", "M"], [1, 0])):
        combined.add({"sex": pa.array(sex), "town": pa.array(town)}, np.array(values))
    combined.close()
    assert combined.codes.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert combined.rows.tolist() == [1, 1, 2]
    assert (combined.place.tolist(), combined.value.tolist()) == ([0, 1, 2], [0, 0, 1])
    assert combined.times.tolist() == [1, 1, 2]
    assert [level.tolist() for level in combined.levels()] == [[0, 1, 3], [1, 0, 0]]


def test_rows_without_public_columns_are_one_combination() -> None:
    combined = Combined({"learned": {"codings": [], "tables": []}, "domain": [["a"], ["b"]]})
    combined.add({}, np.array([1, 0, 1]))
    combined.close()
    assert (combined.rows.tolist(), combined.value.tolist(), combined.times.tolist()) == ([3], [0, 1], [1, 2])


def modelled() -> Model:
    """Three combinations, two tables of two and three levels, two values."""
    model = object.__new__(Model)
    model.rows, model.offsets = np.array([5.0, 7, 2]), np.array([0, 2, 5])
    model.at, model.seen = np.array([[0, 2], [1, 3], [1, 4]]), 2
    return model


@pytest.mark.parametrize("chunk", [2**22, 1])
def test_a_model_expects_what_its_parameters_say(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr("deniable_verify.learned.CHUNK", chunk)
    model, rng = modelled(), np.random.default_rng(1)
    theta, base, by = rng.normal(size=(5, 2)), rng.normal(size=2), rng.normal(size=(5, 2))

    def expected(parameters: np.ndarray) -> np.ndarray:
        total = np.zeros((5, 2))
        for at, rows in zip(model.at, model.rows, strict=True):
            chances = np.exp(base + parameters[at].sum(axis=0))
            total[at] += rows * chances / chances.sum()
        return total

    assert model.expected(theta, base) == pytest.approx(expected(theta), rel=1e-5)
    slope = (expected(theta + 1e-5 * by) - expected(theta - 1e-5 * by)) / 2e-5
    assert model.moved(theta, base, by) == pytest.approx(slope, rel=1e-4, abs=1e-4)
    assert model.added_rows().tolist() == [5, 9, 5, 7, 2]


def test_an_objective_that_is_least_can_fall_no_further_and_another_by_what_it_lacks() -> None:
    """F by its definition; of parameters near the least, the fall is what F is above it."""
    model, base = modelled(), np.log([0.6, 0.4])
    model.noisy, model.variance, model.tau = np.array([[4.0, 1], [3, 6]]), np.array([2.0, 2]), np.full(5, 0.5)

    def objective(theta: np.ndarray) -> float:
        off = model.expected(theta, base)[:2] - model.noisy
        return float((off**2 / 4).sum() + (theta**2).sum() * 2)

    def result(theta: np.ndarray) -> tuple[float, float]:
        model.theta, model.base = theta, base
        model.together = lambda: (theta, base, model.noisy, np.full((2, 2), 2.0))  # type: ignore[method-assign]
        return model.fall()

    theta = np.zeros((5, 2))
    for _ in range(400):
        off = np.zeros((5, 2))
        off[:2] = (model.expected(theta, base)[:2] - model.noisy) / 2
        theta -= 0.05 * (model.moved(theta, base, off) + 4 * theta)
    fall, value = result(theta)
    assert value == pytest.approx(objective(theta), rel=1e-5)
    assert fall == pytest.approx(0, abs=1e-4)
    near = theta + np.array([[0.02, -0.01], [0.01, 0.02], [0, 0], [-0.01, 0], [0, 0.01]])
    fall, value = result(near)
    assert value == pytest.approx(objective(near), rel=1e-5)
    assert fall == pytest.approx(objective(near) - objective(theta), rel=0.1)


LEAP = ["2024-02-28", "2024-02-29", "2024-03-01"]


@pytest.mark.parametrize(
    ("scope", "kind", "values"),
    [
        ({"kind": "integer", "low": 1, "high": 5, "step": 2}, pa.int8(), [1, 3, 5]),
        ({"kind": "number", "low": 0, "high": 0.3, "step": 0.1}, pa.float64(), [0, 0.1, 0.2, 0.3]),
        ({"kind": "date", "low": "2024-02-28", "high": "2024-03-01", "step": 1}, pa.date32(), LEAP),
    ],
)
def test_what_may_be_asked_of_a_range_are_its_points(scope: dict[str, Any], kind: Any, values: list[Any]) -> None:
    for missing in (False, True):
        part = {"columns": ["x"], "range": {**scope, "missing": missing}}
        found = _values(part, pa.schema([("x", kind)]))["x"]
        assert found.type == kind
        shown = [str(value) if pa.types.is_date(kind) and value is not None else value for value in found.to_pylist()]
        assert shown == [*values, *[None] * missing]


def test_rows_are_counted_by_what_a_public_column_of_the_same_values_shows() -> None:
    """And by states, by recoded values, in batches."""
    rng = np.random.default_rng(1)
    public, shown = rng.choice(["c", "a", "b", "x"], 300), rng.choice(["b", "a", "c"], 300)
    table = pa.table({"public": public, "w": shown, "town": ["A", "B", None] * 100})
    whole = {"range": None, "lineups": None, "cells_published": False, "missing": "value", "cells": []} | WORDS
    roles = {"public": "public", "w": "sensitive", "town": "public"}
    columns = [{"name": name, "role": role} for name, role in roles.items()]
    raw = {"parts": [whole], "columns": columns, "recoded": {"town": [{"kind": "rare"}]}}
    counted = tally(Rows(table.schema, 300, table=table), raw)
    values = ["b", "a", "c"]
    assert counted.shown[0].tolist() == [*((shown == value).sum() for value in values), 0]
    crossed = counted.crossed["public", 0]
    for i, own in enumerate([*values, "x"]):
        assert crossed[i].tolist() == [*(((public == own) & (shown == value)).sum() for value in values), 0]
    assert set(counted.distinct["town"].to_pylist()) == {"A", "B", None}
    assert set(counted.crossed) == {("public", 0), ("town", 0)}
