"""Rows come in the order of their keys, in memory or through any number of files; texts may move as dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from deniable.tables import shuffling
from deniable.tables.encoding import FOLDED_BYTES, Encoder
from deniable.tables.shuffling import shuffled

WORDS = ["flu", "cold", None, "gout"]


def pieces(rows: int, batch_rows: int, *, folded: bool) -> list[tuple[pa.RecordBatch, np.ndarray]]:
    draw = np.random.default_rng(1)
    encoder = Encoder(["disease"], [pa.array(WORDS)])
    codes = draw.integers(0, len(WORDS), rows).astype(np.uint8)
    keys = draw.integers(0, 2**64, rows, dtype=np.uint64)
    made = []
    for first in range(0, rows, batch_rows):
        some = slice(first, min(first + batch_rows, rows))
        disease = encoder.folded(codes[some]) if folded else encoder.decode(codes[some])
        arrays = [pa.array(np.arange(some.start, some.stop)), *disease]
        made.append((pa.RecordBatch.from_arrays(arrays, names=["row", "disease"]), keys[some]))
    return made


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(
    ("bucket_bytes", "piece_rows", "batch_rows"), [(2**20, 2**11, 997), (3_000, 1, 97), (900, 7, 5_000)]
)
def test_rows_come_in_the_order_of_their_keys(tmp_path, monkeypatch, folded, bucket_bytes, piece_rows, batch_rows):
    monkeypatch.setattr(shuffling, "BUCKET_BYTES", bucket_bytes)
    monkeypatch.setattr(shuffling, "PIECE_ROWS", piece_rows)
    schema = pa.schema([("row", pa.int64()), ("disease", pa.string())])
    plain = pieces(5_000, 5_000, folded=False)
    expected = plain[0][0].take(pa.array(np.argsort(plain[0][1])))
    for spool in (None, tmp_path):
        tables = shuffled(pieces(5_000, batch_rows, folded=folded), schema, spool, 5_000, 2)
        result = pa.concat_tables(table.cast(schema) for table in tables).combine_chunks()
        assert result.equals(pa.Table.from_batches([expected], schema))
    assert list(tmp_path.iterdir()) == []


def test_only_short_lists_of_texts_are_folded():
    codes = np.array([0, 1, 0], np.uint8)
    short = Encoder(["a"], [pa.array(["x", "y"])])
    assert pa.types.is_dictionary(short.folded(codes)[0].type)
    assert short.folded(codes)[0].cast(pa.string()).equals(short.decode(codes)[0])
    long = Encoder(["a"], [pa.array(["x" * FOLDED_BYTES, "y"])])
    numbers = Encoder(["a"], [pa.array([1, 2])])
    several = Encoder(["a", "b"], [pa.array(["x", "y"]), pa.array(["x", "y"])])
    for encoder in (long, numbers, several):
        assert [array.type for array in encoder.folded(codes)] == encoder.types
