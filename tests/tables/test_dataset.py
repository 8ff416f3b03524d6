"""A dataset never changes: what is left out or binned is another one; its digest is that of its rows alone."""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.core.errors import TableError
from deniable.core.transforms import Quantiles
from deniable.tables.dataset import LocalDataset, LocalEngine
from deniable.tables.keys import Keystream, Secret

KEYS = Keystream(Secret.from_key(bytes(range(32))), "dataset test")


def opened(table: Any) -> LocalDataset:
    return LocalEngine().open(table)


def facts(dataset: LocalDataset) -> tuple[Any, ...]:
    """Everything that a dataset tells of itself."""
    rows = [batch.to_pylist() for batch in dataset.batches(dataset.names, 7)]
    counts = [dict(dataset.scan((name,)).histogram) for name in dataset.names]
    told = (dataset.schema, list(dataset.names), dataset.rows, dict(dataset.bins), dataset.said)
    return rows, counts, told, dataset.inspect(dataset.names), dataset.digest()


CUTS = [0, 100, 600]
PEOPLE = pa.table({"pay": np.arange(1000) * 7 % 503, "age": np.arange(1000) % 90, "job": list("abcde") * 200})


# -- other datasets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        lambda dataset: dataset.without(np.array([3, 999, 0])),
        lambda dataset: dataset.binned({"pay": CUTS}),
        lambda dataset: dataset.binned({"pay": Quantiles(3)}, KEYS),
        lambda dataset: dataset.binned({"pay": CUTS}).without(np.array([1, 2])),
        lambda dataset: dataset.without(np.array([1, 2])).binned({"age": Quantiles(2)}, KEYS).binned({"pay": CUTS}),
    ],
    ids=["without", "binned", "quantiles", "binned, then without", "without, then binned twice"],
)
@pytest.mark.parametrize("file", [False, True])
def test_another_dataset_leaves_the_first_as_it_was(other, file, tmp_path):
    pq.write_table(PEOPLE, tmp_path / "t.parquet")
    dataset = opened(tmp_path / "t.parquet" if file else PEOPLE)
    before = copy.deepcopy(facts(dataset))
    made = other(dataset)
    changed = facts(made)
    assert facts(dataset) == before
    assert changed[-1] != before[-1]
    assert facts(made) == changed


def test_rows_are_left_out_by_what_the_array_held_then():
    gone = np.array([5, 2])
    made = opened(pa.table({"x": np.arange(6)})).without(gone)
    gone[:] = 0
    assert [x for batch in made.batches(["x"]) for x in batch.column(0).to_pylist()] == [0, 1, 3, 4]


def test_a_dataset_without_rows_is_the_same_however_it_is_read():
    dataset = opened(pa.table({"x": np.arange(100)})).without(np.array([99, 0, 50]))
    assert dataset.rows == 97
    for size in (1, 7, 1000):
        read = [x for batch in dataset.batches(["x"], size) for x in batch.column(0).to_pylist()]
        assert read == [x for x in range(100) if x not in (0, 50, 99)]
    with pytest.raises(TableError, match="leave out all of them at once"):
        dataset.without(np.array([1]))


def test_bins_add_to_those_before_and_are_of_the_rows_that_are_left():
    dataset = opened(PEOPLE)
    assert dataset.binned({}) is dataset
    cut = dataset.binned({"pay": CUTS})
    assert (list(cut.bins), list(dataset.bins)) == (["pay"], [])
    assert cut.schema.field("pay").type == pa.string()
    assert sum(cut.scan(("pay",)).histogram.counts) == 1000
    assert cut.without(np.arange(900)).scan(("pay",)).histogram.rows == 100
    both = cut.binned({"age": [0, 50, 100]})
    assert (list(both.bins), list(cut.bins)) == (["pay", "age"], ["pay"])
    assert both.scan(("pay", "age")).histogram.m == 4


def test_progress_is_told_after_each_batch():
    told: list[tuple[int, int | None, str]] = []
    opened(pa.table({"a": [1, 2]})).scan(("a",), progress=lambda *said: told.append(said))
    assert told == [(2, 2, "counting")]


# -- digests -----------------------------------------------------------------------------------------------------------

KINDS = {
    "integer": (pa.int32(), st.integers(-3, 3)),
    "float": (pa.float64(), st.sampled_from([-1.5, 0.0, 0.1])),
    "truth": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "é", "ab"])),
    "large text": (pa.large_string(), st.sampled_from(["", "a", "ba"])),
    "bytes": (pa.binary(), st.binary(max_size=2)),
    "date": (pa.date32(), st.dates()),
    "money": (pa.decimal128(9, 2), st.sampled_from([Decimal("1.20"), Decimal("-3.00")])),
    "list": (pa.list_(pa.int8()), st.lists(st.integers(0, 2), max_size=2)),
}
DECODED = ("text", "large text", "integer", "date")


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 20))
    arrays = {}
    for name in "xyz"[: draw(st.integers(1, 3))]:
        dtype, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        arrays[name] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), dtype)
    return pa.table(arrays)


def laid_out_otherwise(table: pa.Table, data: st.DataObject) -> pa.Table:
    """The same rows: other rows before and behind in the same buffers, other chunks, dictionaries, and what lies under
    missing values."""
    columns = []
    for column in table.columns:
        array = column.combine_chunks()
        kept = array.cast(array.type) if not array.null_count else with_values_under_missing(array)
        around = pa.concat_arrays([kept.slice(0, data.draw(st.integers(0, 9))), kept, kept])
        start = len(around) - 2 * len(kept)
        made = pa.chunked_array([around.slice(start, len(kept))], array.type)
        cut = data.draw(st.integers(0, len(kept)))
        made = pa.chunked_array([*made.slice(0, cut).chunks, *made.slice(cut).chunks], array.type)
        encodable = any(array.type == KINDS[kind][0] for kind in DECODED)
        columns.append(made.dictionary_encode() if encodable and data.draw(st.booleans()) else made)
    return pa.table(columns, names=table.column_names)


def with_values_under_missing(array: pa.Array) -> pa.Array:
    """Missing rows with another value beneath, as a filter or another library may leave them."""
    if pa.types.is_nested(array.type) or array.null_count == len(array):
        return array
    full = array.fill_null(array.drop_null()[0])
    buffers = full.buffers()
    bits = np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little").tobytes()
    return pa.Array.from_buffers(array.type, len(full), [pa.py_buffer(bits), *buffers[1:]], offset=full.offset)


@settings(max_examples=100, deadline=None)
@given(tables(), st.data())
def test_the_digest_does_not_depend_on_how_rows_lie_in_memory(table, data):
    other = laid_out_otherwise(table, data)
    assert other.cast(table.schema).equals(table)
    assert opened(other).digest() == opened(table).digest()


@settings(max_examples=60, deadline=None)
@given(tables(), st.sets(st.integers(0, 30), max_size=6))
def test_the_digest_of_a_table_without_rows_is_that_of_the_table_of_the_others(table, gone):
    left = [row for row in range(table.num_rows) if row not in gone]
    rows = np.array(sorted(gone & set(range(table.num_rows))), np.int64)
    assert opened(table).without(rows).digest() == opened(table.take(pa.array(left, pa.int64()))).digest()


@settings(max_examples=100, deadline=None)
@given(tables(), tables())
def test_the_digest_tells_tables_apart(table, other):
    same = table.schema.equals(other.schema) and table.equals(other)
    assert (opened(table).digest() == opened(other).digest()) == same


@settings(max_examples=80, deadline=None)
@given(tables(), st.data())
def test_the_digest_changes_with_one_value_with_the_order_and_with_a_name(table, data):
    before = opened(table).digest()
    names = [f"{name}'" if name == table.column_names[-1] else name for name in table.column_names]
    assert opened(table.rename_columns(names)).digest() != before
    assume(table.num_rows)
    row, place = data.draw(st.integers(0, table.num_rows - 1)), data.draw(st.integers(0, table.num_columns - 1))
    column = table.column(place).to_pylist()
    kind = next(kind for kind, (dtype, _) in KINDS.items() if dtype == table.schema.types[place])
    value = data.draw((st.none() | KINDS[kind][1]).filter(lambda drawn: drawn != column[row]))
    column[row] = value
    changed = table.set_column(place, table.column_names[place], pa.array(column, table.schema.types[place]))
    assert opened(changed).digest() != before
    order = data.draw(st.permutations(range(table.num_rows)))
    turned = table.take(pa.array(order, pa.int64()))
    assert (opened(turned).digest() != before) == (turned.to_pylist() != table.to_pylist())


def test_the_digest_of_files_and_frames_is_that_of_their_rows(tmp_path, monkeypatch):
    expected = opened(PEOPLE).digest()
    pq.write_table(PEOPLE, tmp_path / "t.parquet", row_group_size=77)
    assert opened(tmp_path / "t.parquet").digest() == expected
    half = PEOPLE.num_rows // 2
    pq.write_table(PEOPLE.slice(0, half), tmp_path / "1.parquet")
    pq.write_table(PEOPLE.slice(half), tmp_path / "2.parquet")
    assert opened([tmp_path / "1.parquet", tmp_path / "2.parquet"]).digest() == expected
    assert opened([tmp_path / "2.parquet", tmp_path / "1.parquet"]).digest() != expected
    assert opened(PEOPLE.to_pandas(types_mapper=pd.ArrowDtype)).digest() == expected
    in_order = opened(PEOPLE).digest(by="pay")
    folded = LocalDataset._folded
    monkeypatch.setattr(LocalDataset, "_folded", lambda self, columns: folded(self, columns, 13))
    assert opened(PEOPLE).digest() == expected
    assert opened(PEOPLE).digest(by="pay") == in_order


def test_a_digest_of_more_rows_than_one_piece(monkeypatch):
    monkeypatch.setattr("deniable.tables.dataset.ROW_GROUP", 64)
    table = pa.table({"x": np.arange(1000), "y": [None if i % 3 else str(i) for i in range(1000)]})
    chunks = pa.concat_tables([table.slice(first, 37) for first in range(0, 1000, 37)])
    assert opened(chunks).digest() == opened(table).digest()
    assert opened(table.slice(1)).digest() != opened(table).digest()
    assert opened(table.slice(0, 960)).digest() != opened(table).digest()


def test_the_digest_in_the_order_of_ids_is_that_of_the_sorted_rows_and_holds_them_once(tmp_path):
    rows = 300_000
    ids = np.random.default_rng(0).permutation(rows)
    jobs = pa.array([f"an occupation of {number} letters" for number in range(40)]).take(pa.array(ids % 40))
    table = pa.table({"id": ids, "age": pa.array(ids % 90, pa.int16()), "job": jobs})
    pq.write_table(table, tmp_path / "people.parquet")
    before, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        digest = opened(tmp_path / "people.parquet").digest(by="id")
    finally:
        pa.set_memory_pool(before)
    assert digest == opened(table.sort_by("id")).digest()
    held = rows * (8 + 2 + 4)  # the numbers, and a place in the list of occupations
    assert counted.max_memory() < 3 * held + 16 * 2**20, "two copies while they are joined, an order, and a piece"
