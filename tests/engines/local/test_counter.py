"""A column of a file is coded as the same column in memory, whether or not the file's own dictionaries are taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.batch.columns import encode
from deniable.engines.local import stored
from deniable.engines.local.counter import local_counter

ROWS = 5_000


def texts(distinct: int, missing: float = 0.0) -> pa.Array:
    rng = np.random.default_rng(distinct)
    words = np.array([f"value {i} of {distinct}" for i in range(distinct)])[rng.integers(0, distinct, ROWS)]
    return pa.array(words, mask=rng.random(ROWS) < missing)


COLUMNS = {
    "few": texts(7),
    "some missing": texts(30, missing=0.3),
    "nearly all different": texts(100_000),
    "all missing": pa.nulls(ROWS, pa.string()),
    "no rows": pa.array([], pa.string()),
    "numbers": pa.array(np.random.default_rng(1).integers(0, 9, ROWS)),
}


@pytest.mark.parametrize("limit", [stored.DICTIONARY_BYTES, 0])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), None])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_a_file_has_the_codes_of_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: pa.DataType | None, limit: int
) -> None:
    monkeypatch.setattr(stored, "DICTIONARY_BYTES", limit)
    column = COLUMNS[name] if kind is None or name == "numbers" else COLUMNS[name].cast(kind)
    table = pa.table({"other": np.arange(len(column)), "a.b": column, "a": column, "b[0]": column})
    # Dictionaries of at most 2 kB: columns of many values go on without one in the middle of a row group.
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1_999, dictionary_pagesize_limit=2048)
    for column_name in ("a", "a.b", "b[0]"):
        read = stored.StoredRows.at(tmp_path / "t.parquet").column(column_name)
        as_dictionary = limit > 0 and name != "numbers"
        assert pa.types.is_dictionary(read.type) == as_dictionary
        ours, plain = encode(read), encode(table[column_name])
        assert ours.values.type == plain.values.type
        assert ours.values.equals(plain.values)
        assert np.array_equal(ours.codes, plain.codes)


def test_a_release_in_a_folder_answers_as_it_does_in_memory(tmp_path: Path) -> None:
    table = pa.table({"town": texts(40), "disease": texts(6)})
    privacy = dn.Privacy(rho2="3/4")
    made = dn.publish(table, sensitive="disease", privacy=privacy, key=bytes(32), out=tmp_path / "r")
    kept = dn.Release(made.manifest, table=pq.read_table(tmp_path / "r" / "data.parquet"))
    for release in (kept, dn.open_release(tmp_path / "r")):
        assert release.group_by(["town", "disease"]).equals(kept.group_by(["town", "disease"]))
        assert release.count({"town": "value 3 of 40", "disease": "value 2 of 6"}).value == pytest.approx(
            kept.count({"town": "value 3 of 40", "disease": "value 2 of 6"}).value
        )


def test_rows_are_counted_by_the_codes_of_the_table_that_they_are_a_part_of() -> None:
    town = pa.array(["b", None, "a", "b", "c"] * 20)
    table = pa.table({"town": town, "disease": texts(6)[:100]})
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), key=bytes(32))
    known = pa.array(["z", "c", "a", "b"])
    (own,) = release.counter().tally(["town"], [], np.zeros(1, np.int64), states=True)
    under = local_counter(release.table, release.manifest).under({"town": known})
    assert under.distinct("town").equals(known)
    (block,) = under.tally(["town"], [("town", np.array([1, 1, 1, 0, 1], bool))], np.array([-1, 0]), states=True)
    names = [*release.counter().distinct("town").to_pylist(), None]
    rows = {names[key]: counts for (key,), counts in zip(own.keys, own.counts, strict=True)}
    assert block.keys[:, 0].tolist() == [1, 2, 4]
    assert np.array_equal(block.counts, [rows["c"], rows["a"], rows[None]])
