"""One numbering for the values of a public column in a release and in its table, made while both are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Codes, Floats, Words
from deniable.engines.base import Dataset
from deniable.engines.batch.tallies import spread
from deniable.engines.batch.values import decoded, plain_type


class Numbering:
    """Values as 0, 1, .. in the order in which they are first met; missing is a value.

    Attributes:
        kind: the type that values of both sides are brought to.
        known: the values so far, each at its number.
        rows: how many rows hold each, in both tables.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.known = pa.array([], kind)
        self.rows = np.zeros(0, np.int64)

    @classmethod
    def of(cls, name: str, published: pa.DataType, source: Dataset) -> Numbering:
        """In the published type, or, where the table's values are not of it, as texts."""
        kind, own = _looked_up(published), _looked_up(source.schema.field(name).type)
        if kind != own:
            try:
                for batch in source.batches([name]):
                    decoded(batch.column(0)).cast(kind)
            except pa.ArrowException:
                kind = pa.string()
        return cls(kind)

    def codes(self, column: pa.Array) -> Codes:
        """The numbers of a batch's values; new values get the next ones."""
        plain = decoded(column)
        encoded = pc.dictionary_encode(
            plain if plain.type == self.kind else plain.cast(self.kind), null_encoding="encode"
        )
        places = pc.index_in(encoded.dictionary, value_set=self.known)
        if places.null_count:
            new = places.is_null()
            first = len(self.known)
            self.known = pa.concat_arrays([self.known, encoded.dictionary.filter(new)])
            numbers = places.fill_null(0).to_numpy(zero_copy_only=False).copy()
            numbers[new.to_numpy(zero_copy_only=False)] = np.arange(first, len(self.known))
        else:
            numbers = places.to_numpy(zero_copy_only=False)
        codes: Codes = numbers.astype(np.int32)[encoded.indices.to_numpy(zero_copy_only=False)]
        return codes

    def count(self, codes: Codes) -> None:
        """Add these rows to those of their values."""
        counts = np.bincount(codes, minlength=len(self.known))
        counts[: len(self.rows)] += self.rows
        self.rows = counts

    @property
    def numbers(self) -> Floats | None:
        """The values as numbers, not a number where they are missing; None where they are none."""
        if not (pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)):
            return None
        numbers: Floats = pc.cast(self.known, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers


def combination_keys(columns: list[Codes], rows: int) -> Words:
    """A key for each row's combination of values: a function of the numbers of its values.

    Two different combinations get one key with a chance of 2^-64, so of 10^8 different ones hardly ever two do.
    """
    keys = np.full(rows, 0x9E3779B97F4A7C15, np.uint64)
    for codes in columns:
        keys = spread(keys + spread(codes.astype(np.uint64) + np.uint64(1)))
    return keys


def _looked_up(kind: pa.DataType) -> pa.DataType:
    plain = plain_type(kind)
    return pa.float32() if plain == pa.float16() else plain  # Arrow does not look half floats up
