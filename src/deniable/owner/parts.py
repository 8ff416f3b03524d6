"""What is learnt about each part of a release: cells, columns, numbers, line-ups."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from deniable.core import values
from deniable.core.channels import Channel, NumberRange, Requirement
from deniable.core.errors import option, shortened
from deniable.core.exact import SCALE, swapping_coin
from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.promise import Amplification, DecoyGroups, single_values
from deniable.core.values import Counts, Floats, Ints, percent
from deniable.owner.findings import SURE, CellReport, Finding, Grade, namer, view_in_words
from deniable.planning.posteriors import (
    Belief,
    Breach,
    CurvePoint,
    Limits,
    Posteriors,
    View,
    least_likely,
    limits_of,
    protects,
)
from deniable_verify import lineups
from deniable_verify.lineups import COINS, FULL, Line

# -- Single numbers of a range whose posteriors are those of intervals: what someone concludes who knows how often each
# occurs.
#
#     Pr[x | x is published] = f_x (p + (1-p) w) / (f_x p + n (1-p) w)
#
# w being the replacing mass of a point. It grows with f_x, and every other number that is published speaks against x;
# so the most frequent number in question is the one that is given away most. Among many points each that occurs is
# likelier than its replacements, often by far.


@dataclass(frozen=True)
class SureNumber:
    """The number that is given away most.

    Attributes:
        share: of the rows that hold it.
        posterior: how sure one becomes of it where it is published.
        allowed: rho2, where the requirement speaks of it.
    """

    share: Fraction
    posterior: Fraction
    allowed: Fraction | None


def surest_numbers(counts: Ints, grid: NumberRange, required: Requirement | None) -> list[SureNumber]:
    """Of all numbers, and of those that a requirement speaks of.

    Args:
        counts: the rows at each point, missing among them where it is one.
        grid: the range.
        required: of the column.
    """
    rows, known = int(counts.sum()), set(counts[: grid.grid].tolist())  # missing is a value of its own, and listed
    if not rows:
        return []
    numbers = [_sure(max(known), rows, grid, None)]
    if required is not None:
        shares = Fraction(SCALE // grid.points, SCALE) * rows  # of one point in the replacements of all rows
        inside = [
            count
            for count in known
            if count <= required.rho1 * rows and (required.s is None or count < required.s * shares)
        ]
        numbers.append(_sure(max(inside, default=0), rows, grid, required.rho2))
    return numbers


def _sure(count: int, rows: int, grid: NumberRange, allowed: Fraction | None) -> SureNumber:
    keep, drawn = grid.keep * SCALE, (SCALE - grid.keep) * (SCALE // grid.points)
    seen = count * keep + rows * drawn
    return SureNumber(Fraction(count, rows), Fraction(count * (keep + drawn), seen) if seen else Fraction(0), allowed)


def about_numbers(column: str, numbers: list[SureNumber]) -> list[Finding]:
    """At most one finding: serious where the requirement is broken, a caution where someone may be nearly sure."""
    if not numbers:
        return []
    broken = [one for one in numbers if one.allowed is not None and one.posterior > one.allowed]
    worst = broken[0] if broken else numbers[0]
    covered = "" if worst.allowed is None else f"; allowed are {percent(worst.allowed)}"
    detail = (
        f"{shortened(column)} is looked at in intervals. Whoever knows how often each of its numbers occurs becomes up "
        f"to {percent(worst.posterior)} sure of one that {percent(worst.share)} of the rows hold, where it is "
        f"published{covered}."
    )
    if broken:
        return [Finding("serious", "single numbers", detail, "Do not publish this release.")]
    advice = (
        f"Publish coarser numbers (step=, {option('bins', '')}), or a smaller coin, if single numbers may be known."
    )
    strong = worst.posterior > SURE
    return [Finding("caution" if strong else "info", "single numbers", detail, advice if strong else "")]


# -- What an attacker who knows how frequent each value is concludes from a line-up, over all sets that a row may show.
#     Pr[x | S] = f_x P(S | x) / sum_k f_k P(S | k)
#
# Sets and their probabilities are recomputed from the manifest, as ``verify`` does it; nothing is rounded.


class Seen(NamedTuple):
    """One set: its members, what each weighs, what everyone else weighs, and the rows that show it."""

    view: View
    members: dict[int, int]
    blind: int
    rows: int


class LineUpPosteriors:
    """Every posterior of a release of line-ups, for the attacker whose prior is the frequency of each value.

    Args:
        design: of the line-ups, as the manifest has it.
        counts: how many rows hold each value.
    """

    def __init__(self, design: Mapping[str, Any], counts: Counts) -> None:
        self._design = design
        self._coin = design["truth"] * COINS // FULL
        self._counts = [int(count) for count in counts]
        self._total = sum(self._counts)

    @cached_property
    def amplification(self) -> Fraction | None:
        """max P(S | x) / P(S | x'); None where a set rules values out."""
        return lineups.amplification(self._design)

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """The extremes for every value that has rows, in the order of the domain."""
        seen = [one for one in self._sets if one.rows]
        inside: dict[int, list[tuple[Fraction, View]]] = {}
        for one in seen:
            for x, weight in one.members.items():
                inside.setdefault(x, []).append((Fraction(self._counts[x] * weight, one.rows), one.view))
        outside = sorted(((Fraction(one.blind, one.rows), one) for one in seen), key=lambda pair: pair[0])
        return tuple(self._belief(x, inside.get(x, []), outside) for x, rows in enumerate(self._counts) if rows)

    @cached_property
    def _sets(self) -> list[Seen]:
        return [self._seen(line) for line in lineups.lines(self._design)]

    def _seen(self, line: Line) -> Seen:
        blind = (COINS - self._coin) * line.blind
        members = {x: self._coin * draws + blind for x, draws in zip(line.members, line.draws, strict=True)}
        rows = blind * self._total + sum(self._counts[x] * (weight - blind) for x, weight in members.items())
        return Seen((None, line.members), members, blind, rows)

    def _belief(self, x: int, inside: list[tuple[Fraction, View]], outside: list[tuple[Fraction, Seen]]) -> Belief:
        """Of the sets without x only those where everyone outside is likeliest and unlikeliest matter."""
        options = list(inside)
        for ratios in (outside, reversed(outside)):
            extreme = next(((ratio, one.view) for ratio, one in ratios if x not in one.members), None)
            if extreme is not None:
                options.append((self._counts[x] * extreme[0], extreme[1]))
        highest, lowest = max(options, key=lambda one: one[0]), min(options, key=lambda one: one[0])
        prior = Fraction(self._counts[x], self._total)
        return Belief(x, prior, *highest, *lowest, prior)

    @cached_property
    def held(self) -> Ints:
        """The rows of each value."""
        return np.array(self._counts)

    def against(self, x: int) -> Floats:
        """Of every value, how rarely it shows a set that has x (``repeats``); few are in all of these sets."""
        rows = self._with[[x]].indices
        inside, blind = self._members[rows], np.array([self._sets[row].blind for row in rows.tolist()], dtype=float)
        own = inside[:, [x]].toarray()[:, 0]
        return least_likely(inside, own, float((blind / own).min()))

    @cached_property
    def _members(self) -> sparse.csr_array:
        """What each member of each set weighs, [sets, values]."""
        weights = np.array([weight for one in self._sets for weight in one.members.values()], dtype=float)
        columns = np.array([x for one in self._sets for x in one.members])
        ends = np.cumsum([0, *(len(one.members) for one in self._sets)])
        return sparse.csr_array((weights, columns, ends), shape=(len(self._sets), len(self._counts)))

    @cached_property
    def _with(self) -> sparse.csr_array:
        return self._members.T.tocsr()


# -- Single values of columns that were perturbed together: a bound for the tuple is none for each of its entries ------
# (mathematics 13.6).


@dataclass(frozen=True)
class SingleBelief:
    """How sure an attacker who knows the frequencies becomes of one column's value.

    Attributes:
        column, value: whose.
        prior, highest: before, and at most afterwards.
        covered: whether the promise of the release is about it.
    """

    column: str
    value: Hashable
    prior: Fraction
    highest: Fraction
    covered: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "value": values.to_json(self.value),
            "prior": float(self.prior),
            "highest": float(self.highest),
            "covered": self.covered,
        }


def single_beliefs(part: Part, posteriors: Posteriors) -> tuple[SingleBelief, ...]:
    """Beliefs in each column's values, by column; none where one column was perturbed alone."""
    beliefs = []
    for column in single_values(part.domain):
        rows = [0] * len(column.values)
        for place, number in posteriors.totals.items():
            rows[int(column.codes[place])] += number
        sure = posteriors.of_sets(column.codes)
        for place, value in enumerate(column.values):
            prior = Fraction(rows[place], max(posteriors.rows, 1))
            covered = _covered(part.promise, column.column, place, prior)
            beliefs.append(SingleBelief(part.columns[column.column], value, prior, sure[place], covered))
    return tuple(beliefs)


def _covered(promise: Any, column: int, place: int, prior: Fraction) -> bool:
    if isinstance(promise, Amplification):
        return promise.rho1 is not None and prior <= promise.rho1
    return hasattr(promise, "loose") and promise.rho2 is not None and (column, place) not in promise.loose


def about_singles(beliefs: Sequence[SingleBelief], rho2: Fraction | None) -> list[Finding]:
    """What is learnt of a column's value alone, beside the promise."""
    if not beliefs:
        return []
    covered = [belief for belief in beliefs if belief.covered]
    if rho2 is not None and (broken := [belief for belief in covered if belief.highest > rho2]):
        worst = max(broken, key=lambda belief: belief.highest)
        return [
            Finding(
                "serious",
                "single values",
                f"{len(broken)} values of one column alone can be believed above the bound. Worst: {_in_words(worst)}; "
                f"allowed are {percent(rho2)}.",
                "Do not publish this release. Check it with `deniable verify`, and publish the table anew.",
            )
        ]
    said = []
    if covered:
        worst = max(covered, key=lambda belief: belief.highest)
        detail = f"of one column alone the promise covers {len(covered)} values. Most exposed: {_in_words(worst)}."
        said.append(Finding("info", "single values", detail, ""))
    if rest := [belief for belief in beliefs if not belief.covered]:
        worst = max(rest, key=lambda belief: belief.highest)
        detail = f"{len(rest)} values of one column alone are not covered. Most exposed: {_in_words(worst)}."
        advice = "If a column's value is sensitive by itself, publish with a rho1 that covers it."
        said.append(Finding("caution", "single values, not covered", detail, advice))
    return said


def _in_words(belief: SingleBelief) -> str:
    name = shortened(belief.value, 40)
    return f"{belief.column} {name}, {percent(belief.prior)} before, up to {percent(belief.highest)} afterwards"


# -- What is learnt about one sensitive column, or several that were perturbed as one ----------------------------------


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
        rows_from: where the rows of each cell are known from: ``"histogram"`` (one cell), ``"plan"``, ``"estimate"``,
            or ``"line-ups"`` where there are no cells.
        singles: of columns that were perturbed together, what is learnt about each one's values.
    """

    columns: tuple[str, ...]
    domain: tuple[Hashable, ...]
    posteriors: Posteriors | LineUpPosteriors
    limits: Limits
    upward: tuple[Breach, ...]
    downward: tuple[Breach, ...]
    curve: tuple[CurvePoint, ...]
    gamma: Fraction | None
    cells: CellReport | None
    rows_from: str
    singles: tuple[SingleBelief, ...] = ()

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return self.posteriors.beliefs

    @property
    def worst(self) -> tuple[Belief, ...]:
        """The values an attacker can become surest of, protected ones first."""
        return tuple(sorted(self.beliefs, key=lambda belief: (not self._protects(belief), -belief.highest)))

    @property
    def worst_protected(self) -> Fraction:
        """The largest posterior of a protected value; of any value where nothing is required."""
        required = self.rho2 is not None
        chosen = [belief for belief in self.beliefs if not required or self._protects(belief)]
        return max((belief.highest for belief in chosen), default=Fraction(0))

    @property
    def rho2(self) -> Fraction | None:
        """How sure one may become of a protected value, the largest of several; None where nothing is required."""
        return max((limit[1] for limit in self.limits if limit is not None), default=None)

    def _protects(self, belief: Belief) -> bool:
        return protects(self.limits[belief.position], belief.prior)

    def to_dict(self) -> dict[str, Any]:
        domain = [values.to_json(value) for value in self.domain]

        def published(view: View) -> Any:
            shown = view[1]
            return [domain[x] for x in shown] if isinstance(shown, tuple) else None if shown is None else domain[shown]

        def breach(one: Breach) -> dict[str, Any]:
            return {
                "value": domain[one.position],
                "prior": float(one.prior),
                "posterior": float(one.posterior),
                "allowed": float(one.allowed),
                "published": published(one.view),
                "cell": one.view[0],
            }

        return {
            "columns": list(self.columns),
            "gamma": None if self.gamma is None else float(self.gamma),
            "epsilon": None if self.gamma is None else math.log(self.gamma),
            "worst_posterior": float(self.worst_protected),
            "values": [
                {
                    "value": domain[belief.position],
                    "prior": float(belief.prior),
                    "highest": float(belief.highest),
                    "lowest": float(belief.lowest),
                    "cell_only": float(belief.cell_only),
                    "protected": self._protects(belief),
                }
                for belief in self.beliefs
            ],
            "upward": [breach(one) for one in self.upward],
            "downward": [breach(one) for one in self.downward],
            "stronger_priors": [
                {
                    "belief": point.label,
                    "value": domain[point.position],
                    "prior": float(point.prior),
                    "posterior": float(point.posterior),
                }
                for point in self.curve
            ],
            "single_values": [belief.to_dict() for belief in self.singles],
            "cells": None if self.cells is None else {**self.cells.__dict__, "rows_from": self.rows_from},
        }

    def worst_rows(self) -> list[tuple[str, ...]]:
        """The values an attacker can become surest of: column, value, belief before, belief after, and when."""
        name = namer(self.domain)
        return [
            (
                ", ".join(self.columns),
                name(belief.position),
                percent(belief.prior),
                percent(belief.highest),
                view_in_words(belief.most_telling, name),
            )
            for belief in self.worst[:WORST_SHOWN]
        ]

    def lines(self) -> list[str]:
        """The same and more as text, for ``str`` of an audit."""
        name = namer(self.domain)
        text = [f"{', '.join(self.columns)}: {len(self.domain):,} values"]
        text += [
            f"  {value}: {prior} before, up to {sure} when {seen}" for _, value, prior, sure, seen in self.worst_rows()
        ]
        text += [
            f"  believed at {percent(p.prior)} ({p.label}): up to {percent(p.posterior)} ({name(p.position)})"
            for p in self.curve
        ]
        text.append(f"  epsilon: {'unbounded' if self.gamma is None else f'{math.log(self.gamma):.4g}'}")
        return text


# -- Columns that are perturbed one by one: each one's own requirement, and what two of them say about each other ------
# A row shows a published value of both columns. With N[x][z] rows of each pair and coins p, q, someone who knows how
# often each pair occurs believes x, on seeing (x, y), at
#
#     N'[x][y] P[x][x] / sum_k N'[k][y] P[x][k],    N'[x][y] = sum_z N[x][z] Q[y][z]
#
# Of all that a row can show in the first column, x itself speaks most for x: with one coin every other value speaks
# against it.


WORTH_SAYING = 0.05  # by how much two columns must say more than one, where nothing is required


def requirement_of(manifest: Manifest, part: Part) -> dict[str, Any] | None:
    """The requirement for one part as JSON has it: the column's own, the release's, or what is promised without one."""
    stated = {"adversary": "frequency", "per_value": [], "exempt": []}
    own = part.requirement
    if own is not None:
        return {**stated, "rho1": str(own.rho1), "rho2": str(own.rho2), "adversary": own.adversary}
    if manifest.privacy is not None:
        return dict(manifest.privacy)
    if isinstance(part.promise, DecoyGroups):
        return {**stated, "rho1": None, "rho2": f"1/{part.promise.c}"}
    if manifest.guarantee["rho2"] is not None:
        return {**stated, "rho1": manifest.guarantee["rho1"], "rho2": manifest.guarantee["rho2"]}
    return None


def limits_of_part(manifest: Manifest, part: Part, histogram: Histogram) -> Limits:
    """Each value's (rho1, rho2). (s, rho1, rho2) speaks of values with p_x / m_x < s (OLAP Def. 5), and upward only."""
    limits = limits_of(requirement_of(manifest, part), part.domain)
    own = part.requirement
    if own is None or own.s is None or not (part.range is not None or part.channels[0].is_uniform):
        return limits
    weights, full = part.channels[0].replace.tolist(), part.channels[0].replace.sum()
    return tuple(
        limit if Fraction(int(count) * int(full), histogram.rows) < own.s * weight else None
        for limit, count, weight in zip(limits, histogram.counts, weights, strict=True)
    )


@dataclass(frozen=True)
class PairBelief:
    """How sure two columns of a row make someone of one value of the first, at most.

    Attributes:
        columns: the column that the value is of, and the one that speaks for it.
        value: the value.
        prior, alone, together: the belief before, on seeing the first column, on seeing both.
        allowed: rho2, where the first column's requirement protects the value.
    """

    columns: tuple[str, str]
    value: Any
    prior: float
    alone: float
    together: float
    allowed: float | None

    @property
    def beyond(self) -> bool:
        return self.allowed is not None and self.together > self.allowed

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "columns": list(self.columns), "value": str(self.value)}


def pair_posteriors(joint: Counts, one: Channel, other: Channel) -> tuple[np.ndarray, np.ndarray]:
    """For each value of the first column the largest belief on seeing it, and on seeing it with the other column."""
    rows = joint.astype(np.float64)
    p, r, q, s = one.coins[0], one.replacing, other.coins[0], other.replacing
    seen = q * rows + (1 - q) * np.outer(rows.sum(1), s)  # N'

    def after(table: np.ndarray) -> np.ndarray:
        mine = (p + (1 - p) * r)[:, None] * table
        every = p * table + (1 - p) * r[:, None] * table.sum(0)
        return np.divide(mine, every, out=np.zeros_like(mine), where=every > 0).max(1)

    return after(rows.sum(1, keepdims=True)), after(seen)


def pair_beliefs(
    names: tuple[str, str], joint: Counts, channels: tuple[Channel, Channel], limits: Limits
) -> PairBelief | None:
    """The value of the first column for which the second says most, protected ones where a requirement names some."""
    prior = joint.sum(1) / max(joint.sum(), 1)
    alone, together = pair_posteriors(joint, *channels)
    required = any(limit is not None for limit in limits)
    inside = np.array([not required or protects(limit, share) for limit, share in zip(limits, prior, strict=True)])
    inside &= prior > 0
    if not inside.any():
        return None
    bounds = np.array([1.0 if limit is None else float(limit[1]) for limit in limits])
    off = np.where(inside, together - (bounds if required else alone), -np.inf)
    x = int(np.argmax(off))
    allowed = float(bounds[x]) if required else None
    return PairBelief(names, channels[0].values[x], float(prior[x]), float(alone[x]), float(together[x]), allowed)


def pairs_of(
    parts: Sequence[Part], limits: Sequence[Limits], joints: Mapping[tuple[int, int], Counts]
) -> tuple[PairBelief, ...]:
    """What each of two columns says about the other, for all pairs that were counted."""
    made = []
    for (i, j), joint in joints.items():
        for one, other, counts in ((i, j, joint), (j, i, joint.T)):
            names = parts[one].columns[0], parts[other].columns[0]
            made.append(pair_beliefs(names, counts, (row_channel(parts[one]), row_channel(parts[other])), limits[one]))
    return tuple(pair for pair in made if pair is not None)


def of_column(finding: Finding, part: Part) -> Finding:
    """The finding with its column named."""
    return replace(finding, detail=f"{', '.join(map(repr, part.columns))}: {finding.detail}")


def about_pairs(pairs: Sequence[PairBelief]) -> list[Finding]:
    """For each column the other one that says most about it, where that matters."""
    findings = []
    for column in dict.fromkeys(pair.columns[0] for pair in pairs):
        mine = [pair for pair in pairs if pair.columns[0] == column]
        worst = max(mine, key=lambda pair: pair.together - (pair.allowed or pair.alone))
        if not worst.beyond and worst.together - worst.alone < WORTH_SAYING:
            continue
        allowed = "" if worst.allowed is None else f"; {percent(worst.allowed)} are allowed of this column alone"
        one, other = worst.columns
        detail = (
            f"{one!r} and {other!r}: whoever knows how often each pair of values occurs can become "
            f"{percent(worst.together)} sure of {shortened(worst.value, 40)}, which was {percent(worst.prior)} before "
            f"and is up to {percent(worst.alone)} by {one!r} alone{allowed}."
        )
        advice = "Drop one of them, lower their coins, or publish them as one column (mechanism 'uniform')."
        grade: Grade = "caution" if worst.beyond else "info"
        findings.append(Finding(grade, "correlated columns", detail, advice if worst.beyond else ""))
    return findings


def row_channel(part: Part) -> Channel:
    """What one row of a column goes through. Swapping among the rows comes to a coin that is larger the fewer there
    are."""
    channel = part.channels[0]
    if part.swapped is None:
        return channel
    keep = math.ceil(swapping_coin(int(channel.keep[0]), part.swapped) * SCALE)
    return Channel(channel.values, np.full(channel.m, keep, dtype=np.int64), channel.replace)


def dependent_finding(part: Part) -> Finding:
    """Of rows that are drawn from each other's values no channel says what any belief can grow to."""
    if part.swapped is not None:
        why = f"the exact histogram of {part.columns[0]!r} is published"
        who = "someone who knows all rows but one can tell the last one's value."
        advice = "Publish with replacing='uniform', or 'identity', if such attackers are likely."
    else:
        why = "rows show values of others in their group"
        who = "someone who knows other people's values can tell whose a published one must be."
        advice = f"Publish with {option('adversary', 'any-prior')} if such attackers are likely."
    return Finding("caution", "any belief", f"{why}, so no local differential privacy is claimed: {who}", advice)
