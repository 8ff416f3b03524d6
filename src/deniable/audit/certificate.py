"""The certificate: a release's promises, recomputed from its manifest alone.

Nothing here uses the code that planned the release. Probabilities are rebuilt from the manifest's integers, and each
promise is checked in exact arithmetic.
"""

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


def certificate(manifest: Mapping[str, Any]) -> Certificate:
    """Check everything that a manifest (as JSON) promises about its channels."""
    checks = [check for part in manifest["sensitive"] for check in (*_channels(part), *_marginal(part))]
    return Certificate((*checks, *_amplifications(manifest), *_requirement(manifest)))


def _channels(part: Mapping[str, Any]) -> list[Check]:
    m = len(part["domain"])
    for number, cell in enumerate(part["cells"]):
        sizes = {len(cell["values"]), len(cell["keep"]), len(cell["replace"])}
        places = cell["values"]
        sound = (
            len(sizes) == 1
            and len(set(places)) == len(places)
            and all(0 <= place < m for place in places)
            and all(0 <= keep <= FULL for keep in cell["keep"])
            and all(weight >= 0 for weight in cell["replace"])
            and sum(cell["replace"]) == FULL
        )
        if not sound:
            return [Check("channels", False, f"cell {number} is not a channel: its numbers do not add up")]
    count = len(part["cells"])
    return [Check("channels", True, f"{count} cell{'s' * (count != 1)}, columns add up to 1 exactly")]


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


def _amplifications(manifest: Mapping[str, Any]) -> list[Check]:
    promised = manifest["guarantee"]
    computed = [cell_amplification(cell["keep"], cell["replace"]) for cell in _cells(manifest)]
    checks = []
    if promised["gamma"] is not None:
        whole = computed[0] if len(computed) == 1 else None
        holds = whole is not None and whole <= Fraction(promised["gamma"])
        told = "unbounded" if whole is None else f"{float(whole):.6g}"
        checks.append(
            Check("amplification", holds, f"gamma is {told}, promised {float(Fraction(promised['gamma'])):.6g}")
        )
    cells = promised["cell_gammas"]
    if cells:
        wrong = [
            number
            for number, (found, said) in enumerate(zip(computed, cells, strict=False))
            if said is not None and (found is None or found > Fraction(said))
        ]
        holds = not wrong and len(cells) == len(computed)
        detail = (
            f"{len(cells)} cells at or below their gamma" if holds else f"cells {wrong or 'missing'} exceed their gamma"
        )
        checks.append(Check("cell amplification", holds, detail))
    return checks


def _requirement(manifest: Mapping[str, Any]) -> list[Check]:
    """(rho1, rho2)-privacy through amplification, where the manifest promises it (THESIS Thm 1)."""
    promised, required = manifest["guarantee"], manifest["privacy"]
    checks = []
    if required is not None:
        weaker = promised["adversary"] != required["adversary"] and required["adversary"] == "any-prior"
        checks.append(
            Check("adversary", not weaker, f"required {required['adversary']}, promised {promised['adversary']}")
        )
        for name in ("rho1", "rho2"):
            if required[name] is not None and promised[name] is not None:
                said, asked = Fraction(promised[name]), Fraction(required[name])
                holds = said >= asked if name == "rho1" else said <= asked
                checks.append(Check(name, holds, f"required {asked}, promised {said}"))
    if promised["gamma"] is not None and promised["rho1"] is not None and promised["rho2"] is not None:
        rho1, rho2 = Fraction(promised["rho1"]), Fraction(promised["rho2"])
        cells = _cells(manifest)
        gamma = cell_amplification(cells[0]["keep"], cells[0]["replace"])
        posterior = None if gamma is None else rho1 * gamma / (1 - rho1 + rho1 * gamma)
        holds = posterior is not None and posterior <= rho2 and len(cells) == 1
        told = "1" if posterior is None else f"{float(posterior):.6g}"
        checks.append(
            Check(
                "posterior", holds, f"a belief of {float(rho1):.4g} grows to at most {told}, allowed {float(rho2):.6g}"
            )
        )
    return checks


def _cells(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [cell for part in manifest["sensitive"] for cell in part["cells"]]


def _marginal(part: Mapping[str, Any]) -> list[Check]:
    marginal = part["marginal"]
    if marginal is None:
        return []
    holds = len(marginal["counts"]) == len(part["domain"])
    return [
        Check(
            "noisy histogram", holds, f"{len(marginal['counts'])} counts with noise of epsilon {marginal['epsilon']:g}"
        )
    ]
