"""The certificate: a release's promises, recomputed from its manifest alone.

Nothing here uses the code that planned the release. Probabilities are rebuilt from the manifest's integers, and each
promise is checked in exact arithmetic.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
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
    return Certificate((*checks, *_amplifications(manifest), *_breaches(manifest), *_requirement(manifest)))


def _channels(part: Mapping[str, Any]) -> list[Check]:
    m = len(part["domain"])
    if part["range"] is not None:
        sound = not part["cells"] and 0 <= part["range"]["keep"] <= FULL and 1 < _points(part["range"]) <= FULL
        return [Check("range", sound, f"{_points(part['range']):,} points, coin {part['range']['keep'] / FULL:.6g}")]
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
    if not count:
        return []
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
    by_part = [_part_amplifications(part) for part in manifest["sensitive"]]
    computed = [gamma for gammas in by_part for gamma in gammas]
    checks = []
    if promised["gamma"] is not None:
        whole = _product([gammas[0] if len(gammas) == 1 else None for gammas in by_part])
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
        what = "cells" if len(by_part) == 1 else "columns"
        each = ", ".join("unbounded" if g is None else f"{math.log(g):.3g}" for g in computed[:16])
        detail = (
            f"{len(cells)} {what} at or below their gamma; epsilon {each}"
            if holds
            else f"{what} {wrong or 'missing'} exceed their gamma"
        )
        checks.append(Check("cell amplification", holds, detail))
    return checks


def _part_amplifications(part: Mapping[str, Any]) -> list[Fraction | None]:
    if part["range"] is None:
        return [cell_amplification(cell["keep"], cell["replace"]) for cell in part["cells"]]
    return [range_amplification(part["range"]["keep"], _points(part["range"]))]


def range_amplification(keep: int, points: int) -> Fraction | None:
    """(K FULL + (FULL-K) w) / ((FULL-K) w), w the numbers out of 2^32 that the least likely point owns."""
    weight = FULL // points
    return None if keep >= FULL else 1 + Fraction(keep * FULL, (FULL - keep) * weight)


def _points(scope: Mapping[str, Any]) -> int:
    """Grid points from low to high, both in, and one more where missing is a value."""
    ends = [scope["low"], scope["high"]]
    if scope["kind"] == "date":
        ends = [datetime.date.fromisoformat(end).toordinal() for end in ends]
    low, high, step = (Fraction(repr(float(number))) for number in (*ends, scope.get("step", 1)))
    return math.floor((high - low) / step + Fraction(1, 10**6)) + 1 + int(scope.get("missing", False))


def _product(gammas: Sequence[Fraction | None]) -> Fraction | None:
    """Parts are perturbed independently: their amplifications multiply."""
    known = [gamma for gamma in gammas if gamma is not None]
    return math.prod(known, start=Fraction(1)) if len(known) == len(gammas) else None


def _breaches(manifest: Mapping[str, Any]) -> list[Check]:
    """Columns with a requirement of their own: (s, rho1, rho2) (OLAP Thm 4, Lemma 1), or (rho1, rho2) by gamma."""
    checks = []
    options = (
        manifest["mechanism"]["options"].get("columns", {}) if manifest["mechanism"]["name"] == "retention" else {}
    )
    for part in manifest["sensitive"]:
        asked = options.get(part["columns"][0], {})
        if "privacy" in asked and asked["replacing"] == "uniform":
            gamma, (rho1, rho2) = _part_amplifications(part)[0], map(Fraction, asked["privacy"].values())
            holds = gamma is not None and gamma * rho1 * (1 - rho2) <= rho2 * (1 - rho1)
            checks.append(Check(f"requirement of {part['columns'][0]!r}", holds, f"rho1 = {rho1}, rho2 = {rho2}"))
        if "breach" not in asked:
            continue
        s, rho1, rho2 = map(Fraction, asked["breach"])
        keep = part["range"]["keep"] if part["range"] is not None else max(part["cells"][0]["keep"])
        s = Fraction(1) if asked["replacing"] != "uniform" else s
        holds = s * (1 - rho2) * keep < (rho2 - rho1) * (FULL - keep)
        detail = f"coin {keep / FULL:.6g}, for s = {float(s):g}, rho1 = {float(rho1):g}, rho2 = {float(rho2):g}"
        checks.append(Check(f"no breach in {part['columns'][0]!r}", holds, detail))
    return checks


def _requirement(manifest: Mapping[str, Any]) -> list[Check]:
    """What was required against what is promised, and the promise itself by what it rests on."""
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
    by_basis = {
        "amplification": _by_amplification,
        "frequency": _by_frequency,
        "per-value": _by_value,
        "cells": _by_cell,
    }
    recompute = by_basis.get(promised["basis"])
    return checks if recompute is None else [*checks, *recompute(manifest)]


def _by_amplification(manifest: Mapping[str, Any]) -> list[Check]:
    """(rho1, rho2)-privacy through the amplification of one channel (THESIS Thm 1)."""
    promised, cells = manifest["guarantee"], _cells(manifest)
    rho1, rho2 = Fraction(promised["rho1"]), Fraction(promised["rho2"])
    gamma = cell_amplification(cells[0]["keep"], cells[0]["replace"])
    posterior = None if gamma is None else rho1 * gamma / (1 - rho1 + rho1 * gamma)
    holds = posterior is not None and posterior <= rho2 and len(cells) == 1
    told = "1" if posterior is None else f"{float(posterior):.6g}"
    return [
        Check("posterior", holds, f"a belief of {float(rho1):.4g} grows to at most {told}, allowed {float(rho2):.6g}")
    ]


def _by_frequency(manifest: Mapping[str, Any]) -> list[Check]:
    """Posteriors under the table's distribution (SPEC 2), as far as the published noisy histogram tells it.

    The true counts differ from the noisy ones by more than ``slack`` once in a million; a promise fails here only when
    it fails for all counts that near.
    """
    part, promised = manifest["sensitive"][0], manifest["guarantee"]
    if part["marginal"] is None or promised["rho2"] is None:
        detail = "needs the table's distribution, which this release does not publish; `deniable audit` checks it"
        return [Check("posterior", True, detail)]
    slack = math.ceil(14 / part["marginal"]["epsilon"])
    (cell,) = part["cells"]
    noisy = [part["marginal"]["counts"][place] for place in cell["values"]]
    total, rho2 = sum(noisy), Fraction(promised["rho2"])
    replaced = sum((count + slack) * (FULL - k) for count, k in zip(noisy, cell["keep"], strict=True))
    worst, wrong = Fraction(0), 0
    for place, count, k, w in zip(cell["values"], noisy, cell["keep"], cell["replace"], strict=True):
        if _exempt(manifest, part["domain"][place], Fraction(count - slack, total)):
            continue
        least = max(count - slack, 0)
        mine = least * (k * FULL + (FULL - k) * w)
        others = w * (replaced - (count + slack) * (FULL - k))
        posterior = Fraction(mine, mine + others) if mine + others > 0 else Fraction(0)
        worst, wrong = max(worst, posterior), wrong + (posterior > rho2)
    told = f"at least {float(worst):.4g} of an allowed {float(rho2):.4g}, by the noisy histogram"
    return [Check("posterior", wrong == 0, f"{wrong} values exceed it: {told}" if wrong else told)]


def _exempt(manifest: Mapping[str, Any], value: list[Any], share: Fraction) -> bool:
    required = manifest["privacy"]
    if required is None:
        return True
    named = value[0] if len(value) == 1 else value
    return named in required["exempt"] or (required["rho1"] is not None and share > Fraction(required["rho1"]))


def _by_value(manifest: Mapping[str, Any]) -> list[Check]:
    """Each value's own amplification P[i][i] / P[i][k] against its own limit (THESIS Thm 7, upward)."""
    part, required = manifest["sensitive"][0], manifest["privacy"]
    (cell,) = part["cells"]
    limits = {json.dumps(value): (Fraction(low), Fraction(high)) for value, low, high in required["per_value"]}
    ordered = sorted(cell["keep"])
    wrong, checked = [], 0
    for place, k, w in zip(cell["values"], cell["keep"], cell["replace"], strict=True):
        value = part["domain"][place]
        named = value[0] if len(value) == 1 else value
        pair = limits.get(json.dumps(named))
        if not limits and required["rho1"] is not None and named not in required["exempt"]:
            pair = (Fraction(required["rho1"]), Fraction(required["rho2"]))
        if pair is None:
            continue
        checked += 1
        gamma = pair[1] * (1 - pair[0]) / (pair[0] * (1 - pair[1]))
        largest = ordered[-1] if k != ordered[-1] else ordered[-2]
        if k * FULL + (FULL - k) * w > gamma * w * (FULL - largest):
            wrong.append(named)
    detail = f"{checked} values within their own limit" if not wrong else f"{len(wrong)} values exceed their limit"
    return [Check("own amplification", not wrong, detail)]


def _by_cell(manifest: Mapping[str, Any]) -> list[Check]:
    """Inside a cell a belief grows by at most its gamma; the cell's average share must be covered at the least."""
    promised = manifest["guarantee"]
    rho2 = Fraction(promised["rho2"])
    covered = []
    for cell in _cells(manifest):
        gamma = cell_amplification(cell["keep"], cell["replace"])
        covered.append(Fraction(0) if gamma is None else rho2 / (rho2 + gamma * (1 - rho2)))
    average = [Fraction(1, max(len(cell["values"]), 1)) for cell in _cells(manifest)]
    wrong = [
        i
        for i, (most, share) in enumerate(zip(covered, average, strict=True))
        if most < share and not _has_exempt(manifest)
    ]
    least = min(covered)
    detail = f"inside its cell a belief of up to {float(least):.4g} stays below {float(rho2):.4g}, whatever the cell"
    return [Check("posterior in cells", not wrong, detail if not wrong else f"cells {wrong} keep too much")]


def _has_exempt(manifest: Mapping[str, Any]) -> bool:
    """With exempt values in a cell its average share says nothing about its protected ones."""
    required = manifest["privacy"]
    return bool(required is None or required["exempt"] or required["rho1"] is not None)


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
