"""Checks of a release, and the arithmetic that they share: whole numbers out of 2^32, nothing rounded."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.audit.verify import lineups
from deniable.core.promise import Amplification, OneOfItems
from deniable.core.text import first_values, table, title

FULL = 2**32
MARKS = {"holds": "ok  ", "not checked": "--  ", "FAILS": "FAIL"}
NOT_CHECKED = "NOT CHECKED"  # how the detail of a check begins that could not be made


@dataclass(frozen=True)
class Check:
    """One promise.

    Attributes:
        what: was checked.
        holds: whether it does.
        detail: the numbers.
    """

    what: str
    holds: bool
    detail: str

    @property
    def open(self) -> bool:
        """Whether nothing was found against it only because it could not be looked at."""
        return self.holds and self.detail.startswith(NOT_CHECKED)

    @property
    def word(self) -> str:
        """What came of it."""
        return "not checked" if self.open else "holds" if self.holds else "FAILS"


@dataclass(frozen=True, repr=False)
class Certificate:
    """All checks of a release; prints one line per check.

    Attributes:
        checks: in the order in which they were made.
    """

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check does."""
        return all(check.holds for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.holds)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "holds": self.holds,
            "checks": [{"what": c.what, "holds": c.holds, "detail": c.detail} for c in self.checks],
        }

    def __str__(self) -> str:
        return "\n".join(f"{MARKS[c.word]} {c.what}: {c.detail}" for c in self.checks)

    def __repr__(self) -> str:
        if self.holds:
            without = sum(check.open for check in self.checks)
            more = f", {without:,} more cannot be made" if without else ""
            return f"<Certificate: all {len(self.checks) - without:,} checks hold{more}>"
        failed = first_values([check.what for check in self.failures])
        return f"<Certificate: {len(self.failures):,} of {len(self.checks):,} checks fail: {failed}>"

    def _repr_html_(self) -> str:
        """For notebooks: what fails first."""
        ordered = sorted(self.checks, key=lambda check: check.holds)
        rows = [(check.word, check.what, check.detail) for check in ordered]
        return title(repr(self)) + table(["", "check", "numbers"], rows, total=len(rows), what="checks")


def cell_amplification(keep: list[int], replace: list[int]) -> Fraction | None:
    """The largest ratio of two entries in a row of the channel; None when unbounded.

    Row y holds FULL^2 * P[y][x]: keep_y FULL + (FULL - keep_y) w_y at x = y, and (FULL - keep_x) w_y elsewhere. Rows
    with the same coin and weight have the same ratio, so each such pair is looked at once.
    """
    by_coin = sorted(keep)
    worst = Fraction(1)
    if len(keep) < 2:
        return worst
    for k, w in set(zip(keep, replace, strict=True)):
        low = by_coin[0] if k != by_coin[0] else by_coin[1]
        high = by_coin[-1] if k != by_coin[-1] else by_coin[-2]
        entries = [k * FULL + (FULL - k) * w, (FULL - low) * w, (FULL - high) * w]
        if min(entries) > 0:
            worst = max(worst, Fraction(max(entries), min(entries)))
        elif max(entries) > 0:
            return None
    return worst


def part_amplification(part: Mapping[str, Any]) -> Fraction | None:
    """The amplification of a part's only channel or range; None when it is unbounded, or there is not one channel.

    Swapped values are not drawn independently: no amplification is claimed of them.
    """
    if part["swapped"] is not None:
        return None
    if part["range"] is not None:
        return range_amplification(part["range"]["keep"], points(part["range"]))
    if part.get("lineups") is not None:
        return lineups.amplification(part["lineups"])
    cells = part["cells"]
    return cell_amplification(cells[0]["keep"], cells[0]["replace"]) if len(cells) == 1 else None


def amplification_check(named: str, gamma: Fraction | None, promised: Fraction) -> Check:
    """Whether a part's amplification is at most what is promised of it."""
    gamma_text = "unbounded" if gamma is None else f"{float(gamma):.6g}"
    detail = f"{named}: gamma is {gamma_text}, promised {float(promised):.6g}"
    return Check("part amplification", gamma is not None and gamma <= promised, detail)


def belief_checks(
    promise: Amplification | OneOfItems, named: str, gamma: Fraction | None, about: str = ""
) -> list[Check]:
    """Whether a belief of rho1 stays within rho2 at this amplification (THESIS Thm 1); none where none are stated. A
    bound for beliefs that are not said to be of any size would be computed by nobody."""
    rho1, rho2 = promise.rho1, promise.rho2
    if rho1 is None or rho2 is None:
        alone = Check("posterior", False, f"{named}: rho2 goes with rho1, and only one of them is promised")
        return [] if rho1 is rho2 else [alone]
    posterior = Fraction(1) if gamma is None else rho1 * gamma / (1 - rho1 + rho1 * gamma)
    detail = (
        f"{named}: a belief of {float(rho1):.4g}{about} grows to at most {float(posterior):.6g}, "
        f"allowed {float(rho2):.6g}"
    )
    return [Check("posterior", gamma is not None and posterior <= rho2, detail)]


def range_amplification(keep: int, number: int) -> Fraction | None:
    """(K FULL + (FULL-K) w) / ((FULL-K) w), w the numbers out of 2^32 that the least likely point owns."""
    weight = FULL // number
    return None if keep >= FULL else 1 + Fraction(keep * FULL, (FULL - keep) * weight)


def points(scope: Mapping[str, Any]) -> int:
    """Grid points from low to high, both in, and one more where missing is a value."""
    ends = [scope["low"], scope["high"]]
    if scope["kind"] == "date":
        ends = [datetime.date.fromisoformat(end).toordinal() for end in ends]
    low, high, step = (Fraction(repr(float(number))) for number in (*ends, scope["step"]))
    return math.floor((high - low) / step + Fraction(1, 10**6)) + 1 + int(scope["missing"])
