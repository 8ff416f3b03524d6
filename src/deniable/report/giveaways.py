"""What public columns give away, as a section of the owner's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.core.html import shown
from deniable.core.probability import percent
from deniable.report.evidence import Evidence
from deniable.report.page import Block, Section, Text
from deniable.report.tables import Kind, Table

ABOUT = (
    "How sure someone becomes of a person's value who has learnt from other people what goes with a public column, "
    "knows that column of the person and sees the person's row; and how sure they are without the row. A column that "
    "says nothing is not listed."
)

TENDENCY, FREQUENT = "a tendency, no rule", "how frequent values are"


def giveaways_section(evidence: Evidence) -> Section | None:
    """A table for each sensitive column that public columns say something about."""
    dependences = [] if evidence.audit is None else evidence.audit.get("dependence", [])
    blocks: list[Block] = [Text(ABOUT)] if dependences else []
    for one in dependences:
        blocks.append(_table(one))
    return Section("giveaways", "What public columns give away", tuple(blocks)) if blocks else None


def _table(dependence: Mapping[str, Any]) -> Table:
    columns: dict[str, Kind] = {
        "public column": "text",
        "explains": "share",
        "right": "share",
        "above rho2": "share",
        "above 90 %": "share",
        "right, no row": "share",
        "above 90 %, no row": "share",
        "because": "text",
    }
    known = {"column": "the frequencies alone", "explained": None, "function": None, **dependence["frequencies"]}
    rows = [_row(one) for one in (*dependence["columns"], known)]
    sample = (
        ""
        if dependence["rows"] == dependence["of"]
        else f" In a sample of {dependence['rows']:,} of {dependence['of']:,} rows."
    )
    error = percent(1.96 * (0.25 / max(dependence["frequencies"]["people"], 1)) ** 0.5)
    caption = f"About {shown(dependence['sensitive'])}; shares are accurate to {error}.{sample}"
    if dependence["frequencies"]["after"]["above_rho2"] is None:  # no rho2 is stated
        place = list(columns).index("above rho2")
        del columns["above rho2"]
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    return Table.of(caption, columns, rows)


def _row(one: Mapping[str, Any]) -> tuple[Any, ...]:
    after, before = one["after"], one["without"]
    return (
        one["column"],
        one["explained"],
        after["right"],
        after["above_rho2"],
        after["above_nearly"],
        before["right"],
        before["above_nearly"],
        one["function"] or (TENDENCY if one["explained"] is not None else FREQUENT),
    )
