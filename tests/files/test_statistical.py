"""SPSS, Stata and SAS files: labels are read as values, missing codes as missing, in bounded memory."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

import deniable as dn
from deniable.core.errors import TableError
from deniable.files import statistical as coded
from deniable.tables.files import open_source

FRAME = pd.DataFrame(
    {
        "sex": [1.0, 2.0, 2.0, None],
        "age": [34.0, 99.0, 51.0, 20.0],
        "height": [1.75, 1.62, None, 1.8],
        "job": ["nurse", "", "baker", "nurse"],
        "day": [dt.date(2024, 2, 29), None, dt.date(1999, 12, 31), dt.date(1960, 1, 1)],
    }
)
LABELS = {"sex": {1.0: "male", 2.0: "female", 3.0: "other"}}
WRITE = {".sav": pyreadstat.write_sav, ".zsav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}


def written(folder: Path, suffix: str, frame: pd.DataFrame = FRAME, **options: Any) -> Path:
    path = folder / f"table{suffix}"
    if suffix == ".zsav":
        options["compress"] = True
    WRITE[suffix](frame, str(path), **{"variable_value_labels": LABELS, **options})
    return path


def rows_of(path: Path, columns: list[str] | None = None, batch_rows: int = 1000) -> list[dict[str, Any]]:
    source = open_source(path)
    return pa.Table.from_batches(source.batches(columns or source.names, batch_rows)).to_pylist()


@pytest.mark.parametrize("suffix", WRITE)
def test_labels_are_values_and_types_are_the_narrowest(tmp_path: Path, suffix: str) -> None:
    source = open_source(written(tmp_path, suffix))
    kinds = [str(kind) for kind in source.schema.types]
    assert kinds == ["string", "int64", "double", "string", "date32[day]"]
    assert source.rows == 4
    assert source.labels == {"sex": {1: "male", 2: "female", 3: "other"}}
    assert rows_of(tmp_path / f"table{suffix}")[:2] == [
        {"sex": "male", "age": 34, "height": 1.75, "job": "nurse", "day": dt.date(2024, 2, 29)},
        {"sex": "female", "age": 99, "height": 1.62, "job": None, "day": None},
    ]
    assert [row["sex"] for row in rows_of(tmp_path / f"table{suffix}", ["sex"])] == ["male", "female", "female", None]


def test_transport_files_of_sas_have_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "table.xpt"
    pyreadstat.write_xport(FRAME, str(path))
    assert [row["sex"] for row in rows_of(path)] == [1, 2, 2, None]
    assert open_source(path).labels == {}


@pytest.mark.parametrize("suffix", WRITE)
def test_a_column_with_some_labels_stays_numbers_and_the_owner_is_told(tmp_path: Path, suffix: str) -> None:
    source = open_source(written(tmp_path, suffix, variable_value_labels={"age": {99.0: "refused"}}))
    assert source.schema.field("age").type == pa.int64()
    assert len(source.warned["age"]) == 1
    assert "99 as 'refused'" in source.warned["age"][0]
    assert not source.warned["sex"]


def test_missing_codes_are_missing_and_the_owner_is_told(tmp_path: Path) -> None:
    labels = {**LABELS, "age": {99.0: "refused"}}
    path = written(tmp_path, ".sav", variable_value_labels=labels, missing_ranges={"age": [{"lo": 97, "hi": 99}, 20]})
    assert [row["age"] for row in rows_of(path)] == [34, None, 51, None]
    source = open_source(path)
    assert source.warned["age"] == [
        "The column 'age' declares 97 to 99, 20 as missing: they are read as missing, and why an answer is missing is "
        "not published."
    ]
    assert "age" not in source.labels  # the label of a missing value is of no value that is left


def test_letters_of_stata_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": [1, 2, "a", 2], "age": [1, 2, 3, 4]})
    path = tmp_path / "table.dta"
    labels = {"sex": {1: "male", 2: "female", "a": "refused"}}
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels, missing_user_values={"sex": ["a"]})
    source = open_source(path)
    assert [row["sex"] for row in rows_of(path)] == ["male", "female", None, "female"]
    assert "declares .a as missing" in source.warned["sex"][0]


def test_what_an_owner_is_told_is_about_published_columns(tmp_path: Path) -> None:
    labels = {"age": {99.0: "refused"}, "height": {1.8: "tall"}}
    path = written(tmp_path, ".sav", pd.concat([FRAME] * 30, ignore_index=True), variable_value_labels=labels)
    release = dn.publish(path, sensitive="job", privacy="4/5", drop=["height"], seed=1, mechanism="uniform")
    assert [words for words in release.warnings if "labels some" in words] == [
        words for words in release.warnings if "'age' labels some" in words
    ]
    assert any("'age' labels some" in words for words in release.warnings)
    of_age = dn.publish(path, sensitive="age", privacy="4/5", drop=["height"], seed=1, mechanism="uniform")
    assert any("'age' labels some" in words for words in of_age.warnings)


def test_equal_labels_and_blank_ones_stay_apart(tmp_path: Path) -> None:
    path = written(tmp_path, ".sav", variable_value_labels={"sex": {1.0: "x", 2.0: "x"}})
    assert {row["sex"] for row in rows_of(path)} == {"x (1)", "x (2)", None}


@pytest.mark.parametrize("batch_rows", [1, 3, 7, 100])
def test_chunks_of_any_size_are_the_same_rows(tmp_path: Path, batch_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"number": range(20), "half": [number / 2 for number in range(20)]})
    path = written(tmp_path, ".sav", frame, variable_value_labels={})
    monkeypatch.setattr(coded, "CELLS_AT_ONCE", 10)
    source = open_source(path)
    batches = list(source.batches(["half", "number"], batch_rows))
    assert max(batch.num_rows for batch in batches) <= min(batch_rows, 5)
    assert pa.Table.from_batches(batches)["number"].to_pylist() == list(range(20))
    assert source.schema.field("half").type == pa.float64()
    assert sum(batch.num_rows for batch in source.batches([], batch_rows)) == 20


def test_several_files_are_one_table_where_they_mean_the_same(tmp_path: Path) -> None:
    first, other = (tmp_path / name for name in ("a.sav", "b.sav"))
    pyreadstat.write_sav(FRAME, str(first), variable_value_labels=LABELS)
    pyreadstat.write_sav(FRAME, str(other), variable_value_labels={"sex": {1.0: "man", 2.0: "woman"}})
    both = open_source([first, other])
    assert both.rows == 8
    assert both.labels == {}  # 1 is male in one of them and man in the other: no code can stand for both
    assert open_source([first, first]).labels == open_source(first).labels


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_damaged_files_are_refused_in_words(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, suffix)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TableError, match=r"damaged, cut short .*Fix: write it again"):
        open_source(path)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, ".sav")
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(dn.DeniableError, match=r"pip install 'deniable\[files\]'"):
        open_source(path)
