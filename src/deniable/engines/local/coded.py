"""SPSS, Stata and SAS files as a stream of record batches: coded answers are read as their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import TableError, extra_missing, shortened
from deniable.core.labels import Labels, texts_of
from deniable.engines.exporting import errors_of
from deniable.engines.local.formats import FileFormat

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

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
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
