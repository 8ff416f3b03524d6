"""Columns as a few states each, with what published rows count for in each of them; the same states for rows to be
predicted.

The states of a column are its bins (numbers, dates) or values (categories), and one more, the last, for missing. What a
perturbed column publishes, a value, a cell and a value, or a set of values, is not a state of its original: a row that
shows y counts in state s for w_s(y), with E[w_s | original] = 1 if that is s, else 0 (mathematics 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from deniable.extend import (
    ColumnError,
    Floats,
    OptionError,
    Source,
    TableError,
    decoded,
    did_you_mean,
    listing,
    sources_of,
)

Codes = npt.NDArray[np.intp]
MOST_CATEGORIES = 1000
NO_COLUMN = "There is no column to learn from."


@dataclass(frozen=True, eq=False)
class Feature:
    """How one column's values become states.

    Attributes:
        name: of the column.
        edges: for numbers: the upper ends of all bins but the last; None for categories.
        values: for categories: the values, in the order of their states.
        weights: what a row counts for in each state, by what it shows [states, published]; None for a public column,
            which shows its states.
    """

    name: str
    edges: Floats | None
    values: tuple[Hashable, ...]
    weights: Floats | None = None

    @property
    def size(self) -> int:
        """How many states there are, missing included."""
        return (len(self.values) if self.edges is None else len(self.edges) + 1) + 1

    @property
    def exact(self) -> bool:
        """Whether rows show what they are: of a public column, or of one whose coin keeps every value."""
        if self.weights is None:
            return True
        return bool(np.isin(self.weights, (0.0, 1.0)).all() and (self.weights.sum(axis=0) == 1).all())

    @property
    def published(self) -> int:
        """How many different things rows may show."""
        return self.size if self.weights is None else self.weights.shape[1]

    def asked_for(self, masks: npt.NDArray[Any]) -> Floats:
        """What a row counts for, by what it shows, in each of some sets of states [sets, states]."""
        wanted = masks.astype(np.float64)
        return wanted if self.weights is None else wanted @ self.weights

    def codes(self, column: pa.Array) -> Codes:
        """The state of each value; what was never seen counts as missing."""
        if self.edges is not None:
            numbers = as_numbers(self.name, column)
            gone = np.isnan(numbers)
            codes = np.searchsorted(self.edges, np.where(gone, 0.0, numbers), side="left")
            return np.where(gone, self.size - 1, codes).astype(np.intp)
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
    """Rows to learn from: what every row shows of every feature, and of the target."""

    features: tuple[Feature, ...]
    codes: tuple[Codes, ...]
    target: Feature
    classes: Codes


class RowsError(TableError, ValueError):
    """Rows or classes that a classifier cannot take: a ValueError, too, as scikit-learn's users expect."""


def as_table(X: Any, names: Sequence[str] | None = None) -> pa.Table:
    """Rows in any of the usual shapes as an Arrow table."""
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "__arrow_c_stream__"):
        return pa.table(X)
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        return pa.Table.from_pandas(X, preserve_index=False)
    with _as_refused():
        array = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
    names = names if names is not None else [f"x{i}" for i in range(array.shape[1])]
    if len(names) != array.shape[1]:
        raise RowsError(
            f"X has {array.shape[1]} features, but it is expecting {len(names)} features as input, as many as were "
            f"learned from. Fix: the columns {listing(names)}."
        )
    return pa.table({name: _of_one_kind(f"The column {name!r}", array[:, i]) for i, name in enumerate(names)})


@contextmanager
def _as_refused() -> Iterator[None]:
    """What a check of scikit-learn says is the message."""
    try:
        yield
    except (ValueError, TypeError) as mistake:
        raise RowsError(str(mistake)) from None


def _of_one_kind(what: str, values: npt.NDArray[Any]) -> pa.Array:
    """Values of Python as Arrow has them; NaN of a column is a number that is missing, and no class."""
    try:
        return pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise RowsError(
            f"{what} holds values of several kinds, or such as no column has. Fix: numbers, texts, dates or truth "
            "values, of one kind each."
        ) from None


def _classes(y: Any) -> pa.Array:
    """The classes of originals; a column of them is read as its only column."""
    if y is None:
        raise RowsError("fit on originals requires y to be passed, but the target y is None. Fix: fit(X, y).")
    with _as_refused():
        array = column_or_1d(y, warn=True)
        if array.dtype.kind == "f":
            assert_all_finite(array, allow_nan=True)  # a class that is missing is refused by name
            check_classification_targets(array[~np.isnan(array)])
    return _of_one_kind("y", array)


def plain(column: Any) -> pa.Array:
    """A column in one piece, without dictionary."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return decoded(array)


def as_numbers(name: str, column: pa.Array) -> Floats:
    """Numbers, and dates as days, as floats; missing as NaN."""
    try:
        if pa.types.is_date(column.type):
            column = column.cast(pa.date32()).cast(pa.int32())
        return pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnError(
            f"The column {name!r} was learned from as numbers, and now has the type {column.type}."
        ) from None


def is_number(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_date(kind))


def feature_of(name: str, column: pa.Array, source: Source | None, bins: int) -> tuple[Feature, Codes]:
    """Choose the states of a column from what is published of it, find what rows count for in them and what each
    shows."""
    known = column if source is None else source.values[name]
    if is_number(known.type):
        shown = column if is_number(column.type) else known  # a set of numbers is none
        numbers = as_numbers(name, shown)
        feature = Feature(name, _edges(numbers[~np.isnan(numbers)], bins), ())
    elif pa.types.is_nested(known.type):
        raise ColumnError(f"The column {name!r} holds {known.type}, not one value a row. Fix: leave the column out.")
    else:
        values = pc.unique(known).drop_null()
        if len(values) > MOST_CATEGORIES:
            raise ColumnError(
                f"The column {name!r} has {len(values):,} different values, more than {MOST_CATEGORIES:,}: it would "
                "name rows, not classes of them. Fix: leave the column out."
            )
        feature = Feature(name, None, in_order(values))
    return (feature, feature.codes(column)) if source is None else with_weights(feature, source)


def in_order(values: pa.Array) -> tuple[Hashable, ...]:
    return tuple(sorted(values.to_pylist(), key=lambda value: (str(type(value)), value)))


def with_weights(feature: Feature, source: Source) -> tuple[Feature, Codes]:
    """A feature of a perturbed column, with what rows count for in its states; and what every row shows of it. Values
    that count for the same everywhere, such as all numbers of a bin that one coin keeps, are one thing to show."""
    state = feature.codes(plain(source.values[feature.name]))
    member = np.arange(feature.size)[:, None] == state[None, :]
    weights, alike = _distinct(source.weights(member.astype(np.float64)))
    return replace(feature, weights=weights), alike[source.states].astype(np.intp)


def _distinct(weights: Floats) -> tuple[Floats, Codes]:
    """The different columns of a matrix, in order, and which of them each column is. Most are alike to the last bit,
    many of them neighbours: one of each run is looked up by its bytes, since sorting 100,000 columns takes a hundred
    times as long."""
    columns = np.ascontiguousarray(weights.T)
    begins = np.append(True, (columns[1:] != columns[:-1]).any(axis=1)) if len(columns) else np.zeros(0, bool)
    seen: dict[bytes, int] = {}
    runs = [seen.setdefault(column.tobytes(), len(seen)) for column in columns[begins]]
    place = np.array(runs, dtype=np.intp)[np.cumsum(begins) - 1]
    _, first = np.unique(place, return_index=True)
    different, alike = np.unique(weights[:, first], axis=1, return_inverse=True)
    return different, alike.reshape(-1)[place]


def _edges(numbers: Floats, bins: int) -> Floats:
    """Ends of bins: half of them equally full, half by distinct values, so that a long thin tail is cut up, too."""
    if not len(numbers):
        return np.zeros(0)
    steps = np.arange(1, bins // 2 + 1) / (bins // 2 + 1)
    full = np.quantile(numbers, steps, method="inverted_cdf")
    spread = np.quantile(np.unique(numbers), steps, method="inverted_cdf")
    edges = np.unique(np.concatenate([full, spread]))
    return edges[edges < numbers.max()]


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
    sources = {name: source for name in (*names, target) if (source := _source(release, name, (*names, target)))}
    table = release.table
    return _training({name: plain(table[name]) for name in (*names, target)}, target, sources, bins)


def _source(release: Any, name: str, used: Sequence[str]) -> Source | None:
    """The values behind a perturbed column; columns that were perturbed together are not learned from together."""
    part = release.manifest.part_of(name)
    if part is None:
        return None
    both = [column for column in part.columns if column in used]
    if len(both) > 1:
        raise OptionError(
            f"This release perturbs {listing(both)} together, and a classifier takes columns for perturbed one by one. "
            f"Fix: name one of them, columns=[..], or publish with mechanism=Retention({{..}})."
        )
    (source,) = sources_of(release, [name])
    return source


def from_rows(X: Any, y: Any, bins: int) -> Training:
    """Training rows of originals."""
    table = as_table(X)
    target = _classes(y)
    if not table.num_columns:
        raise OptionError(NO_COLUMN)
    if len(target) != table.num_rows:
        raise RowsError(f"X has {table.num_rows:,} rows and y has {len(target):,}: they must be as many.")
    twice = [name for name, number in Counter(table.column_names).items() if number > 1]
    if twice:
        raise ColumnError(f"X has the columns {listing(twice)} more than once. Fix: give each a name of its own.")
    columns = {name: plain(table[name]) for name in table.column_names}
    name = "target"
    while name in columns:
        name += "_"
    return _training({**columns, name: target}, name, {}, bins)


def _training(columns: Mapping[str, pa.Array], target: str, sources: Mapping[str, Source], bins: int) -> Training:
    names = [name for name in columns if name != target]
    if not names:
        raise OptionError(NO_COLUMN)
    features = [feature_of(name, columns[name], sources.get(name), bins) for name in names]
    goal, classes = _target(target, columns[target], sources.get(target))
    if goal.weights is None and (classes == goal.size - 1).any():
        raise RowsError("The target is missing in some rows: y has NaN. Fix: remove those rows.")
    if goal.size - 1 < 2:
        raise RowsError(f"The target has {goal.size - 1} class: there is nothing to learn. Fix: rows of two classes.")
    return Training(tuple(feature for feature, _ in features), tuple(codes for _, codes in features), goal, classes)


def _target(name: str, column: pa.Array, source: Source | None) -> tuple[Feature, Codes]:
    known = pc.unique(column if source is None else source.values[name]).drop_null()
    if len(known) > MOST_CATEGORIES:
        raise ColumnError(f"The target {name!r} has {len(known):,} values: classes are at most {MOST_CATEGORIES:,}.")
    feature = Feature(name, None, in_order(known))
    if source is not None and source.values[name].null_count:
        raise TableError(f"The target {name!r} may be missing. Fix: publish without the rows in which it is.")
    return (feature, feature.codes(column)) if source is None else with_weights(feature, source)
