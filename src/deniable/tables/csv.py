"""CSV files as a stream of record batches whose types are the same from the first row to the last."""

from __future__ import annotations

import codecs
import csv
import io
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from deniable.core.errors import TableError, counted, is_unicode
from deniable.core.values import Labels
from deniable.tables.base import BATCH_ROWS
from deniable.tables.formats import FileFormat, damaged_gzip, likely_encoding

# -- The type of each CSV column, decided from all of its values -------------------------------------------------------
# A type is taken only if writing its values back would lose nothing that matters: codes with leading zeros, numbers
# with more digits than a float holds, and times with a zone stay strings.


_INTEGER = r"^-?(0|[1-9][0-9]{0,18})$"
_FLOAT = r"^(-?(0|[1-9][0-9]{0,14})?(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|nan|NaN|-?inf)$"
_HAS_DIGIT_OR_WORD = r"^(-?\.?[0-9].*|nan|NaN|-?inf)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
# What stays text, though its owner takes it for numbers or dates: 1090,50 and 1.090,50; 19.12.2024 and 12/19/2024.
_DECIMAL_COMMA = r"^-?((0|[1-9][0-9]{0,14})(,[0-9]+)?|[1-9][0-9]{0,2}(\.[0-9]{3})+,[0-9]+)$"
_LOCAL_DATE = r"^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"

# In order of preference; the first that fits every value of the column wins.
_CANDIDATES: tuple[tuple[pa.DataType, tuple[str, ...]], ...] = (
    (pa.int64(), (_INTEGER,)),
    (pa.float64(), (_FLOAT, _HAS_DIGIT_OR_WORD)),
    (pa.bool_(), (_BOOLEAN,)),
    (pa.date32(), (_DATE,)),
    (pa.timestamp("us"), (_TIME,)),
    (pa.string(), (_DECIMAL_COMMA,)),
    (pa.string(), (_LOCAL_DATE,)),
)
_SAID = {
    _DECIMAL_COMMA: "numbers with a comma, which are read as texts: they cannot be added up or averaged, and are "
    "compared letter by letter. Fix: write them with a point, such as 1090.5.",
    _LOCAL_DATE: "dates that are read as texts: they have no month or year, and are compared letter by letter. Fix: "
    "write them as 2024-12-31.",
}


class TypeInference:
    """Narrows the candidate types of each column, one block of strings after the other."""

    def __init__(self, names: Sequence[str]) -> None:
        self._open = {name: list(range(len(_CANDIDATES))) for name in names}
        self._seen = dict.fromkeys(names, False)

    def update(self, block: pa.RecordBatch) -> None:
        """Strike out the types that some value of this block does not fit."""
        for name, column in zip(block.schema.names, block.columns, strict=True):
            left = self._open[name]
            if not left or column.null_count == len(column):
                continue
            self._seen[name] = True
            # One value is enough to strike out most types; only what survives it needs all distinct values.
            first = column.drop_null()[:1]
            left = [index for index in left if _fits(first, index)]
            if left:
                values = pc.unique(column).drop_null()
                left = [index for index in left if _fits(values, index)]
            self._open[name] = left

    def types(self) -> dict[str, pa.DataType]:
        """The type of each column; string where nothing narrower fits, or where every value is missing."""
        return {
            name: _CANDIDATES[left[0]][0] if left and self._seen[name] else pa.string()
            for name, left in self._open.items()
        }

    def said(self) -> dict[str, list[str]]:
        """What an owner should know of columns that are read as texts, and look as if they held numbers or dates."""
        first = {name: _CANDIDATES[left[0]][1][0] for name, left in self._open.items() if left and self._seen[name]}
        return {
            name: [f"The column {name!r} holds {_SAID[pattern]}"] for name, pattern in first.items() if pattern in _SAID
        }


def _fits(values: pa.Array, index: int) -> bool:
    dtype, patterns = _CANDIDATES[index]
    if not all(pc.all(pc.match_substring_regex(values, pattern)).as_py() for pattern in patterns):
        return False
    try:
        values.cast(dtype)
    except pa.ArrowInvalid:
        return False
    return True


# -- CSV files as a stream of record batches whose types are the same from the first row to the last -------------------


FIRST_BLOCK = 1 << 22
LARGEST_BLOCK = 1 << 30
# Types that the CSV reader converts itself, exactly like a cast; the others are read as strings and then cast.
_DIRECT = (pa.int64(), pa.float64(), pa.string())


class CsvPart:
    """One CSV file. ``scan`` reads it once to check every row; ``types`` is set by the caller before ``batches``."""

    def __init__(self, form: FileFormat) -> None:
        self.path = form.path
        self._gzipped = form.gzipped
        self._block = FIRST_BLOCK
        self._delimiter, self.names = _header(form)
        self.rows = 0
        self.labels: Mapping[str, Labels] = {}
        self.warned: Mapping[str, Sequence[str]] = {}
        self.schema = pa.schema([(name, pa.string()) for name in self.names])

    def scan(self, inference: TypeInference) -> None:
        """Read all rows as strings: counts them, narrows the types, and finds what is wrong with the file."""
        self.rows = 0
        last: pa.RecordBatch | None = None
        strings = dict.fromkeys(self.names, pa.string())
        # A block restarted with a larger size is seen twice by the inference, which changes nothing.
        for block in self._blocks(self.names, strings, self._grow):
            if block is None:
                self.rows, last = 0, None
                continue
            inference.update(block)
            self.rows += block.num_rows
            last = block if block.num_rows else last
        if last is not None:
            self._refuse_open_quote(last)

    def set_types(self, types: dict[str, pa.DataType]) -> None:
        """Fix the types of the columns."""
        self.schema = pa.schema([(name, types[name]) for name in self.names])

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns, in file order, converted to the types of the schema."""
        wanted = pa.schema([self.schema.field(name) for name in columns])
        read = {field.name: field.type if field.type in _DIRECT else pa.string() for field in self.schema}
        for block in self._blocks(list(columns) or self.names[:1], read, None):
            typed = block.select(list(columns)).cast(wanted) if columns else block.select([])
            for start in range(0, block.num_rows, batch_rows):
                yield typed.slice(start, batch_rows)

    def _blocks(self, columns: Sequence[str], types: dict[str, pa.DataType], grow: Any) -> Iterator[Any]:
        """Blocks in file order; with ``grow``, None means: a row did not fit, start again with larger blocks."""
        while True:
            try:
                if self.rows == 0 and grow is None:
                    return
                with self._stream() as stream, self._reader(stream, columns, types) as reader:
                    yield from reader
            except UnicodeDecodeError:
                raise self._not_utf8() from None
            except (pa.ArrowException, OSError) as problem:
                message = str(problem)
                if "straddling" in message and grow is not None:
                    grow()
                    yield None
                    continue
                if "Empty CSV" in message and grow is not None:
                    return  # a header line without a line end
                raise (self._ragged() if "Expected" in message else self._explain(message)) from None
            return

    def _stream(self) -> Any:
        return pa.input_stream(str(self.path), compression="gzip" if self._gzipped else None)

    def _after_mark(self) -> Any:
        """The stream without a byte order mark, which the reader skips where it reads UTF-8, and only there."""
        stream = self._stream()
        if stream.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
            return stream
        stream.close()
        return self._stream()

    def _reader(
        self,
        stream: Any,
        columns: Sequence[str],
        types: dict[str, pa.DataType],
        ragged: list[Any] | None = None,
    ) -> Any:
        """Rows with too few or too many fields are an error, or put into ``ragged``, where it is given.

        Only then there is a callback: Arrow's threads let go of it when they like, and a program that ends just then is
        aborted.
        """

        def invalid(row: Any) -> str:
            assert ragged is not None
            ragged.append(row)
            return "skip"

        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(
                block_size=self._block,
                use_threads=ragged is None,
                # A row that is handed over becomes text, and every byte is a letter of Latin-1.
                encoding="utf8" if ragged is None else "latin1",
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                invalid_row_handler=None if ragged is None else invalid,
                # In a table of one column a blank line is a row whose value is missing.
                ignore_empty_lines=len(self.names) > 1,
            ),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(columns),
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _grow(self) -> None:
        if self._block >= LARGEST_BLOCK:
            raise TableError(
                f"The CSV file '{self.path}' has a row of more than 1 GB. Most often a quote (\") is opened and "
                "never closed. Fix: close the quote, or write a quote inside a value twice."
            )
        self._block = min(self._block * 8, LARGEST_BLOCK)

    def _ragged(self) -> TableError:
        """Read once more on a single thread, the only way in which the reader numbers the rows."""
        ragged: list[Any] = []
        first = self.names[0].encode().decode("latin1")
        try:
            with self._after_mark() as stream, self._reader(stream, [first], {first: pa.binary()}, ragged) as reader:
                for _ in reader:
                    if ragged:
                        break
        except pa.ArrowException as error:
            return self._explain(str(error))
        if not ragged:
            return self._explain("")
        row = ragged[0]
        fields = counted(row.actual_columns, "field")
        return TableError(
            f"The CSV file '{self.path}': row {row.number:,} has {fields}, the header (row 1) has "
            f"{row.expected_columns}. Fix: mend that row; a value that holds the delimiter must be in quotes, "
            "and quotes must be closed."
        )

    def _explain(self, message: str) -> TableError:
        """Our words for an error of the reader, whose own may hold values of the table."""
        if "UTF8" in message or "UTF-8" in message:
            return self._not_utf8()
        if self._gzipped and ("zlib" in message or "runcated" in message or "compressed" in message):
            return damaged_gzip(self.path)
        return TableError(
            f"The CSV file '{self.path}' cannot be parsed. Most often a quote (\") is opened and never closed. "
            "Fix: close the quote, or write a quote inside a value twice."
        )

    def _not_utf8(self) -> TableError:
        with self._stream() as stream:
            for number, line in enumerate(io.BufferedReader(stream), start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return _no_text(self.path, number, line, self._column_of(line))
        return _no_text(self.path, 0, b"", "")

    def _column_of(self, line: bytes) -> str:
        """The column whose value in a line is not UTF-8; nothing where the line is a part of a longer row."""
        fields = _first_record(line.decode(errors="surrogateescape"), self._delimiter)
        strange = [name for name, text in zip(self.names, fields, strict=False) if not is_unicode(text)]
        return f" in the column {strange[0]!r}" if strange and len(fields) == len(self.names) else ""

    def _refuse_open_quote(self, last: pa.RecordBatch) -> None:
        """A quote left open swallows the rest of the file into the last value, and the reader does not mind."""
        value = last.column(last.num_columns - 1)[-1].as_py()
        if value is None or "\n" not in value or self._gzipped:
            return
        if not _tail(self.path).rstrip(b"\r\n").endswith(b'"'):
            raise self._explain("")


def _no_text(path: Path, number: int, line: bytes, column: str) -> TableError:
    """The error for a line that is not UTF-8, in what it most likely is."""
    where = f"line {number:,} holds" if number else "it holds"
    encoding = likely_encoding(line)
    return TableError(
        f"The CSV file '{path}' is not UTF-8: {where} bytes that are no UTF-8 character{column}; most likely they are "
        f"{encoding}. Fix: iconv -f {encoding} -t utf8 {shlex.quote(str(path))} > fixed.csv"
    )


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        return file.read()


def _header(form: FileFormat) -> tuple[str, list[str]]:
    """The delimiter (the one that the header holds most often, outside quotes) and the column names."""
    try:
        # The head may end within a character; that is no fault of the file.
        text = form.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="surrogateescape")
        options = {mark: _first_record(text, mark) for mark in ",\t;|"}
    except csv.Error:
        raise TableError(f"The header of the CSV file '{form.path}' cannot be parsed. Fix: check its quotes.") from None
    delimiter = max(options, key=lambda mark: len(options[mark]))
    names = options[delimiter]
    if not all(map(is_unicode, names)):
        raise _no_text(form.path, 1, form.head.partition(b"\n")[0], "")
    return delimiter, names


def _first_record(text: str, delimiter: str) -> list[str]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return next((record for record in reader if record), [])
