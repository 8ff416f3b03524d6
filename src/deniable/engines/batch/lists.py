"""Columns of lists as columns of yes and no, one for each item; pure functions of a batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Bools, Ints
from deniable.core.errors import ColumnError, TableError, option, shortened
from deniable.core.items import Unfolding
from deniable.engines.batch.values import decoded, is_text


def require_lists(name: str, kind: pa.DataType, how: Unfolding) -> None:
    """Refuse a column that cannot hold lists of items."""
    t = pa.types
    plain = kind.value_type if t.is_dictionary(kind) else kind
    if _is_list(plain):
        inner = plain.value_type.value_type if t.is_dictionary(plain.value_type) else plain.value_type
        if how.separator is not None:
            raise ColumnError(f"The column {name!r} holds lists already. Fix: leave separator out.")
        if is_text(inner) or t.is_integer(inner) or t.is_null(inner):
            return
        raise ColumnError(
            f"The column {name!r} holds lists of {inner}: items are texts or whole numbers. Fix: convert them."
        )
    if not (is_text(plain) or t.is_null(plain)):
        raise ColumnError(
            f"The column {name!r} has the type {kind}, and mechanism 'items' needs lists of items: a list column, JSON "
            "arrays, or texts with a separator. Fix: name such a column, or publish with another mechanism."
        )


def lists_of(name: str, column: pa.Array, how: Unfolding) -> tuple[Ints, pa.Array]:
    """The number of each item's row, and the item as text, in the order of the list; a missing list is empty."""
    column = decoded(column)
    if pa.types.is_null(column.type):
        return np.zeros(0, np.int64), pa.array([], pa.large_string())
    if not _is_list(column.type):
        column = _split(name, column, how)
    rows = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
    items = decoded(pc.list_flatten(column)).cast(pa.large_string())
    if items.null_count:
        raise TableError(f"Lists of the column {name!r} hold missing items. Fix: leave those out of their lists.")
    return rows, items


def _split(name: str, column: pa.Array, how: Unfolding) -> pa.Array:
    """Texts as lists: parts without the blanks around them, or JSON arrays; each text is read once."""
    encoded = column.cast(pa.large_string()).dictionary_encode()
    read = [_parts(name, text, how) for text in encoded.dictionary.to_pylist()]
    return pa.array(read, pa.large_list(pa.large_string())).take(encoded.indices)


def _parts(name: str, text: str, how: Unfolding) -> list[str]:
    if how.separator is not None:
        return [part.strip() for part in text.split(how.separator) if part.strip()]
    if not text.strip():
        return []
    try:
        items: Any = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list) or any(isinstance(item, bool) or not isinstance(item, str | int) for item in items):
        raise TableError(
            f"A text of the column {name!r} is no JSON array of texts or whole numbers. Fix: write lists as "
            '["E11", "I10"], or say what stands between the items: Items(separator=";").'
        )
    return [str(item) for item in items]


def places_of(name: str, column: pa.Array, items: pa.Array, how: Unfolding) -> Bools:
    """Which rows have which items: a row of the table is a row, an item a column."""
    rows, texts = lists_of(name, column, how)
    codes = pc.index_in(texts, value_set=items)
    if codes.null_count:
        raise TableError(
            f"Lists of the column {name!r} hold items that the declared domain does not. Fix: add to the domain every "
            f"item that may occur, or leave {option('domain', '')} away."
        )
    keys = rows * max(len(items), 1) + codes.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.sort(np.unique(keys, return_index=True)[1])  # an item that stands twice counts once, where it is first
    keys, rows = keys[first], rows[first]
    if how.most is not None and len(rows):
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        rank = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
        over = rank >= how.most
        if over.any() and how.beyond == "refuse":
            raise TableError(
                f"Lists of the column {name!r} have more than most = {how.most} items. Fix: a larger most=, or "
                "beyond='first': only the first of them count."
            )
        keys = keys[~over]
    held = np.zeros(len(column) * max(len(items), 1), dtype=bool)
    held[keys] = True
    return held.reshape(len(column), max(len(items), 1))


def with_lists(people: pa.Array, held: Bools) -> pa.Array:
    """A person's name together with their list: rows of a person with one list draw alike, and others on their own."""
    marks = np.packbits(held, axis=1)
    texts = decoded(people).cast(pa.string()).to_pylist()
    return pa.array(
        [
            None if text is None else f"{text}\x00{mark.tobytes().hex()}"
            for text, mark in zip(texts, marks, strict=True)
        ],
        pa.string(),
    )


def sorted_items(arrays: Sequence[pa.Array]) -> pa.Array:
    """All items that occur, sorted."""
    both = pa.chunked_array([*arrays, pa.array([], pa.large_string())], pa.large_string()).unique()
    return both.take(pc.array_sort_indices(both))


def require_items(name: str, items: Sequence[Any]) -> list[str]:
    """Declared items as texts; refused where one stands twice or is none."""
    texts = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int) or str(item) != str(item).strip() or item == "":
            raise TableError(
                f"domain of {name!r} holds {shortened(item)}: items are texts without blanks around them, or whole "
                "numbers."
            )
        texts.append(str(item))
    if len(set(texts)) != len(texts):
        raise TableError(f"domain of {name!r} holds an item twice. Fix: name every item once.")
    return texts


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))
