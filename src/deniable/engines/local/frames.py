"""Data frames of any library as one Arrow table."""

from __future__ import annotations

import sys
from typing import Any

import narwhals as nw
import pyarrow as pa

from deniable.core.errors import ColumnError, TableError

_VIEWS = ((pa.string_view(), pa.large_string()), (pa.binary_view(), pa.large_binary()))


def to_table(value: Any) -> pa.Table:
    """Materialise a data frame, relation or reader once."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return _from_pandas(value)
    if isinstance(value, pa.Table):
        table = value
    elif hasattr(value, "__arrow_c_stream__"):
        try:
            table = pa.RecordBatchReader.from_stream(value).read_all()
        except Exception:
            raise _unsupported(value) from None
    else:
        table = _from_narwhals(value)
    return _without_views(table)


def _from_pandas(frame: Any) -> pa.Table:
    """The columns without the index: row labels of a filtered frame would publish where each row came from."""
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(
            f"The table has the column {twice[0]!r} {names.count(twice[0])} times. "
            "Fix: give each column a name of its own."
        )
    arrays = []
    for position, name in enumerate(names):
        try:
            arrays.append(pa.Array.from_pandas(frame.iloc[:, position]))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise ColumnError(
                f"The column {name!r} holds values of different kinds, or of a kind that Arrow does not know. "
                f"Fix: convert it first, for example table[{name!r}] = table[{name!r}].astype('string')."
            ) from None
    return _without_views(pa.table(arrays, names=names))


def _from_narwhals(value: Any) -> pa.Table:
    try:
        frame = nw.from_native(value)
        collected = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        return collected.to_arrow()
    except Exception:
        raise _unsupported(value) from None


def _without_views(table: pa.Table) -> pa.Table:
    """Replace types for which Arrow has few functions, and drop notes that other libraries left."""
    plain = pa.schema([pa.field(field.name, without_view(field.type)) for field in table.schema])
    return table.cast(plain)


def without_view(dtype: pa.DataType) -> pa.DataType:
    """The type that holds the same values as a view or a short decimal, for which Arrow has few functions."""
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, without_view(dtype.value_type), dtype.ordered)
    if pa.types.is_decimal(dtype) and dtype.bit_width < 128:
        return pa.decimal128(dtype.precision, dtype.scale)
    return next((wide for view, wide in _VIEWS if dtype == view), dtype)  # not every type can be looked up by its hash


def _unsupported(value: Any) -> TableError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return TableError(
        f"A {kind} is not a table. Fix: give a path to a file, a list of paths, or a data frame "
        "(pandas, polars, pyarrow, duckdb, or anything with the Arrow C stream interface)."
    )
