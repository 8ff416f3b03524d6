"""Sheets of Excel workbooks: what they hold is read, and what is no table is refused in words."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import ColumnError, TableError
from deniable.tables.files import open_source

HEADER = ("name", "age", "height", "born", "seen", "smokes")
ROW = ("Ada", 36, 1.65, dt.date(1815, 12, 10), dt.datetime(1852, 11, 27, 8, 30), True)


def book(folder: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, lines in sheets.items():
        sheet = made.create_sheet(name)
        for line in lines:
            sheet.append(list(line))
    path = folder / "book.xlsx"
    made.save(path)
    return path


def rows_of(path: str | Path) -> list[dict[str, Any]]:
    source = open_source(path)
    return pa.Table.from_batches(source.batches(source.names, 2)).to_pylist()


def test_a_sheet_is_a_table_with_types(tmp_path: Path) -> None:
    path = book(tmp_path, people=[HEADER, ROW, (None,) * 5 + (False,), ("Bob", 40, 2, None, None, None)], empty=[])
    source = open_source(path)
    kinds = ["string", "int64", "double", "date32[day]", "timestamp[us]", "bool"]
    assert [str(kind) for kind in source.schema.types] == kinds
    assert rows_of(path)[0] == dict(zip(HEADER, ROW, strict=True))
    assert rows_of(path)[1]["smokes"] is False
    assert rows_of(path)[2]["height"] == 2.0


def test_one_of_several_sheets_is_chosen_by_name(tmp_path: Path) -> None:
    path = book(tmp_path, people=[("a",), (1,)], notes=[("b",), (2,)])
    with pytest.raises(TableError, match=r"several sheets: 'people', 'notes'. Fix: say which, for example '.*#people'"):
        open_source(path)
    assert rows_of(f"{path}#notes") == [{"b": 2}]
    with pytest.raises(TableError, match=r"no sheet 'poeple'. Did you mean 'people'\? Its sheets: 'people', 'notes'"):
        open_source(f"{path}#poeple")


def test_a_release_of_a_sheet_is_not_written_over_its_workbook(tmp_path: Path) -> None:
    path = book(tmp_path, people=[("job", "age"), *[("nurse", 30), ("baker", 40)] * 50])
    release = dn.publish(f"{path}#people", sensitive="job", privacy="4/5", seed=1, mechanism="uniform")
    assert release.manifest.rows == 100
    with pytest.raises(dn.DeniableError, match="lies in the output"):
        dn.publish(
            f"{path}#people", sensitive="job", privacy="4/5", seed=1, out=tmp_path, overwrite=True, mechanism="uniform"
        )


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([("a", "b"), (1, "=A2*2")], r"the formula in cell B2 has no value. Fix: open it in Excel"),
        ([("a", "b"), (1, "#N/A")], r"cell B2 holds the error #N/A"),
        ([("a", None, "c"), (1, 2, 3)], r"column B has no name in the first row"),
        ([("a",), (1,), (None,), (2,)], r"row 3 is empty, and rows follow it"),
        ([("a",), (1, 2)], r"row 2 has values in more columns than the first row names"),
        ([("a",), (1,), ("x",)], r"The column 'a' .* holds numbers and texts"),
        ([("a",), (dt.timedelta(hours=30),)], r"holds durations or other values"),
        ([("a", "a"), (1, 2)], r"has the column 'a' 2 times"),
        ([], r"has no sheet with a header row"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, lines: list[tuple[Any, ...]], words: str) -> None:
    with pytest.raises((TableError, ColumnError), match=words):
        open_source(book(tmp_path, people=lines))


def test_empty_columns_and_rows_at_the_end_are_nothing(tmp_path: Path) -> None:
    assert rows_of(book(tmp_path, people=[("a", "b", None), (1, 2, None), (None, "", None)])) == [{"a": 1, "b": 2}]


def test_other_archives_and_old_files_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "table.xlsx"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("readme.txt", "no workbook")
    with pytest.raises(TableError, match="looks like a zip archive or"):
        open_source(archive)
    old = tmp_path / "table.xls"
    old.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with pytest.raises(TableError, match="Excel or Word file that is old or has a password"):
        open_source(old)
    damaged = book(tmp_path, people=[("a",), (1,)])
    with zipfile.ZipFile(damaged, "a") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("xl/worksheets/sheet1.xml", "<sheet")
    with pytest.raises(TableError, match="is damaged, or has parts that cannot be read"):
        open_source(damaged)
