"""Findings: what an owner should know before publishing, how bad it is, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from deniable.audit.breaches import Breach, CurvePoint
from deniable.audit.cells import CellReport
from deniable.audit.extremes import View
from deniable.audit.rows import FEW, RowReport
from deniable.core.errors import option, shortened
from deniable.core.manifest import Randomness
from deniable.core.privacy import worst_posterior
from deniable.core.probability import percent

Grade = Literal["info", "caution", "serious"]
GRADES: tuple[Grade, ...] = ("serious", "caution", "info")
MUCH_REVEALED = 0.25  # a quarter of the uncertainty about a value gone before it is seen
SURE = Fraction(1, 2)
OFTEN_UNIQUE = 0.05
SHOWN = 6  # values of a line-up
FREQUENCIES = "the frequencies"


@dataclass(frozen=True)
class Finding:
    """One thing to know.

    Attributes:
        grade: ``"serious"`` means do not publish this, ``"caution"`` means decide, ``"info"`` means know.
        what: in a word or two.
        detail: in a sentence, with the figures.
        advice: what to do; empty where there is nothing to do.
    """

    grade: Grade
    what: str
    detail: str
    advice: str

    def to_dict(self) -> dict[str, str]:
        """As JSON has it."""
        return {"grade": self.grade, "what": self.what, "detail": self.detail, "advice": self.advice}

    def __str__(self) -> str:
        return f"[{self.grade}] {self.what}: {self.detail}" + (f" What to do: {self.advice}" if self.advice else "")


Name = Callable[[int], str]


def namer(domain: Sequence[Hashable]) -> Name:
    """Values for messages, by position."""
    return lambda position: shortened(domain[position], 40)


def view_in_words(view: View, name: Name) -> str:
    cell, y = view
    if y is None:
        return f"the row is in group {cell}"
    if isinstance(y, tuple):
        return f"the line-up {', '.join(map(name, y[:SHOWN]))}{', ..' if len(y) > SHOWN else ''} is published"
    return f"{name(y)} is published" + ("" if cell is None else f" in cell {cell}")


def about_breaches(
    up: Sequence[Breach], down: Sequence[Breach], worst: Fraction, required: bool, name: Name, known: str = FREQUENCIES
) -> list[Finding]:
    """The stated requirement, upward and downward, against the frequency adversary; ``known`` is what they know."""
    findings = []
    if not required:
        findings.append(
            Finding("info", "requirement", "the release states none.", "Publish with rho2, or use it to compare with.")
        )
    elif up:
        first = up[0]
        findings.append(
            Finding(
                "serious",
                "upward breach",
                f"{_values(len(up))} can be believed above the bound. Worst: {name(first.position)}, "
                f"{percent(first.prior)} before, {percent(first.posterior)} when {view_in_words(first.view, name)}; "
                f"allowed are {percent(first.allowed)}.",
                "Do not publish this release. Check it with `deniable verify`, and publish the table anew.",
            )
        )
    else:
        findings.append(
            Finding(
                "info",
                "requirement",
                f"holds: nobody who knows {known} becomes surer of a protected value than {percent(worst)}.",
                "",
            )
        )
    if down:
        first = down[0]
        findings.append(
            Finding(
                "caution",
                "downward breach",
                f"{_values(len(down))} believed above rho2 can be believed below rho1 afterwards. Worst: "
                f"{name(first.position)}, {percent(first.prior)} before, {percent(first.posterior)} when "
                f"{view_in_words(first.view, name)}.",
                "If it matters that a frequent value can be ruled out, use a mechanism without published cells.",
            )
        )
    return findings


def about_any_prior(gamma: Fraction | None, privacy: Mapping[str, Any] | None, noise_epsilon: float) -> list[Finding]:
    """Amplification: what someone with any belief up to rho1 can become sure of."""
    named = privacy is not None and privacy["adversary"] == "any-prior"
    if gamma is None:
        return [
            Finding(
                "serious" if named else "caution",
                "any belief",
                "the amplification is unbounded: some published rows rule some values out, whatever was believed."
                + (" The requirement names the adversary 'any-prior', so it is broken." if named else ""),
                "Against attackers who know more than the frequencies, publish with "
                f"{option('adversary', 'any-prior')}.",
            )
        ]
    epsilon = f"gamma {float(gamma):.4g}, epsilon {math.log(gamma):.4g}"
    noise = f" The noisy histogram adds {noise_epsilon:g} to epsilon." if noise_epsilon else ""
    if privacy is None or privacy["rho1"] is None or privacy["rho2"] is None:
        detail = f"odds of any value grow by at most the factor gamma ({epsilon}), whatever was believed.{noise}"
        return [Finding("info", "any belief", detail, "")]
    rho1, rho2 = Fraction(privacy["rho1"]), Fraction(privacy["rho2"])
    posterior = worst_posterior(rho1, gamma)
    detail = f"a belief of {percent(rho1)} in any value grows to at most {percent(posterior)} ({epsilon}).{noise}"
    if named and posterior > rho2:
        return [
            Finding("serious", "any belief", f"{detail} Allowed are {percent(rho2)}.", "Do not publish this release.")
        ]
    return [Finding("info", "any belief", detail, "")]


def about_stronger(points: Sequence[CurvePoint], name: Name) -> list[Finding]:
    """Attackers who believe more than the frequency (mathematics 2: report the posterior for priors above it)."""
    tenth = next((point for point in points if point.label == "10 %"), None)
    if tenth is None:
        return []
    strong = tenth.posterior > SURE
    detail = (
        f"whoever believes {name(tenth.position)} at {percent(tenth.prior)} beforehand, and all else by the "
        f"frequencies, can become {percent(tenth.posterior)} sure, the worst of all values."
    )
    advice = (
        f"Lower rho2, or publish with {option('adversary', 'any-prior')}, if such attackers are likely."
        if strong
        else ""
    )
    return [Finding("caution" if strong else "info", "stronger beliefs", detail, advice)]


def about_cells(report: CellReport | None) -> list[Finding]:
    """What cells say by themselves."""
    if report is None or report.count < 2:
        return []
    narrow = report.smallest_domain < 3
    one_kind = report.fewest_categories == 1
    much = report.share_revealed > MUCH_REVEALED
    detail = (
        f"a row's cell takes away {report.revealed:.2f} of {report.entropy:.2f} bits of uncertainty; "
        f"the smallest cell holds {report.smallest_domain} values"
        + ("." if report.fewest_categories is None else f", the narrowest {report.fewest_categories} categories.")
    )
    advice = (
        "Merge cells: min_rows, keep_apart or categories with min_categories." if narrow or one_kind or much else ""
    )
    grade: Grade = "serious" if one_kind else "caution" if narrow or much else "info"
    return [Finding(grade, "cells", detail, advice)]


def about_rows(report: RowReport, rho2: Fraction | None, drawn: Randomness, sensitive: Sequence[str]) -> list[Finding]:
    """Rows of another table, order, rare combinations, repeated rows."""
    findings = []
    if report.foreign:
        detail = (
            f"{percent(report.foreign / max(report.rows, 1))} of the published rows have public values that the table "
            "does not have, or has less often: the release was made from another table, or this one has changed since. "
            "The figures here are of the table that was given."
        )
        findings.append(Finding("serious", "another table", detail, "Audit with the table that was published."))
    telling = [name for name in report.ordered if name in (*sensitive, "cell")]
    if telling:
        detail = f"{', '.join(map(repr, telling))} depends on where in the release a row stands."
        findings.append(Finding("serious", "row order", detail, "Publish with shuffling (leave --no-shuffle away)."))
    elif report.ordered or report.same_order or not drawn.shuffled:
        detail = (
            "the rows stand in the order of the table." if report.same_order else "the rows are not in random order."
        )
        findings.append(
            Finding("caution", "row order", detail, "Publish with shuffling, or be sure the order says nothing.")
        )
    else:
        findings.append(Finding("info", "row order", "random, as far as a test can tell.", ""))
    share = report.unique / max(report.rows, 1)
    if report.rare:
        findings.append(
            Finding(
                "caution" if share >= OFTEN_UNIQUE else "info",
                "rare public combinations",
                f"{percent(share)} of the rows are alone in their public columns, "
                f"{percent(report.rare / report.rows)} share them with fewer than {FEW}: whoever knows these columns "
                f"finds the person's row. Its value stays deniable.",
                "Drop or coarsen public columns if taking part must stay secret." if share >= OFTEN_UNIQUE else "",
            )
        )
    if report.repeated >= 2:
        bad = rho2 is not None and report.repeated_posterior > rho2 and not drawn.by_person
        person = (
            "Those of one name are published alike, which is one draw; if others of them are one person"
            if drawn.by_person
            else "If they are one person"
        )
        findings.append(
            Finding(
                "caution" if bad else "info",
                "repeated rows",
                f"up to {report.repeated} rows share all public columns and the sensitive value. {person}, that is as "
                f"many draws: up to {percent(report.repeated_posterior)} sure.",
                "Publish one row per person." if bad else "",
            )
        )
    return findings


def about_randomness(source: str, seed: int | None) -> list[Finding]:
    """Where the draws came from."""
    if seed is None:
        return []
    return [
        Finding(
            "serious",
            "seed",
            f"the draws come from a {source} that the manifest shows; whoever has it can undo the release.",
            f"Publish without {option('seed', '')}. A seed is for experiments on tables that hold no secrets.",
        )
    ]


def by_grade(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The serious ones first."""
    return tuple(sorted(findings, key=lambda finding: GRADES.index(finding.grade)))


def _values(count: int) -> str:
    return f"{count:,} value{'s' * (count != 1)}"
