"""Sensitive values as small integers, and back.

A value's code is its position in the domain: the sorted distinct values, missing last; with several columns the cross
product of their domains, the last column running fastest. Every loop is over distinct values, never over rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OptionError, TableError, did_you_mean, option
from deniable.core.histogram import Histogram
from deniable.engines.base import Scan
from deniable.engines.batch.values import (
    column_type,
    declared_values,
    factorise,
    lookup,
    python_values,
    require_columns,
    sorted_values,
)

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
        self._tallies = [_Tally(name, column_type(name, schema.field(name).type)) for name in columns]
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
        return Scan(Histogram(tuple(_product(values)), counts.reshape(-1)), lost if exempt else 0, encoder)


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
    histogram = Histogram(tuple(_product(values)), counts.reshape(-1))
    return Scan(histogram, scan.exempt_rows, Encoder(encoder.columns, values, exempt=encoder.exempt))


def _sorted(tally: _Tally, order: Sequence[Any] | None, with_null: bool) -> pa.Array:
    """The values that occur, in their own order or in a known one; missing last."""
    if order is None:
        return sorted_values(tally.known, with_null=with_null)
    known = pa.array(order, tally.dtype)
    there = known.filter(pc.is_in(known, value_set=tally.known.drop_null()))
    return _with_null(there) if with_null else there


class _Tally:
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


def _refuse_undeclared(tally: _Tally, missing_occurs: bool, declared: pa.Array) -> None:
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


def _product(values: list[pa.Array]) -> list[Any]:
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
