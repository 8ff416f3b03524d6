"""Published tables as files: what is handed over as dictionaries is read as the texts that it stands for."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.tables.storage import write_table

PRIVACY = dn.Privacy("1/3", "1/2")
ROWS = 3000


def table(kind: pa.DataType) -> pa.Table:
    """Types that Parquet has no name for are read back by what Arrow notes in the file."""
    numbers = [row * 7 % 11 for row in range(ROWS)]
    return pa.table(
        {
            "age": pa.array(numbers, pa.int8()),
            "when": pa.array(numbers, pa.timestamp("ns", "Europe/Berlin")),
            "spent": pa.array(numbers, pa.duration("s")),
            "place": pa.array(map(str, numbers), pa.large_string()),
            "ill": pa.array([["a", "b", "c", "d", None][row * 13 % 5] for row in range(ROWS)], kind),
        }
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("missing", ["value", "exempt"])
@pytest.mark.parametrize("shuffle", [True, False], ids=["shuffled", "in order"])
def test_a_file_holds_the_rows_that_memory_does(tmp_path: Path, kind: pa.DataType, missing: str, shuffle: bool) -> None:
    options = {"sensitive": "ill", "mechanism": "uniform", "missing": missing, "shuffle": shuffle, "key": bytes(32)}
    dn.publish(table(kind), privacy=PRIVACY, out=tmp_path / "r", **options)
    held = dn.publish(table(kind), privacy=PRIVACY, **options).table
    file = tmp_path / "r" / "data.parquet"
    written = pq.read_table(file)
    assert written.schema == held.schema
    assert written.equals(held)
    counts = duckdb.sql(f"SELECT ill, count(*) FROM '{file}' GROUP BY ill").fetchall()
    assert dict(counts) == {pair["values"]: pair["counts"] for pair in held["ill"].value_counts().to_pylist()}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("values", [["a", "b", "c", "never"], ["a", "b", None]], ids=["", "null"])
def test_pieces_of_dictionaries_are_texts(tmp_path: Path, form: str, values: list[str | None]) -> None:
    schema = pa.schema([("ill", pa.string())])
    codes = pa.array([0, 1, 2, 1], pa.uint8())
    pieces = [pa.table({"ill": pa.DictionaryArray.from_arrays(codes, pa.array(values))})] * 2
    path = tmp_path / f"data.{form}"
    write_table(pieces, schema, path, form)
    expected = [values[code] for code in codes.to_pylist()] * 2
    if form == "csv":
        assert path.read_text().splitlines()[1:] == ["" if value is None else f'"{value}"' for value in expected]
        return
    read = pq.read_table(path)
    assert read.schema == schema
    assert read["ill"].to_pylist() == expected
    largest = pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.max
    assert largest == max(value for value in expected if value is not None), "of values that rows have"


@pytest.mark.parametrize("values", [["a", "", None, "b"], [1, 2, None, 3]], ids=["texts", "numbers"])
def test_a_missing_value_of_the_only_column_is_a_row_of_csv(tmp_path: Path, values: list[object]) -> None:
    only = pa.table({"ill": values * 100})
    dn.publish(
        only, sensitive="ill", mechanism="uniform", privacy=PRIVACY, key=bytes(32), out=tmp_path / "r", format="csv"
    )
    held = dn.publish(only, sensitive="ill", mechanism="uniform", privacy=PRIVACY, key=bytes(32)).table
    assert dn.open_release(tmp_path / "r").table.equals(held)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_what_is_no_number_comes_back_and_is_asked_about_as_missing(tmp_path: Path, kind: pa.DataType) -> None:
    numbers = pa.array([float("nan"), None, -0.0, float("-inf")] * 100, kind, from_pandas=False)
    people = pa.table({"income": numbers, "ill": ["a", "b", "c", "d"] * 100})
    for form in ("parquet", "csv"):
        out = tmp_path / form
        dn.publish(people, sensitive="ill", mechanism="uniform", privacy=PRIVACY, out=out, format=form, shuffle=False)
        release = dn.open_release(out)
        read = release.table["income"]
        assert read.null_count == 100
        assert list(map(str, read.to_pylist())) == list(map(str, numbers.to_pylist()))
        assert release.count({"income": None}).value == pytest.approx(200)
