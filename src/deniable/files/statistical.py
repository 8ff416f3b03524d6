"""Files of SPSS, Stata and SAS: read with their labels, and written from published rows."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deniable.extend import (
    BATCH_ROWS,
    FileFormat,
    Labels,
    OutputError,
    TableError,
    did_you_mean,
    extra_missing,
    is_text,
    listing,
    option,
    shortened,
    texts_of,
    write_file,
)

if TYPE_CHECKING:
    from deniable.extend import Release

# -- Published rows as a file of SPSS, Stata or SAS, with the labels that the original table had -----------------------


# Suffix -> the program, and how many letters a name of a column may have there.
PROGRAMS = {".sav": ("SPSS", 64), ".zsav": ("SPSS", 64), ".dta": ("Stata", 32), ".xpt": ("SAS", 32)}
LONGEST_TEXT = {"SPSS": 32_767, "Stata": 2_045, "SAS": 200}  # bytes
FIRST_DAY, LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
_RESERVED = frozenset(  # words of SPSS, then of Stata
    [
        *("all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"),
        *("byte", "double", "float", "if", "in", "int", "long", "str", "strl", "using"),
    ]
)


def errors_of(pyreadstat: Any) -> tuple[type[Exception], ...]:
    """What the package raises; older versions show one class of their own only, and others leak through."""
    other = getattr(pyreadstat, "PyreadstatError", pyreadstat.ReadstatError)
    return pyreadstat.ReadstatError, other, ValueError, OverflowError, OSError


def program_of(path: Path) -> str:
    """The program that a file is for, by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in PROGRAMS:
        kept = (
            " Rows are in the release's own folder as Parquet, or as CSV where it was published with "
            f"{option('format', 'csv')}."
        )
        raise OutputError(
            f"The output {str(path)!r} is no file that rows can be exported to: choose one of {', '.join(PROGRAMS)}."
            f"{kept if suffix in ('.csv', '.parquet') else did_you_mean(suffix, PROGRAMS)}"
        )
    return PROGRAMS[suffix][0]


def export(table: pa.Table, labels: Mapping[str, Labels], remarks: Mapping[str, str], note: str, path: Path) -> None:
    """Write a table. ``remarks`` are words about columns, ``note``, of at most 80 letters, about the whole."""
    program = program_of(path)
    try:
        import pandas as pd
        import pyreadstat
    except ImportError as problem:
        raise extra_missing(problem.name or "pyreadstat", "files") from None
    _refuse_long_texts(table, program)
    _refuse_strange_dates(table, program)
    names = _names(table.column_names, PROGRAMS[path.suffix.lower()][1])
    numbered = {name: _numbers(table[name], labels[name], program) for name in labels}
    books = {name: book for name, book in numbered.items() if book}
    frame = pd.DataFrame({names[name]: _column(table[name], books.get(name)) for name in table.column_names})
    about: dict[str, Any] = {"column_labels": {names[name]: remarks.get(name, name) for name in table.column_names}}
    coded = {names[name]: {code: text for text, code in book.items()} for name, book in books.items()}
    if program == "SPSS":
        about |= {
            "variable_value_labels": coded,
            "note": note,
            "compress": path.suffix.lower() == ".zsav",
        }
    elif program == "Stata":
        about |= {"variable_value_labels": coded}
    write = {"SPSS": pyreadstat.write_sav, "Stata": pyreadstat.write_dta, "SAS": pyreadstat.write_xport}[program]
    try:
        write(frame, str(path), **about)
    except errors_of(pyreadstat):
        raise OutputError(
            f"{str(path)!r} cannot be written: {program} cannot hold this table. Fix: save the release as CSV."
        ) from None


def _refuse_long_texts(table: pa.Table, program: str) -> None:
    for column in table.schema:
        if is_text(column.type):
            longest = pc.max(pc.binary_length(table[column.name])).as_py() or 0
            if longest > LONGEST_TEXT[program]:
                raise OutputError(
                    f"The column {column.name!r} has a text of {longest:,} bytes, and {program} holds "
                    f"{LONGEST_TEXT[program]:,}. Fix: drop the column, or save the release as CSV."
                )


def _refuse_strange_dates(table: pa.Table, program: str) -> None:
    for column in table.schema:
        if pa.types.is_date(column.type):
            days = table[column.name].cast(pa.date32(), safe=False).cast(pa.int32())
            ends = pc.min_max(days).as_py()
            if ends["min"] is not None and not FIRST_DAY <= ends["min"] <= ends["max"] <= LAST_DAY:
                raise OutputError(
                    f"The column {column.name!r} has dates before the year 1 or after 9999, which {program} cannot "
                    "hold. Fix: drop the column, or save the release as CSV."
                )


def _names(columns: Sequence[str], longest: int) -> dict[str, str]:
    """A name that the programs accept for each column; they do not tell capital letters from small ones."""
    taken: set[str] = set()
    names = {}
    for column in columns:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", column)[:longest] or "column"
        if not plain[0].isalpha() or plain.lower() in _RESERVED:
            plain = f"v_{plain}"[:longest]
        name, number = plain, 1
        while name.lower() in taken:
            number += 1
            name = f"{plain[: longest - len(str(number)) - 1]}_{number}"
        taken.add(name.lower())
        names[column] = name
    return names


def _numbers(column: pa.ChunkedArray, labels: Labels, program: str) -> dict[Hashable, Any]:
    """Text -> code, of a column that becomes codes with labels, or has some; empty where texts are written as texts.

    Transport files have no labels of values, Stata's are of whole numbers, and codes that are texts are none to compute
    with.
    """
    whole = all(isinstance(code, int) for code in labels)
    if program == "SAS" or any(isinstance(code, str) for code in labels) or (program == "Stata" and not whole):
        return {}
    codes: dict[Hashable, Any] = {text: code for code, text in texts_of(labels).items()}
    if not is_text(column.type):
        return codes
    others = sorted(set(column.unique().to_pylist()) - {None, *codes})
    free = int(max(codes.values())) + 1
    return {**codes, **{text: free + place for place, text in enumerate(others)}}


def _column(column: pa.ChunkedArray, codes: Mapping[Hashable, Any] | None) -> Any:
    """A column as pandas has it: codes where its texts have some, and nothing that the programs do not know."""
    kind = column.type
    if codes and is_text(kind):
        texts, numbers = [*codes], pa.array([float(code) for code in codes.values()])
        return numbers.take(pc.index_in(column, pa.array(texts, kind)).combine_chunks()).to_pandas()
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us"), safe=False)  # the programs count seconds: nanoseconds are lost on them
    if is_text(kind):
        column = pc.fill_null(column, "")
    return column.to_pandas(date_as_object=True)


# -- SPSS, Stata and SAS files as a stream of record batches: coded answers are read as their labels -------------------


NAMES = {"spss": "SPSS", "stata": "Stata", "sas": "SAS", "xport": "SAS transport"}
_READERS = {"spss": "read_sav", "stata": "read_dta", "sas": "read_sas7bdat", "xport": "read_xport"}
CELLS_AT_ONCE = 2**21  # the reader makes a Python object of each
_WHOLE = 2.0**53


@dataclass
class _Seen:
    """What the values of a column have shown so far."""

    codes: set[Any] | None  # of a column with labels: the distinct ones
    whole: bool = True
    kinds: set[pa.DataType] = field(default_factory=set)

    def update(self, values: pa.Array) -> None:
        if values.null_count == len(values):
            return
        self.kinds.add(values.type)
        if pa.types.is_floating(values.type):
            self.whole = self.whole and _all_whole(values)
        if self.codes is not None:
            self.codes.update(pc.unique(values.drop_null()).to_pylist())


class CodedPart:
    """One file. Its values are read once: to fix the types of the columns, and to see where each has a label.

    Attributes:
        labels: the labels of each column that has some; where every value that occurs has one, labels are what is read.
        warned: what an owner should know about a column.
    """

    def __init__(self, form: FileFormat) -> None:
        self.path = form.path
        self._kind = form.kind
        self.names, self.labels, self.warned = self._dictionary()
        seen = {name: _Seen(set() if name in self.labels else None) for name in self.names}
        self.rows = 0
        for columns in self._chunks(self.names, CELLS_AT_ONCE):
            for name, values in columns.items():
                seen[name].update(_as_array(values))
            self.rows += len(next(iter(columns.values()), ()))
        self._texts = {name: texts_of(self.labels[name]) for name in self.labels if self._all_labelled(name, seen)}
        self.schema = pa.schema([(name, self._type_of(name, seen[name])) for name in self.names])
        self._warn_of_numbers(seen)

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, folded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The columns, in file order."""
        wanted = pa.schema([self.schema.field(name) for name in columns])
        for chunk in self._chunks(list(columns) or self.names[:1], batch_rows * max(1, len(columns))):
            rows = len(next(iter(chunk.values())))
            arrays = [self._typed(name, chunk[name]) for name in columns]
            batch = pa.RecordBatch.from_arrays(arrays, schema=wanted)
            if not columns:
                batch = pa.RecordBatch.from_arrays([pa.nulls(rows)], ["rows"]).select([])
            for start in range(0, rows, batch_rows):
                yield batch.slice(start, batch_rows)

    def _typed(self, name: str, values: Sequence[Any]) -> pa.Array:
        kind = self.schema.field(name).type
        texts = self._texts.get(name)
        if texts is not None:
            return pa.array([None if value is None else texts[value] for value in _as_array(values).to_pylist()], kind)
        return _as_array(values).cast(kind)

    # -- what the file says of its columns -----------------------------------------------------------------------------

    def _dictionary(self) -> tuple[list[str], dict[str, Labels], dict[str, list[str]]]:
        """The names of the columns, their labels without those of missing values, and which values are missing ones."""
        # SAS transport files have neither labels nor codes for missing values.
        options = {} if self._kind == "xport" else {"user_missing": True}
        _, about = self._read(metadataonly=True, **options)
        names = list(about.column_names)
        warned: dict[str, list[str]] = {name: [] for name in names}
        labels = {}
        for name in names:
            given, text = about.variable_value_labels.get(name, {}), _is_text(about, name)
            ranges = about.missing_ranges.get(name, [])
            # Stata and SAS have letters for missing values; the file names those that have labels.
            letters = [code for code in given if isinstance(code, str) and not text]
            labels[name] = {
                _plain(code): label
                for code, label in given.items()
                if code not in letters and not any(_in_range(code, one) for one in ranges)
            }
            if ranges or letters:
                warned[name].append(_said_of_missing(name, ranges, letters))
        return names, {name: given for name, given in labels.items() if given}, warned

    def _all_labelled(self, name: str, seen: Mapping[str, _Seen]) -> bool:
        codes = seen[name].codes
        return codes is not None and codes <= self.labels[name].keys()

    def _type_of(self, name: str, seen: _Seen) -> pa.DataType:
        if name in self._texts or not seen.kinds:
            return pa.string()
        if len(seen.kinds) > 1:
            kinds = " and ".join(sorted(map(str, seen.kinds)))
            raise TableError(f"The column {name!r} of '{self.path}' holds values of several kinds: {kinds}.")
        (kind,) = seen.kinds
        return pa.int64() if pa.types.is_floating(kind) and seen.whole else kind

    def _warn_of_numbers(self, seen: Mapping[str, _Seen]) -> None:
        for name, labels in self.labels.items():
            labelled = [code for code in labels if code in (seen[name].codes or ())]
            if name not in self._texts and labelled:
                code = labelled[0]
                self.warned[name].append(
                    f"The column {name!r} labels some of its values only, for example {_shown(code)} as "
                    f"{shortened(labels[code])}, so its values are read, not their labels. Fix, where labelled "
                    "values stand for missing answers: declare them as missing in the file."
                )

    # -- reading -------------------------------------------------------------------------------------------------------

    def _chunks(self, columns: Sequence[str], cells: int) -> Iterator[dict[str, Sequence[Any]]]:
        if not columns:
            return
        rows = max(1, min(cells, CELLS_AT_ONCE) // len(columns))
        start = 0
        while True:
            chunk, _ = self._read(usecols=list(columns), row_offset=start, row_limit=rows)
            taken = len(chunk[columns[0]]) if chunk else 0
            if taken:
                yield chunk
            if taken < rows:
                return
            start += taken

    def _read(self, **options: Any) -> tuple[dict[str, Sequence[Any]], Any]:
        try:
            import pyreadstat
        except ImportError:
            raise extra_missing("pyreadstat", "files") from None
        try:
            read = getattr(pyreadstat, _READERS[self._kind])
            columns, about = read(str(self.path), output_format="dict", **options)
        except errors_of(pyreadstat) as problem:
            raise self._explained(str(problem)) from None
        return columns, about

    def _explained(self, message: str) -> TableError:
        """Our words for an error of the reader, whose own may hold values of the table."""
        what = f"The {NAMES[self._kind]} file '{self.path}'"
        if "encoding" in message or "codec" in message:
            return TableError(
                f"{what} holds text that is not in the encoding it names. Fix: open it where it was made, and save it "
                "as Unicode (UTF-8)."
            )
        return TableError(f"{what} is damaged, cut short or of a kind that cannot be read. Fix: write it again.")


def _as_array(values: Sequence[Any]) -> pa.Array:
    """Values as Arrow has them. These programs have no missing texts: an empty one is what they have instead."""
    array = pa.array(values, from_pandas=True)
    if pa.types.is_integer(array.type):
        return array.cast(pa.float64())  # Stata's; they become whole numbers again
    if pa.types.is_string(array.type):
        return pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
    return array


def _all_whole(values: pa.Array) -> bool:
    fits = pc.and_(pc.equal(values, pc.floor(values)), pc.less_equal(pc.abs(values), _WHOLE))
    return bool(pc.all(fits).as_py())


def _plain(code: Any) -> Any:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _is_text(about: Any, name: str) -> bool:
    return bool(about.readstat_variable_types[name] == "string")


def _in_range(code: Any, one: Mapping[str, Any]) -> bool:
    if isinstance(code, str) or isinstance(one["lo"], str):
        return bool(code == one["lo"])
    return bool(one["lo"] <= code <= one["hi"])


def _said_of_missing(name: str, ranges: Sequence[Mapping[str, Any]], letters: Sequence[str]) -> str:
    codes = [_shown(one["lo"]) + ("" if one["lo"] == one["hi"] else f" to {_shown(one['hi'])}") for one in ranges]
    shown = ", ".join([*codes, *(f".{letter}" for letter in letters)])
    return (
        f"The column {name!r} declares {shown} as missing: they are read as missing, and why an answer is missing "
        "is not published."
    )


def _shown(code: Any) -> str:
    return f"{code:g}" if isinstance(code, float) else str(code)


# -- Rows of a release as files of other programs ----------------------------------------------------------------------


NOTE = "Columns that say so were changed at random: see README.md of the release."  # SPSS takes 80 letters


def export_rows(release: Release, out: str | os.PathLike[str], overwrite: bool) -> Path:
    """Write the published rows into a file of SPSS, Stata or SAS."""
    path, manifest = Path(out), release.manifest
    program_of(path)
    lineups = [column for part in manifest.parts if part.lineups is not None for column in part.columns]
    if lineups:
        raise OutputError(
            f"{listing(lineups)}: each row shows several values (a line-up), and a column of {program_of(path)} holds "
            "one. Fix: release.pseudo_table() gives rows with weights, or save the release as CSV."
        )
    if path.exists() and not overwrite:
        raise OutputError(
            f"The output {str(path)!r} exists already. Fix: choose another name, or {option('overwrite', True)}."
        )
    remarks = {name: f"{name} (changed at random: see the notes)" for name in manifest.sensitive_columns}
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, f"rows{path.suffix.lower()}")
        export(release.table, manifest.labels, remarks, NOTE, written)
        write_file(path, written.read_bytes(), table=True)
    return path
