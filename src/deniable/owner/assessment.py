"""The owner's assessment of a release: what attackers learn, computed from its manifest and the table's histogram."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from deniable.core.errors import TableError, shortened
from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.plan import Plan
from deniable.core.text import paragraph, table, title
from deniable.core.values import Counts
from deniable.owner.decision import Decision
from deniable.owner.findings import (
    FINE,
    FREQUENCIES,
    CellReport,
    Finding,
    RowCounts,
    RowReport,
    about_any_prior,
    about_breaches,
    about_cells,
    about_randomness,
    about_rows,
    about_stronger,
    by_grade,
    cell_report,
    expected_rows,
    namer,
    row_report,
)
from deniable.owner.parts import (
    LineUpPosteriors,
    PairBelief,
    PartAudit,
    about_pairs,
    about_singles,
    dependent_finding,
    limits_of_part,
    of_column,
    pairs_of,
    requirement_of,
    row_channel,
    single_beliefs,
)
from deniable.owner.public import Dependence
from deniable.owner.together import ListAudit
from deniable.planning.attackers import AttackResult
from deniable.planning.informed import COLUMNS as INFORMED_COLUMNS
from deniable.planning.informed import Informed
from deniable.planning.posteriors import Limits, Posteriors, cells_from, curve, downward, upward

FOR_OWNER = "For the owner: it holds figures of the original table."


@dataclass(frozen=True, repr=False)
class Audit:
    """What attackers learn from a release; prints as a short report.

    Attributes:
        name, mechanism: of the release.
        parts: what is learnt about each sensitive column: posteriors, breaches, cells.
        rows: what order, rare combinations and repeated rows reveal; None where no rows were looked at.
        findings: what to know, graded, the serious ones first.
        pairs: what is learnt about pairs of columns.
        attacks: how often played attackers are right, where they were asked for.
        informed: how sure those become who have learnt which values go with which public columns.
        dependence: which public columns give something away, and how much.
        lists: what is learnt about a column of lists, where the release publishes its items.
        decision: whether it may be published, or what is to be decided first.
    """

    name: str
    mechanism: str
    parts: tuple[PartAudit, ...]
    rows: RowReport | None
    findings: tuple[Finding, ...] = field(default_factory=tuple)
    pairs: tuple[PairBelief, ...] = ()
    attacks: tuple[AttackResult, ...] = ()
    informed: tuple[Informed, ...] = ()
    dependence: tuple[Dependence, ...] = ()
    lists: ListAudit | None = None
    decision: Decision = field(default_factory=lambda: Decision(()))

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that speak against publishing."""
        return tuple(finding for finding in self.findings if finding.grade == "serious")

    @property
    def epsilon(self) -> float:
        """The epsilon of all columns together; infinite when one is unbounded."""
        gammas = [part.gamma for part in self.parts] if self.lists is None else [self.lists.gamma]
        return math.inf if None in gammas else sum(math.log(gamma) for gamma in gammas if gamma is not None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "mechanism": self.mechanism,
            "decision": self.decision.to_dict(),
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "parts": [part.to_dict() for part in self.parts],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "rows": None if self.rows is None else {**self.rows.__dict__, "ordered": list(self.rows.ordered)},
            "findings": [finding.to_dict() for finding in self.findings],
            "attacks": [attack.to_dict() for attack in self.attacks],
            "informed": [one.to_dict() for one in self.informed],
            "dependence": [one.to_dict() for one in self.dependence],
            **({} if self.lists is None else {"lists": self.lists.to_dict()}),
        }

    def __str__(self) -> str:
        decided = self.decision.lines(fine=True)
        return "\n".join([self.title, *decided, "", "The figures behind it:", self.details])

    @property
    def title(self) -> str:
        """What it is of, and for whom."""
        return f"Audit of {self.name!r} ({self.mechanism}). {FOR_OWNER}"

    @property
    def details(self) -> str:
        """The figures behind the decision: what is learnt of each column, findings, and attacks where they were
        played."""
        lines: list[str] = []
        for part in self.parts:
            lines += ["", *part.lines()]
        if self.lists is not None:
            lines += ["", *self.lists.lines()]
        lines += ["", *(str(finding) for finding in self.findings)]
        if self.informed:
            lines += ["", *(str(one) for one in self.informed)]
        if self.attacks:
            lines += ["", "Attacks, played on these rows:", *(f"  {attack}" for attack in self.attacks)]
        return "\n".join(lines[1:])

    def __repr__(self) -> str:
        return f"<Audit of {shortened(self.name)} by {self.mechanism}: {self.decision.verdict}>"

    def _repr_html_(self) -> str:
        """For notebooks: findings, what attackers become surest of, and attacks where they were played."""
        findings = [(finding.grade, finding.what, finding.detail, finding.advice) for finding in self.findings]
        worst = [row for part in self.parts for row in part.worst_rows()]
        parts = [
            title(repr(self)),
            paragraph(FOR_OWNER),
            paragraph(str(self.decision)),
            table(["grade", "what", "detail", "what to do"], findings, total=len(findings), what="findings"),
        ]
        if worst:
            columns = ["column", "value", "before", "up to", "when"]
            parts.append(table(columns, worst, total=len(worst), what="values"))
        if self.informed:
            rows = [one.row() for one in self.informed]
            parts.append(table(list(INFORMED_COLUMNS), rows, total=len(rows), what="informed attackers"))
        if self.attacks:
            attacks = [attack.row() for attack in self.attacks]
            columns = ["attack", "right", "from", "to", "without the release", "guesses", "note"]
            parts.append(table(columns, attacks, total=len(attacks), what="attacks"))
        return "".join(parts)


def audit(
    manifest: Manifest,
    histograms: Sequence[Histogram],
    *,
    plans: Sequence[Plan | None] = (),
    observed: Sequence[Sequence[Counts] | None] = (),
    lineups: Sequence[Histogram] = (),
    rows: RowCounts | None = None,
    categories: Mapping[Hashable, Hashable] | None = None,
    joints: Mapping[tuple[int, int], Counts] = MappingProxyType({}),
) -> Audit:
    """Audit a release.

    Args:
        manifest: the release's manifest.
        histograms: of the original table, one for each part of the manifest that has channels, in its order.
        plans: the plan of each part, if at hand: it says exactly how many rows of each value each cell took.
        observed: otherwise, for each part with published cells: for each cell, how many rows show each value of the
            domain; the rows of the cells are then estimated.
        lineups: of the original table, one for each part that publishes line-ups, in the order of the manifest.
        rows: counts of published and original rows: order, rare combinations and repeated rows.
        categories: value -> category, for cells that hold a single category.
        joints: for pairs of those parts, columns with one coin each: how many rows have each pair of values.
    """
    listed = [part for part in manifest.parts if part.channels]
    plans = [*plans, *[None] * (len(listed) - len(plans))]
    observed = [*observed, *[None] * (len(listed) - len(observed))]
    parts = []
    findings = about_randomness(manifest.randomness.source, manifest.randomness.seed)
    for part, histogram, plan, shown in zip(listed, histograms, plans, observed, strict=True):
        audited = _part(manifest, part, histogram, plan, shown, categories)
        parts.append(audited)
        said = _part_findings(audited, part, manifest)
        findings += [of_column(finding, part) for finding in said] if len(manifest.parts) > 1 else said
    pairs = pairs_of(listed, [audited.limits for audited in parts], joints)
    findings += about_pairs(pairs)
    for part, histogram in zip([part for part in manifest.parts if part.lineups], lineups, strict=True):
        parts.append(_of_lineups(manifest, part, histogram))
        findings += _part_findings(parts[-1], part, manifest)
    report = None
    if rows is not None and parts:
        report = row_report(rows, parts[0].posteriors)
        findings += about_rows(report, parts[0].rho2, manifest.randomness, manifest.sensitive_columns)
    known = {part.columns for part in parts}
    for part in manifest.parts:
        if part.columns not in known:
            detail = f"{', '.join(part.columns)} has no channel over a list of values; its posteriors are not listed."
            findings.append(Finding("info", "not listed", detail, "Read the guarantee in the manifest."))
    return Audit(manifest.name, manifest.mechanism, tuple(parts), report, by_grade(findings), pairs)


def _part(
    manifest: Manifest,
    part: Part,
    histogram: Histogram,
    plan: Plan | None,
    shown: Sequence[Counts] | None,
    categories: Mapping[Hashable, Hashable] | None,
) -> PartAudit:
    if histogram.domain != part.domain:
        raise TableError("The histogram has other values than the release: it is of another table.")
    if plan is not None:
        unit, rows = 1, [cell.rows.counts for cell in plan.cells]
    else:
        unit, rows = FINE, expected_rows(histogram.counts, part.channels, part.cell_positions, shown)
    dropped = None if plan is None else plan.parts[0].left_out  # not published: nobody sees these rows
    if dropped is not None:
        rows[dropped] = np.zeros_like(rows[dropped])
    source = "histogram" if len(part.channels) == 1 else "estimate" if plan is None else "plan"
    channels = part.channels if part.swapped is None else (row_channel(part),)
    posteriors = Posteriors(cells_from(channels, part.cell_positions, rows), published=part.cells_published)
    limits = limits_of_part(manifest, part, histogram)
    cells = cell_report(posteriors.cells, unit, part.domain, categories) if part.cells_published else None
    audited = _audited(part, limits, posteriors, cells, source)
    upward_only = part.requirement is not None and part.requirement.s is not None
    return replace(
        audited,
        gamma=_amplification(part, posteriors),
        downward=() if upward_only else audited.downward,
        singles=single_beliefs(part, posteriors),
    )


def _of_lineups(manifest: Manifest, part: Part, histogram: Histogram) -> PartAudit:
    if histogram.domain != part.domain:
        raise TableError("The histogram has other values than the release: it is of another table.")
    assert part.lineups is not None
    posteriors = LineUpPosteriors(part.lineups.integers(), histogram.counts)
    return _audited(part, limits_of_part(manifest, part, histogram), posteriors, None, "line-ups")


def _audited(
    part: Part,
    limits: Limits,
    posteriors: Posteriors | LineUpPosteriors,
    cells: CellReport | None,
    source: str,
) -> PartAudit:
    beliefs = posteriors.beliefs
    return PartAudit(
        columns=part.columns,
        domain=part.domain,
        posteriors=posteriors,
        limits=limits,
        upward=upward(beliefs, limits),
        downward=downward(beliefs, limits),
        curve=curve(beliefs, limits),
        gamma=posteriors.amplification,
        cells=cells,
        rows_from=source,
    )


def _amplification(part: Part, posteriors: Posteriors) -> Fraction | None:
    """Of the values that are published: a range is looked at in intervals, and published by its points."""
    if part.swapped is not None or part.groups is not None:  # rows are drawn from each other's values
        return None
    return posteriors.amplification if part.range is None else part.range.exact_gamma


def _part_findings(audited: PartAudit, part: Part, manifest: Manifest) -> list[Finding]:
    name = namer(audited.domain)
    privacy = requirement_of(manifest, part)
    noise = 0.0 if part.marginal is None else part.marginal.cost
    in_intervals = part.range is not None and len(part.domain) < part.range.points
    findings = about_breaches(
        audited.upward,
        audited.downward,
        audited.worst_protected,
        audited.rho2 is not None,
        name,
        f"{FREQUENCIES} of these intervals" if in_intervals else FREQUENCIES,
    )
    if part.swapped is not None or part.groups is not None:
        findings.append(dependent_finding(part))
    else:
        findings += about_any_prior(audited.gamma, privacy, noise)
    findings += about_singles(audited.singles, getattr(part.promise, "rho2", None))
    findings += about_stronger(audited.curve, name)
    findings += about_cells(audited.cells)
    if audited.rows_from == "estimate":
        detail = "how many rows of each value a cell took is estimated from the release, so the posteriors are too."
        findings.append(Finding("info", "estimated cells", detail, "Audit with the plan for exact figures."))
    return findings
