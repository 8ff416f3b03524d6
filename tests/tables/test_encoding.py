"""Codes of sensitive values: round trips, order, counts, missing values and declared domains."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.errors import ColumnError, OptionError, TableError
from deniable.tables import encoding
from deniable.tables.base import Scan
from deniable.tables.encoding import DomainScanner

KINDS = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "half": (pa.float16(), st.sampled_from([np.float16(x) for x in (-2.5, 0.0, 1.5)])),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(max_size=3)),
    "large": (pa.large_string(), st.sampled_from(["", "a", "é", "z"])),
    "date": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us"), st.datetimes()),
    "nano": (pa.timestamp("ns"), st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2100, 1, 1))),
    "zone": (pa.timestamp("ms", "UTC"), st.integers(0, 2**40)),
    "money": (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2, allow_nan=False)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["b", "a", ""])),
}


def scanned(table: pa.Table, columns: list[str], missing: str = "value", domain: object = None) -> Scan:
    scanner = DomainScanner(columns, table.schema)
    for batch in table.to_batches():
        scanner.update(batch)
    return scanner.scan(missing, domain)


@st.composite
def tables(draw):
    count = draw(st.integers(1, 3))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=count, max_size=count))
    rows = draw(st.integers(0, 12))
    arrays = []
    for kind in kinds:
        dtype, values = KINDS[kind]
        some = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        arrays.append(pa.chunked_array([pa.array(some[:5], dtype), pa.array(some[5:], dtype)], dtype))
    return pa.table(arrays, names=[f"c{i}" for i in range(count)])


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in the type it is published in."""
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


@settings(max_examples=200, deadline=None)
@given(tables(), st.sampled_from(["value", "exempt"]))
def test_decoding_codes_gives_the_rows_back_and_counts_are_exact(table, missing):
    scan = scanned(table, table.schema.names, missing)
    batches = table.to_batches()
    codes = [scan.encoder.encode(batch) for batch in batches]
    lost = np.concatenate([np.zeros(0, bool), *(_any_missing(batch) for batch in batches)])
    if missing == "exempt":
        assert scan.exempt_rows == lost.sum()
    for position, name in enumerate(table.schema.names):
        expected = plain(table.column(name)).to_pylist()
        if missing == "exempt":
            expected = [None if gone else value for value, gone in zip(expected, lost, strict=True)]
        back = [value for part in codes for value in scan.encoder.decode(part)[position].to_pylist()]
        assert back == expected
        assert scan.encoder.types[position] == plain(table.column(name)).type
    seen = Counter(int(code) for part in codes for code in part if code < scan.encoder.m)
    assert [seen[code] for code in range(scan.encoder.m)] == scan.histogram.counts.tolist()
    assert len(scan.histogram.domain) == len(scan.histogram.counts) == math.prod(map(len, scan.encoder.values))


def _any_missing(batch: pa.RecordBatch) -> np.ndarray:
    return np.any([column.is_null().to_numpy(zero_copy_only=False) for column in batch.columns], axis=0)


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ([10, 9, None, 9], [9, 10, None]),
        (["b", "", None, "B"], ["", "B", "b", None]),
        (["10", "9"], ["10", "9"]),
        ([1.5, float("nan"), -0.0, 0.0], [0.0, 1.5, None]),
        ([True, False], [False, True]),
        ([dt.date(2024, 1, 2), dt.date(2023, 1, 1)], [dt.date(2023, 1, 1), dt.date(2024, 1, 2)]),
        ([Decimal("2.50"), Decimal("-1.00")], [Decimal("-1.00"), Decimal("2.50")]),
        ([None, None], [None]),
    ],
)
def test_domain_is_sorted_with_missing_last(values, domain):
    assert scanned(pa.table({"a": values}), ["a"]).histogram.domain == tuple(domain)


def test_not_a_number_is_missing_and_both_zeros_are_one_value():
    table = pa.table({"a": pa.array([float("nan"), -0.0, 0.0, None])})
    scan = scanned(table, ["a"])
    assert scan.histogram.counts.tolist() == [2, 2]
    assert scan.encoder.encode(table.to_batches()[0]).tolist() == [1, 0, 0, 1]


def test_several_columns_have_the_cross_product_as_domain():
    table = pa.table({"a": ["y", "x", "x"], "b": [2, 1, 1]})
    scan = scanned(table, ["a", "b"])
    assert scan.histogram.domain == (("x", 1), ("x", 2), ("y", 1), ("y", 2))
    assert scan.histogram.counts.tolist() == [2, 0, 0, 1]


def test_a_row_with_any_missing_value_is_exempt_in_all_columns():
    table = pa.table({"a": ["x", None, "y"], "b": [1, 2, 1]})
    scan = scanned(table, ["a", "b"], "exempt")
    codes = scan.encoder.encode(table.to_batches()[0])
    assert scan.encoder.exempt_mask(codes).tolist() == [False, True, False]
    assert [array.to_pylist() for array in scan.encoder.decode(codes)] == [["x", None, "y"], [1, None, 1]]


@pytest.mark.parametrize(("number", "words"), [(1, "A few"), (3, "A few"), (12, "About 10"), (1234, "About 1,000")])
def test_missing_values_can_be_refused_with_no_exact_count(number, words):
    table = pa.table({"a": pa.array([1] * 10 + [None] * number)})
    with pytest.raises(TableError, match=rf"^{words} rows have no value in 'a'.*Fix: remove those rows"):
        scanned(table, ["a"], "refuse")
    with pytest.raises(OptionError, match=r"Did you mean 'refuse'"):
        scanned(table, ["a"], "refused")


def test_declared_values_that_do_not_occur_count_zero():
    scan = scanned(pa.table({"a": ["b", "b"]}), ["a"], "value", ["c", "b", None])
    assert (scan.histogram.domain, scan.histogram.counts.tolist()) == (("b", "c", None), [2, 0, 0])


def test_declared_domains_of_several_columns():
    table = pa.table({"a": ["x"], "b": [1]})
    for declared in ({"a": ["x", "y"], "b": [1, 2]}, [("x", 1), ("y", 2)]):
        scan = scanned(table, ["a", "b"], "value", declared)
        assert scan.histogram.domain == (("x", 1), ("x", 2), ("y", 1), ("y", 2))
        assert scan.histogram.counts.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (["b"], "holds values that the declared domain does not"),
        (["b", "secret"], "the declared domain holds no None"),
        (["b", "b"], "holds a value twice"),
        ([1], "holds a value that is no string"),
        ([], "is empty"),
        ({"z": ["b"]}, "no sensitive column"),
    ],
)
def test_a_declared_domain_that_does_not_fit_is_refused_without_showing_values(declared, words):
    table = pa.table({"a": ["b", "secret", None]})
    with pytest.raises((TableError, OptionError)) as caught:
        scanned(table, ["a"], "value", declared)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("array", [pa.array([[1]]), pa.array([{"x": 1}]), pa.array([b"x"])])
def test_nested_and_binary_columns_cannot_be_sensitive(array):
    with pytest.raises(ColumnError, match=r"cannot be sensitive.*Fix: convert it to strings"):
        scanned(pa.table({"a": array}), ["a"])


def test_too_many_values_are_refused(monkeypatch):
    monkeypatch.setattr(encoding, "MOST_VALUES", 100)
    table = pa.table({"a": list(range(11)), "b": list(range(11))})
    with pytest.raises(TableError, match=r"'a' x 'b' are more than 100 different ones.*Fix: round or group"):
        scanned(table, ["a", "b"])


@pytest.mark.parametrize(("m", "dtype"), [(256, np.uint8), (257, np.uint16), (70_000, np.uint32)])
def test_codes_have_the_smallest_type_that_holds_the_domain(m, dtype):
    table = pa.table({"a": list(range(m))})
    codes = scanned(table, ["a"]).encoder.encode(table.to_batches()[0])
    assert codes.dtype == dtype
    assert codes.tolist() == list(range(m))


def test_dictionaries_may_hold_nulls_twins_and_values_without_rows():
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), pa.array(["a", None, "a", "unused"]))
    scan = scanned(pa.table({"a": odd}), ["a"])
    codes = scan.encoder.encode(pa.record_batch({"a": odd}))
    assert codes.tolist()[0] == codes.tolist()[2]
    assert scan.encoder.decode(codes)[0].to_pylist() == ["a", None, "a", None]


def test_a_value_that_was_not_scanned_is_an_error_without_the_value():
    scan = scanned(pa.table({"a": ["x"]}), ["a"])
    with pytest.raises(TableError, match="not in its domain") as caught:
        scan.encoder.encode(pa.record_batch({"a": ["secret"]}))
    assert "secret" not in str(caught.value)
