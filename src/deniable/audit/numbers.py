"""Single numbers of a range whose posteriors are those of intervals: what someone concludes who knows how often each
occurs.

    Pr[x | x is published] = f_x (p + (1-p) w) / (f_x p + n (1-p) w)

w being the replacing mass of a point. It grows with f_x, and every other number that is published speaks against x; so
the most frequent number in question is the one that is given away most. Among many points each that occurs is likelier
than its replacements, often by far.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from deniable.audit.findings import SURE, Finding
from deniable.core.arrays import Ints
from deniable.core.errors import option, shortened
from deniable.core.exact import SCALE
from deniable.core.probability import percent
from deniable.core.replace import NumberRange, Requirement


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
