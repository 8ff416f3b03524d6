"""Pr[x | y] <= rho2 for who knows how frequent each value is (mathematics 2), as far as a noisy histogram tells it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.coverage import UNKNOWN, above_checks, noise_slack, single_checks, surest_at_least
from deniable_verify.numbers import Json, optional, percent, probability
from deniable_verify.promises import PLACES, Kind, Pair
from deniable_verify.sentence import KNOWS


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """A promise fails here only when it fails for all counts as near to the noisy ones as noise allows."""
    if len(part["cells"]) != 1:
        return [Check("posterior", False, "it is about one channel for all values")]
    if part["marginal"] is None:
        return [Check("posterior", None, UNKNOWN)]
    slack, counts, rows = noise_slack(part), part["marginal"]["counts"], max(manifest["rows"], 1)
    sure = [(x, Fraction(counts[x] + slack, rows), belief) for x, belief in surest_at_least(part).items()]
    return [
        posterior_check(promise, sure),
        *above_checks(promise, part, manifest),
        *single_checks(promise, part, manifest),
    ]


def posterior_check(promise: Any, sure: list[tuple[int, Fraction, Fraction]], where: str = "") -> Check:
    """Values that are believed above their rho2: each by its place, with the largest share of the rows that noise
    allows it, and how sure one becomes of it at the least."""
    own = {place: (rho1, rho2) for place, rho1, rho2 in promise.per_value}
    worst, wrong, checked = Fraction(0), 0, 0
    for place, share, posterior in sure:
        rho1, rho2 = own.get(place, (None, None if own else promise.rho2))
        above = rho1 is not None and share > rho1
        if rho2 is None or place in promise.exempt or place in promise.above or above:
            continue
        worst, wrong, checked = max(worst, posterior), wrong + (posterior > rho2), checked + 1
    allowed = "each its own" if promise.rho2 is None else f"{float(promise.rho2):.4g}"
    detail = f"{checked} values{where}, at least {float(worst):.4g} of an allowed {allowed}, by the noisy histogram"
    return Check("posterior", wrong == 0, f"{wrong} values exceed it: {detail}" if wrong else detail)


def beliefs(promise: Any) -> list[Pair]:
    """Of each value where they have their own."""
    own: list[Pair] = [(rho1, rho2) for _, rho1, rho2 in promise.per_value]
    return own or [(promise.rho1, promise.rho2)]


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words."""
    if promise.per_value:
        return f"{KNOWS} as sure of each of {len(promise.per_value):,} values as its own rho2 says."
    return f"{KNOWS} {percent(promise.rho2 or Fraction(1))} sure of that person's value."


FIELDS = {
    "rho1": optional(probability),
    "rho2": optional(probability),
    "exempt": PLACES["places"],
    "per_value": PLACES["limits"],
    "above": PLACES["places"],
}
KIND = Kind(
    {**FIELDS, "loose": PLACES["singles"]},
    recheck,
    mechanisms=("fine-grain", "identity", "designed", "pram", "redraw"),
    beliefs=beliefs,
    by_frequency=lambda promise: True,
    sentence=sentence,
)
