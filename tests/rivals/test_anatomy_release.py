"""Anatomy's two tables, in memory and through files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import TableError
from deniable.engines import engine_named

KEY = bytes(range(32))


def table_of(rows: int = 5000) -> pa.Table:
    random = np.random.default_rng(2)
    value = pa.array(random.choice(list("abcdefgh"), rows)).dictionary_encode()
    sex = pa.array(random.choice(["F", "M"], rows)).dictionary_encode()
    return pa.table({"sex": sex, "age": random.integers(18, 90, rows), "disease": value})


def publish(table: Any, **options: Any) -> dn.Release:
    return dn.publish(table, sensitive="disease", mechanism="anatomy:l=4", key=KEY, **options)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_through_files_it_is_the_release_that_it_is_in_memory(tmp_path: Path, format: str, shuffle: bool) -> None:
    table = table_of()
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    inside = publish(table, shuffle=shuffle)
    outside = publish(tmp_path / "t.parquet", shuffle=shuffle, out=tmp_path / "r", format=format)
    assert outside.table.equals(inside.table)
    assert outside.groups.equals(inside.groups)
    assert dn.verify(tmp_path / "r").holds
    names = {"README.md", "manifest.json", "groups.parquet", f"data.{format}"}
    assert {path.name for path in (tmp_path / "r").iterdir()} == names
    where = {"sex": "F", "disease": ["a", "b"]}
    assert dn.open_release(tmp_path / "r").count(where) == inside.count(where)
    assert inside.table.schema.field("sex").type == pa.string()


def test_a_table_without_public_columns_keeps_its_groups(tmp_path: Path) -> None:
    table = table_of().select(["disease"])
    pq.write_table(table, tmp_path / "t.parquet")
    release = publish(tmp_path / "t.parquet", out=tmp_path / "r")
    assert release.table.column_names == ["cell"]
    assert release.table.num_rows == table.num_rows
    assert release.count({"disease": "a"}).value == sum(value == "a" for value in table["disease"].to_pylist())


def test_rows_of_too_frequent_values_are_in_neither_table(tmp_path: Path) -> None:
    table = pa.table({"age": range(100), "disease": ["h"] * 60 + ["a", "b", "c", "d"] * 10})
    pq.write_table(table, tmp_path / "t.parquet")
    release = publish(tmp_path / "t.parquet", out=tmp_path / "r")
    assert release.manifest.rows == release.table.num_rows == release.groups.num_rows == 53
    assert dn.verify(tmp_path / "r").holds


def test_a_table_that_changes_while_it_is_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    kind = type(engine_named("local").open(path))
    read = kind.batches

    def shorter(self: Any, columns: Any, *rest: Any) -> Any:
        for batch in read(self, columns, *rest):
            yield batch.slice(0, 100) if "sex" in columns else batch

    monkeypatch.setattr(kind, "batches", shorter)
    with pytest.raises(TableError, match="changed while it was being read"):
        publish(path, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("mechanism", ["anatomy:l=2", "generalize:k=4,l=2", "laplace"])
def test_an_option_that_means_nothing_here_is_refused(mechanism):
    table = pa.table({"sex": ["F", "M"] * 20, "disease": list("abcd") * 10})
    release = dn.publish(table, sensitive="disease", mechanism=mechanism, key=bytes(32))
    with pytest.raises(dn.DeniableError, match="method does not go with it"):
        release.count(where={"sex": "F"}, method="mle")


def test_by_its_name_alone_it_has_as_many_values_in_a_group_as_rho2_asks_for() -> None:
    table = pa.table({"sex": ["F", "M"] * 60, "disease": list("abcdefgh") * 15})
    for mechanism, values in (("anatomy", 3), ("anatomy:l=4", 4), ("generalize", 3), ("generalize:k=12,l=4", 4)):
        release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="1/3"), mechanism=mechanism)
        assert release.manifest.parts[0].promise.l == values  # type: ignore[union-attr]
    assert dn.publish(table, sensitive="disease", mechanism="anatomy").manifest.parts[0].promise.l == 6  # type: ignore[union-attr]
