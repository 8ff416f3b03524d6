"""Attacks that the audit played: how often each attacker is right, beside the guess that needs no release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from deniable.core.probability import percent
from deniable.report import charts
from deniable.report.evidence import Evidence, labels
from deniable.report.page import Figure, Note, Section, Text
from deniable.report.sections import stated_rho2
from deniable.report.tables import Kind, Table

ABOUT = (
    "Each attacker guessed people's values from the release and what they know, and was judged by the original table. "
    "Right more often than without the release means that the release helped them; the promise bounds how sure anyone "
    "becomes of one person from one release, not what many releases or other people's answers say."
)
REPEATED = "repeated publication"
ONCE = "Publish once, and a table that grows as a series."


def attacks_section(evidence: Evidence) -> Section | None:
    """A dot with its interval for each attack, a line where guessing without the release stands, and a table."""
    attacks = [] if evidence.audit is None else evidence.audit.get("attacks", [])
    if not attacks:
        return None
    tried = [attack for attack in attacks if attack["trials"]]
    columns: dict[str, Kind] = {
        "attack": "text",
        "right": "share",
        "from": "share",
        "to": "share",
        "without the release": "share",
        "guesses": "count",
        "who and what": "text",
    }
    rows = [_row(attack) for attack in attacks]
    table = Table.of("How often each attack is right, with 95 % intervals.", columns, rows)
    if not tried:
        return Section("attacks", "Attacks, played", (Text(ABOUT), table))
    points = [
        {"attack": name, **{key: attack[key] for key in ("success", "low", "high", "baseline")}}
        for name, attack in zip(labels([_name(attack) for attack in tried]), tried, strict=True)
    ]
    figure = Figure(
        "How often attackers are right",
        "Dots: the share of right guesses, with 95 % intervals. Upright lines: guessing the most frequent value, "
        "without the release. Dotted: rho2, what is promised about one belief.",
        partial(charts.attack_success, points, rho2=stated_rho2(evidence)),
        table,
    )
    return Section("attacks", "Attacks, played", (Text(ABOUT), *_above(tried, stated_rho2(evidence)), figure))


def _above(attacks: Sequence[Mapping[str, Any]], rho2: float | None) -> list[Note]:
    """A sentence about attackers whom the release helps to be right more often than rho2, and one about what never was:
    the same rows published many times."""
    if rho2 is None:
        return []
    above = [attack for attack in attacks if attack["low"] > max(rho2, attack["baseline"])]
    again = [
        Note("info", REPEATED, f"Right about {percent(attack['success'])} of the people {attack['note']}.", ONCE)
        for attack in above
        if attack["name"] == REPEATED
    ]
    names = [_name(attack) for attack in above if attack["name"] != REPEATED]
    if not names:
        return again
    text = (
        f"{', '.join(names)}: right more often than {percent(rho2)}. That does not break the promise, which is about "
        "someone who knows how frequent values are and nothing more; these know more, of public columns or of other "
        "people."
    )
    return [
        Note("caution", "attackers above rho2", text, "Coarsen or drop the columns they learn from, or lower rho2."),
        *again,
    ]


def _name(attack: Mapping[str, Any]) -> str:
    """Attacks of one kind are told apart by what their attacker knows."""
    known = str(attack["note"]).split(" ", 1)[0]
    return f"{attack['name']}, {known} known" if attack["name"].startswith("corruption") else str(attack["name"])


def _row(attack: Mapping[str, Any]) -> tuple[Any, ...]:
    trials = attack["trials"]
    figures = [attack[key] if trials else None for key in ("success", "low", "high")]
    return _name(attack), *figures, attack["baseline"], trials, attack["note"]
