"""A column of a file is coded as the same column in memory, whether or not the file's own dictionaries are taken."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.tables import counting as counter
from deniable.tables import dataset, storage
from deniable.tables import storage as stored
from deniable.tables.counting import local_counter
from deniable.tables.encoding import encode, joined

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
    made = dn.publish(
        table, sensitive="disease", privacy=privacy, key=bytes(32), out=tmp_path / "r", mechanism="uniform"
    )
    kept = dn.Release(made.manifest, table=pq.read_table(tmp_path / "r" / "data.parquet"))
    for release in (kept, dn.open_release(tmp_path / "r")):
        assert release.group_by(["town", "disease"]).equals(kept.group_by(["town", "disease"]))
        assert release.count({"town": "value 3 of 40", "disease": "value 2 of 6"}).value == pytest.approx(
            kept.count({"town": "value 3 of 40", "disease": "value 2 of 6"}).value
        )


def test_rows_are_counted_by_the_codes_of_the_table_that_they_are_a_part_of() -> None:
    town = pa.array(["b", None, "a", "b", "c"] * 20)
    table = pa.table({"town": town, "disease": texts(6)[:100]})
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), key=bytes(32), mechanism="uniform")
    known = pa.array(["z", "c", "a", "b"])
    (own,) = release.counter().tally(["town"], [], np.zeros(1, np.int64), states=True)
    under = local_counter(release.table, release.manifest).under({"town": known})
    assert under.distinct("town").equals(known)
    (block,) = under.tally(["town"], [("town", np.array([1, 1, 1, 0, 1], bool))], np.array([-1, 0]), states=True)
    names = [*release.counter().distinct("town").to_pylist(), None]
    rows = {names[key]: counts for (key,), counts in zip(own.keys, own.counts, strict=True)}
    assert block.keys[:, 0].tolist() == [1, 2, 4]
    assert np.array_equal(block.counts, [rows["c"], rows["a"], rows[None]])


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.float16(), pa.bool_(), pa.date32()])
def test_pieces_of_a_column_join_to_the_codes_of_the_whole(kind: pa.DataType) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2 if kind == pa.bool_() else 400, 3_000)
    numbers = pa.array(codes, mask=rng.random(3_000) < 0.1)
    column = numbers.cast(pa.int32()).cast(kind) if kind != pa.float16() else numbers.cast(pa.float32()).cast(kind)
    whole = encode(column)
    for edges in ([0, 3_000], [0, 7, 7, 1_500, 3_000], [0, 1, 2_999, 3_000]):
        cuts = [encode(column.slice(a, b - a)) for a, b in pairwise(edges)]
        ours = joined(cuts, kind)
        assert ours.values.equals(whole.values)
        assert ours.codes.dtype == whole.codes.dtype
        assert np.array_equal(ours.codes, whole.codes)
    assert joined([], kind).values.type == kind


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain", "lineup"])
def test_a_release_is_counted_in_pieces_as_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    monkeypatch.setattr(counter, "PIECE_ROWS", 700)
    monkeypatch.setattr(storage, "ROW_GROUP", 400)
    monkeypatch.setattr(dataset, "ROW_GROUP", 400)
    table = pa.table({"town": texts(40, missing=0.1), "disease": texts(6)})
    made = dn.publish(
        table,
        sensitive="disease",
        privacy=dn.Privacy(rho2="3/4"),
        mechanism=mechanism,
        key=bytes(32),
        out=tmp_path / "r",
    )
    inside = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), mechanism=mechanism, key=bytes(32))
    assert len(stored.StoredRows.at(tmp_path / "r" / "data.parquet").cut(700)) > 3
    question = "SELECT town, COUNT(*) AS n FROM release WHERE disease = 'value 1 of 6' GROUP BY town"
    assert made.sql(question).to_pydict() == inside.sql(question).to_pydict()
