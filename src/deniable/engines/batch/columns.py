"""Columns as dictionary codes, and codes as digits of one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Codes, Ints
from deniable.core.errors import QuestionError
from deniable.core.tally import Derived
from deniable.engines.base import Dataset, Progress, no_progress
from deniable.engines.batch.values import normal, plain_type

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
    sizes = [source.size for source in sources]
    if math.prod(sizes) > 2**62:
        raise QuestionError(f"{column.name!r} is computed from columns with too many values. Fix: use fewer columns.")
    if len(sources) == 1:
        occurs = np.bincount(sources[0].codes, minlength=sizes[0]) > 0
        used, place = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[sources[0].codes]
    else:
        used, place = np.unique(mixed([source.codes for source in sources], sizes), return_inverse=True)
    digits = np.unravel_index(used, sizes)
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
