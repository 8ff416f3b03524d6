"""Checks of a release, and the arithmetic that they share: whole numbers out of 2^32, nothing rounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

FULL = 2**32


@dataclass(frozen=True)
class Check:
    """One promise: what was checked, whether it holds, and the numbers."""

    what: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Certificate:
    """All checks of a release; prints one line per check."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.holds)

    def to_dict(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "checks": [{"what": c.what, "holds": c.holds, "detail": c.detail} for c in self.checks],
        }

    def __str__(self) -> str:
        return "\n".join(f"{'ok  ' if c.holds else 'FAIL'} {c.what}: {c.detail}" for c in self.checks)


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


def all_cells(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [cell for part in manifest["sensitive"] for cell in part["cells"]]
