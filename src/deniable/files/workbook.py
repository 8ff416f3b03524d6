"""A sheet of an Excel workbook as a table: one header row, one kind of value in a column, nothing guessed."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from deniable.extend import (
    BATCH_ROWS,
    ColumnError,
    FileFormat,
    Labels,
    TableError,
    did_you_mean,
    extra_missing,
    listing,
)

_WHOLE = 2**53
_ERRORS = {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!"}
_KINDS = ((bool, "truth values"), (int | float, "numbers"), (dt.date, "dates"), (dt.time, "times"), (str, "texts"))
_UNKNOWN = "durations or other values that a table cannot have"


class SheetPart:
    """A sheet. It is read once and kept in memory: a sheet has at most 1,048,576 rows, and reading one takes long."""

    def __init__(self, form: FileFormat) -> None:
        self.path = form.path
        with self._opened(values=True) as book:
            self.sheet = self._choose(book, form.sheet)
            names, columns = self._cells(book[self.sheet])
        if any(None in column for column in columns):
            self._refuse_formulas()
        self._table = pa.table([self._typed(name, column) for name, column in zip(names, columns, strict=True)], names)
        self.schema: pa.Schema = self._table.schema
        self.rows: int = self._table.num_rows
        self.labels: Mapping[str, Labels] = {}
        self.warned: Mapping[str, Sequence[str]] = {}

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns, in the order of the sheet."""
        yield from self._table.select(list(columns)).to_batches(max_chunksize=batch_rows)

    @contextmanager
    def _opened(self, *, values: bool) -> Iterator[Any]:
        """The workbook, with the values that formulas had when it was saved, or with the formulas."""
        try:
            import openpyxl
        except ImportError:
            raise extra_missing("openpyxl", "files") from None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and drawings, which are not read
                book = openpyxl.load_workbook(self.path, read_only=True, data_only=values)
                try:
                    yield book
                finally:
                    book.close()
        except TableError:
            raise
        except Exception:  # whatever is wrong in the archive or its XML; the reader's words may hold values
            raise TableError(
                f"The Excel workbook '{self.path}' is damaged, or has parts that cannot be read. Fix: open it in Excel "
                "or LibreOffice and save it again as .xlsx, or as CSV."
            ) from None

    def _choose(self, book: Any, wanted: str | None) -> str:
        names = [sheet.title for sheet in book.worksheets]
        if wanted is not None:
            if wanted not in names:
                raise TableError(
                    f"The Excel workbook '{self.path}' has no sheet {wanted!r}.{did_you_mean(wanted, names)} "
                    f"Its sheets: {listing(names)}."
                )
            return wanted
        filled = [sheet.title for sheet in book.worksheets if _has_rows(sheet)]
        if len(filled) == 1:
            return str(filled[0])
        if not filled:
            raise TableError(f"The Excel workbook '{self.path}' has no sheet with a header row. Fix: fill one.")
        raise TableError(
            f"The Excel workbook '{self.path}' has several sheets: {listing(filled)}. "
            f"Fix: say which, for example '{self.path}#{filled[0]}'."
        )

    def _cells(self, sheet: Any) -> tuple[list[str], list[list[Any]]]:
        """The names in the first row, and the values below them, column by column."""
        lines = _lines(sheet)
        header = _trimmed(next(lines, ()))
        names = [self._name(cell, place) for place, cell in enumerate(header)]
        if not names:
            raise TableError(f"The sheet {self.sheet!r} of '{self.path}' has no names of columns in its first row.")
        columns: list[list[Any]] = [[] for _ in names]
        blank = None
        for number, line in enumerate(lines, start=2):
            cells = _trimmed(line)
            if not cells:
                blank = blank or number
                continue
            if blank is not None:
                raise self._refusal(f"row {blank:,} is empty, and rows follow it", "delete it, and what is no data")
            if len(cells) > len(names):
                raise self._refusal(
                    f"row {number:,} has values in more columns than the first row names", "name all columns there"
                )
            wrong = next((place for place, cell in enumerate(cells) if isinstance(cell, str) and cell in _ERRORS), None)
            if wrong is not None:
                raise self._refusal(
                    f"cell {_letters(wrong)}{number} holds the error {cells[wrong]}", "mend it, or empty the cell"
                )
            for column, cell in zip(columns, [*cells, *[None] * (len(names) - len(cells))], strict=True):
                column.append(None if cell == "" else cell)
        return names, columns

    def _name(self, cell: Any, place: int) -> str:
        if cell is None or not str(cell).strip():
            raise self._refusal(
                f"column {_letters(place)} has no name in the first row", "give it one, or delete the column"
            )
        return str(cell)

    def _typed(self, name: str, column: list[Any]) -> pa.Array:
        present = [cell for cell in column if cell is not None]
        kinds = sorted({_kind(cell) for cell in present})
        if len(kinds) > 1 or kinds == [_UNKNOWN]:
            raise ColumnError(
                f"The column {name!r} of the sheet {self.sheet!r} in '{self.path}' holds {' and '.join(kinds)}. "
                "Fix: make all its cells of one kind; codes that look like numbers must be text in every row."
            )
        if kinds == ["numbers"] and all(cell == int(cell) and abs(cell) <= _WHOLE for cell in present):
            return pa.array([None if cell is None else int(cell) for cell in column], pa.int64())
        if kinds == ["numbers"]:
            return pa.array(column, pa.float64())
        if kinds == ["dates"]:
            return _dates(column)
        if kinds == ["times"]:
            return pa.array([None if cell is None else cell.isoformat() for cell in column], pa.string())
        return pa.array(column, pa.string() if kinds != ["truth values"] else pa.bool_())

    def _refuse_formulas(self) -> None:
        """A formula whose value was not saved reads like an empty cell."""
        with self._opened(values=True) as values, self._opened(values=False) as formulas:
            both = zip(_lines(values[self.sheet]), _lines(formulas[self.sheet]), strict=False)
            for number, (shown, written) in enumerate(both, start=1):
                for place, (value, formula) in enumerate(zip(shown, written, strict=False)):
                    if value is None and isinstance(formula, str) and formula.startswith("="):
                        raise self._refusal(
                            f"the formula in cell {_letters(place)}{number} has no value",
                            "open it in Excel or LibreOffice and save it, so that formulas are computed",
                        )

    def _refusal(self, what: str, fix: str) -> TableError:
        return TableError(f"The sheet {self.sheet!r} of '{self.path}': {what}. Fix: {fix}.")


def _lines(sheet: Any) -> Iterator[tuple[Any, ...]]:
    sheet.reset_dimensions()  # what other programs write of a sheet's size is often wrong
    yield from sheet.iter_rows(values_only=True)


def _has_rows(sheet: Any) -> bool:
    return any(_trimmed(line) for line in _lines(sheet))


def _trimmed(line: Sequence[Any]) -> list[Any]:
    """A row without the empty cells at its end."""
    cells = list(line)
    while cells and cells[-1] in (None, ""):
        cells.pop()
    return cells


def _kind(cell: Any) -> str:
    return next((name for kind, name in _KINDS if isinstance(cell, kind)), _UNKNOWN)


def _dates(column: list[Any]) -> pa.Array:
    times = [dt.datetime(*cell.timetuple()[:3]) if type(cell) is dt.date else cell for cell in column]
    if all(cell is None or cell.time() == dt.time(0) for cell in times):
        return pa.array([None if cell is None else cell.date() for cell in times], pa.date32())
    return pa.array(times, pa.timestamp("us"))


def _letters(place: int) -> str:
    """A column's letters: A for 0, AA for 26."""
    letters = ""
    place += 1
    while place:
        place, last = divmod(place - 1, 26)
        letters = chr(65 + last) + letters
    return letters
