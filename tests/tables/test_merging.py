"""A table scanned in parts, anywhere and in any order, and merged, is the table scanned whole."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.channels import Replace
from deniable.core.errors import TableError
from deniable.tables import encoding
from deniable.tables.base import Scan
from deniable.tables.encoding import DomainScanner
from deniable.tables.ranges import RangeScanner

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
KINDS = {
    "text": (pa.string(), st.sampled_from(["", "a", "b", "é", "z"])),
    "dictionary": (DICTIONARY, st.sampled_from(["c", "a", "b", ""])),
    "float": (pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 2.0, float("nan")])),
    "integer": (pa.int16(), st.integers(-3, 3)),
    "truth": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 5))),
}


@st.composite
def tables(draw: st.DrawFn, columns: int, kinds: tuple[str, ...] = tuple(KINDS)) -> pa.Table:
    rows = draw(st.integers(0, 25))
    arrays = {}
    for name in "abc"[:columns]:
        dtype, values = KINDS[draw(st.sampled_from(kinds))]
        arrays[name] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), dtype)
    return pa.table(arrays)


def whole(table: pa.Table, fresh: Callable[[], Any]) -> Any:
    """A scanner that has seen the table from its first row to its last."""
    scanner = fresh()
    for batch in table.to_batches():
        scanner.update(batch)
    return scanner


def merged(table: pa.Table, fresh: Callable[[], Any], data: st.DataObject) -> Any:
    """Rows in up to five partitions by chance, each scanned in batches of its own, then merged two by two."""
    count = data.draw(st.integers(1, 5))
    owner = data.draw(st.lists(st.integers(0, count - 1), min_size=table.num_rows, max_size=table.num_rows))
    scanners = []
    for number in range(count):
        rows = data.draw(st.permutations([row for row, partition in enumerate(owner) if partition == number]))
        scanner = fresh()
        for batch in table.take(pa.array(rows, pa.int64())).to_batches(max_chunksize=data.draw(st.integers(1, 9))):
            scanner.update(recoded(batch))
        scanners.append(scanner)
    while len(scanners) > 1:
        other = scanners.pop(data.draw(st.integers(0, len(scanners) - 1)))
        scanners[data.draw(st.integers(0, len(scanners) - 1))].merge(other)
    return scanners[0]


def recoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with dictionaries of their own, as another file or worker would have them."""
    columns = [
        column.dictionary_decode().dictionary_encode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def outcome(scan: Callable[[], Any]) -> Any:
    """What a scan says, or why it refuses."""
    try:
        found = scan()
    except TableError as refused:
        return str(refused)
    return domain_facts(found) if isinstance(found, Scan) else found


def domain_facts(scan: Scan) -> tuple[Any, ...]:
    encoder = scan.encoder
    values = [array.to_pylist() for array in encoder.values]
    coded = (encoder.columns, encoder.types, values, encoder.exempt)
    return repr(scan.histogram.domain), scan.histogram.counts.tolist(), scan.exempt_rows, coded  # -0.0 is not 0.0


@pytest.mark.parametrize("columns", [1, 2])
@settings(max_examples=120, deadline=None)
@given(missing=st.sampled_from(["value", "exempt", "refuse"]), data=st.data())
def test_counts_of_values_merge(columns: int, missing: str, data: st.DataObject) -> None:
    table = data.draw(tables(columns))

    def fresh() -> DomainScanner:
        return DomainScanner(table.schema.names, table.schema)

    expected = outcome(lambda: whole(table, fresh).scan(missing, None))
    assert outcome(lambda: merged(table, fresh, data).scan(missing, None)) == expected


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_counts_of_values_merge_where_the_domain_is_declared_and_ordered(data: st.DataObject) -> None:
    table = data.draw(tables(2, ("text", "dictionary")))
    orders = {"a": ["z", "é", "c", "b", "a", ""]}
    declared = data.draw(st.sampled_from([None, {"b": ["", "a", "b", "c", "z", "é", None]}, {"b": ["a", "b"]}]))

    def fresh() -> DomainScanner:
        return DomainScanner(["a", "b"], table.schema, orders)

    expected = outcome(lambda: whole(table, fresh).scan("value", declared))
    assert outcome(lambda: merged(table, fresh, data).scan("value", declared)) == expected


def test_a_scanner_that_was_merged_is_left_as_it_was() -> None:
    first, second = pa.table({"a": ["x", None, "y"]}), pa.table({"a": ["z", "x"]})
    one, other = (whole(table, lambda: DomainScanner(["a"], first.schema)) for table in (first, second))
    before = domain_facts(other.scan("value", None))
    one.merge(other)
    assert domain_facts(other.scan("value", None)) == before
    assert dict(one.scan("value", None).histogram) == {"x": 2, "y": 1, "z": 1, None: 1}


def test_too_many_values_of_all_parts_together_are_refused_before_they_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight by eight in each part is allowed, sixteen by sixteen is not."""
    monkeypatch.setattr(encoding, "MOST_VALUES", 100)
    parts = [pa.table({"a": range(first, first + 8), "b": range(first, first + 8)}) for first in (0, 8)]
    one, other = (whole(table, lambda: DomainScanner(["a", "b"], parts[0].schema)) for table in parts)
    with pytest.raises(TableError, match=r"'a' x 'b' are more than 100 different ones.*Fix: round or group"):
        one.merge(other)


RANGES = {
    "integer": (pa.int32(), Replace(0.5, -5, 60), st.integers(-5, 60)),
    "cents": (pa.float64(), Replace(0.5, 0, 9), st.integers(0, 900).map(lambda cents: cents / 100)),
    "fine": (pa.float64(), Replace(0.5, 0, 1), st.floats(0, 1)),
    "stepped": (pa.float32(), Replace(0.5, 0, 8, step=0.5), st.integers(0, 16).map(lambda half: half / 2)),
    "date": (
        pa.date32(),
        Replace(0.5, datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)),
        st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)),
    ),
}


@settings(max_examples=80, deadline=None)
@given(kind=st.sampled_from(sorted(RANGES)), missing=st.sampled_from(["value", "exempt", "refuse"]), data=st.data())
def test_grids_of_ranges_merge(kind: str, missing: str, data: st.DataObject) -> None:
    dtype, replace, numbers = RANGES[kind]
    table = pa.table({"a": pa.array(data.draw(st.lists(st.none() | numbers, max_size=20)), dtype)})

    def told(scanner: RangeScanner) -> Any:
        scan = scanner.scan(missing)
        encoder = scan.encoder
        return scan.grid, scan.rows, (encoder.columns, encoder.types, encoder.range, encoder.exempt)

    def fresh() -> RangeScanner:
        return RangeScanner("a", dtype, replace)

    expected = outcome(lambda: told(whole(table, fresh)))
    assert outcome(lambda: told(merged(table, fresh, data))) == expected
