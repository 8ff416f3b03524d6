"""Columns as a few states each, with the channel that perturbed them; the same states for rows to be predicted.

The states of a column are its bins (numbers, dates) or values (categories), and one more, the last, for missing. A
column that is public has no channel.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import ColumnError, OptionError, TableError, did_you_mean, listing
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.tensor import Factor

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
MOST_CATEGORIES = 1000


@dataclass(frozen=True, eq=False)
class Feature:
    """How one column's values become states.

    Attributes:
        name: of the column.
        edges: for numbers: the upper ends of all bins but the last; None for categories.
        values: for categories: the values, in the order of their states.
        channel: how the states were perturbed; None for a public column.
    """

    name: str
    edges: Floats | None
    values: tuple[Hashable, ...]
    channel: Factor | None = None

    @property
    def size(self) -> int:
        """How many states there are, missing included."""
        return (len(self.values) if self.edges is None else len(self.edges) + 1) + 1

    @property
    def factor(self) -> Factor:
        """The channel; of a public column one that changes nothing."""
        return self.channel or Factor(1.0, np.full(self.size, 1 / self.size))

    def codes(self, column: pa.Array) -> Codes:
        """The state of each value; what was never seen counts as missing."""
        if self.edges is not None:
            numbers = as_numbers(self.name, column)
            gone = np.isnan(numbers)
            found = np.searchsorted(self.edges, np.where(gone, 0.0, numbers), side="left")
            return np.where(gone, self.size - 1, found).astype(np.intp)
        known = pa.array(list(self.values))
        try:
            same = column.cast(known.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ColumnError(
                f"The column {self.name!r} was learned from as {known.type}, and now has the type {column.type}, which "
                "does not fit. Fix: give it the type that it has in the release."
            ) from None
        places = pc.index_in(same, value_set=known).fill_null(self.size - 1)
        return places.to_numpy(zero_copy_only=False).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to learn from: the state of every row in every feature, and in the target."""

    features: tuple[Feature, ...]
    codes: tuple[Codes, ...]
    target: Feature
    classes: Codes


def as_table(X: Any, names: Sequence[str] | None = None) -> pa.Table:
    """Rows in any of the usual shapes as an Arrow table."""
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "__arrow_c_stream__"):
        return pa.table(X)
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        return pa.Table.from_pandas(X, preserve_index=False)
    array = np.asarray(X)
    if array.ndim != 2:
        raise TableError(f"Expected rows and columns, got an array of {array.ndim} dimensions. Fix: reshape it to two.")
    names = names if names is not None and len(names) == array.shape[1] else [f"x{i}" for i in range(array.shape[1])]
    return pa.table({name: pa.array(array[:, i].tolist()) for i, name in enumerate(names)})


def plain(column: Any) -> pa.Array:
    """A column in one piece, without dictionary."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def as_numbers(name: str, column: pa.Array) -> Floats:
    """Numbers, and dates as days, as floats; missing as NaN."""
    try:
        if pa.types.is_date(column.type):
            column = column.cast(pa.date32()).cast(pa.int32())
        result: Floats = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)
        return result
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnError(
            f"The column {name!r} was learned from as numbers, and now has the type {column.type}."
        ) from None


def is_number(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_date(kind))


def feature_of(name: str, column: pa.Array, perturbed: PerturbedColumn | None, bins: int) -> Feature:
    """Choose the states of a column from what is published of it, and find their channel."""
    kind = column.type if perturbed is None else perturbed.values.type
    if is_number(kind):
        numbers = as_numbers(name, column)
        present = numbers[~np.isnan(numbers)]
        feature = Feature(name, _edges(present, bins), ())
    else:
        known = pc.unique(column).drop_null() if perturbed is None else perturbed.values
        if len(known) > MOST_CATEGORIES:
            raise ColumnError(
                f"The column {name!r} has {len(known):,} different values, more than {MOST_CATEGORIES:,}: it would "
                "name rows, not classes of them. Fix: leave the column out."
            )
        feature = Feature(name, None, tuple(sorted(known.to_pylist(), key=lambda value: (str(type(value)), value))))
    return feature if perturbed is None else Feature(name, feature.edges, feature.values, _channel(feature, perturbed))


def _edges(numbers: Floats, bins: int) -> Floats:
    """Ends of bins: half of them equally full, half by distinct values, so that a long thin tail is cut up, too."""
    if not len(numbers):
        return np.zeros(0)
    steps = np.arange(1, bins // 2 + 1) / (bins // 2 + 1)
    full = np.quantile(numbers, steps, method="inverted_cdf")
    spread = np.quantile(np.unique(numbers), steps, method="inverted_cdf")
    edges = np.unique(np.concatenate([full, spread]))
    result: Floats = edges[edges < numbers.max()]
    return result


def _channel(feature: Feature, perturbed: PerturbedColumn) -> Factor:
    """The replacing masses of the states; with a constant coin, joining values leaves a channel of the same kind."""
    codes = feature.codes(perturbed.values)
    masses = np.bincount(codes, weights=perturbed.masses[: len(codes)], minlength=feature.size).astype(np.float64)
    if len(perturbed.masses) > len(codes):  # missing is a value like any other
        masses[-1] = perturbed.masses[-1]
        return Factor(perturbed.coin, masses)
    return Factor(perturbed.coin, masses[:-1], fixed=1)


def from_release(release: Any, target: str, columns: Sequence[str] | None, bins: int) -> Training:
    """Training rows of a release: every column but the target is a feature, unless some are named."""
    manifest = release.manifest
    known = [*manifest.public_columns, *manifest.sensitive_columns]
    names = [name for name in known if name != target] if columns is None else list(columns)
    for name in (target, *names):
        if name not in known:
            raise ColumnError(
                f"The release has no column {name!r}.{did_you_mean(name, known)} It has: {listing(known)}."
            )
    perturbed = perturbed_columns(manifest)
    table = release.table
    return _training({name: plain(table[name]) for name in (*names, target)}, target, perturbed, bins)


def perturbed_columns(manifest: Any) -> dict[str, PerturbedColumn]:
    """The channel of every sensitive column; releases whose columns are not perturbed one by one are refused."""
    found = {}
    for part in manifest.parts:
        if len(part.columns) != 1 or (part.range is None and len(part.channels) != 1):
            raise OptionError(
                f"This release perturbs {listing(list(part.columns))} together or in cells; classifiers learn from "
                "columns that are perturbed one by one. Fix: publish with mechanism=Retention({..}) or 'uniform'."
            )
        name = part.columns[0]
        found[name] = PerturbedColumn.of(part, manifest.types[name])
    return found


def from_rows(X: Any, y: Any, bins: int) -> Training:
    """Training rows of originals."""
    table = as_table(X)
    target = pa.array(np.asarray(y).tolist())
    if len(target) != table.num_rows:
        raise TableError(f"X has {table.num_rows:,} rows and y has {len(target):,}: they must be as many.")
    columns = {name: plain(table[name]) for name in table.column_names}
    name = "target"
    while name in columns:
        name += "_"
    return _training({**columns, name: target}, name, {}, bins)


def _training(
    columns: Mapping[str, pa.Array], target: str, perturbed: Mapping[str, PerturbedColumn], bins: int
) -> Training:
    names = [name for name in columns if name != target]
    if not names:
        raise OptionError("There is no column to learn from.")
    features = tuple(feature_of(name, columns[name], perturbed.get(name), bins) for name in names)
    codes = tuple(feature.codes(columns[feature.name]) for feature in features)
    goal = _target(target, columns[target], perturbed.get(target))
    classes = goal.codes(columns[target])
    if (classes == goal.size - 1).any():
        raise TableError("The target is missing in some rows. Fix: remove those rows.")
    if goal.size - 1 < 2:
        raise TableError("The target has one single class: there is nothing to learn.")
    return Training(features, codes, goal, classes)


def _target(name: str, column: pa.Array, perturbed: PerturbedColumn | None) -> Feature:
    known = pc.unique(column).drop_null() if perturbed is None else perturbed.values
    if len(known) > MOST_CATEGORIES:
        raise ColumnError(f"The target {name!r} has {len(known):,} values: classes are at most {MOST_CATEGORIES:,}.")
    feature = Feature(name, None, tuple(sorted(known.to_pylist(), key=lambda value: (str(type(value)), value))))
    return feature if perturbed is None else Feature(name, None, feature.values, _channel(feature, perturbed))
