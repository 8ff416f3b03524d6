"""Transforms of a batch: columns made coarser, numbers as intervals, lists as columns of yes and no."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import ColumnError, OptionError, TableError, no_column, option, shortened
from deniable.core.transforms import (
    EDGES_EPSILON,
    Bands,
    Bins,
    Bottom,
    Calendar,
    Edges,
    Hierarchy,
    Prefix,
    Rare,
    Snap,
    Step,
    Steps,
    Top,
    Unfolding,
)
from deniable.core.values import Bools, Floats, Ints, as_written
from deniable.tables.base import Scan
from deniable.tables.encoding import column_type, decoded, in_words, is_number, is_text, other_way

# -- Sensitive numbers as the labels of their bins ---------------------------------------------------------------------


WARNED = (
    "The bins of {column!r} are drawn near the quantiles of the table, and published: another key gives other bins. "
    "Give edges yourself to depend on nothing."
)
BINS_NOTE = (
    "The edges of the bins of {column!r} were drawn near the quantiles of the table, not by single rows: they let the "
    "odds of any belief about one person grow by a further factor of up to {factor:.3g} (epsilon {epsilon:g})."
)


def bins_note(column: str) -> str:
    """What drawn edges give away, for the release to say."""
    return BINS_NOTE.format(column=column, factor=math.exp(EDGES_EPSILON), epsilon=EDGES_EPSILON)


def require_numbers(columns: Sequence[str], schema: pa.Schema) -> None:
    """Refuse columns that are not there, or hold no numbers."""
    for column in columns:
        if column not in schema.names:
            raise ColumnError(no_column("bins", column, schema.names))
        kind = schema.field(column).type
        if not is_number(kind):
            raise ColumnError(
                f"bins: the column {column!r} holds {in_words(kind)}, and bins are for numbers. Fix: {other_way(kind)}."
            )


def binned_schema(schema: pa.Schema, bins: Mapping[str, Bins]) -> pa.Schema:
    """The columns' types, with text for the labels of bins."""
    return pa.schema([pa.field(field.name, pa.string()) if field.name in bins else field for field in schema])


def binned(batch: pa.RecordBatch, bins: Mapping[str, Bins]) -> pa.RecordBatch:
    """A batch with bins instead of numbers."""
    arrays = [
        _labelled(name, column, bins[name]) if name in bins else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=binned_schema(batch.schema, bins))


def numbers_in(values: pa.Array) -> Floats:
    """Numbers as floats of 64 bits, by the digits that they are written with, missing as NaN.

    Arrow's way from decimals to floats is off by a last digit at times, and 0.7 in 32 bits is below an edge of 0.7.
    """
    if pa.types.is_decimal(values.type) or pa.types.is_float32(values.type):
        values = values.cast(pa.string())
    numbers: Floats = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _labelled(column: str, values: pa.Array, bins: Bins) -> pa.Array:
    numbers = numbers_in(values)
    places = bins.places(numbers)
    outside = (places < 0) & ~np.isnan(numbers)
    if outside.any():
        raise TableError(
            f"The column {column!r} holds numbers outside its bins, which go from {bins.edges[0]:g} to "
            f"{bins.edges[-1]:g}. Fix: widen the first or the last bin."
        )
    return pa.array(bins.labels).take(pa.array(places, mask=places < 0))


# -- Recodings of numbers: bands, multiples and limits, by the decimals that people write ------------------------------


LARGEST_WHOLE = 2**62


def number_recoded(column: str, array: pa.Array, step: Bands | Edges | Snap | Top | Bottom) -> pa.Array:
    """A column of numbers after a step."""
    if isinstance(step, Bands | Edges):
        return _in_bands(column, array, step)
    return _snap(column, array, step) if isinstance(step, Snap) else _limited(array, step)


def _limited(array: pa.Array, step: Top | Bottom) -> pa.Array:
    kind, limit = array.type, pa.scalar(float(step.limit))
    if pa.types.is_decimal(kind):
        array = pa.array(numbers_in(array), mask=np.asarray(array.is_null()))
    elif pa.types.is_integer(kind):
        whole = np.iinfo(kind.to_pandas_dtype())
        limit = pa.scalar(min(max(int(step.limit), int(whole.min)), int(whole.max)), kind)
    return pc.if_else((pc.greater if isinstance(step, Top) else pc.less)(array, limit), limit, array)


def _snap(column: str, array: pa.Array, step: Snap) -> pa.Array:
    gone = np.asarray(array.is_null())
    if not pa.types.is_integer(array.type):
        return pa.array(snapped(numbers_in(array), step.grid), mask=gone)
    grid = int(step.grid)
    return pa.array((_whole(column, array) + grid // 2) // grid * grid, mask=gone)


def snapped(numbers: Floats, grid: float) -> Floats:
    """Multiples in decimals; so are halves, of which the larger is taken: 0.15 / 0.1 is less than 1.5."""
    return as_written(np.floor(np.round(numbers / grid, 9) + 0.5) * grid, grid)


def _whole(column: str, array: pa.Array) -> Ints:
    """Whole numbers, missing as 0, with room for what is added to them."""
    known = array.fill_null(0)
    if np.abs(numbers_in(known)).max(initial=0) > LARGEST_WHOLE:
        raise TableError(f"recode: {column!r} holds whole numbers beyond 2^62. Fix: top or bottom before.")
    numbers: Ints = known.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _in_bands(column: str, array: pa.Array, step: Bands | Edges) -> pa.Array:
    numbers = numbers_in(array)
    known = ~np.isnan(numbers)
    if np.isinf(numbers).any():
        raise TableError(f"recode: {column!r} holds infinite numbers, which no band holds. Fix: top before bands.")
    if isinstance(step, Edges):
        between = np.searchsorted(np.array(step.edges, np.float64), numbers, side="right")
        return pa.array(step.labels).take(pa.array(between, mask=~known))
    if pa.types.is_integer(array.type) and isinstance(step.width, int) and isinstance(step.start, int):
        places: Ints = (_whole(column, array) - step.start) // step.width
    else:
        places = _floored(np.where(known, numbers, step.start), step)
    used, own = np.unique(places, return_inverse=True)
    return pa.array([step.label(int(place)) for place in used], pa.string()).take(pa.array(own, mask=~known))


def _floored(numbers: Floats, step: Bands) -> Ints:
    """The band of each number, by the edges that its label prints: 0.3 lies in [0.3, 0.4), whatever 0.3 / 0.1 is."""
    places = np.floor((numbers - step.start) / step.width)
    if np.abs(places).max(initial=0) > LARGEST_WHOLE:
        raise OptionError(f"bands of {step.width:g} are too narrow for these numbers. Fix: a larger width.")
    used, own = np.unique(places, return_inverse=True)
    low, high = (np.array([step.edge(int(place) + more) for place in used], np.float64)[own] for more in (0, 1))
    moved = _reaches(numbers, high).astype(np.int64) - ~_reaches(numbers, low)
    return places.astype(np.int64) + moved


def _reaches(numbers: Floats, edges: Floats) -> Bools:
    """Whether numbers are at an edge or above it, in the 15 digits that it is printed with."""
    reached: Bools = numbers >= edges - 1e-15 * np.abs(edges)
    return reached


# -- Recodings of a batch: the columns that an owner made coarser, as they will be published ---------------------------


RARE_NOTE = (
    "Which values of {column!r} are read as {into} depends on the table: those that fewer than {below:,} rows "
    "have{also}. That a value is shown says that so many rows have it."
)
JOINED = ", and the next rarest where these are too few together"


@dataclass(frozen=True, eq=False)
class Kept:
    """``Rare``, resolved for a table: every value but these becomes ``into``."""

    values: pa.Array
    into: str | None


Resolved = Step | Kept
Plans = Mapping[str, tuple[Resolved, ...]]


def resolved(steps: Steps, schema: pa.Schema, counted: Callable[[str, tuple[Resolved, ...]], Scan]) -> Plans:
    """Steps that a worker can take without seeing other rows; ``counted`` scans a column after its first steps.

    Columns that are not there, and steps that do not fit the type of their column, are refused before anything is read.
    """
    for column in steps:
        if column not in schema.names:
            raise ColumnError(no_column("recode", column, schema.names))
        types = [schema.field(column).type]
        for step in steps[column]:
            types.append(recoded_type(column, types[-1], step))
    plans: dict[str, tuple[Resolved, ...]] = {}
    for column, chosen in steps.items():
        taken: tuple[Resolved, ...] = ()
        for step in chosen:
            taken = (*taken, _kept(step, counted(column, taken)) if isinstance(step, Rare) else step)
        plans[column] = taken
    return plans


def rare_note(steps: Steps) -> tuple[str, ...]:
    """What recodings that look at other rows give away, for a release to say."""
    return tuple(
        RARE_NOTE.format(
            column=column,
            into="missing" if step.into is None else f"'{step.into}'",
            below=step.below,
            also="" if step.into is None else JOINED,
        )
        for column, chosen in steps.items()
        for step in chosen
        if isinstance(step, Rare)
    )


def recoded_schema(schema: pa.Schema, plans: Plans) -> pa.Schema:
    """The columns' types after recoding."""
    fields = []
    for field in schema:
        kind = field.type
        for step in plans.get(field.name, ()):
            kind = recoded_type(field.name, kind, step)
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def recoded(batch: pa.RecordBatch, plans: Plans) -> pa.RecordBatch:
    """A batch with its columns recoded."""
    schema = recoded_schema(batch.schema, plans)
    arrays = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        for step in plans.get(name, ()):
            array = _taken(name, array, step).cast(recoded_type(name, array.type, step))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def recoded_type(column: str, kind: pa.DataType, step: Resolved) -> pa.DataType:
    """The type of a column after a step; a ``ColumnError`` where the step does not fit it."""
    t = pa.types
    if t.is_dictionary(kind):
        return recoded_type(column, kind.value_type, step)
    if isinstance(step, Bands | Edges | Top | Bottom | Snap):
        if not is_number(kind):
            raise _unfit(column, kind, step, "numbers")
        whole = [getattr(step, name, 0) for name in ("limit", "grid")]
        if t.is_integer(kind) and not all(float(number).is_integer() for number in whole):
            raise OptionError(f"recode: {column!r} holds whole numbers, and {step.kind} has another. Fix: round it.")
        if isinstance(step, Bands | Edges):
            return pa.string()
        if isinstance(step, Snap):  # a multiple of the grid need not fit a narrower type
            return pa.int64() if t.is_integer(kind) else pa.float64()
        _require_fits(column, kind, step)
        return pa.float64() if t.is_decimal(kind) else kind
    if isinstance(step, Calendar):
        if not (t.is_date(kind) or t.is_timestamp(kind)):
            raise _unfit(column, kind, step, "dates")
        return pa.int64() if step.unit == "year" else pa.string()
    if isinstance(step, Prefix) and t.is_integer(kind) and step.pad is None:
        raise OptionError(
            f"recode: {column!r} holds whole numbers, whose first {step.length} digits mean different things. Fix: say "
            f"how many digits they have, prefix({step.length}, pad=5); on the command line prefix:{step.length}:5."
        )
    if isinstance(step, Prefix | Hierarchy):
        if not (is_text(kind) or t.is_integer(kind) or (t.is_boolean(kind) and isinstance(step, Hierarchy))):
            raise _unfit(column, kind, step, "texts or whole numbers")
        return pa.string()
    into = step.into  # Rare
    if into is not None and not is_text(kind):
        raise OptionError(
            f"rare: {column!r} holds {kind}, which has no place for {into!r}. Fix: recode it into bands before, or let "
            "its rare values be missing, into=None."
        )
    return column_type(column, kind)


def _require_fits(column: str, kind: pa.DataType, step: Top | Bottom) -> None:
    """Refuse a limit that stands for other numbers, and is none of the column's type."""
    if not pa.types.is_integer(kind):
        return
    whole = np.iinfo(kind.to_pandas_dtype())
    if step.limit < whole.min if isinstance(step, Top) else step.limit > whole.max:
        raise OptionError(
            f"recode: {step.kind}:{step.limit} does not fit the column {column!r}, whose type {kind} holds {whole.min} "
            f"to {whole.max}. Fix: another limit, or convert the column to int64."
        )


def fits(values: pa.Array, step: Step) -> bool:
    """Whether a published column can be what the last step of its recoding gives; ``values`` are its distinct ones."""
    known = values.drop_null()
    if isinstance(step, Bands):
        return all(_is_band(text, step) for text in known.to_pylist())
    if isinstance(step, Edges):
        return {*known.to_pylist()} <= {*step.labels}
    if isinstance(step, Prefix):
        return not len(known) or pc.max(pc.utf8_length(known)).as_py() <= step.length
    if isinstance(step, Top | Bottom):
        compared = pc.less_equal if isinstance(step, Top) else pc.greater_equal
        return bool(pc.all(compared(known, step.limit), min_count=0).as_py())
    if isinstance(step, Snap):
        numbers = numbers_in(known)
        return bool((np.abs(numbers - snapped(numbers, step.grid)) <= 1e-9 * np.maximum(np.abs(numbers), 1)).all())
    if isinstance(step, Hierarchy):
        return {*known.to_pylist()} <= {*step.categories}
    if isinstance(step, Calendar) and step.unit != "year":
        form = "^-?[0-9]{4,}-(Q[1-4])$" if step.unit == "quarter" else "^-?[0-9]{4,}-(0[1-9]|1[0-2])$"
        return bool(pc.all(pc.match_substring_regex(known, form), min_count=0).as_py())
    return True


def _is_band(label: str, step: Bands) -> bool:
    try:
        first = label[1:].partition(",")[0]
        if first.removeprefix("-").isdecimal() and isinstance(step.width, int) and isinstance(step.start, int):
            return step.label((int(first) - step.start) // step.width) == label
        return step.label(round((float(first) - step.start) / step.width)) == label
    except (ValueError, OverflowError):
        return False


def _taken(column: str, array: pa.Array, step: Resolved) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if isinstance(step, Kept):
        known = array.cast(step.values.type)
        shown = pc.is_in(known, value_set=step.values)
        return pc.if_else(shown, known, pa.scalar(step.into, known.type))
    if isinstance(step, Calendar):
        return _calendar(array, step.unit)
    if isinstance(step, Prefix):
        text = array.cast(pa.string())
        if step.pad is not None:
            _require_digits(column, text, step.pad if pa.types.is_integer(array.type) else None)
        padded = text if step.pad is None else pc.utf8_lpad(text, width=step.pad, padding="0")
        return pc.utf8_slice_codeunits(padded, 0, step.length)
    if isinstance(step, Hierarchy):
        return _mapped(column, array, step)
    assert not isinstance(step, Rare), "resolved before"
    return number_recoded(column, array, step)


def _calendar(array: pa.Array, unit: str) -> pa.Array:
    years = pc.year(array)
    if unit == "year":
        return years
    text = pc.utf8_lpad(years.cast(pa.string()), width=4, padding="0")
    if unit == "quarter":
        return pc.binary_join_element_wise(text, pc.quarter(array).cast(pa.string()), "-Q")
    return pc.binary_join_element_wise(text, pc.utf8_lpad(pc.month(array).cast(pa.string()), width=2, padding="0"), "-")


def _require_digits(column: str, text: pa.Array, most: int | None) -> None:
    """Refuse what has no prefix of so many digits: negative numbers, and whole numbers of more than ``most`` digits."""
    if pc.any(pc.starts_with(text, "-"), min_count=0).as_py():
        raise TableError(f"recode: {column!r} holds negative numbers, whose first digits are no prefix. Fix: bands.")
    if most is not None and (pc.max(pc.utf8_length(text)).as_py() or 0) > most:
        raise TableError(f"recode: {column!r} holds numbers of more than pad = {most} digits. Fix: a larger pad.")


def _mapped(column: str, array: pa.Array, step: Hierarchy) -> pa.Array:
    text = array.cast(pa.string())
    leaves, categories = (pa.array(side, pa.string()) for side in zip(*step.map, strict=True))
    if pa.types.is_boolean(array.type):
        leaves = pc.utf8_lower(leaves)  # Arrow writes true, Python True
    places = pc.index_in(text, value_set=leaves)
    unknown = pc.and_(places.is_null(), text.is_valid())
    if pc.any(unknown, min_count=0).as_py():
        if step.other is None:
            raise TableError(
                f"recode: {column!r} holds values that its hierarchy does not list. Fix: list every value, or say what "
                "the others become, hierarchy(.., other='other')."
            )
        return pc.if_else(unknown, pa.scalar(step.other), categories.take(places))
    return categories.take(places)


def _kept(step: Rare, scan: Scan) -> Kept:
    """The values that stay. The others have a name: together they are as many rows as a value must have, or none."""
    counts = scan.histogram.counts
    kind = scan.encoder.types[0]
    values = scan.encoder.values[0]
    rare = (counts < step.below) & (counts > 0)
    together = int(counts[rare].sum()) if step.into is not None else 0
    for place in np.argsort(counts, kind="stable"):
        if not 0 < together < step.below:
            break
        if not rare[place]:
            rare[place] = True
            together += int(counts[place])
    return Kept(values.filter(pa.array(~rare)).cast(kind), step.into)


def _unfit(column: str, kind: pa.DataType, step: Step, wanted: str) -> ColumnError:
    held, named = in_words(kind), step.unit if isinstance(step, Calendar) else step.kind
    return ColumnError(
        f"recode: {named} is for {wanted}, and the column {column!r} holds {held}. Fix: {other_way(kind, wanted)}."
    )


# -- Columns of lists as columns of yes and no, one for each item; pure functions of a batch ---------------------------


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
