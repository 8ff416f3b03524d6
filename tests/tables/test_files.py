"""Reading tables: every kind of input, the types of CSV columns, and what is said when a file is wrong."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.core.errors import ColumnError, TableError
from deniable.tables import csv as csv_module
from deniable.tables.files import Source, open_source


def rows_of(source: Source, columns: list[str] | None = None, batch_rows: int = 1000) -> list[dict]:
    names = source.names if columns is None else columns
    return [row for batch in source.batches(names, batch_rows) for row in batch.to_pylist()]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(table: object, kind: type[TableError] = TableError) -> str:
    with pytest.raises(kind) as caught:
        open_source(table)
    assert caught.value.__cause__ is None
    assert "Fix:" in str(caught.value)
    return str(caught.value)


TABLE = pa.table({"age": [31, 47, None], "disease": ["flu", None, ""]})


@pytest.mark.parametrize(
    "convert",
    [
        lambda t: t,
        lambda t: t.to_reader(),
        pl.from_arrow,
        lambda t: pl.from_arrow(t).lazy(),
        lambda t: duckdb.connect().from_arrow(t),  # a connection of its own: other tests use the common one
        lambda t: t.to_batches()[0],
        lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=["pyarrow", "reader", "polars", "polars lazy", "duckdb", "record batch", "pandas"],
)
def test_any_data_frame_reads_the_same_twice(convert):
    source = open_source(convert(TABLE))
    assert source.in_memory
    assert source.rows == 3
    assert rows_of(source) == rows_of(source) == TABLE.to_pylist()
    assert rows_of(source, ["disease"], 2) == TABLE.select(["disease"]).to_pylist()


def test_the_index_of_a_pandas_frame_is_not_published():
    frame = pd.DataFrame({"a": [1, 2, 3]})
    source = open_source(frame[frame.a > 1])
    assert source.names == ["a"]
    assert source.schema.metadata is None


def test_views_and_categories_of_polars_become_plain_strings():
    frame = pl.DataFrame({"a": ["x"], "b": pl.Series(["u"], dtype=pl.Categorical)})
    source = open_source(frame)
    assert source.schema.field("a").type == pa.large_string()
    assert rows_of(source) == [{"a": "x", "b": "u"}]


def test_csv_types_come_from_all_rows_and_not_from_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "FIRST_BLOCK", 1 << 12)
    lines = [f"{i},{i},{i}.5" for i in range(5000)] + ["x,12.5,7"]
    source = open_source(write(tmp_path / "t.csv", "late,number,float\n" + "\n".join(lines) + "\n"))
    assert [source.schema.field(name).type for name in source.names] == [pa.string(), pa.float64(), pa.float64()]
    rows = rows_of(source)
    assert rows[0] == {"late": "0", "number": 0.0, "float": 0.5}
    assert rows[-1] == {"late": "x", "number": 12.5, "float": 7.0}
    assert source.rows == 5001
    assert rows == rows_of(source, batch_rows=7)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", ""], pa.int64()),
        (["007", "8"], pa.string()),
        (["1.50", ".5", "1e3", "NaN"], pa.float64()),
        (["12345678901234567890", "1"], pa.string()),
        (["00.5", "1"], pa.string()),
        (["-", "1"], pa.string()),
        (["true", "FALSE"], pa.bool_()),
        (["2024-02-29", "1999-12-31"], pa.date32()),
        (["2023-02-29", "1999-12-31"], pa.string()),
        (["2024-02-29 10:00", "2024-02-29T10:00:01.25"], pa.timestamp("us")),
        (["NA", "1"], pa.string()),
        (["", ""], pa.string()),
    ],
)
def test_csv_types(tmp_path, values, kind):
    source = open_source(write(tmp_path / "t.csv", "k,v\n" + "".join(f"a,{value}\n" for value in values)))
    assert source.schema.field("v").type == kind
    assert len(rows_of(source, ["v"])) == len(values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1090,5", "-3,25", "12", "0"], "numbers with a comma, which are read as texts"),
        (["1.090,50", "13,1"], "numbers with a comma, which are read as texts"),
        (["19.12.2024", "1.2.2024"], "dates that are read as texts"),
        (["12/19/2024", ""], "dates that are read as texts"),
        (["1090.5", "12"], None),
        (["01050", "1050"], None),
        (["1090,5", "unknown"], None),
        (["2024-12-19"], None),
        (["12345678901234567890", "1"], None),
        (["", ""], None),
    ],
)
def test_texts_that_look_like_numbers_or_dates_are_said(tmp_path, values, words):
    source = open_source(write(tmp_path / "t.csv", "k;v\n" + "".join(f"a;{value}\n" for value in values)))
    said = source.warned.get("v", [])
    assert ["The column 'v' holds " in one and words in one for one in said] == [True] * (words is not None)


def test_an_empty_field_is_missing_and_quoted_quotes_are_an_empty_string(tmp_path):
    source = open_source(write(tmp_path / "t.csv", 'a,b\n,""\nx,\n'))
    assert rows_of(source) == [{"a": None, "b": ""}, {"a": "x", "b": None}]


def test_a_blank_line_in_a_table_of_one_column_is_a_missing_value(tmp_path):
    assert rows_of(open_source(write(tmp_path / "t.csv", "a\n1\n\n2\n"))) == [{"a": 1}, {"a": None}, {"a": 2}]


def test_line_ends_in_quotes_a_byte_order_mark_and_large_values_are_read(tmp_path):
    long = "y" * 10_000_000
    text = b"\xef\xbb\xbf" + f'a,b\n"one\ntwo, three",1\n{long},2\n'.encode()
    source = open_source(write(tmp_path / "t.csv", text))
    assert source.names == ["a", "b"]
    assert rows_of(source) == [{"a": "one\ntwo, three", "b": 1}, {"a": long, "b": 2}]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiter_and_compression_are_recognised_by_content(tmp_path, delimiter):
    text = delimiter.join(["a", "b"]) + "\n" + delimiter.join(["1", "x"]) + "\n"
    plain = write(tmp_path / "plain.data", text)
    packed = write(tmp_path / "packed.data", gzip.compress(text.encode()))
    assert rows_of(open_source(plain)) == rows_of(open_source(str(packed))) == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize("text", ["a,b\n", "a,b"])
def test_a_header_alone_is_a_table_without_rows(tmp_path, text):
    source = open_source(write(tmp_path / "t.csv", text))
    assert (source.names, source.rows, rows_of(source)) == (["a", "b"], 0, [])


def test_parquet_is_recognised_by_content_and_projected(tmp_path):
    table = pa.table({"a": [1, 2, 3], "a.b": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "t.csv")
    source = open_source(tmp_path / "t.csv")
    assert source.rows == 3
    assert not source.in_memory
    assert rows_of(source, ["a"], 2) == table.select(["a"]).to_pylist()
    assert rows_of(source, ["a.b", "a"]) == table.select(["a.b", "a"]).to_pylist()


def test_several_csv_files_share_their_types(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,2\n")
    write(tmp_path / "2.csv", "b,a\n4,x\n")
    for given in (str(tmp_path / "*.csv"), [tmp_path / "1.csv", tmp_path / "2.csv"]):
        source = open_source(given)
        assert rows_of(source) == [{"a": "1", "b": 2}, {"a": "x", "b": 4}]
        assert source.rows == 2


def test_missing_file_folder_and_pattern_are_named(tmp_path):
    assert f"no file '{tmp_path / 'no.csv'}'" in refusal(tmp_path / "no.csv")
    assert "is a folder, not a file" in refusal(tmp_path)
    assert f"No file matches '{tmp_path}/*.csv'" in refusal(f"{tmp_path}/*.csv")
    assert "list of paths is empty" in refusal([])


def test_no_permission_is_said(tmp_path, monkeypatch):
    path = write(tmp_path / "t.csv", "a\n1\n")

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # file modes do not stop the superuser
    assert "no permission" in refusal(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "only blank lines"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"PK\x03\x04\x14\0", "zip archive or an Excel workbook"),
        (b"abc\0def", "a binary file"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        (gzip.compress(b"a,b\n" + os.urandom(5000).hex().encode())[:900], "damaged or cut short"),
        (b"PAR1 and then nothing", "The Parquet file"),
        (b"a,b\n" + b"1,2\n" * 15 + b"secret\n", "row 17 has 1 field, the header (row 1) has 2"),
        (b"a,b\n1,2\n1,caf\xe9\n", "line 3 holds bytes that are no UTF-8"),
        (b"a,caf\xe9\n1,2\n", "line 1 holds bytes that are no UTF-8"),
        (b'a,b\n1,"secret\n2,3\n', "a quote"),
        (b"ORC,b\n1,2,secret\n", "row 2 has 3 fields"),
        (b"a,b\n1,x\n\xff,y,secret\n2,y\n", "row 3 has 3 fields"),  # and is no UTF-8, which is said after it is mended
        (b"\xef\xbb\xbfa,b\n1,x\n\xff,y,secret\n", "row 3 has 3 fields"),  # a byte order mark, as Excel writes it
    ],
)
def test_a_file_that_is_no_table_says_why_without_its_values(tmp_path, content, words):
    message = refusal(write(tmp_path / "t.csv", content))
    assert words in message
    assert str(tmp_path / "t.csv") in message
    assert "secret" not in message


def test_latin1_files_are_told_the_command(tmp_path):
    assert "iconv -f latin1 -t utf8" in refusal(write(tmp_path / "t.csv", b"a,b\n1,\xfc\n"))


def test_truncated_parquet_is_named(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    write(tmp_path / "t.parquet", (tmp_path / "t.parquet").read_bytes()[:-20])
    assert "damaged or cut short" in refusal(tmp_path / "t.parquet")


def test_duplicate_columns_are_refused_everywhere(tmp_path):
    double = pa.table([[1], [2]], names=["a", "a"])
    pq.write_table(double, tmp_path / "t.parquet")
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    for table in (double, tmp_path / "t.parquet", write(tmp_path / "t.csv", "a,a\n1,2\n"), frame):
        assert "column 'a' 2 times" in refusal(table, ColumnError)


def test_files_with_different_columns_or_types_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"b": [1]}), tmp_path / "3.parquet")
    paths = [tmp_path / f"{i}.parquet" for i in (1, 2, 3)]
    assert "int64 in" in refusal(paths[:2], ColumnError)
    assert "different columns: 'a', 'b' are in one only" in refusal(paths[::2], ColumnError)


@pytest.mark.parametrize("value", [7, {"a": [1]}, None, [1, 2], object(), pl.Series([1])])
def test_what_is_no_table_is_told_what_would_be(value):
    assert "is not a table" in refusal(value)


def test_a_pandas_column_of_mixed_kinds_is_named_without_its_values():
    message = refusal(pd.DataFrame({"odd": [1, "secret", object()]}), ColumnError)
    assert "'odd'" in message
    assert "secret" not in message


def test_an_unknown_column_gets_a_suggestion():
    with pytest.raises(ColumnError, match="Did you mean 'disease'"):
        next(iter(open_source(TABLE).batches(["diseas"])))


def test_a_file_that_changes_between_two_passes_is_noticed(tmp_path):
    path = write(tmp_path / "t.csv", "a\n1\n")
    source = open_source(path)
    write(path, "a\n1\n2\n")
    with pytest.raises(TableError, match="changed while it was read"):
        rows_of(source)
