"""The type of each CSV column, decided from all of its values.

A type is taken only if writing its values back would lose nothing that matters: codes with leading zeros, numbers with
more digits than a float holds, and times with a zone stay strings.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_INTEGER = r"^-?(0|[1-9][0-9]{0,18})$"
_FLOAT = r"^(-?(0|[1-9][0-9]{0,14})?(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|nan|NaN|-?inf)$"
_HAS_DIGIT_OR_WORD = r"^(-?\.?[0-9].*|nan|NaN|-?inf)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
# What stays text, though its owner takes it for numbers or dates: 1090,50 and 1.090,50; 19.12.2024 and 12/19/2024.
_DECIMAL_COMMA = r"^-?((0|[1-9][0-9]{0,14})(,[0-9]+)?|[1-9][0-9]{0,2}(\.[0-9]{3})+,[0-9]+)$"
_LOCAL_DATE = r"^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"

# In order of preference; the first that fits every value of the column wins.
_CANDIDATES: tuple[tuple[pa.DataType, tuple[str, ...]], ...] = (
    (pa.int64(), (_INTEGER,)),
    (pa.float64(), (_FLOAT, _HAS_DIGIT_OR_WORD)),
    (pa.bool_(), (_BOOLEAN,)),
    (pa.date32(), (_DATE,)),
    (pa.timestamp("us"), (_TIME,)),
    (pa.string(), (_DECIMAL_COMMA,)),
    (pa.string(), (_LOCAL_DATE,)),
)
_SAID = {
    _DECIMAL_COMMA: "numbers with a comma, which are read as texts: they cannot be added up or averaged, and are "
    "compared letter by letter. Fix: write them with a point, such as 1090.5.",
    _LOCAL_DATE: "dates that are read as texts: they have no month or year, and are compared letter by letter. Fix: "
    "write them as 2024-12-31.",
}


class TypeInference:
    """Narrows the candidate types of each column, one block of strings after the other."""

    def __init__(self, names: Sequence[str]) -> None:
        self._open = {name: list(range(len(_CANDIDATES))) for name in names}
        self._seen = dict.fromkeys(names, False)

    def update(self, block: pa.RecordBatch) -> None:
        """Strike out the types that some value of this block does not fit."""
        for name, column in zip(block.schema.names, block.columns, strict=True):
            left = self._open[name]
            if not left or column.null_count == len(column):
                continue
            self._seen[name] = True
            # One value is enough to strike out most types; only what survives it needs all distinct values.
            first = column.drop_null()[:1]
            left = [index for index in left if _fits(first, index)]
            if left:
                values = pc.unique(column).drop_null()
                left = [index for index in left if _fits(values, index)]
            self._open[name] = left

    def types(self) -> dict[str, pa.DataType]:
        """The type of each column; string where nothing narrower fits, or where every value is missing."""
        return {
            name: _CANDIDATES[left[0]][0] if left and self._seen[name] else pa.string()
            for name, left in self._open.items()
        }

    def said(self) -> dict[str, list[str]]:
        """What an owner should know of columns that are read as texts, and look as if they held numbers or dates."""
        first = {name: _CANDIDATES[left[0]][1][0] for name, left in self._open.items() if left and self._seen[name]}
        return {
            name: [f"The column {name!r} holds {_SAID[pattern]}"] for name, pattern in first.items() if pattern in _SAID
        }


def _fits(values: pa.Array, index: int) -> bool:
    dtype, patterns = _CANDIDATES[index]
    if not all(pc.all(pc.match_substring_regex(values, pattern)).as_py() for pattern in patterns):
        return False
    try:
        values.cast(dtype)
    except pa.ArrowInvalid:
        return False
    return True
