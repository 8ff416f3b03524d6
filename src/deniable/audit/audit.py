"""The owner's audit: what attackers learn from a release, computed from its manifest and the table's histogram.

It holds exact figures of the original table. It is for the owner, and never part of a release.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.audit.breaches import Breach, CurvePoint, Limits, curve, downward, is_protected, limits_of, upward
from deniable.audit.cell_rows import FINE, expected_rows
from deniable.audit.cells import CellReport, cell_report
from deniable.audit.findings import (
    Finding,
    about_any_prior,
    about_breaches,
    about_cells,
    about_randomness,
    about_rows,
    about_stronger,
    by_grade,
    namer,
    view_in_words,
)
from deniable.audit.posteriors import Belief, Posteriors, cells_from
from deniable.audit.rows import RowReport, Rows, row_report
from deniable.core import values
from deniable.core.errors import TableError
from deniable.core.histogram import Counts, Histogram
from deniable.core.manifest import Manifest, Part
from deniable.core.plan import Plan
from deniable.core.probability import percent

WORST_SHOWN = 5


@dataclass(frozen=True)
class PartAudit:
    """What is learnt about one sensitive column, or several that were perturbed as one.

    Attributes:
        columns, domain: the column(s) and their values.
        posteriors: every posterior, on demand.
        beliefs: the extremes for every value that occurs, against the frequency adversary.
        limits: the requirement for each value.
        upward, downward: what breaks it.
        curve: what stronger beliefs grow to.
        gamma: the amplification, cells included; None when unbounded.
        cells: what the cells reveal, where they are published.
        rows_from: where the rows of each cell are known from: ``"histogram"`` (one cell), ``"plan"``, ``"estimate"``.
    """

    columns: tuple[str, ...]
    domain: tuple[Hashable, ...]
    posteriors: Posteriors
    limits: Limits
    upward: tuple[Breach, ...]
    downward: tuple[Breach, ...]
    curve: tuple[CurvePoint, ...]
    gamma: Fraction | None
    cells: CellReport | None
    rows_from: str

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return self.posteriors.beliefs

    @property
    def worst(self) -> tuple[Belief, ...]:
        """The values an attacker can become surest of, protected ones first."""

        def rank(belief: Belief) -> tuple[bool, Fraction]:
            limit = self.limits[belief.position]
            return limit is None or not is_protected(belief, limit), -belief.highest

        return tuple(sorted(self.beliefs, key=rank))

    @property
    def worst_protected(self) -> Fraction:
        """The largest posterior of a protected value; of any value where nothing is required."""
        required = any(limit is not None for limit in self.limits)
        return max(
            (
                belief.highest
                for belief in self.beliefs
                if not required or ((limit := self.limits[belief.position]) is not None and is_protected(belief, limit))
            ),
            default=Fraction(0),
        )

    def to_dict(self) -> dict[str, Any]:
        told = [values.to_json(value) for value in self.domain]

        def breach(one: Breach) -> dict[str, Any]:
            return {
                "value": told[one.position],
                "prior": float(one.prior),
                "posterior": float(one.posterior),
                "allowed": float(one.allowed),
                "published": told[one.view[1]],
                "cell": one.view[0],
            }

        return {
            "columns": list(self.columns),
            "gamma": None if self.gamma is None else float(self.gamma),
            "epsilon": None if self.gamma is None else math.log(self.gamma),
            "worst_posterior": float(self.worst_protected),
            "values": [
                {
                    "value": told[belief.position],
                    "prior": float(belief.prior),
                    "highest": float(belief.highest),
                    "lowest": float(belief.lowest),
                    "cell_only": float(belief.cell_only),
                    "protected": (limit := self.limits[belief.position]) is not None and is_protected(belief, limit),
                }
                for belief in self.beliefs
            ],
            "upward": [breach(one) for one in self.upward],
            "downward": [breach(one) for one in self.downward],
            "stronger_priors": [
                {
                    "belief": point.label,
                    "value": told[point.position],
                    "prior": float(point.prior),
                    "posterior": float(point.posterior),
                }
                for point in self.curve
            ],
            "cells": None if self.cells is None else {**self.cells.__dict__, "rows_from": self.rows_from},
        }

    def lines(self) -> list[str]:
        name = namer(self.domain)
        text = [f"{', '.join(self.columns)}: {len(self.domain):,} values"]
        text += [
            f"  {name(b.position)}: {percent(b.prior)} before, up to {percent(b.highest)} when "
            f"{view_in_words(b.most_telling, name)}"
            for b in self.worst[:WORST_SHOWN]
        ]
        text += [
            f"  believed at {percent(p.prior)} ({p.label}): up to {percent(p.posterior)} ({name(p.position)})"
            for p in self.curve
        ]
        text.append(f"  epsilon: {'unbounded' if self.gamma is None else f'{math.log(self.gamma):.4g}'}")
        return text


@dataclass(frozen=True)
class Audit:
    """What attackers learn from a release, with graded findings, the serious ones first; prints as a short report."""

    name: str
    mechanism: str
    parts: tuple[PartAudit, ...]
    rows: RowReport | None
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def serious(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.grade == "serious")

    @property
    def epsilon(self) -> float:
        """The epsilon of all columns together; infinite when one is unbounded."""
        gammas = [part.gamma for part in self.parts]
        return math.inf if None in gammas else sum(math.log(gamma) for gamma in gammas if gamma is not None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mechanism": self.mechanism,
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "parts": [part.to_dict() for part in self.parts],
            "rows": None if self.rows is None else {**self.rows.__dict__, "ordered": list(self.rows.ordered)},
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        lines = [f"Audit of {self.name!r} ({self.mechanism}). For the owner: it holds figures of the original table."]
        for part in self.parts:
            lines += ["", *part.lines()]
        return "\n".join([*lines, "", *(str(finding) for finding in self.findings)])


def audit(
    manifest: Manifest,
    histograms: Sequence[Histogram],
    *,
    plans: Sequence[Plan | None] = (),
    observed: Sequence[Sequence[Counts] | None] = (),
    rows: Rows | None = None,
    categories: Mapping[Hashable, Hashable] | None = None,
) -> Audit:
    """Audit a release.

    Args:
        manifest: the release's manifest.
        histograms: of the original table, one for each part of the manifest that has channels, in its order.
        plans: the plan of each part, if at hand: it says exactly how many rows of each value each cell took.
        observed: otherwise, for each part with published cells: for each cell, how many rows show each value of the
            domain; the rows of the cells are then estimated.
        rows: published and original rows, for order, rare combinations and repeated rows.
        categories: value -> category, for cells that hold a single category.
    """
    listed = [part for part in manifest.parts if part.channels]
    plans = [*plans, *[None] * (len(listed) - len(plans))]
    observed = [*observed, *[None] * (len(listed) - len(observed))]
    parts = []
    findings = about_randomness(manifest.randomness.source, manifest.randomness.seed)
    for part, histogram, plan, shown in zip(listed, histograms, plans, observed, strict=True):
        found = _part(manifest, part, histogram, plan, shown, categories)
        parts.append(found)
        findings += _part_findings(found, part, manifest)
    report = None
    if rows is not None and parts:
        report = row_report(rows, parts[0].beliefs)
        rho2 = max((limit[1] for limit in parts[0].limits if limit is not None), default=None)
        findings += about_rows(report, rho2, manifest.randomness.shuffled, manifest.sensitive_columns)
    for part in manifest.parts:
        if not part.channels:
            detail = f"{', '.join(part.columns)} has no channel over a list of values; its posteriors are not listed."
            findings.append(Finding("info", "not listed", detail, "Read the guarantee in the manifest."))
    return Audit(manifest.name, manifest.mechanism, tuple(parts), report, by_grade(findings))


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
    dropped = (
        None if plan is None else plan.options.get("dropped_cell")
    )  # rows that are not published: nobody sees them
    if dropped is not None:
        rows[dropped] = np.zeros_like(rows[dropped])
    source = "histogram" if len(part.channels) == 1 else "estimate" if plan is None else "plan"
    posteriors = Posteriors(cells_from(part.channels, part.cell_positions, rows), published=part.cells_published)
    limits = limits_of(manifest.privacy, part.domain)
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
        cells=cell_report(posteriors.cells, unit, part.domain, categories) if part.cells_published else None,
        rows_from=source,
    )


def _part_findings(found: PartAudit, part: Part, manifest: Manifest) -> list[Finding]:
    name = namer(found.domain)
    required = any(limit is not None for limit in found.limits)
    privacy = None if manifest.privacy is None else dict(manifest.privacy)
    noise = 0.0 if part.marginal is None else part.marginal.epsilon
    findings = about_breaches(found.upward, found.downward, found.worst_protected, required, name)
    findings += about_any_prior(found.gamma, privacy, noise)
    findings += about_stronger(found.curve, name)
    findings += about_cells(found.cells)
    if found.rows_from == "estimate":
        detail = "how many rows of each value a cell took is estimated from the release, so the posteriors are too."
        findings.append(Finding("info", "estimated cells", detail, "Audit with the plan for exact figures."))
    return findings
