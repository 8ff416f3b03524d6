"""What a manifest states, and what was required, against what its promises cover.

A recheck shows that a promise is kept. That it is the promise which the manifest speaks of is shown here: a weaker one,
kept to the letter, would let a release state more than anyone recomputes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import Check, part_amplification
from deniable.audit.verify.coverage import key, names_of, noise_slack
from deniable.core.privacy import amplification_limit
from deniable.core.promise import (
    Amplification,
    Cells,
    DecoyGroups,
    Frequency,
    LineUps,
    OneOfItems,
    PerValue,
    Promise,
    RelativePrior,
)
from deniable.learned.measuring import is_within, laplace_variance

Json = Mapping[str, Any]
Pair = tuple[Fraction | None, Fraction | None]

# The kinds that releases of known mechanisms promise by: another kind is rechecked for less than the name stands for.
KINDS_OF = {
    "uniform": ("amplification",),
    "small-domain": ("cells",),
    "fine-grain": ("per-value", "frequency"),
    "identity": ("frequency",),
    "designed": ("frequency",),
    "lineup": ("line-ups",),
    "pram": ("frequency",),
    "redraw": ("frequency",),
    "retention": ("amplification", "relative-prior", "nothing"),
    "items": ("items",),
    "collected": ("amplification", "line-ups"),
    "decoys": ("decoys",),
    "synthetic": ("odds",),
}


def stated_check(promise: Promise, part: Json, manifest: Json) -> Check:
    """Whether a part's promise covers what its manifest states and what was required."""
    columns = ", ".join(part["columns"])
    gaps = list(_gaps(promise, part, manifest))
    if gaps:
        return Check("promise", False, f"{columns}: {'; '.join(gaps)}")
    return Check("promise", True, f"{columns}: by {promise.kind}, which covers what is stated")


def _gaps(promise: Promise, part: Json, manifest: Json) -> Iterator[str]:
    """Where a promise falls short, in words."""
    name = manifest["mechanism"]["name"]
    if promise.kind not in KINDS_OF.get(name, (promise.kind,)):
        yield f"{name} does not promise by {promise.kind}"
    stated, required = manifest["guarantee"], manifest["privacy"]
    if stated["adversary"] == "any-prior" and not _against_any_prior(promise):
        yield f"adversary any-prior is stated, and {promise.kind} is no promise against it"
    # Columns with requirements of their own are held to these by their rows alone, and the release says so.
    beside = part["marginal"] is not None and part["requirement"] is None and stated["rho2"] is not None
    if stated["adversary"] == "any-prior" and beside and not _pays_for_histogram(stated, part):
        yield "any-prior is stated, and rows and noisy histogram together tell more than is stated"
    every = required is None or not _leaves_out(required)
    for what, beliefs in (("stated", stated), ("required", required), ("required", part["requirement"])):
        if beliefs is None or beliefs["rho2"] is None:
            continue
        short = list(_short_of(promise, beliefs, what, every=every))
        yield from short
        if short:
            break
    yield from _left_out(promise, part, required)
    if required is not None:
        yield from _own_limits(promise, part, required)
        yield from _sums(promise, required)


def _pays_for_histogram(stated: Json, part: Json) -> bool:
    """Whether what rows tell and what the noisy histogram tells stay together within what is stated."""
    gamma, noisy = part_amplification(part), part["marginal"]
    if gamma is None or stated["rho1"] is None or stated["gamma"] is None:
        return False
    rho1, rho2 = Fraction(stated["rho1"]), Fraction(stated["rho2"])
    whole = min(amplification_limit(rho1, rho2), Fraction(stated["gamma"]))
    exact = noisy["variance"] >= laplace_variance(Fraction(noisy["epsilon"])) * (1 - 1e-9)
    return exact and is_within(2 * Fraction(noisy["epsilon"]), whole / gamma)


def _against_any_prior(promise: Promise) -> bool:
    if isinstance(promise, LineUps):
        return promise.adversary == "any-prior"
    return (
        promise.kind == "odds"
        or isinstance(promise, Amplification | OneOfItems | PerValue)
        or (isinstance(promise, RelativePrior) and not promise.like_column)
    )


def _by_frequency(promise: Promise) -> bool:
    return isinstance(promise, Cells | Frequency) or (isinstance(promise, LineUps) and promise.adversary == "frequency")


def _leaves_out(required: Json) -> bool:
    """Whether a requirement is not for all values: some are exempt, or may be more frequent than rho1."""
    return bool(required["exempt"] or required["per_value"]) or required["rho1"] is not None


def _beliefs(promise: Promise) -> list[Pair]:
    """The beliefs before that a promise is about (None: as frequent as a value is) and its bounds after."""
    if isinstance(promise, PerValue):
        return [(rho1, rho2) for _, rho1, rho2 in promise.limits]
    if isinstance(promise, Frequency | LineUps) and promise.per_value:
        return [(rho1, rho2) for _, rho1, rho2 in promise.per_value]
    if isinstance(promise, Amplification | Frequency | LineUps | OneOfItems | RelativePrior):
        return [(promise.rho1, promise.rho2)]
    if isinstance(promise, Cells):
        return [(promise.rho1, promise.rho2)]
    if promise.kind == "odds":
        return [(getattr(promise, "rho1", None), getattr(promise, "rho2", None))]
    return [(None, promise.rho2)] if isinstance(promise, DecoyGroups) else []


def _short_of(promise: Promise, wanted: Json, what: str, *, every: bool) -> Iterator[str]:
    """Bounds above the one that is wanted, and beliefs that it speaks of and the promise does not."""
    rho1, rho2 = None if wanted["rho1"] is None else Fraction(wanted["rho1"]), Fraction(wanted["rho2"])
    beliefs = _beliefs(promise)
    bounds = [after for _, after in beliefs if after is not None]
    # Of decoys no bound follows from rho2 where perhaps no value is protected.
    if (not bounds or len(bounds) < len(beliefs)) and (every or not isinstance(promise, DecoyGroups)):
        yield f"rho2 = {rho2} is {what}, and no promise is made of it"
    elif bounds and max(bounds) > rho2:
        yield f"rho2 = {rho2} is {what}, and {max(bounds)} promised"
    least = min((before for before, _ in beliefs if before is not None), default=None)
    if least is not None and (_by_frequency(promise) if rho1 is None else least < rho1):
        yield f"rho1 = {rho1} is {what}, and {least} promised"
    s = Fraction(wanted.get("s") or 0)
    if isinstance(promise, RelativePrior) and not promise.like_column and not 0 < s <= promise.s:
        yield f"more is {what} than of sets less than {promise.s} times likelier than their replacements"


def _left_out(promise: Promise, part: Json, required: Json | None) -> Iterator[str]:
    """Values without a promise must be those that the requirement exempts."""
    exempt = set() if required is None else set(map(key, required["exempt"]))
    names = list(map(key, names_of(part)))
    left = promise.exempt if isinstance(promise, Cells | Frequency | LineUps) else ()
    if any(place >= len(names) or names[place] not in exempt for place in left):
        yield "values are left out that the requirement does not exempt"
    above = [place for place in getattr(promise, "above", ()) if names[place] not in exempt]
    if above and (required is None or required["rho1"] is None):
        yield "values are left out as more frequent than rho1, and none is required"
    if isinstance(promise, Cells | Frequency):
        yield from _left_singles(promise, part, required)
    if isinstance(promise, PerValue) and required is not None and not required["per_value"]:
        covered = {place for place, _, _ in promise.limits}
        if any(place not in covered for place, name in enumerate(names) if name not in exempt):
            yield "values are left out that the requirement does not exempt"


def _left_singles(promise: Cells | Frequency, part: Json, required: Json | None) -> Iterator[str]:
    """Single values of one of several columns are left out where they are exempt, or too frequent to be covered."""
    exempt = () if required is None else required["exempt"]
    order = [list(dict.fromkeys(entry[c] for entry in part["domain"])) for c in range(len(part["columns"]))]
    for column, place in promise.loose:
        if not (len(order) > 1 and 0 <= column < len(order) and 0 <= place < len(order[column])):
            yield "single values are left out that no column has"
            return
        if required is None or order[column][place] in exempt:  # without a requirement none need be covered
            continue
        if not _can_be_frequent(promise, part, column, order[column][place]):
            yield "single values are left out that are neither exempt nor too frequent"
            return


def _can_be_frequent(promise: Cells | Frequency, part: Json, column: int, value: Any) -> bool:
    """Whether a single value can be more frequent than rho1, or rho2, by the noisy histogram; without one it can."""
    line = promise.rho2 if promise.rho1 is None else promise.rho1
    if part["marginal"] is None or line is None:
        return True
    counts = part["marginal"]["counts"]
    mine = [count for count, entry in zip(counts, part["domain"], strict=True) if entry[column] == value]
    slack = 2 * noise_slack(part) * math.sqrt(len(counts))
    return sum(mine) + slack > line * (sum(counts) - slack)


def _own_limits(promise: Promise, part: Json, required: Json) -> Iterator[str]:
    """Each value's own (rho1, rho2), by the promises that can say it."""
    if not isinstance(promise, Amplification | Frequency | LineUps | PerValue):
        return
    own = {key(value): (Fraction(rho1), Fraction(rho2)) for value, rho1, rho2 in required["per_value"]}
    exempt, limits = set(map(key, required["exempt"])), dict[int, list[tuple[Fraction, Fraction]]]()
    if not isinstance(promise, Amplification):
        for place, before, after in promise.limits if isinstance(promise, PerValue) else promise.per_value:
            limits.setdefault(place, []).append((before, after))
    for place, name in enumerate(map(key, names_of(part))):
        if name not in own or name in exempt:
            continue
        rho1, rho2 = own[name]
        if isinstance(promise, Amplification):
            kept = promise.gamma * rho1 * (1 - rho2) <= rho2 * (1 - rho1)
        else:
            kept = any(before >= rho1 and after <= rho2 for before, after in limits.get(place, ()))
        if not kept:
            yield "a value's own rho1 and rho2 are required, and less is promised of it"
            return


def _sums(promise: Promise, required: Json) -> Iterator[str]:
    for name in ("small_sums", "large_sums"):
        promised = getattr(promise, name, None)
        if required[name] is not None and (promised is None or promised.to_dict() != dict(required[name])):
            yield f"{name.replace('_', ' ')} are required, and others or none promised"
