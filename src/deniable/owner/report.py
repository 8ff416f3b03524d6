"""The owner's report: privacy first. It may hold facts about the original table, and is never part of a release."""

from __future__ import annotations

import datetime
import hashlib
import platform
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from deniable.analyst import report as sections
from deniable.analyst.evidence import Evidence, json_key, labels, not_compared, not_drawn, true_counts
from deniable.analyst.report import stated_rho2
from deniable.core.histogram import SELECTIVITIES
from deniable.core.promise import Cells
from deniable.core.text import shown
from deniable.core.transforms import said
from deniable.core.values import percent
from deniable.owner.decision import FIRST, MAY, MUST_NOT, Point, decision_of, options_of, point_of, quoted
from deniable.owner.evaluation import measured_blocks
from deniable.report import charts
from deniable.report.page import Block, Bullets, Document, Facts, Figure, Grade, Heading, Note, Section, Text
from deniable.report.tables import Kind, Table

# -- The verdict of the owner's report: the decision of the audit, and the certificate ---------------------------------


def verdict_section(evidence: Evidence) -> Section:
    """One sentence, then what is to be decided."""
    grade, head, reasons = verdict(evidence)
    listed: tuple[Block, ...] = (Bullets(tuple(reasons)),) if reasons else ()
    return Section("verdict", "Verdict", (Note(grade, head, ""), *listed))


def verdict(evidence: Evidence) -> tuple[Grade, str, list[str]]:
    """How bad the worst is, the verdict in a sentence, and what is to be decided, each with its fix."""
    audited = None if evidence.audit is None else evidence.audit.get("decision")
    if audited is None:
        points = [Point("audit", "decide", "It was not audited: there was no original table (--original FILE).")]
        if evidence.manifest.randomness.source == "seed":
            points.append(Point("seed", "never", "Its draws come from a seed: whoever has it can undo the release."))
    else:
        points = [point_of(raw) for raw in (*audited["decisions"], *audited["further"], *audited["fine"])]
    if not evidence.certificate["holds"]:
        points.append(Point("certificate", "never", "The release does not hold what it promises.", weight=10))
    decision = decision_of(points)
    grade: Grade = {MAY: "good", FIRST: "caution", MUST_NOT: "serious"}[decision.verdict]  # type: ignore[assignment]
    return grade, decision.headline, [said_with_fix(point) for point in decision.open]


def said_with_fix(point: Point) -> str:
    """What was seen, and the options of ``deniable publish`` that mend it."""
    return f"{point.says} Fix: {quoted(options_of(point.fix))}" if point.fix else point.says


# -- What public columns give away, as a section of the owner's report -------------------------------------------------


ABOUT_COLUMNS = (
    "How sure someone becomes of a person's value who has learnt from other people what goes with a public column, "
    "knows that column of the person and sees the person's row; and how sure they are without the row. A column that "
    "says nothing is not listed."
)

TENDENCY, FREQUENT = "a tendency, no rule", "how frequent values are"


def giveaways_section(evidence: Evidence) -> Section | None:
    """A table for each sensitive column that public columns say something about."""
    dependences = [] if evidence.audit is None else evidence.audit.get("dependence", [])
    blocks: list[Block] = [Text(ABOUT_COLUMNS)] if dependences else []
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
    rows = [_column_row(one) for one in (*dependence["columns"], known)]
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


def _column_row(one: Mapping[str, Any]) -> tuple[Any, ...]:
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


# -- Attacks that the audit played: how often each attacker is right, beside the guess that needs no release -----------


ABOUT_ATTACKS = (
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
    rows = [_attack_row(attack) for attack in attacks]
    table = Table.of("How often each attack is right, with 95 % intervals.", columns, rows)
    if not tried:
        return Section("attacks", "Attacks, played", (Text(ABOUT_ATTACKS), table))
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
    return Section("attacks", "Attacks, played", (Text(ABOUT_ATTACKS), *_above(tried, stated_rho2(evidence)), figure))


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


def _attack_row(attack: Mapping[str, Any]) -> tuple[Any, ...]:
    trials = attack["trials"]
    figures = [attack[key] if trials else None for key in ("success", "low", "high")]
    return _name(attack), *figures, attack["baseline"], trials, attack["note"]


# -- A record for the data protection officer: what was published from what, by which program, and who approved it -----


PACKAGES = ("deniable", "numpy", "pyarrow", "duckdb", "cryptography")
BLANK = "_" * 24
TO_FILL = ("Approved by", "Function", "Date", "Signature", "Data protection officer", "Comments")


@dataclass(frozen=True)
class Origin:
    """Where a report comes from.

    Attributes:
        files: the original table: a file's name, and the SHA-256 of what is in it.
        command: what was run to write the report.
        date: when, in UTC.
    """

    files: tuple[tuple[str, str], ...]
    command: str
    date: str

    @classmethod
    def of(cls, files: Sequence[str], words: Sequence[str]) -> Origin:
        """Of a report that is written now, about a table in these files, by a command of these words."""
        digests = tuple((file, _digest(Path(file))) for file in files)
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        return cls(digests, shlex.join(words), now)


def record_section(evidence: Evidence, origin: Origin | None) -> Section:
    """Date, table, digest, command, versions, columns with their roles, and lines to fill in."""
    manifest = evidence.manifest
    rows = [
        ("Release", shown(manifest.name)),
        ("Mechanism", f"{manifest.mechanism} {_options(manifest.options)}".strip()),
        ("Required", _required(manifest.privacy)),
        ("Made with", f"{manifest.software.get('name', 'deniable')} {manifest.software.get('version', '')}"),
    ]
    if origin is not None:
        rows = [
            ("Report written", origin.date),
            *((f"Table {shown(file, 200)}", f"SHA-256 {digest}") for file, digest in origin.files),
            ("Command", origin.command),
            *rows,
            ("Versions", _versions()),
        ]
    if manifest.data is not None:
        rows.append((f"Published file {manifest.data.file}", f"SHA-256 {manifest.data.sha256}"))
    columns: dict[str, Kind] = {"column": "text", "role": "text", "type": "text", "made coarser": "text"}
    listed = [
        (one.name, one.role, one.type, said(manifest.recoded[one.name]) if one.name in manifest.recoded else "no")
        for one in manifest.columns
    ]
    about: dict[str, Kind] = {"what": "text", "entry": "text"}
    blocks: tuple[Block, ...] = (
        Text("For the data protection officer. Nothing of it stands in the release but what the release says itself."),
        Table.of("What was published, and how.", about, rows),
        Table.of("Every published column and its role.", columns, listed),
        Table.of("To be filled in.", about, [(what, BLANK) for what in TO_FILL]),
    )
    return Section("record", "Record", blocks)


def _options(options: object) -> str:
    known = options.items() if isinstance(options, dict) else ()
    listed = [f"{name}={shown(str(value), 60)}" for name, value in known if value not in (None, "", {}, [])]
    return f"({', '.join(listed)})" if listed else ""


def _required(privacy: object) -> str:
    if not isinstance(privacy, dict):
        return "nothing"
    own = privacy.get("per_value") or []
    stated = [f"{name} = {privacy[name]}" for name in ("rho1", "rho2") if privacy.get(name) is not None]
    stated += [f"{len(own):,} values with a requirement of their own"] if own else []
    return f"{', '.join(stated)}; adversary {privacy['adversary']}"


def _versions() -> str:
    versions = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(versions)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


# -- The owner's report: privacy first. It may hold facts about the original table, and is never part of a release -----


CURVE = 60  # points of a curve
DOTS = 400
IN_A_CELL = "once the cell is known, at most"


def owner_report(evidence: Evidence, folder: str, origin: Origin | None = None) -> Document:
    """Verdict, guarantee, worst posterior, what is not protected, findings, attacks, cells, errors, rivals,
    certificate, record."""
    listed = (
        verdict_section(evidence),
        _in_short(evidence),
        sections.promise(evidence),
        _attackers(evidence),
        sections.not_protected(evidence),
        _findings(evidence, folder),
        giveaways_section(evidence),
        attacks_section(evidence),
        sections.cells(evidence),
        _answers(evidence),
        _alternatives(evidence),
        _evaluation(evidence),
        sections.verification(evidence, folder),
        record_section(evidence, origin),
    )
    known = evidence.audit or evidence.evaluation
    secret = "It holds facts about the original table: keep it to yourself." if known else ""
    return Document(
        "owner",
        f"Release '{shown(evidence.manifest.name)}': what it gives away, and what it keeps",
        f"{evidence.manifest.rows:,} rows; {sections.sensitive_names(evidence)} perturbed by the mechanism "
        f"{evidence.manifest.mechanism}. {secret}".strip(),
        tuple(section for section in listed if section is not None),
        "Written by deniable for the owner of the table. Do not publish this report with the release.",
    )


def _in_short(evidence: Evidence) -> Section:
    guarantee = evidence.manifest.guarantee
    items = []
    if evidence.audit is not None:
        worst = max((part["worst_posterior"] for part in evidence.audit["parts"]), default=None)
        if worst is not None:
            meaning = "the largest posterior of a protected value, knowing the frequencies"
            items.append(("Surest an attacker gets", percent(worst), meaning))
    if guarantee["rho2"] is not None:
        items.append(("Promised (rho2)", percent(Fraction(guarantee["rho2"])), "how sure an attacker may become"))
    items += sections.other_attackers(evidence)
    epsilon = "unbounded" if guarantee["epsilon"] is None else f"{guarantee['epsilon']:.3g}"
    items.append(("Epsilon", epsilon, "ln of the amplification, per row"))
    items += sections.coins(evidence)
    if evidence.audit is not None:
        grades = Counter(finding["grade"] for finding in evidence.audit["findings"])
        items.append(("Findings", f"{grades['serious']} serious", f"and {grades['caution']} to decide about"))
    holds = evidence.certificate["holds"]
    items.append(("Certificate", "holds" if holds else "FAILS", "recomputed from the release's own numbers"))
    return Section("short", "In short", (*sections.seed_warning(evidence), Facts(tuple(items))))


def _attackers(evidence: Evidence) -> Section:
    """Posteriors: a curve for all beliefs, a dot and a row for each value."""
    gamma, whose = _gamma(evidence)
    parts = [] if evidence.audit is None else evidence.audit["parts"]
    blocks: list[Block] = []
    for part in parts or [None]:
        blocks += _posteriors(evidence, part, gamma, whose)
        if part is not None:
            blocks += _belief_tables(part)
    return Section("attackers", "What attackers can learn", tuple(blocks))


def _posteriors(evidence: Evidence, part: Mapping[str, Any] | None, gamma: Fraction | None, whose: str) -> list[Block]:
    values = [] if part is None else part["values"]
    dots = [{"prior": row["prior"], "posterior": row["highest"], "protected": bool(row["protected"])} for row in values]
    dots = sorted(dots, key=lambda dot: -dot["posterior"])[:DOTS]
    required = evidence.manifest.privacy or {}
    rho1, rho2 = (required.get(name) for name in ("rho1", "rho2"))
    limit = None
    strongest = max([0.0, *(dot["prior"] for dot in dots), *([] if rho1 is None else [float(Fraction(rho1))])])
    reach = min(1.0, max(0.25, round(2.5 * strongest + 0.05, 1)))
    if rho2 is not None:  # without rho1 it is required of every value, however frequent
        before = reach if rho1 is None else float(Fraction(rho1))
        limit = {"prior": before, "posterior": float(Fraction(rho2))}
    lines = [{"line": "without the release", "prior": x, "posterior": x} for x in (0.0, reach)]
    if gamma is not None:
        step = reach / CURVE
        lines += [
            {"line": whose, "prior": b, "posterior": sections.grown(b, gamma)}
            for b in (i * step for i in range(CURVE + 1))
        ]
    if gamma is None and not dots:
        return [Text(f"{_NO_BOUND.replace('the dots show', 'the promise says')} Single values are not listed here.")]
    name = "" if part is None else f" about {', '.join(map(shown, part['columns']))}"
    parts = [_bounded(evidence, whose) if gamma is not None else _NO_BOUND]
    if dots:
        parts.append("Dots: each value, for an attacker who knows how frequent values are; red: not protected.")
    if len(values) > DOTS:
        parts.append(f"The {DOTS} values of which one becomes surest; {len(values) - DOTS:,} more are not drawn.")
    if limit is not None:
        beliefs = "beliefs" if rho1 is None else f"beliefs up to {percent(limit['prior'])}"
        parts.append(f"Dotted: the requirement, that {beliefs} stay at or below {percent(limit['posterior'])}.")
    columns: dict[str, Kind] = {"line": "text", "believed before": "share", "believed after, at most": "share"}
    rows = [(row["line"], row["prior"], row["posterior"]) for row in lines[:2] + lines[2 :: CURVE // 10]]
    return [
        Figure(
            f"How beliefs{name} can grow",
            " ".join(parts),
            partial(charts.posterior_against_prior, lines, dots, limit, reach),
            Table.of("The lines of the chart.", columns, rows),
        )
    ]


_NO_BOUND = (
    "The amplification is unbounded: those who know more than the frequencies can become surer than the dots show."
)


def _bounded(evidence: Evidence, whose: str) -> str:
    """What the curve bounds: all that a row shows, or only what its value adds where its cell is published."""
    noise = sum(part.marginal.cost for part in evidence.manifest.parts if part.marginal is not None)
    also = f" The noisy histogram adds {noise:g} to epsilon." if noise else ""
    if whose == IN_A_CELL:
        return (
            f"The line '{whose}' bounds what a row's value adds to a belief that already takes the row's cell into "
            f"account. The cell itself can change beliefs without bound.{also}"
        )
    return f"The line '{whose}' bounds what anybody can conclude from what a row shows.{also}"


def _gamma(evidence: Evidence) -> tuple[Fraction | None, str]:
    """The amplification that bounds every attacker, or every attacker inside one cell."""
    guarantee = evidence.manifest.guarantee
    if guarantee["gamma"] is not None:
        return Fraction(guarantee["gamma"]), "any attacker, at most"
    promise = evidence.manifest.parts[0].promise
    gammas = promise.gammas if isinstance(promise, Cells) else ()
    inside = [gamma for gamma in gammas if gamma is not None]
    if inside and len(inside) == len(gammas):
        return max(inside), IN_A_CELL
    return None, ""


def _belief_tables(part: Mapping[str, Any]) -> list[Block]:
    columns: dict[str, Kind] = {
        "value": "text",
        "before": "share",
        "after, at most": "share",
        "after, at least": "share",
        "protected": "text",
    }
    rows = [
        (row["value"], row["prior"], row["highest"], row["lowest"], "yes" if row["protected"] else "no")
        for row in sorted(part["values"], key=lambda row: (row["protected"], -row["highest"]))
    ]
    if part["cells"] is not None and part["cells"]["rows_from"] != "groups":  # a group is all that a row shows
        columns = {**columns, "its cell alone": "share"}
        alone = {json_key(row["value"]): row["cell_only"] for row in part["values"]}
        rows = [(*row, alone[json_key(row[0])]) for row in rows]  # type: ignore[misc]
    exposed = [place for place, row in enumerate(rows) if row[4] == "no"]
    caption = "How sure an attacker who knows the frequencies is of each value"
    caption += "; in red: not protected." if exposed else "."
    blocks: list[Block] = [Table.of(caption, columns, rows, marked=exposed)]
    stronger = [(row["belief"], row["value"], row["prior"], row["posterior"]) for row in part["stronger_priors"]]
    if stronger:
        kinds: dict[str, Kind] = {"belief": "text", "worst for": "text", "before": "share", "after, at most": "share"}
        caption = "Attackers who believe more: as a multiple of the frequency, or the requirement's rho1."
        blocks.append(Table.of(caption, kinds, stronger))
    return blocks


def _findings(evidence: Evidence, folder: str) -> Section:
    if evidence.audit is None:
        note = Note(
            "info",
            "not audited",
            "This report was written without the original table, so posteriors of single values are not in it.",
            f"deniable report {shlex.quote(folder)} --for owner --original FILE",
        )
        return Section("findings", "Findings of the audit", (note,))
    notes = tuple(Note(f["grade"], f["what"], _sentence(f["detail"]), f["advice"]) for f in evidence.audit["findings"])
    return Section("findings", "Findings of the audit", notes or (Text("The audit found nothing to report."),))


def _answers(evidence: Evidence) -> Section | None:
    """What analysts get: histograms beside the truth where it is known, and predicted errors."""
    blocks: list[Block] = []
    for one in evidence.estimates:
        counts = true_counts(evidence.manifest, evidence.audit, one.columns)
        truth = [counts.get(json_key(row["value"]), 0) for row in one.rows] if counts else []
        blocks += [*sections.error_blocks(one), *sections.histogram_blocks(one, truth)]
    return Section("answers", "What analysts get", tuple(blocks)) if blocks else None


def _alternatives(evidence: Evidence) -> Section | None:
    if evidence.comparison is None:
        return not_compared(evidence)
    shares = evidence.comparison["selectivities"]
    columns: dict[str, Kind] = {"mechanism": "text", "cells": "count", "published as they are": "share"}
    columns |= {
        "epsilon": "number",
        **{f"error at {percent(share, 2)}": "share" for share in shares},
        "reveals": "text",
    }
    used = [candidate for candidate in evidence.comparison["candidates"] if "refused" not in candidate]
    rows = [
        (
            candidate["label"],
            candidate["cells"],
            candidate["kept"],
            "unbounded" if candidate["epsilon"] is None else candidate["epsilon"],
            *candidate["errors"],
            candidate["reveals"],
        )
        for candidate in used
    ]
    blocks: list[Block] = [
        Text(evidence.comparison["reason"]),
        Table.of(
            "All mechanisms for this table and requirement: predicted relative errors by the share of rows counted.",
            columns,
            rows,
        ),
    ]
    blocks += [
        Note("info", f"{candidate['mechanism']} does not apply", candidate["refused"])
        for candidate in evidence.comparison["candidates"]
        if "refused" in candidate
    ]
    blocks += [
        Note("info", f"{candidate['label']} is not recommended", f"{candidate['withheld']}.")
        for candidate in used
        if candidate.get("withheld")
    ]
    blocks += not_drawn(evidence)
    if evidence.curve:
        own = evidence.manifest.guarantee["epsilon"]
        kinds: dict[str, Kind] = {"mechanism": "text", "epsilon": "number", "relative error": "share"}
        points = [(row["mechanism"], row["epsilon"], row["error"]) for row in evidence.curve]
        blocks.append(
            Figure(
                "What accuracy costs against any attacker",
                "Predicted relative error of counts, for stronger and weaker promises than that of the rows (dotted).",
                partial(charts.error_against_epsilon, evidence.curve, SELECTIVITIES[-1], epsilon=own),
                Table.of("Predicted relative errors.", kinds, points),
            )
        )
    return Section("alternatives", "Other mechanisms", tuple(blocks))


def _evaluation(evidence: Evidence) -> Section | None:
    """The results of an experiment with their charts; or a table, as it was given: a caption, columns and rows."""
    if evidence.evaluation is None:
        return None
    if "results" in evidence.evaluation:
        blocks: list[Block] = []
        for result in evidence.evaluation["results"]:
            blocks += [Heading(f"Pool {shown(result['pool'])}"), *measured_blocks(result)]
        return Section("evaluation", "Measured errors", tuple(blocks))
    rows = [tuple(row) for row in evidence.evaluation["rows"]]
    numeric = [
        all(isinstance(row[i], int | float | None) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(evidence.evaluation["columns"]))
    ]
    columns: dict[str, Kind] = {
        name: "number" if numbers else "text"
        for name, numbers in zip(evidence.evaluation["columns"], numeric, strict=True)
    }
    return Section("evaluation", "Measured errors", (Table.of(evidence.evaluation["caption"], columns, rows),))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
