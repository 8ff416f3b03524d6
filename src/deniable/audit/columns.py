"""Columns that are perturbed one by one: each one's own requirement, and what two of them say about each other.

A row shows a published value of both columns. With N[x][z] rows of each pair and coins p, q, someone who knows how
often each pair occurs believes x, on seeing (x, y), at

    N'[x][y] P[x][x] / sum_k N'[k][y] P[x][k],    N'[x][y] = sum_z N[x][z] Q[y][z]

Of all that a row can show in the first column, x itself speaks most for x: with one coin every other value speaks
against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.audit.breaches import Limits, limits_of, protects
from deniable.audit.findings import Finding, Grade
from deniable.core.arrays import Counts
from deniable.core.channel import Channel
from deniable.core.errors import option, shortened
from deniable.core.exact import SCALE
from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.probability import percent
from deniable.core.promise import DecoyGroups
from deniable.core.swapping import swapping_coin

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
