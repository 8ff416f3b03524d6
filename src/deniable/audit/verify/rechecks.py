"""Promises recomputed, by what they rest on: amplification, posteriors, each value's own limit, cells."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import FULL, Check, all_cells, cell_amplification


def by_amplification(manifest: Mapping[str, Any]) -> list[Check]:
    """(rho1, rho2)-privacy through the amplification of one channel (THESIS Thm 1)."""
    promised, cells = manifest["guarantee"], all_cells(manifest)
    rho1, rho2 = Fraction(promised["rho1"]), Fraction(promised["rho2"])
    gamma = cell_amplification(cells[0]["keep"], cells[0]["replace"])
    posterior = None if gamma is None else rho1 * gamma / (1 - rho1 + rho1 * gamma)
    holds = posterior is not None and posterior <= rho2 and len(cells) == 1
    told = "1" if posterior is None else f"{float(posterior):.6g}"
    return [
        Check("posterior", holds, f"a belief of {float(rho1):.4g} grows to at most {told}, allowed {float(rho2):.6g}")
    ]


def by_frequency(manifest: Mapping[str, Any]) -> list[Check]:
    """Posteriors under the table's distribution (SPEC 2), as far as the published noisy histogram tells it.

    The true counts differ from the noisy ones by more than ``slack`` once in a million; a promise fails here only when
    it fails for all counts that near.
    """
    part, promised = manifest["sensitive"][0], manifest["guarantee"]
    if part["marginal"] is None or promised["rho2"] is None:
        detail = (
            "NOT CHECKED: it needs the distribution, which this release does not publish; `deniable audit` checks it"
        )
        return [Check("posterior", True, detail)]
    slack = math.ceil(14 / part["marginal"]["epsilon"])
    (cell,) = part["cells"]
    noisy = [part["marginal"]["counts"][place] for place in cell["values"]]
    rho2 = Fraction(promised["rho2"])
    replaced = sum((count + slack) * (FULL - k) for count, k in zip(noisy, cell["keep"], strict=True))
    worst, wrong = Fraction(0), 0
    for place, count, k, w in zip(cell["values"], noisy, cell["keep"], cell["replace"], strict=True):
        if _exempt(manifest, part["domain"][place], Fraction(count + slack, max(manifest["rows"], 1))):
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


def by_value(manifest: Mapping[str, Any]) -> list[Check]:
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
    return [Check("own amplification", checked > 0 and not wrong, detail)]


def by_cell(manifest: Mapping[str, Any]) -> list[Check]:
    """Inside a cell a belief grows by at most its gamma; the cell's average share must be covered at the least."""
    promised = manifest["guarantee"]
    rho2 = Fraction(promised["rho2"])
    covered = []
    for cell in all_cells(manifest):
        gamma = cell_amplification(cell["keep"], cell["replace"])
        covered.append(Fraction(0) if gamma is None else rho2 / (rho2 + gamma * (1 - rho2)))
    average = [Fraction(1, max(len(cell["values"]), 1)) for cell in all_cells(manifest)]
    wrong = [
        i
        for i, (most, share) in enumerate(zip(covered, average, strict=True))
        if most == 0 or (most < share and not _has_exempt(manifest))
    ]
    least = min(covered)
    if len(promised["cell_gammas"]) != len(covered):
        wrong = list(range(len(covered)))
    detail = (
        f"inside its cell a belief of up to {float(least):.4g} stays below {float(rho2):.4g}; how frequent values are "
        "in a cell is not published, `deniable audit` checks that"
    )
    return [Check("posterior in cells", not wrong, detail if not wrong else f"cells {wrong} keep too much")]


def _has_exempt(manifest: Mapping[str, Any]) -> bool:
    """With exempt values in a cell its average share says nothing about its protected ones."""
    required = manifest["privacy"]
    return bool(required is None or required["exempt"] or required["rho1"] is not None)
