"""Texts that a Parquet file holds as dictionaries are read so, and come out as what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.tables.dataset import LocalDataset
from deniable.tables.files import FOLDED_ROWS, ParquetPart, open_source

ROWS = 3 * FOLDED_ROWS
DISEASES = ["flu", "cold", None, "gout", "hiv"]


def table() -> pa.Table:
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "a.b": pa.array(DISEASES).take(pa.array(draw.integers(0, 5, ROWS))),
            "name": pa.array([f"person {i}" for i in range(ROWS)]),
            "age": draw.integers(0, 90, ROWS),
            "whole": pa.array(["x"] * ROWS).dictionary_encode(),
            "large": pa.array(["y"] * ROWS, pa.large_string()),
        }
    )


def test_every_column_comes_out_as_it_was_written(tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=FOLDED_ROWS)
    part = ParquetPart(tmp_path / "t.parquet")
    read = pa.Table.from_batches(part.batches(table().column_names, 10_000), part.schema)
    assert read.schema.types == table().schema.types
    assert read.to_pydict() == table().to_pydict()


def test_short_lists_of_texts_stay_dictionaries_where_they_may(tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=FOLDED_ROWS)
    part = ParquetPart(tmp_path / "t.parquet")
    batches = list(part.batches(table().column_names, 10_000, folded=True))
    kinds = batches[0].schema.types
    assert kinds[0] == pa.dictionary(pa.int32(), pa.string())
    assert kinds[1:] == table().schema.types[1:]  # one name for each row is no dictionary
    assert [value for batch in batches for value in batch.column("a.b").to_pylist()] == table()["a.b"].to_pylist()


def test_many_small_row_groups_are_read_in_whole_batches(tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=100)
    batches = list(ParquetPart(tmp_path / "t.parquet").batches(["a.b"], 10_000, folded=True))
    assert [batch.num_rows for batch in batches] == [10_000] * 4 + [ROWS - 40_000]
    assert batches[0].schema.types == [pa.string()]


def test_scans_and_digests_do_not_depend_on_how_texts_are_read(tmp_path):
    pq.write_table(table(), tmp_path / "folded.parquet", row_group_size=FOLDED_ROWS)
    pq.write_table(table(), tmp_path / "plain.parquet", use_dictionary=False)
    folded, plain = (LocalDataset(open_source(tmp_path / name)) for name in ("folded.parquet", "plain.parquet"))
    memory = LocalDataset(open_source(table()))
    assert folded.scan(("a.b",)).histogram == memory.scan(("a.b",)).histogram == plain.scan(("a.b",)).histogram
    assert folded.digest() == memory.digest() == plain.digest()
