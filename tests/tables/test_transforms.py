"""Recodings of batches: worked values, properties on any number, and what is rare by brute force."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.core.errors import ColumnError, DeniableError, OptionError, TableError
from deniable.core.transforms import KINDS, Bands, Rare, step_dict, step_of
from deniable.tables import engine_named
from deniable.tables.transforms import fits

NAN = float("nan")
BORN = [datetime.date(1999, 12, 31), None, datetime.date(2024, 3, 5)]
NOON = [datetime.datetime(2024, 11, 5, 12), None]


def recoded(values: list, *steps: object, kind: pa.DataType | None = None) -> list:
    table = pa.table({"x": pa.array(values, kind)})
    dataset = engine_named("local").open(table).recoded({"x": steps})
    made = pa.Table.from_batches(dataset.batches(["x"]), schema=dataset.schema)
    assert made.schema == dataset.schema
    return made["x"].to_pylist()


WORKED = [
    ([0, 9, 10, 39, -1, None], dn.bands(10), ["[0, 10)", "[0, 10)", "[10, 20)", "[30, 40)", "[-10, 0)", None]),
    ([17, 18, 22], dn.bands(5, start=18), ["[13, 18)", "[18, 23)", "[18, 23)"]),
    ([0.3, 0.7, 1.1, NAN], dn.bands(0.1), ["[0.3, 0.4)", "[0.7, 0.8)", "[1.1, 1.2)", None]),
    ([17, 18, 64, 65, None], dn.bands([18, 65]), ["below 18", "[18, 65)", "[18, 65)", "65 and above", None]),
    (["12345", "9", None, "äöü1"], dn.prefix(3), ["123", "9", None, "äöü"]),
    ([12345, 501, None], dn.prefix(3, pad=5), ["123", "005", None]),
    ([10, 150_000, 200_000, None], dn.top(150_000), [10, 150_000, 150_000, None]),
    ([-1.5, 0.0, 2.5], dn.bottom(0), [0.0, 0.0, 2.5]),
    ([1_499, 1_500, -400, None], dn.snap(1000), [1_000, 2_000, 0, None]),
    ([0.24, 0.26], dn.snap(0.5), [0.0, 0.5]),
    ([0.31, 0.15, -0.26, 0.66, None], dn.snap(0.1), [0.3, 0.2, -0.3, 0.7, None]),
    ([0.0, -0.1, -0.4], dn.bands(0.1, start=-0.3), ["[0, 0.1)", "[-0.1, 0)", "[-0.4, -0.3)"]),
    ([0.29, 0.3], dn.bands([0.1 + 0.2]), ["below 0.3", "0.3 and above"]),
    ([True, False], dn.hierarchy({True: "yes"}, other="else"), ["yes", "else"]),
    ([1, 2], dn.hierarchy({1.0: "odd", 2.0: "even"}), ["odd", "even"]),
    (BORN, dn.year, [1999, None, 2024]),
    (BORN, dn.quarter, ["1999-Q4", None, "2024-Q1"]),
    (BORN, dn.month, ["1999-12", None, "2024-03"]),
    (NOON, dn.month, ["2024-11", None]),
    (["a", "b", None], dn.hierarchy({"a": "A", "b": "A"}), ["A", "A", None]),
    ([1, 2], dn.hierarchy({1: "odd"}, other="else"), ["odd", "else"]),
]


@pytest.mark.parametrize(("values", "step", "expected"), WORKED)
def test_worked_values_and_their_steps_come_back_from_json(values: list, step: object, expected: list) -> None:
    made = recoded(values, step)
    assert made == expected
    assert step_of(step_dict(step)) == step
    assert fits(pa.array([value for value in made if value is not None]), step)


def test_steps_are_taken_one_after_the_other_and_dictionaries_are_read() -> None:
    assert recoded([31, 95, 140], dn.top(90), dn.bands(10)) == ["[30, 40)", "[90, 100)", "[90, 100)"]
    kind = pa.dictionary(pa.int8(), pa.string())
    assert recoded(["alpha", None, "beta"], dn.prefix(1), kind=kind) == ["a", None, "b"]


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**6), st.integers(-100, 100))
def test_a_band_of_whole_numbers_holds_its_number(number: int, width: int, start: int) -> None:
    (label,) = recoded([number], Bands(width, start))
    low, high = (float(end) for end in label.strip("[)").split(","))
    assert low <= number < high
    assert fits(pa.array([label]), Bands(width, start))
    assert not fits(pa.array([f"[{number}.5, 9)"]), Bands(width, start))


@given(st.decimals("-1000", "1000", places=2), st.sampled_from([0.1, 0.25, 0.5, 2.5]))
def test_a_band_of_fractions_holds_its_number_as_it_is_written(number: object, width: float) -> None:
    (label,) = recoded([float(number)], Bands(width))
    low, high = (float(end) for end in label.strip("[)").split(","))
    assert low - 1e-9 <= float(number) < high
    assert fits(pa.array([label]), Bands(width))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(9, 2)])
@pytest.mark.parametrize("start", ["0", "-0.3", "0.05", "1.1"])
@pytest.mark.parametrize("width", ["0.1", "0.25", "0.3", "0.07"])
def test_every_edge_opens_its_band(width: str, start: str, kind: pa.DataType) -> None:
    step = Bands(float(width), float(start))
    edges = [Decimal(start) + place * Decimal(width) for place in range(-60, 61)]
    texts = [f"{float(edge):.15g}" for edge in edges]
    made = recoded([edge if pa.types.is_decimal(kind) else float(edge) for edge in edges[:-1]], step, kind=kind)
    assert made == [f"[{low}, {high})" for low, high in pairwise(texts)]


@given(st.lists(st.sampled_from([*"aaaabbbccdefg", None]), max_size=60), st.integers(2, 12))
def test_what_is_rare_is_merged_until_it_is_not(values: list, below: int) -> None:
    made = recoded(values, Rare(below), kind=pa.string())
    counts = Counter(made)
    assert len(made) == len(values)
    assert counts["(rare)"] >= min(below, len(values)) or not counts["(rare)"]
    assert all(count >= below for value, count in counts.items() if value != "(rare)")
    for value, now in zip(values, made, strict=True):  # whole values are merged, and frequent ones only in need
        assert now in (value, "(rare)")
        assert (now == value) == all(b == a for a, b in zip(values, made, strict=True) if a == value)
    if all(count >= below for count in Counter(values).values()):
        assert made == values


@given(st.lists(st.sampled_from([*"aaaabbbccdefg", None]), max_size=60), st.integers(2, 12))
def test_what_is_suppressed_is_missing_and_nothing_else_is(values: list, below: int) -> None:
    counts = Counter(values)
    expected = [value if counts[value] >= below else None for value in values]
    assert recoded(values, Rare(below, None), kind=pa.string()) == expected


def test_rare_looks_at_what_the_steps_before_it_gave() -> None:
    merged = ["(rare)", "(rare)", "[10, 20)", "[10, 20)", "(rare)"]  # one row is too few: the next rarest joins it
    assert recoded([1, 2, 11, 12, 25], dn.bands(10), Rare(2)) == merged
    assert recoded([1, 2, 11, 12, 25, 26], dn.bands(10), Rare(2))[-1] == "[20, 30)"


def test_numbers_of_narrow_and_wide_types_are_recoded() -> None:
    assert recoded([127, -128, None], dn.snap(50), kind=pa.int8()) == [150, -150, None]
    assert recoded([0.31, 0.7], dn.snap(0.1), kind=pa.float32()) == [0.3, 0.7]
    assert recoded([5, 300], dn.top(1000), kind=pa.int16()) == [5, 300]
    cents = [Decimal(n) / 100 for n in range(1000)]
    assert recoded(cents, dn.top(9), kind=pa.decimal128(9, 2)) == [min(n / 100, 9) for n in range(1000)]
    assert recoded([2**63 + 5, 7], dn.top(10), kind=pa.uint64()) == [10, 7]
    assert recoded([2**63 - 1, -(2**63)], dn.top(90), dn.bottom(0), dn.bands(10)) == ["[90, 100)", "[0, 10)"]
    for step in (dn.bands(10), dn.snap(10)):
        for number, kind in ((2**63 + 5, pa.uint64()), (2**63 - 1, pa.int64()), (-(2**63), pa.int64())):
            with pytest.raises(TableError, match="beyond 2\\^62"):
                recoded([number], step, kind=kind)


@pytest.mark.parametrize(
    ("values", "step", "message"),
    [
        (["a"], dn.bands(10), "for numbers"),
        ([1], dn.month, "for dates"),
        ([1.5], dn.prefix(2), "texts or whole numbers"),
        ([1], dn.prefix(2), "pad=5"),
        ([1], dn.top(1.5), "whole numbers"),
        ([1], Rare(2), "no place for"),
        (pa.array([1], pa.int8()), dn.bottom(200), "does not fit the column 'x', whose type int8 holds -128 to 127"),
        (pa.array([1], pa.uint8()), dn.top(-1), "does not fit"),
        ([123456], dn.prefix(3, pad=5), "more than pad = 5 digits"),
    ],
)
def test_a_step_that_does_not_fit_its_column_is_refused(values: list, step: object, message: str) -> None:
    with pytest.raises(DeniableError, match=message):
        recoded(values, step)


def test_values_that_cannot_be_recoded_are_refused_without_being_named() -> None:
    with pytest.raises(TableError, match="does not list") as problem:
        recoded(["secret"], dn.hierarchy({"a": "b"}))
    assert "secret" not in str(problem.value)
    with pytest.raises(TableError, match="infinite"):
        recoded([float("inf")], dn.bands(10))
    with pytest.raises(TableError, match="negative"):
        recoded([-5], dn.prefix(1, pad=5))
    with pytest.raises(OptionError, match="too narrow"):
        recoded([1e17], dn.bands(1e-6))
    with pytest.raises(ColumnError, match="Did you mean 'x'"):
        engine_named("local").open(pa.table({"x": [1]})).recoded({"xx": (dn.top(1),)})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: dn.bands(0), "above 0"),
        (lambda: dn.bands(NAN), "number"),
        (lambda: dn.bands([3, 2]), "do not rise"),
        (lambda: dn.bands([]), "1 to"),
        (lambda: dn.bands([1, 2], start=1), "no start"),
        (lambda: dn.prefix(0), "whole number"),
        (lambda: dn.prefix(3, pad=2), "whole number"),
        (lambda: dn.top(True), "number"),
        (lambda: dn.hierarchy({}), "lists 1 to"),
        (lambda: dn.hierarchy({"a": 1}), "texts to texts"),
        (lambda: dn.hierarchy({None: "a"}), "missing stays missing"),
        (lambda: Rare(1), "whole number"),
        (lambda: step_of({"kind": "bands", "width": 1}), "other fields"),
        (lambda: step_of({"kind": "x"}), "not known"),
    ],
)
def test_steps_that_are_none_are_refused(made, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        made()


def test_every_kind_of_step_says_itself() -> None:
    said = {step.kind: str(step) for _, step, _ in WORKED} | {"rare": str(Rare(20))}
    assert set(said) == set(KINDS)
    assert said["rare"] == "values of fewer than 20 rows are '(rare)'"
    assert all(said.values())
