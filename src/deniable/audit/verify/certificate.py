"""The certificate: a release's promises, recomputed from its manifest alone.

Nothing here uses the code that planned the release. Probabilities are rebuilt from the manifest's integers, and each
promise is checked in exact arithmetic.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import FULL, Certificate, Check, cell_amplification
from deniable.audit.verify.decoys import by_decoys
from deniable.audit.verify.rechecks import by_amplification, by_cell, by_frequency, by_value

__all__ = ["Certificate", "Check", "cell_amplification", "certificate"]

# What each mechanism's promise rests on; a manifest that names another basis would be checked for less than it says.
BASES = {
    "uniform": ("amplification",),
    "small-domain": ("cells",),
    "fine-grain": ("per-value", "frequency"),
    "identity": ("frequency",),
    "designed": ("frequency",),
}


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
    return [published_amplification(part["range"])]


def range_amplification(keep: int, points: int) -> Fraction | None:
    """(K FULL + (FULL-K) w) / ((FULL-K) w), w the numbers out of 2^32 that the least likely point owns."""
    weight = FULL // points
    return None if keep >= FULL else 1 + Fraction(keep * FULL, (FULL - keep) * weight)


def published_amplification(scope: Mapping[str, Any]) -> Fraction | None:
    """The amplification of a range, from its manifest; None when nothing is ever replaced."""
    return range_amplification(scope["keep"], _points(scope))


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
        name, asked = part["columns"][0], options.get(part["columns"][0], {})
        like_the_column = asked.get("replacing", "uniform") != "uniform"
        if like_the_column and "relative_prior" in asked:
            checks += _replacements(part, manifest["rows"], Fraction(asked["relative_prior"]))
        if "privacy" in asked and not like_the_column:
            gamma, rho1, rho2 = _part_amplifications(part)[0], *_pair(asked["privacy"])
            holds = gamma is not None and gamma * rho1 * (1 - rho2) <= rho2 * (1 - rho1)
            checks.append(Check(f"requirement of {name!r}", holds, f"rho1 = {rho1}, rho2 = {rho2}"))
        elif "privacy" in asked or "breach" in asked:
            s, rho1, rho2 = map(Fraction, asked["breach"]) if "breach" in asked else (1, *_pair(asked["privacy"]))
            s = Fraction(asked.get("relative_prior", 1)) if like_the_column else s
            keep = part["range"]["keep"] if part["range"] is not None else max(part["cells"][0]["keep"])
            holds = s * (1 - rho2) * keep < (rho2 - rho1) * (FULL - keep)
            detail = f"coin {keep / FULL:.6g}, for s = {float(s):.4g}, rho1 = {float(rho1):g}, rho2 = {float(rho2):g}"
            checks.append(Check(f"no breach in {name!r}", holds, detail))
    return checks


def _pair(stated: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    return Fraction(stated["rho1"]), Fraction(stated["rho2"])


def _replacements(part: Mapping[str, Any], rows: int, s: Fraction) -> list[Check]:
    """Replacements like the column itself: no value is more than s times likelier than to be drawn.

    The true counts are known up to the noise: this fails only when it fails for all counts that near.
    """
    if part["marginal"] is None:
        return []
    slack = math.ceil(14 / part["marginal"]["epsilon"])  # exceeded once in a million
    (cell,) = part["cells"]
    least = [max(part["marginal"]["counts"][place] - slack, 0) for place in cell["values"]]
    wrong = sum(count * FULL > s * rows * weight for count, weight in zip(least, cell["replace"], strict=True))
    told = f"values are at most {float(s):.4g} times as likely as their replacements, by the noisy histogram"
    name = f"replacements of {part['columns'][0]!r}"
    return [Check(name, not wrong, f"{wrong} values exceed it: {told}" if wrong else told)]


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
        "amplification": by_amplification,
        "frequency": by_frequency,
        "per-value": by_value,
        "cells": by_cell,
    }
    allowed = BASES.get(manifest["mechanism"]["name"])
    if allowed is not None:
        known = promised["basis"] in allowed
        checks.append(Check("basis", known, f"{manifest['mechanism']['name']} promises by {promised['basis']}"))
    if manifest["mechanism"]["name"] == "decoys":
        checks += by_decoys(manifest)
    recompute = by_basis.get(promised["basis"])
    return checks if recompute is None else [*checks, *recompute(manifest)]


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
