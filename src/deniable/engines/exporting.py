"""Published rows as a file of SPSS, Stata or SAS, with the labels that the original table had."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OutputError, did_you_mean, extra_missing, option
from deniable.core.labels import Labels, texts_of
from deniable.engines.batch.values import is_text

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
    for field in table.schema:
        if is_text(field.type):
            longest = pc.max(pc.binary_length(table[field.name])).as_py() or 0
            if longest > LONGEST_TEXT[program]:
                raise OutputError(
                    f"The column {field.name!r} has a text of {longest:,} bytes, and {program} holds "
                    f"{LONGEST_TEXT[program]:,}. Fix: drop the column, or save the release as CSV."
                )


def _refuse_strange_dates(table: pa.Table, program: str) -> None:
    for field in table.schema:
        if pa.types.is_date(field.type):
            days = table[field.name].cast(pa.date32(), safe=False).cast(pa.int32())
            ends = pc.min_max(days).as_py()
            if ends["min"] is not None and not FIRST_DAY <= ends["min"] <= ends["max"] <= LAST_DAY:
                raise OutputError(
                    f"The column {field.name!r} has dates before the year 1 or after 9999, which {program} cannot "
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
