"""Audit a release against the table it was made from: the joiner of tables (engines) and the audit room."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core import values
from deniable.core.errors import DeniableError, TableError
from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.values import Counts
from deniable.mechanisms import MECHANISMS
from deniable.mechanisms.decoys import Decoys
from deniable.owner.assessment import Audit
from deniable.owner.assessment import audit as audit_figures
from deniable.owner.findings import Finding, by_grade
from deniable.owner.grounds import Grounds, decide
from deniable.owner.joining import audit_of_lists, combined_findings, learned_of, sensitive_of, single_numbers
from deniable.owner.reading import Beside, Scanned, as_published, joint_counts, looked_at, scanned, with_intervals
from deniable.owner.scenes import Stage
from deniable.publishing.parts import public_histogram
from deniable.release.release import Release, open_release
from deniable.tables.base import Dataset, Progress, no_progress

STEPS, AUDITING = 4, "looking for what gives values away"
NOT_PLAYED = Finding(
    "caution",
    "attacks",
    "none was played: there are too many values for what every row says of every value to be held in memory.",
    "Read the beliefs above, which hold for all rows.",
)


def audit(
    original: Any,
    release: Release | str | os.PathLike[str],
    *,
    plan: Plan | None = None,
    categories: Mapping[Hashable, Hashable] | None = None,
    attacks: bool = False,
    progress: Progress = no_progress,
) -> Audit:
    """What attackers learn from a release, for the eyes of its owner: it holds exact figures of the original table.

    Args:
        original: the table that was published, as given to ``publish``.
        release: a release, or its folder. Nothing is written into it.
        plan: the plan that was executed. Left out, it is made again where the mechanism allows it.
        categories: value -> category: is any cell of a single category?
        attacks: also play the attackers on these rows, and say how often each is right (``Audit.attacks``).
        progress: called with (done, in all, what): rows read, then steps of the audit.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy("3/5", "3/4"), mechanism="uniform")
    >>> report = dn.audit(table, release)
    >>> report.serious, round(report.epsilon, 2)
    ((), 0.69)
    >>> print(report.findings[0])
    [info] requirement: holds: nobody who knows the frequencies becomes surer of a protected value than 75 %.
    """
    opened = release if isinstance(release, Release) else open_release(release)
    table = opened.engine.open(original)
    source = as_published(table, opened.manifest)
    if source.rows == 0:
        raise TableError("The table has no rows: it is not the one that was published. Fix: name that one.")
    item = opened.manifest.parts[0].item
    if item is not None:
        return audit_of_lists(table, source, opened, item, attacks, progress)
    manifest, hidden = _with_hidden_cells(opened.manifest, source, plan)
    manifest = with_intervals(manifest)
    scans = [scanned(source, part, progress) for part in manifest.parts if part.channels]
    lined_up = [scanned(source, part) for part in manifest.parts if part.lineups is not None]
    plans = [_plan_for(scan, manifest, hidden.get(scan.part.columns) or plan) for scan in scans]
    if not scans and not lined_up:
        result = audit_figures(manifest, [])
        grounds = Grounds(source, manifest, learned_of(manifest), broken=result.serious)
        return dataclasses.replace(result, decision=decide(grounds), dependence=grounds.said)
    beside = Beside(source, opened, manifest, [*scans, *lined_up], progress)
    looked = looked_at(beside)
    progress(0, STEPS, AUDITING)
    result = audit_figures(
        manifest,
        [Histogram(scan.part.domain, scan.counts) for scan in scans],
        plans=plans,
        observed=[_observed(scan, shown) for scan, shown in zip(scans, looked.shown, strict=False)],
        lineups=[Histogram(scan.part.domain, scan.counts) for scan in lined_up],
        rows=looked.rows,
        categories=categories or _categories(manifest),
        joints=joint_counts(source, scans),
    )
    progress(1, STEPS, AUDITING)
    combined = combined_findings(beside, looked, plans, result)
    result = dataclasses.replace(result, findings=by_grade((*result.findings, *combined)))
    progress(2, STEPS, AUDITING)
    more = single_numbers(source, manifest, result)
    result = dataclasses.replace(result, findings=by_grade((*result.findings, *more)))
    grounds = Grounds(source, manifest, sensitive_of(beside.scans, manifest, result), broken=result.serious)
    result = dataclasses.replace(result, dependence=grounds.said, decision=decide(grounds))
    progress(3, STEPS, AUDITING)
    stage = Stage(beside, looked, result)
    result = dataclasses.replace(result, informed=stage.informed())
    progress(STEPS, STEPS, AUDITING)
    if not attacks:
        return result
    findings = by_grade((*result.findings, *((NOT_PLAYED,) if stage.is_empty else ())))
    return dataclasses.replace(result, findings=findings, attacks=stage.attacks())


def _observed(scan: Scanned, shown: Counts) -> list[Counts] | None:
    """For each published cell how many rows show each value; None where no cells are published."""
    several = scan.part.cells_published and len(scan.part.channels) > 1
    return list(shown[:, :-1]) if several else None


def _plan_for(scan: Scanned, manifest: Manifest, plan: Plan | None) -> Plan | None:
    """The plan of a part: the one at hand, or made again where its cells are several."""
    if plan is not None and plan.histogram.domain == scan.part.domain:
        return plan
    several = len(scan.part.channels) > 1
    return _planned_again(manifest, scan.part, Histogram(scan.part.domain, scan.counts)) if several else None


def _with_hidden_cells(
    manifest: Manifest, source: Dataset, plan: Plan | None
) -> tuple[Manifest, dict[tuple[str, ...], Plan]]:
    """Cells that a release does not publish (decoy groups), from the plans that its owner can make again.

    With several columns the n mod c rows that were left out were drawn at random, and only the key says which: the
    plans are made again with all rows, and leave others out.
    """
    made: dict[tuple[str, ...], Plan] = {}
    shown = []
    for part in manifest.parts:
        if part.groups is not None:
            again = plan
            if again is None or again.histogram.domain != part.domain:
                decoys = Decoys(c=part.groups.c, leftovers="drop", grouping=part.groups.kind)
                again = decoys.plan(Histogram(part.domain, scanned(source, part).counts), None)
            channels = tuple(cell.channel for cell in again.cells)
            positions = tuple(again.positions(cell) for cell in again.cells)
            part = dataclasses.replace(part, channels=channels, cell_positions=positions)
            made[part.columns] = again
        shown.append(part)
    return dataclasses.replace(manifest, parts=tuple(shown)), made


def _said_of(part: Part) -> Guarantee:
    """The guarantee of a plan that is looked at, and not published."""
    return Guarantee(
        promises=(part.promise,), adversary="frequency", rho1=None, rho2=None, worst=Fraction(1), gamma=None
    )


def _planned_again(manifest: Manifest, part: Part, histogram: Histogram) -> Plan | None:
    """The same plan once more, from the manifest and the histogram; None when it does not give the same channels."""
    kind = MECHANISMS.get(manifest.mechanism)
    if kind is None or not dataclasses.is_dataclass(kind):  # a mechanism that this package does not have
        return None
    known = {field.name for field in dataclasses.fields(kind)}
    options = {k: v for k, v in manifest.options.items() if k in known and not isinstance(v, dict)}
    try:
        mechanism = kind(**options)
        privacy = _privacy(manifest, part)
        plan = mechanism.plan(histogram, privacy, public=public_histogram(histogram, part.marginal))
    except (DeniableError, TypeError, ValueError):
        return None
    same = len(plan.cells) == len(part.channels) and all(
        cell.channel.values == channel.values
        and np.array_equal(cell.channel.keep, channel.keep)
        and np.array_equal(cell.channel.replace, channel.replace)
        for cell, channel in zip(plan.cells, part.channels, strict=True)
    )
    return plan if same else None


def _privacy(manifest: Manifest, part: Part) -> Privacy | None:
    stated = manifest.privacy
    if stated is None:
        return None
    back = {
        (type(stored).__name__, stored): value for value in part.domain if (stored := values.to_json(value)) is not None
    }

    def value_of(stored: Any) -> Hashable:
        if stored is None:
            return None
        try:
            return back[(type(stored).__name__, stored)]
        except KeyError:
            raise TableError("The manifest's requirement names a value that is not in its domain.") from None

    return Privacy(
        stated["rho1"],
        stated["rho2"],
        adversary=stated["adversary"],
        per_value={value_of(value): (low, high) for value, low, high in stated["per_value"]},
        exempt=[value_of(value) for value in stated["exempt"]],
    )


def _categories(manifest: Manifest) -> Mapping[Hashable, Hashable] | None:
    """The categories that the release was planned with, if any."""
    stated = manifest.options.get("categories")
    return stated if isinstance(stated, Mapping) and stated else None
