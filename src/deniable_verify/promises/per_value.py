"""P[i][i] / P[i][k] <= gamma_i for all k, gamma_i from value i's own (rho1, rho2) (THESIS Thm 7, upward)."""

from __future__ import annotations

from typing import Any

from deniable_verify.checks import Check
from deniable_verify.numbers import FULL, Json
from deniable_verify.promises import PLACES, Kind
from deniable_verify.sentence import whatever


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Each value's own amplification against its own limit."""
    if len(part["cells"]) != 1 or len(part["domain"]) < 2:
        return [Check("own amplification", False, "it is about one channel for two values or more")]
    (cell,) = part["cells"]
    limits = {place: (rho1, rho2) for place, rho1, rho2 in promise.limits}
    ordered = sorted(cell["keep"])
    wrong = checked = 0
    for place, k, w in zip(cell["values"], cell["keep"], cell["replace"], strict=True):
        if place not in limits:
            continue
        checked += 1
        rho1, rho2 = limits[place]
        largest = ordered[-1] if k != ordered[-1] else ordered[-2]
        on, off = k * FULL + (FULL - k) * w, w * (FULL - largest)
        wrong += rho1 * (1 - rho2) * on > rho2 * (1 - rho1) * off
    detail = f"{wrong} values exceed their limit" if wrong else f"{checked} values within their own limit"
    return [Check("own amplification", 0 < checked == len(limits) and not wrong, detail)]


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words."""
    pairs = {(rho1, rho2) for _, rho1, rho2 in promise.limits}
    if len(pairs) == 1 and adversary == "any-prior":
        return whatever(*pairs.pop())
    return (
        f"Each of the {len(promise.limits):,} values with a requirement of its own: whoever believed it at up to its "
        "rho1 beforehand becomes at most its rho2 sure of it."
    )


KIND = Kind(
    {"limits": PLACES["limits"]},
    recheck,
    mechanisms=("fine-grain",),
    beliefs=lambda promise: [(rho1, rho2) for _, rho1, rho2 in promise.limits],
    any_prior=lambda promise: True,
    sentence=sentence,
)
