"""Sensitive values as small integers, and back: which types can be sensitive, how they are sorted, compared and
declared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import ColumnError, OptionError, TableError, did_you_mean, listing, option
from deniable.core.histogram import Histogram
from deniable.core.tally import Derived
from deniable.core.values import LARGEST_WHOLE, Codes, Ints
from deniable.tables.base import Dataset, Progress, Scan, no_progress

# -- Distinct values of Arrow columns: which types can be sensitive, how they are sorted, compared and declared --------


LIST = "list<element: "  # how the type of line-ups prints
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
_DECIMAL = re.compile(r"(decimal\d+)\((\d+), (-?\d+)\)")
# Types that Arrow cannot look up, and the nearest that holds the same values.
_WIDER = ((pa.string_view(), pa.large_string()), (pa.float16(), pa.float32()))


def column_type(name: str, dtype: pa.DataType) -> pa.DataType:
    """The plain type of a sensitive column: dictionaries and views by their values, or a ``ColumnError``."""
    t = pa.types
    if t.is_dictionary(dtype):
        return column_type(name, dtype.value_type)
    if t.is_null(dtype):
        return pa.string()
    dtype = next((wider for narrow, wider in _WIDER if dtype == narrow), dtype)
    plain = (t.is_boolean, t.is_integer, t.is_floating, t.is_decimal, t.is_string, t.is_large_string)
    if any(test(dtype) for test in (*plain, t.is_date, t.is_timestamp, t.is_time)):
        return dtype
    raise ColumnError(
        f"The column {name!r} has the type {dtype}, which cannot be sensitive: allowed are strings, numbers, booleans, "
        f"dates and times. Fix: convert it to strings first, or leave the column out."
        f"{' The items of lists are perturbed by mechanism items.' if t.is_nested(dtype) else ''}"
    )


def in_words(kind: pa.DataType) -> str:
    """What a column holds, as people say it; a type that has no common name as Arrow prints it.

    >>> in_words(pa.date32()), in_words(pa.string())
    ('dates', 'text')
    """
    t = pa.types
    names = (
        ("text", (t.is_string, t.is_large_string, t.is_string_view)),
        ("whole numbers", (t.is_integer,)),
        ("numbers", (t.is_floating, t.is_decimal)),
        ("dates", (t.is_date,)),
        ("dates with times", (t.is_timestamp,)),
        ("true and false", (t.is_boolean,)),
    )
    return next((name for name, tests in names if any(test(kind) for test in tests)), str(kind))


def other_way(kind: pa.DataType, wanted: str = "numbers") -> str:
    """How a column that holds this can be made coarser, where something was tried that is for what is ``wanted``."""
    held = in_words(kind)
    if held == "text":
        written = (
            "dates in the table, such as 2024-12-31" if wanted == "dates" else "numbers in the table, such as 1090.5"
        )
        return f"write its values as {written}, or recode it by prefix or hierarchy"
    if held.startswith("dates"):
        return "recode it by year, quarter or month"
    return "recode it by bands, top, bottom or snap" if held.endswith("numbers") else "leave that out"


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, where a column holds them as places in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts, as themselves or by a dictionary."""
    plain = plain_type(kind)
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def without_rows(batch: pa.RecordBatch, gone: Ints, start: int) -> pa.RecordBatch:
    """A batch whose first row has the number ``start``, without the rows of some sorted numbers."""
    low, high = np.searchsorted(gone, [start, start + batch.num_rows])
    if low == high:
        return batch
    there = np.ones(batch.num_rows, dtype=bool)
    there[gone[low:high] - start] = False
    return batch.filter(pa.array(there))


def decoded(column: pa.Array) -> pa.Array:
    """Values as they are, not as places in a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_askable(dtype: pa.DataType) -> bool:
    """Whether a public column of this type can be asked about: lists, months and days, and the like have no order."""
    t = pa.types
    if t.is_dictionary(dtype):
        return is_askable(dtype.value_type)
    return not (t.is_nested(dtype) or t.is_interval(dtype) or isinstance(dtype, pa.BaseExtensionType))


def require_columns(columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise a ``ColumnError`` unless every column is one of the names."""
    for column in columns:
        if column not in names:
            raise ColumnError(
                f"There is no column {column!r}.{did_you_mean(column, names)} The columns are: {listing(list(names))}."
            )


def factorise(column: pa.Array, dtype: pa.DataType) -> tuple[np.ndarray, pa.Array]:
    """Indices and the values they point to; NaN is null, -0.0 is 0.0. Values may come twice."""
    if not pa.types.is_dictionary(column.type):
        column = _cast(column, dtype).dictionary_encode(null_encoding="encode")
        indices = column.indices
        values = column.dictionary
    else:
        values = pa.concat_arrays([_cast(column.dictionary, dtype), pa.nulls(1, dtype)])
        indices = column.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(values) - 1)
    return indices.to_numpy(zero_copy_only=False), normal(values)


def lookup(column: pa.Array, known: pa.Array) -> np.ndarray | None:
    """The position of each row in ``known`` (which holds null), or None if some value is not there."""
    dtype = known.type
    if not pa.types.is_dictionary(column.type):
        places = pc.index_in(_cast(column, dtype), value_set=known)
        if not places.null_count:
            return np.asarray(places.to_numpy(zero_copy_only=False))
        if not pa.types.is_floating(dtype):
            return None
    if pa.types.is_dictionary(column.type) and not column.indices.null_count:
        places = pc.index_in(normal(_cast(column.dictionary, dtype)), value_set=known)
        if not places.null_count:  # in as few bytes as they need: new memory costs more than looking up
            narrow = places.cast(pa.from_numpy_dtype(np.min_scalar_type(len(known))))
            return np.asarray(narrow.take(column.indices))
    indices, values = factorise(column, dtype)
    places = pc.index_in(values, value_set=known)
    codes: np.ndarray = places.fill_null(-1).to_numpy(zero_copy_only=False)[indices]
    # A dictionary may hold values that no row has.
    return None if places.null_count and len(codes) and codes.min() < 0 else codes


def sorted_values(values: pa.Array, *, with_null: bool) -> pa.Array:
    """Numbers by size, strings by code point, false before true; null last."""
    plain = values.drop_null()
    ordered = plain.take(pc.array_sort_indices(plain))
    return pa.concat_arrays([ordered, pa.nulls(1, values.type)]) if with_null else ordered


def python_values(array: pa.Array) -> list[Any]:
    """The values as Python objects."""
    t = pa.types
    if t.is_floating(array.type) and pc.any(pc.is_inf(array.cast(pa.float64()))).as_py():
        raise ColumnError(
            "A sensitive column holds infinite numbers, which a manifest cannot list. Fix: replace them by missing "
            f"values or by the largest number, or publish bins ({option('bins', '')})."
        )
    if t.is_uint64(array.type) and len(array) and (pc.max(array).as_py() or 0) >= LARGEST_WHOLE:
        raise ColumnError(
            "A sensitive column of type uint64 holds numbers of 2^63 or more, by which a release could not be asked. "
            "Fix: convert the column to strings."
        )
    if (t.is_timestamp(array.type) or t.is_time(array.type)) and array.type.unit == "ns":
        coarse = pa.timestamp("us", array.type.tz) if t.is_timestamp(array.type) else pa.time64("us")
        try:
            array = array.cast(coarse)
        except pa.ArrowInvalid:
            raise ColumnError(
                f"A sensitive column of type {array.type} holds times finer than a microsecond. "
                "Fix: round it to microseconds."
            ) from None
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        raise ColumnError("A sensitive column holds text that is not UTF-8. Fix: write it again as UTF-8.") from None
    except (OverflowError, ValueError):
        raise ColumnError(
            f"A sensitive column of type {array.type} holds dates outside of the years 1 to 9999. "
            "Fix: replace them by missing values, or publish years as numbers."
        ) from None


def declared_values(
    domain: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
    columns: Sequence[str],
    types: Sequence[pa.DataType],
    *,
    exempt: bool,
) -> list[pa.Array | None]:
    """Each column's declared values, sorted, or None where nothing is declared."""
    if domain is None:
        return [None] * len(columns)
    if isinstance(domain, Mapping):
        lists: list[Any] = [domain.get(name) for name in columns]
        require_sensitive(domain, columns)
    elif len(columns) == 1:
        lists = [list(domain)]
        _refuse_twice(lists[0])
    else:
        if not all(isinstance(row, tuple | list) and len(row) == len(columns) for row in domain):
            raise OptionError(
                f"domain: with {len(columns)} sensitive columns each value is a tuple of {len(columns)}. Fix: "
                f"{option('domain', '{column: [values], ...} or a list of such tuples', 'COLUMN=FILE')}."
            )
        lists = [list(dict.fromkeys(row[place] for row in domain)) for place in range(len(columns))]
    return [
        None if given is None else _declared(name, list(given), dtype, exempt)
        for name, given, dtype in zip(columns, lists, types, strict=True)
    ]


def require_sensitive(domain: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Refuse declared values of a column that is no sensitive one."""
    for name in domain:
        if name not in columns:
            raise OptionError(
                f"{option('domain')} names {name!r}, which is no sensitive column.{did_you_mean(name, columns)}"
            )


def _declared(name: str, given: list[Any], dtype: pa.DataType, exempt: bool) -> pa.Array:
    if not given:
        raise OptionError(f"domain of {name!r} is empty. Fix: list every value that may occur.")
    texts = all(value is None or isinstance(value, str) for value in given)
    try:
        # A list from a file is texts, whatever the column holds.
        array = normal(pa.array(given, pa.string()).cast(dtype) if texts else pa.array(given, type=dtype))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise OptionError(
            f"domain of {name!r} holds a value that is no {dtype}, the type of the column. "
            "Fix: declare the values in the column's type."
        ) from None
    unique = pc.unique(array)
    return sorted_values(unique, with_null=bool(unique.null_count) and not exempt)


def _refuse_twice(values: list[Any]) -> None:
    if len(set(values)) != len(values):
        raise OptionError("domain holds a value twice. Fix: list each value once.")


def _cast(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    return array if array.type == dtype else array.cast(dtype)


def normal(values: pa.Array) -> pa.Array:
    """NaN as null and -0.0 as 0.0, so that each number has one code."""
    if not pa.types.is_floating(values.type):
        return values
    dtype = values.type
    wide = values.cast(pa.float64())
    wide = pc.if_else(pc.is_nan(wide), pa.scalar(None, pa.float64()), pc.add(wide, 0.0))
    return wide.cast(dtype)


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type that prints as ``name``, for the types that a sensitive column or a CSV release can have."""
    if decimal := _DECIMAL.fullmatch(name):
        kind, precision, scale = decimal.groups()
        return getattr(pa, kind)(int(precision), int(scale))
    if name.startswith(LIST):
        return pa.list_(pa.field("element", arrow_type(name[len(LIST) : -1])))
    if zoned := _ZONED.fullmatch(name):
        return pa.timestamp(*zoned.groups())
    return pa.type_for_alias(name)


def _is_lost_in_csv(dtype: pa.DataType) -> bool:
    t = pa.types
    zoned = t.is_timestamp(dtype) and dtype.tz is not None
    narrow_or_wide = t.is_decimal(dtype) and not t.is_decimal128(dtype)
    lost = (t.is_binary, t.is_large_binary, t.is_float16, t.is_duration, t.is_null)
    return zoned or narrow_or_wide or any(test(dtype) for test in lost)


def require_readable_csv(schema: pa.Schema) -> None:
    """Refuse columns whose type would not come back from CSV."""
    for field in schema:
        try:
            known = arrow_type(str(field.type)) == field.type and not _is_lost_in_csv(field.type)
        except ValueError:
            known = False
        if not known:
            raise OptionError(
                f"format = 'csv' cannot hold the column {field.name!r} of type {field.type}. Fix: "
                f"{option('format', 'parquet')}, or drop the column."
            )


# -- Columns as dictionary codes, and codes as digits of one number ----------------------------------------------------


BLOCK = 64  # batches whose codes are joined at a time


@dataclass(frozen=True)
class Encoded:
    """A column as codes; the code ``len(values)`` is a missing value."""

    values: pa.Array
    codes: Codes

    @property
    def size(self) -> int:
        return len(self.values) + 1


def encode(column: pa.ChunkedArray) -> Encoded:
    """A column as dictionary codes of the smallest type; missing, NaN included, gets the last code."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if len(column) == 0:
        return Encoded(pa.array([], plain_type(column.type)), np.zeros(0, np.uint8))
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries()
    dictionary = encoded.chunk(0).dictionary
    size = len(dictionary)
    kind = code_type(size + 1)
    codes = np.empty(len(column), kind)
    start = 0
    for chunk in encoded.chunks:
        indices = chunk.indices.cast(pa.int64()).fill_null(size)
        codes[start : start + len(chunk)] = indices.to_numpy(zero_copy_only=False)
        start += len(chunk)
    floating = pa.types.is_floating(dictionary.type)
    if dictionary.null_count or floating:  # a dictionary may itself hold a missing value, or 0.0 and -0.0
        own = normal(dictionary.cast(pa.float64())) if floating else dictionary
        known = pc.drop_null(own).unique()
        place = pc.index_in(own, known).fill_null(len(known)).to_numpy(zero_copy_only=False)
        return Encoded(known.cast(dictionary.type), np.append(place, len(known)).astype(kind)[codes])
    return Encoded(dictionary, codes)


def joined(pieces: Sequence[Encoded], kind: pa.DataType) -> Encoded:
    """One column of its pieces in order, as ``encode`` has it of the whole; ``kind`` is the type of its values.

    What is held of a piece is a code a row, of the smallest type, and its distinct values.
    """
    if len(pieces) < 2:
        return pieces[0] if pieces else Encoded(pa.array([], kind), np.zeros(0, np.uint8))
    own = [pa.array(np.arange(len(piece.values), dtype=np.int32)) for piece in pieces]
    # Arrow unifies dictionaries of half floats to others.
    known = [piece.values.cast(pa.float32()) if kind == pa.float16() else piece.values for piece in pieces]
    lists = [pa.DictionaryArray.from_arrays(places, values) for places, values in zip(own, known, strict=True)]
    unified = pa.chunked_array(lists).unify_dictionaries()
    values = unified.chunk(0).dictionary.cast(kind)
    codes = np.empty(sum(len(piece.codes) for piece in pieces), code_type(len(values) + 1))
    start = 0
    for piece, places in zip(pieces, unified.chunks, strict=True):
        end = start + len(piece.codes)
        table = np.append(places.indices.to_numpy(), len(values)).astype(codes.dtype)
        np.take(table, piece.codes, out=codes[start:end], mode="clip")
        start = end
    return Encoded(values, codes)


def coded_columns(dataset: Dataset, names: Sequence[str], progress: Progress = no_progress) -> dict[str, Encoded]:
    """Columns of a table as codes: what is held of a batch is a code a row and column, and its distinct values."""
    kinds = {name: dataset.schema.field(name).type for name in names}
    plain_kinds = {name: plain_type(kind) for name, kind in kinds.items()}
    pieces: dict[str, list[Encoded]] = {name: [] for name in names}
    blocks: dict[str, list[Encoded]] = {name: [] for name in names}
    done = 0
    for batch in dataset.batches(list(names)):
        for name, array in zip(names, batch.columns, strict=True):
            pieces[name].append(encode(array))
            if len(pieces[name]) == BLOCK:  # many small arrays would leave the memory in holes
                blocks[name].append(joined(pieces[name], plain_kinds[name]))
                pieces[name].clear()
        done += batch.num_rows
        progress(done, dataset.rows, "reading columns")
    return {name: joined([*blocks.pop(name), *pieces.pop(name)], plain_kinds[name]) for name in names}


def derived_column(column: Derived, sources: Sequence[Encoded]) -> Encoded:
    """A column computed from others: each combination of their values is computed once."""
    if len(sources) == 1:
        occurs = np.bincount(sources[0].codes, minlength=sources[0].size) > 0
        digits, place = [np.flatnonzero(occurs)], (np.cumsum(occurs) - 1)[sources[0].codes]
    else:
        key, radix = np.zeros(len(sources[0].codes), np.int64), 1
        for source in sources:
            if radix * source.size > 2**62:
                used, key = np.unique(key, return_inverse=True)
                radix = len(used)
            key, radix = key * source.size + source.codes, radix * source.size
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        digits = [source.codes[first] for source in sources]
    arrays = [
        source.values.take(pa.array(digit, mask=digit == len(source.values)))
        for source, digit in zip(sources, digits, strict=True)
    ]
    computed = encode(column.compute(*arrays))
    return Encoded(computed.values, computed.codes[place])


def code_type(size: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32


def smallest(codes: Ints, size: int) -> Codes:
    return codes.astype(code_type(size))


def mixed(codes: Sequence[Codes], sizes: Sequence[int]) -> Ints:
    """Codes as digits of one number, the first the most significant."""
    key = codes[0].astype(np.int64)
    for digit, size in zip(codes[1:], sizes[1:], strict=True):
        key *= size
        key += digit
    return key


def plain(value: object) -> object:
    """A value that equals itself: NaN does not."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


# -- Sensitive values as small integers, and back ----------------------------------------------------------------------
# A value's code is its position in the domain: the sorted distinct values, missing last; with several columns the cross
# product of their domains, the last column running fastest. Every loop is over distinct values, never over rows.


MOST_VALUES = 1 << 22
TEXTS = (pa.string(), pa.large_string())
FOLDED_BYTES = 2**16  # of a list of texts that is written again and again
POLICIES = ("value", "refuse", "exempt")


class Encoder:
    """Codes of rows and rows of codes, for fixed domains (one array per column; null, if a value, comes last).

    With ``exempt``, the code m (one past the domain) marks a row with a missing value; such a row comes back as
    missing in all sensitive columns, because a value beside a missing one would otherwise be published as it is.
    """

    def __init__(self, columns: Sequence[str], values: Sequence[pa.Array], *, exempt: bool = False) -> None:
        self.columns = list(columns)
        self.values = list(values)
        self.types: list[pa.DataType] = [array.type for array in values]
        self.exempt = exempt
        self.sizes = [len(array) for array in values]
        self.m = int(np.prod(self.sizes, dtype=np.int64))
        self.dtype = np.min_scalar_type(max(self.m - 1 + int(exempt), 0))
        # With null in the set, a null is found like any value, and what is not found is not in the domain.
        self._sets = [array if array.null_count else _with_null(array) for array in values]

    def encode(self, batch: pa.RecordBatch) -> np.ndarray:
        """The code of each row."""
        total: np.ndarray | None = None
        missing: np.ndarray | None = None
        for name, known, size in zip(self.columns, self._sets, self.sizes, strict=True):
            codes = lookup(batch.column(name), known)
            if codes is None:
                raise TableError(
                    f"The column {name!r} holds a value that is not in its domain. The table changed while it was "
                    "read, or is another one. Fix: publish from a copy that nobody writes to."
                )
            if len(known) != size:
                missing = self._missing(name, codes, size, missing)
            total = codes if total is None else total.astype(np.int64) * size + codes
        if total is None:
            raise OptionError("No sensitive column was named. Fix: name at least one column.")
        if missing is not None:
            total = np.where(missing, self.m, total)
        return total.astype(self.dtype)

    def exempt_mask(self, codes: np.ndarray) -> np.ndarray | None:
        """Which rows are exempt, or None if none can be."""
        return codes == self.m if self.exempt else None

    def missing(self, batch: pa.RecordBatch) -> np.ndarray | None:
        """Which rows are exempt, their values being missing; None if none can be."""
        if not self.exempt:
            return None
        gone = np.zeros(batch.num_rows, dtype=bool)
        for name in self.columns:
            gone |= pc.is_null(batch.column(name), nan_is_null=True).to_numpy(zero_copy_only=False)
        return gone

    def decode(self, codes: np.ndarray) -> list[pa.Array]:
        """The values of each code, one array per column, in the columns' types."""
        arrays = []
        stride = self.m
        gone = self.exempt_mask(codes)
        for known, size in zip(self._sets, self.sizes, strict=True):
            stride //= max(size, 1)
            if len(self.columns) == 1:
                own = codes  # the exempt code m is where the set holds null
            else:
                own = codes.astype(np.int64) // max(stride, 1) % max(size, 1)
                own = own if gone is None else np.where(gone, len(known) - 1, own)
            arrays.append(known.take(pa.array(own)))
        return arrays

    def folded(self, codes: np.ndarray) -> list[pa.Array]:
        """What ``decode`` gives, a short list of texts as the dictionary that it is: rows then move as their codes."""
        known = self._sets[0]
        if len(self.columns) > 1 or known.type not in TEXTS or known.nbytes > FOLDED_BYTES:
            return self.decode(codes)
        nulls = self.exempt or len(known) == self.sizes[0]
        return [pa.DictionaryArray.from_arrays(pa.array(codes), known if nulls else self.values[0])]

    def _missing(self, name: str, codes: np.ndarray, size: int, so_far: np.ndarray | None) -> np.ndarray | None:
        here = codes == size
        if not here.any():
            return so_far
        if not self.exempt:
            raise TableError(
                f"The column {name!r} has missing values, which its domain does not hold. Fix: "
                f"{option('missing', 'value')} or {option('missing', 'exempt')}."
            )
        return here if so_far is None else here | so_far


class DomainScanner:
    """Counts every value of some columns, batch by batch; scans of parts of a table can be merged.

    ``orders`` gives the order of values that do not sort by themselves: intervals, which are text.
    """

    def __init__(
        self, columns: Sequence[str], schema: pa.Schema, orders: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        if not columns:
            raise OptionError("No sensitive column was named. Fix: name at least one column.")
        require_columns(columns, schema.names)
        self._columns = list(columns)
        self._orders = dict(orders or {})
        self._tallies = [ValueCodes(name, column_type(name, schema.field(name).type)) for name in columns]
        self._counts = np.zeros([1] * len(columns), dtype=np.int64)

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        codes = [tally.codes(batch.column(tally.name)) for tally in self._tallies]
        self._counts = _add(self._counts, codes, tuple(tally.size for tally in self._tallies), self._columns)

    def merge(self, other: DomainScanner) -> None:
        """Take in the rows that another scanner of the same columns has seen."""
        places = [mine.codes(theirs.known) for mine, theirs in zip(self._tallies, other._tallies, strict=True)]
        grown = _grown(self._counts, tuple(tally.size for tally in self._tallies), self._columns)
        grown[np.ix_(*places)] += other._counts
        self._counts = grown

    def scan(self, missing: str, domain: Sequence[Any] | Mapping[str, Sequence[Any]] | None) -> Scan:
        """What was found. ``domain`` declares the values beforehand: a list for one column; for several a mapping from
        column to list, or a list of tuples, of which each column's values are taken."""
        columns, counts = self._columns, self._counts
        if missing not in POLICIES:
            hint = did_you_mean(missing, POLICIES)
            raise OptionError(f"missing = {missing!r} is not allowed.{hint} Allowed: 'value', 'refuse', 'exempt'.")
        present = [bool(counts.take(0, axis=axis).sum()) for axis in range(len(columns))]
        lost = int(counts.sum() - counts[tuple(slice(1, None) for _ in columns)].sum())
        if missing == "refuse" and lost:
            where = " or ".join(map(repr, columns))
            raise TableError(
                f"{_about(lost).capitalize()} rows have no value in {where}, and missing = 'refuse'. Fix: remove those "
                f"rows, or {option('missing', 'value')} (a value like any other) or {option('missing', 'exempt')} "
                "(published as missing)."
            )
        exempt = missing == "exempt"
        declared = declared_values(domain, columns, [tally.dtype for tally in self._tallies], exempt=exempt)
        values = [
            _sorted(tally, self._orders.get(tally.name), there and missing == "value") if given is None else given
            for tally, there, given in zip(self._tallies, present, declared, strict=True)
        ]
        for tally, there, given in zip(self._tallies, present, declared, strict=True):
            if given is not None:
                _refuse_undeclared(tally, there and not exempt, given)
        _refuse_too_many([len(array) for array in values], columns)
        for axis, (tally, array) in enumerate(zip(self._tallies, values, strict=True)):
            counts = _reordered(counts, axis, tally.known, array)
        encoder = Encoder(columns, values, exempt=exempt)
        return Scan(Histogram(tuple(product(values)), counts.reshape(-1)), lost if exempt else 0, encoder)


def in_order(scan: Scan, domain: Mapping[str, Sequence[Any]]) -> Scan:
    """The scan, with the values of each column in the order of a ``domain`` that declared them: declared values are
    sorted, and intervals do not sort by themselves."""
    encoder: Encoder = scan.encoder
    places = [
        pc.index_in(pa.array(domain[name], known.type), value_set=known).to_numpy(zero_copy_only=False)
        for name, known in zip(encoder.columns, encoder.values, strict=True)
    ]
    if all(np.array_equal(place, np.arange(size)) for place, size in zip(places, encoder.sizes, strict=True)):
        return scan
    values = [known.take(pa.array(place)) for known, place in zip(encoder.values, places, strict=True)]
    counts = scan.histogram.counts.reshape(encoder.sizes)[np.ix_(*places)]
    histogram = Histogram(tuple(product(values)), counts.reshape(-1))
    return Scan(histogram, scan.exempt_rows, Encoder(encoder.columns, values, exempt=encoder.exempt))


def _sorted(tally: ValueCodes, order: Sequence[Any] | None, with_null: bool) -> pa.Array:
    """The values that occur, in their own order or in a known one; missing last."""
    if order is None:
        return sorted_values(tally.known, with_null=with_null)
    known = pa.array(order, tally.dtype)
    there = known.filter(pc.is_in(known, value_set=tally.known.drop_null()))
    return _with_null(there) if with_null else there


class ValueCodes:
    """The distinct values of one column so far. Provisional codes: 0 is missing, then in order of appearance."""

    def __init__(self, name: str, dtype: pa.DataType) -> None:
        self.name = name
        self.dtype = dtype
        self.known = pa.nulls(1, dtype)

    @property
    def size(self) -> int:
        return len(self.known)

    def codes(self, column: pa.Array) -> np.ndarray:
        codes = lookup(column, self.known)
        if codes is None:
            indices, values = factorise(column, self.dtype)
            held = values.take(pa.array(np.unique(indices)))  # a dictionary may list values that no row holds
            fresh = sorted_values(pc.unique(held), with_null=False)
            new = fresh.filter(pc.invert(pc.is_in(fresh, value_set=self.known)))
            self.known = pa.concat_arrays([self.known, new])
            _refuse_too_many([self.size - 1], [self.name])
            codes = lookup(column, self.known)
        if codes is None:
            raise TableError(f"The values of the column {self.name!r} cannot be compared. Fix: convert it to strings.")
        return codes


def _add(counts: np.ndarray, codes: list[np.ndarray], shape: tuple[int, ...], columns: Sequence[str]) -> np.ndarray:
    """Grow the table of counts to the shape and add a batch."""
    counts = _grown(counts, shape, columns)
    flat = codes[0] if len(codes) == 1 else np.ravel_multi_index(tuple(codes), shape)
    total = counts.reshape(-1)
    if len(total) <= 4 * len(flat):
        total += np.bincount(flat, minlength=len(total))
    else:
        where, often = np.unique(flat, return_counts=True)
        total[where] += often
    return total.reshape(shape)


def _grown(counts: np.ndarray, shape: tuple[int, ...], columns: Sequence[str]) -> np.ndarray:
    _refuse_too_many([max(size - 1, 1) for size in shape], columns)
    if counts.shape == shape:
        return counts
    return np.pad(counts, [(0, new - old) for old, new in zip(counts.shape, shape, strict=True)])


def _reordered(counts: np.ndarray, axis: int, known: pa.Array, values: pa.Array) -> np.ndarray:
    """Bring one axis from order of appearance to domain order; values that never occur count 0."""
    where = pc.index_in(values, value_set=known)
    padded = np.concatenate([counts, np.zeros_like(counts.take([0], axis=axis))], axis=axis)
    return padded.take(where.fill_null(len(known)).to_numpy(zero_copy_only=False), axis=axis)


def _refuse_undeclared(tally: ValueCodes, missing_occurs: bool, declared: pa.Array) -> None:
    known = tally.known.drop_null()
    if len(known) > (pc.sum(pc.is_in(known, value_set=declared)).as_py() or 0):
        raise TableError(
            f"The column {tally.name!r} holds values that the declared domain does not (in a series: that of its first "
            "publication). Fix: add to the domain every value that may occur; in a series write it as one of the "
            "values that are known."
        )
    if missing_occurs and not declared.null_count:
        raise TableError(
            f"The column {tally.name!r} has missing values, and the declared domain holds no None. Fix: add None to "
            f"the domain, or {option('missing', 'exempt')}."
        )


def _refuse_too_many(sizes: Sequence[int], columns: Sequence[str]) -> None:
    product = int(np.prod([float(size) for size in sizes]))
    if product > MOST_VALUES:
        names = " x ".join(map(repr, columns))
        raise TableError(
            f"The sensitive values {names} are more than {MOST_VALUES:,} different ones; so many cannot be hidden "
            "among each other. Fix: round or group them, or choose fewer sensitive columns."
        )


def product(values: Sequence[pa.Array]) -> list[Any]:
    """Every combination of the values of some columns, the last one running fastest; single values of one column."""
    lists = [python_values(array) for array in values]
    if len(lists) == 1:
        return lists[0]
    result: list[Any] = [()]
    for more in lists:
        result = [(*row, value) for row in result for value in more]
    return result


def _with_null(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array, pa.nulls(1, array.type)])


def _about(number: int) -> str:
    """How many rows, for people, and never exactly: messages are kept in logs."""
    if number < 10:
        return "a few"
    scale: int = 10 ** (len(str(number)) - 1)
    return f"about {(number + scale // 2) // scale * scale:,}"
