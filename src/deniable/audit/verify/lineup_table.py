"""The table of line-ups beside rows that show codes, compared with the design, which is walked through once more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deniable.audit.verify.checks import Check
from deniable.audit.verify.lineups import code_ranges
from deniable.core.lineup import design_dict
from deniable.core.part import Part


def table_check(part: Part, rows: Iterable[tuple[Any, Any, Any]]) -> Check:
    """Whether the table of line-ups beside the rows says what the design says: (value, first code, last code)."""
    assert part.lineups is not None
    known = {value: place for place, value in enumerate(part.domain)}
    listed = sorted((known.get(value, -1), first, last) for value, first, last in rows)
    same = listed == code_ranges(design_dict(part.lineups))
    detail = f"{len(listed):,} ranges of codes, those of the design" if same else "says something else than the design"
    return Check("table of line-ups", same, detail)
