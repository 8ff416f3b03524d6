"""Rows in the order of their keys, through files: the same for any number of buckets, which get whole pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from deniable.tables import shuffling
from deniable.tables.shuffling import shuffled_in_memory, shuffled_through_files

SCHEMA = pa.schema([("number", pa.int64()), ("name", pa.string())])


def keyed(rows: int, size: int) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Rows with random keys, many of them alike, in batches."""
    keys = np.random.default_rng(rows).integers(0, 2**20, rows).astype(np.uint64) << np.uint64(44)
    for start in range(0, rows, size):
        numbers = np.arange(start, min(start + size, rows))
        names = pa.array([f"name {number}" for number in numbers])
        yield pa.record_batch([pa.array(numbers), names], schema=SCHEMA), keys[numbers]


@pytest.mark.parametrize("rows", [0, 1, 5_000])
@pytest.mark.parametrize("buckets", [1, 3, 50])
@pytest.mark.parametrize("size", [7, 10_000])
def test_the_order_is_that_of_the_keys_for_any_number_of_buckets(
    rows: int, buckets: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffling, "PIECE_ROWS", 20)
    expected = pa.concat_tables(shuffled_in_memory(keyed(rows, size), SCHEMA) if rows else [SCHEMA.empty_table()])
    pieces = list(shuffled_through_files(keyed(rows, size), SCHEMA, tmp_path, buckets, threads=2))
    assert pa.concat_tables(pieces).to_pydict() == expected.to_pydict()
    assert not any(tmp_path.iterdir())


def test_many_buckets_are_not_handed_a_few_rows_at_a_time(tmp_path: Path) -> None:
    """A piece for each bucket and batch made publishing slower than linear in the rows."""
    rows, buckets = 200_000, 20
    paths = [tmp_path / str(number) for number in range(buckets)]
    shuffling._scatter(keyed(rows, 2_000), SCHEMA.append(pa.field(shuffling.SORT_KEY, pa.uint64())), paths)
    for path in paths:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
            sizes = [batch.num_rows for batch in reader]
        assert len(sizes) <= 1 + rows // (shuffling.PIECE_ROWS * buckets)


def test_what_is_gathered_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffling, "PIECE_BYTES", 10_000)
    sizes = [table.nbytes for table, _ in shuffling._gathered(keyed(5_000, 100), 10**9)]
    assert max(sizes) < 20_000
    assert len(sizes) > 5
