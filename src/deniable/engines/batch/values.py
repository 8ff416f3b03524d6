"""Distinct values of Arrow columns: which types can be sensitive, how they are sorted, compared and declared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Ints
from deniable.core.errors import ColumnError, OptionError, did_you_mean, listing, option
from deniable.core.values import LARGEST_WHOLE

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
