"""The functions of SQL that can be computed from values, each with what Arrow calls it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.sql.literals import Node, is_literal, literal, shown

Combine = Callable[[list[pa.Array]], pa.Array]
Computed = tuple[list[Node], Combine]  # what is computed from, and how
Made = Callable[[Node], Computed]


def _whole(node: Node, what: str) -> int:
    value = literal(node) if is_literal(node) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise QuestionError(f"{shown(node)}: {what} is a whole number, written out.")
    return value


def _text(node: Node, what: str) -> str:
    value = literal(node) if is_literal(node) else None
    if not isinstance(value, str):
        raise QuestionError(f"{shown(node)}: {what} is a text in single quotes.")
    return value


def _plain(function: Callable[[pa.Array], pa.Array]) -> Made:
    return lambda node: ([node.this], lambda a: function(a[0]))


def _substring(node: Node) -> Computed:
    start = _whole(node.args["start"], "the place where SUBSTR begins") if node.args.get("start") else 1
    length = None if node.args.get("length") is None else _whole(node.args["length"], "the length of SUBSTR")
    if start < 1 or (length is not None and length < 0):
        raise QuestionError(f"{shown(node)}: SUBSTR begins at place 1 or later, and takes 0 letters or more.")
    stop = None if length is None else start - 1 + length
    return [node.this], lambda a: pc.utf8_slice_codeunits(a[0], start - 1, stop)


def _left(node: Node) -> Computed:
    number = _letters(node)
    return [node.this], lambda a: pc.utf8_slice_codeunits(a[0], 0, number)


def _right(node: Node) -> Computed:
    number = _letters(node)
    if number == 0:
        return [node.this], lambda a: pc.utf8_slice_codeunits(a[0], 0, 0)
    return [node.this], lambda a: pc.utf8_slice_codeunits(a[0], -number)


def _letters(node: Node) -> int:
    number = _whole(node.expression, "how many letters")
    if number < 0:
        raise QuestionError(f"{shown(node)}: how many letters is 0 or more.")
    return number


def _joined(node: Node) -> Computed:
    """a || b is missing where one is; CONCAT leaves what is missing out."""
    inner = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]

    def join(arrays: list[pa.Array]) -> pa.Array:
        texts = [array.cast(pa.string()) for array in arrays]
        if isinstance(node, exp.Concat):
            texts = [text.fill_null("") for text in texts]
        return pc.binary_join_element_wise(*texts, "")

    return list(inner), join


def _replace(node: Node) -> Computed:
    old, new = _text(node.expression, "what REPLACE looks for"), _text(node.args["replacement"], "the replacement")
    return [node.this], lambda a: pc.replace_substring(a[0], old, new)


def _with_text(function: Callable[[pa.Array, str], pa.Array], what: str) -> Made:
    def made(node: Node) -> Computed:
        text = _text(node.expression, what)
        return [node.this], lambda a: function(a[0], text)

    return made


PARTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "DAY": pc.day,
    "DOW": lambda values: pc.day_of_week(values, count_from_zero=True, week_start=7),
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
}


def _part(name: str) -> Made:
    return lambda node: ([_date(node.this)], lambda a: PARTS[name](a[0]))


def _date(node: Node) -> Node:
    """The parser wraps the argument of DAYOFWEEK and the like into a cast of its own."""
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _extract(node: Node) -> Computed:
    name = str(node.this.name).upper()
    if name not in PARTS:
        raise QuestionError(f"{shown(node)}: EXTRACT takes {', '.join(PARTS)}.")
    return [node.expression], lambda a: PARTS[name](a[0])


def _truncated(node: Node) -> Computed:
    unit = str(node.args["unit"].name).lower()
    if unit not in ("year", "quarter", "month", "week", "day", "hour", "minute"):
        raise QuestionError(f"{shown(node)}: DATE_TRUNC to year, quarter, month, week, day, hour or minute.")
    return [node.this], lambda a: pc.floor_temporal(a[0], unit=unit)


def _round(node: Node) -> Computed:
    digits = 0 if node.args.get("decimals") is None else _whole(node.args["decimals"], "how many decimals")
    return [node.this], lambda a: pc.round(a[0], digits, round_mode="half_towards_infinity")


def _divided(arrays: list[pa.Array]) -> pa.Array:
    above, below = (array.cast(pa.float64()) for array in arrays)
    return pc.divide(above, pc.if_else(pc.equal(below, 0.0), pa.scalar(None, pa.float64()), below))


def _whole_division(arrays: list[pa.Array]) -> pa.Array:
    """Towards zero, as DuckDB divides whole numbers; of others it says a / b, and other databases its floor."""
    if not all(pa.types.is_integer(array.type) or pa.types.is_null(array.type) for array in arrays):
        raise QuestionError("a // b divides whole numbers, and these are not. Fix: FLOOR(a / b).")
    above, below = (array.cast(pa.int64()) for array in arrays)
    return pc.divide(above, pc.if_else(pc.equal(below, 0), pa.scalar(None, pa.int64()), below))


def _remainder(arrays: list[pa.Array]) -> pa.Array:
    """With the sign of what is divided."""
    whole = all(pa.types.is_integer(array.type) for array in arrays)
    kind = pa.int64() if whole else pa.float64()
    above, below = (array.cast(kind) for array in arrays)
    missing = np.asarray(pc.or_kleene(pc.equal(below, 0), pc.or_(above.is_null(), below.is_null())).fill_null(True))
    one, other = (array.fill_null(1).to_numpy(zero_copy_only=False) for array in (above, below))
    return pa.array(np.fmod(one, np.where(other == 0, 1, other)), kind, mask=missing)


def _both(function: Combine) -> Made:
    return lambda node: ([node.this, node.expression], function)


def _several(function: Callable[..., pa.Array]) -> Made:
    return lambda node: ([node.this, *node.expressions], lambda a: function(*a))


def _coalesce(*arrays: pa.Array) -> pa.Array:
    kind = next((array.type for array in arrays if not pa.types.is_null(array.type)), pa.null())
    return pc.coalesce(*(array.cast(kind) if pa.types.is_null(array.type) else array for array in arrays))


def _nullif(arrays: list[pa.Array]) -> pa.Array:
    equal = pc.equal(*arrays).fill_null(False)
    return pc.if_else(equal, pa.scalar(None, arrays[0].type), arrays[0])


def _positive(function: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """Of numbers; where there is no result, missing."""

    def computed(values: pa.Array) -> pa.Array:
        result = function(values.cast(pa.float64()))
        return pc.if_else(pc.is_finite(result), result, pa.scalar(None, pa.float64()))

    return computed


FUNCTIONS: dict[type, tuple[str, Made]] = {
    exp.Lower: ("LOWER", _plain(pc.utf8_lower)),
    exp.Upper: ("UPPER", _plain(pc.utf8_upper)),
    exp.Length: ("LENGTH", _plain(lambda values: pc.utf8_length(values).cast(pa.int64()))),
    exp.Trim: ("TRIM", _plain(lambda values: pc.utf8_trim(values, " "))),
    exp.Substring: ("SUBSTR", _substring),
    exp.Left: ("LEFT", _left),
    exp.Right: ("RIGHT", _right),
    exp.Concat: ("CONCAT", _joined),
    exp.DPipe: ("||", _joined),
    exp.Replace: ("REPLACE", _replace),
    exp.StartsWith: ("STARTS_WITH", _with_text(pc.starts_with, "the beginning")),
    exp.Contains: ("CONTAINS", _with_text(pc.match_substring, "what CONTAINS looks for")),
    exp.Year: ("YEAR", _part("YEAR")),
    exp.Quarter: ("QUARTER", _part("QUARTER")),
    exp.Month: ("MONTH", _part("MONTH")),
    exp.Week: ("WEEK", _part("WEEK")),
    exp.Day: ("DAY", _part("DAY")),
    exp.DayOfWeek: ("DAYOFWEEK", _part("DOW")),
    exp.Extract: ("EXTRACT", _extract),
    exp.TimestampTrunc: ("DATE_TRUNC", _truncated),
    exp.DateTrunc: ("DATE_TRUNC", _truncated),
    exp.Abs: ("ABS", _plain(pc.abs)),
    exp.Floor: ("FLOOR", _plain(pc.floor)),
    exp.Ceil: ("CEIL", _plain(pc.ceil)),
    exp.Round: ("ROUND", _round),
    exp.Sqrt: ("SQRT", _plain(_positive(pc.sqrt))),
    exp.Ln: ("LN", _plain(_positive(pc.ln))),
    exp.Exp: ("EXP", _plain(_positive(pc.exp))),
    exp.Pow: ("POWER", _both(lambda a: pc.power(a[0].cast(pa.float64()), a[1].cast(pa.float64())))),
    exp.Div: ("/", _both(_divided)),
    exp.IntDiv: ("//", _both(_whole_division)),
    exp.Mod: ("%", _both(_remainder)),
    exp.Coalesce: ("COALESCE", _several(_coalesce)),
    exp.Greatest: ("GREATEST", _several(pc.max_element_wise)),
    exp.Least: ("LEAST", _several(pc.min_element_wise)),
    exp.Nullif: ("NULLIF", _both(_nullif)),
}
NAMES = sorted({name for name, _ in FUNCTIONS.values() if name.isalpha() or "_" in name})
