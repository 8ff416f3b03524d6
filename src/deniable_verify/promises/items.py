"""The budget of a row of items, recomputed from the integers of all items of the list (mathematics 15)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.numbers import FULL, Json, fraction, optional, percent, probability, whole
from deniable_verify.promises import Kind


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """A list can turn into any other of as many items: its odds grow by at most gamma."""
    from deniable_verify.promises.amplification import belief_checks

    named = ", ".join(map(repr, part["columns"]))
    item = part.get("item")
    if item is None or promise.most != item["most"] or part["swapped"] is not None:
        return [Check("row budget", False, f"{named}: it is about lists of {promise.most} items, and the part is not")]
    gamma = row_amplification(manifest["parts"])
    exact = "unbounded" if gamma is None else f"{float(gamma):.6g}"
    detail = (
        f"{named}: {len(manifest['parts'])} items, of which a list has {promise.most} at most: gamma is {exact}, "
        f"promised {float(promise.gamma):.6g}"
    )
    holds = gamma is not None and gamma <= promise.gamma
    return [Check("row budget", holds, detail), *belief_checks(promise, named, gamma, " about a list")]


def row_amplification(parts: Sequence[Json]) -> Fraction | None:
    """P(row | list) / P(row | list') at most, over lists of at most ``most`` items; None when unbounded.

    Where an item is in the first list only, the row speaks for it by max(a / b, (1 - a) / (1 - b)) at most; where it is
    in the second only by max(b / a, (1 - b) / (1 - a)). The largest of all items stand for each.
    """
    first, second = Fraction(1), Fraction(1)
    for part in parts:
        (cell,) = part["cells"]
        no, yes = cell["keep"]
        drawn = cell["replace"][1]
        has, lacks = yes * FULL + (FULL - yes) * drawn, (FULL - no) * drawn  # of a yes, out of FULL^2
        chances = [(has, lacks), (FULL * FULL - has, FULL * FULL - lacks)]
        if any(min(pair) <= 0 < max(pair) for pair in chances):
            return None
        seen = [(Fraction(one, other), Fraction(other, one)) for one, other in chances if one > 0]
        first = max(first, *(forward for forward, _ in seen))
        second = max(second, *(backward for _, backward in seen))
    m, most = len(parts), parts[0]["item"]["most"]
    larger = min(most, m)
    return max(first, second) ** larger * min(first, second) ** min(most, m - larger)


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words; nothing where a budget was required."""
    if promise.rho1 is None or promise.rho2 is None:
        return ""
    return (
        f"Nobody who believed something about a person's list of {part['item']['list']!r} at up to "
        f"{percent(promise.rho1)} beforehand, of one item or of several together, becomes surer of it than "
        f"{percent(promise.rho2)}."
    )


KIND = Kind(
    {"gamma": fraction, "most": whole, "rho1": optional(probability), "rho2": optional(probability)},
    recheck,
    mechanisms=("items",),
    any_prior=lambda promise: True,
    sentence=sentence,
)
