"""The page for the data protection officer: what is given away, what that does to a person, what was decided, and who
approved. One page in plain words; the long report stands behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from deniable.core.errors import listing
from deniable.core.manifest import Manifest
from deniable.core.text import shown
from deniable.core.transforms import said
from deniable.core.values import percent
from deniable.owner.assessment import Audit
from deniable.owner.decision import FIRST, MAY, MUST_NOT, Decision
from deniable.owner.project import Project
from deniable.owner.proposals import exact_alone
from deniable.owner.roles import Columns, runs_of
from deniable.report.page import Block, Bullets, Document, Facts, Folded, Grade, Note, Section, Text
from deniable.report.tables import Kind, Table
from deniable.tables import engine_named
from deniable.tables.encoding import is_askable

NAMED = 8  # columns
LIMITS = 5  # lines about what is not protected
HEADS: dict[str, str] = {
    MAY: "This file may be given away",
    FIRST: "Something is to be decided before this file is given away",
    MUST_NOT: "This file must not be given away",
}
GRADES: dict[str, Grade] = {MAY: "good", FIRST: "caution", MUST_NOT: "serious"}
BLANK = "______________________"
HUNCH = 0.1  # what somebody may believe of a person beforehand
WORDS = (
    "Public columns are those that are given away as they are, or coarser. The sensitive ones are changed by chance in "
    "every row, so that no row proves what is true of its person, while counts over many rows stay right on average. "
    "The release is the file that is given away, with its description."
)


def statement(table: Any, manifest: Manifest, audited: Audit, project: Project | None = None) -> Document:
    """The page.

    Args:
        table: that was published, as given to ``publish``; some of its rows are read.
        manifest: of the release.
        audited: the audit of the release.
        project: of the table, with what its owner decided and who approved.
    """
    decision = audited.decision if project is None else audited.decision.with_decisions(project.decisions)
    columns = _columns(table)
    sections = (
        Section("decision", "The decision", _decided(decision)),
        Section("given-away", "What is given away", _given_away(manifest, columns)),
        Section("people", "What that does to a person", _before_and_after(manifest, audited, columns)),
        Section("limits", "What nothing is promised about", (Bullets(_limits(manifest)),)),
        Section("approval", "Who approved", _approved(project)),
    )
    return Document(
        "owner",
        HEADS[decision.verdict],
        f"{shown(manifest.name)}: {manifest.rows:,} rows about people, for the data protection officer.",
        sections,
        "It holds figures of the original table: keep it to yourself. The figures behind it: deniable report RELEASE "
        "--original TABLE.",
    )


def _columns(table: Any) -> Columns:
    dataset = engine_named("local").open(table)
    return Columns(runs_of(dataset, [name for name in dataset.names if name]))


def _decided(decision: Decision) -> tuple[Block, ...]:
    """The verdict, what is open, what the owner means to be so, and what was looked at."""
    blocks: list[Block] = [Note(GRADES[decision.verdict], decision.headline, "")]
    if decision.open:
        blocks.append(Bullets(tuple(point.says for point in decision.open)))
    meant = [point for point in decision.points if point.accepted]
    if meant:
        rows = [(point.part, point.figure, point.accepted) for point in meant]
        columns: dict[str, Kind] = {"what": "text", "figure": "text", "why it is meant so": "text"}
        blocks.append(Table.of("Decided by the owner.", columns, rows))
    fine = tuple(point.says for point in decision.points if point.grade == "fine")
    blocks.append(Folded(f"What was looked at and is fine ({len(fine)})", (Bullets(fine),)))
    return tuple(blocks)


def _given_away(manifest: Manifest, columns: Columns) -> tuple[Block, ...]:
    """Which columns, and how."""
    public = manifest.public_columns
    coarser = [f"{name} ({said(manifest.recoded[name])})" for name in public if name in manifest.recoded]
    as_they_are = [name for name in public if name not in manifest.recoded]
    published = {*public, *manifest.sensitive_columns}
    left_out = [name for name in columns.rows.column_names if name not in published]
    lines = (
        f"Sensitive, and changed by chance in every row: {_names(manifest.sensitive_columns)}.",
        f"Public, and made coarser: {_names(coarser)}.",
        f"Public, as they are: {_names(as_they_are)}.",
        f"Not given away: {_names(left_out)}.",
    )
    return (Text(WORDS), Bullets(lines))


def _names(names: Sequence[str]) -> str:
    return listing([shown(name) for name in names], NAMED).replace("'", "") if names else "none"


def _before_and_after(manifest: Manifest, audited: Audit, columns: Columns) -> tuple[Block, ...]:
    """What someone learns of a person from the table as it is, and from the file that is given away."""
    facts = [_promised(manifest)]
    for one in audited.dependence:
        informed = one.columns[-1].informed
        if one.rho2 is None or not 0 <= informed.after.above_rho2 <= 1:
            continue
        if any(part.learned is not None and one.sensitive == ", ".join(part.columns) for part in manifest.parts):
            continue
        facts.append(
            (
                f"People of whom somebody is surer than that who has learnt from others which {one.sensitive} goes "
                "with what else is in a row",
                percent(informed.after.above_rho2),
                f"before: 100 % with the table as it is, {percent(informed.before.above_rho2)} without any file",
            )
        )
    known = [name for name in columns.rows.column_names if is_askable(columns.rows[name].type)]
    names = [name for name in known if name not in manifest.sensitive_columns]
    before = exact_alone([columns.encoded(name).codes for name in names]) if names else 0.0
    after = next((point.figure for point in audited.decision.points if point.part == "rows alone"), "") or "0 %"
    sample = "" if columns.rows.num_rows >= manifest.rows else f" (in {columns.rows.num_rows:,} of the rows)"
    facts.append((f"Rows with whose public columns nobody else is{sample}", after, f"before: {percent(before)}"))
    return (Facts(tuple(facts)),)


def _promised(manifest: Manifest) -> tuple[str, str, str]:
    """The promise, without a term of the trade."""
    guarantee = manifest.guarantee
    about = f"Surest that somebody becomes of a person's {_names(manifest.sensitive_columns)}, who finds the row"
    before = "before: 100 %, who finds the row reads it"
    if guarantee["rho2"] is None:
        if guarantee["epsilon"] is None:
            return about, "100 %", f"nothing is promised; {before}"
        sure = float(belief_grown(HUNCH, guarantee["epsilon"]))
        return about, percent(sure), f"whatever else they know, who was at most {percent(HUNCH)} sure; {before}"
    rho2 = percent(Fraction(guarantee["rho2"]))
    if guarantee["adversary"] != "any-prior":
        return about, rho2, f"who knows how frequent each value is, and nothing else; {before}"
    rho1 = guarantee["rho1"]
    unless = "" if rho1 is None else f", who was at most {percent(Fraction(rho1))} sure"
    return about, rho2, f"whatever else they know{unless}; {before}"


def belief_grown(belief: float, epsilon: float) -> float:
    """What a belief becomes at most when its odds are multiplied by e^epsilon.

    >>> round(belief_grown(0.1, 0.0), 3), round(belief_grown(0.5, 1.0), 3)
    (0.1, 0.731)
    """
    odds = belief / (1 - belief) * math.exp(epsilon)
    return odds / (1 + odds)


def _limits(manifest: Manifest) -> tuple[str, ...]:
    lines = manifest.guarantee["not_protected"]
    more = len(lines) - LIMITS
    return (*lines[:LIMITS], *([f"{more} more, in README.md of the release."] if more > 0 else []))


def _approved(project: Project | None) -> tuple[Block, ...]:
    """Who did, or lines to sign."""
    given = () if project is None else project.approvals
    rows = [(one.by, one.date, one.note) for one in given] or [(BLANK, BLANK, BLANK)] * 2
    kinds: dict[str, Kind] = {"name": "text", "date": "text", "note": "text"}
    caption = "Approved." if given else "To be signed."
    return (Text("Whoever signs has read the decision above."), Table.of(caption, kinds, rows))
