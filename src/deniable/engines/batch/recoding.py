"""Recodings of a batch: the columns that an owner made coarser, as they will be published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import ColumnError, OptionError, TableError, no_column
from deniable.core.recode import Bands, Bottom, Calendar, Edges, Hierarchy, Prefix, Rare, Snap, Step, Steps, Top
from deniable.engines.base import Scan
from deniable.engines.batch.binning import numbers_in
from deniable.engines.batch.recoding_numbers import number_recoded, snapped
from deniable.engines.batch.values import column_type, in_words, is_number, is_text, other_way

SAID = (
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


def said_of(steps: Steps) -> tuple[str, ...]:
    """What recodings that look at other rows give away, for a release to say."""
    return tuple(
        SAID.format(
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
