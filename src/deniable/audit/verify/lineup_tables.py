"""The table of line-ups beside rows that show codes, against the design, which is walked through once more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deniable.audit.verify.checks import Check
from deniable.audit.verify.lineups import code_rows
from deniable.core.part import Part


def table_columns(part: Part) -> tuple[str, ...]:
    """The columns of the table: ranges of codes by arcs, the blocks themselves by blocks."""
    assert part.lineups is not None
    return ("block", "place") if "size" in part.lineups.integers() else ("value", "first", "last")


def table_check(part: Part, rows: Iterable[tuple[Any, ...]]) -> Check:
    """Whether the table of line-ups beside the rows says what the design says."""
    assert part.lineups is not None
    if "value" in table_columns(part):
        known = {value: place for place, value in enumerate(part.domain)}
        rows = ((known.get(value, -1), *codes) for value, *codes in rows)
    listed = sorted(rows)
    same = listed == code_rows(part.lineups.integers())
    detail = f"{len(listed):,} rows, those of the design" if same else "says something else than the design"
    return Check("table of line-ups", same, detail)
