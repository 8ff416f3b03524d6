"""P[y][x] / P[y][x'] <= gamma, so that a belief of up to rho1 grows to at most rho2 (THESIS Thm 1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.coverage import UNKNOWN, above_checks, surest_at_least
from deniable_verify.manifest import part_amplification
from deniable_verify.numbers import Json, belief_after, fraction, optional, percent, probability
from deniable_verify.promises import PLACES, Kind
from deniable_verify.sentence import KNOWS, whatever


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """The amplification of one channel, of a range or of line-ups; what is stated for who knows the frequencies."""
    gamma, named = part_amplification(part), ", ".join(map(repr, part["columns"]))
    return [
        gamma_check(named, gamma, promise.gamma),
        *belief_checks(promise, named, gamma),
        *_unnamed(promise, part, manifest),
        *above_checks(promise, part, manifest),
    ]


def gamma_check(named: str, gamma: Fraction | None, promised: Fraction) -> Check:
    """Whether a part's amplification is at most what is promised of it."""
    shown = "unbounded" if gamma is None else f"{float(gamma):.6g}"
    detail = f"{named}: gamma is {shown}, promised {float(promised):.6g}"
    return Check("part amplification", gamma is not None and gamma <= promised, detail)


def belief_checks(promise: Any, named: str, gamma: Fraction | None, about: str = "") -> list[Check]:
    """Whether a belief of rho1 stays within rho2 at this amplification; none where none are stated. A bound for beliefs
    that are not said to be of any size would be computed by nobody."""
    rho1, rho2 = promise.rho1, promise.rho2
    if rho1 is None or rho2 is None:
        alone = Check("posterior", False, f"{named}: rho2 goes with rho1, and only one of them is promised")
        return [] if rho1 is rho2 else [alone]
    posterior = Fraction(1) if gamma is None else belief_after(rho1, gamma)
    grows = f"a belief of {float(rho1):.4g}{about} grows to at most {float(posterior):.6g}"
    return [Check("posterior", gamma is not None and posterior <= rho2, f"{named}: {grows}, allowed {float(rho2):.6g}")]


def _unnamed(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Where rho2 is stated for who knows the frequencies, values of which they become surer must be named."""
    stated = manifest["guarantee"]["adversary"] == "frequency" and part["requirement"] is None
    if not stated or promise.rho2 is None or len(part["cells"]) != 1:
        return []
    if part["marginal"] is None:
        return [Check("left out", None, UNKNOWN)]
    sure = surest_at_least(part)
    wrong = sum(belief > promise.rho2 for place, belief in sure.items() if place not in promise.above)
    detail = f"{wrong} values that are not named as left out exceed rho2, by the noisy histogram"
    return [Check("left out", False, detail)] if wrong else []


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words."""
    if adversary == "any-prior":
        return whatever(promise.rho1, promise.rho2)
    return f"{KNOWS} {percent(promise.rho2 or Fraction(1))} sure of that person's value."


KIND = Kind(
    {
        "gamma": fraction,
        "rho1": optional(probability),
        "rho2": optional(probability),
        "above": PLACES["places"],
    },
    recheck,
    mechanisms=("uniform", "retention", "collected"),
    any_prior=lambda promise: True,
    sentence=sentence,
)
