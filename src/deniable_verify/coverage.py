"""What a promise covers, against what the manifest states and what was required.

A recheck shows that a promise is kept. That it is the promise which the manifest speaks of is shown here: a weaker one,
kept to the letter, would let a release state more than anyone recomputes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.manifest import part_amplification
from deniable_verify.numbers import FULL, Json, fraction, is_within, value_of
from deniable_verify.promises import Kind, mechanisms

UNKNOWN = "it needs the distribution, which this release does not publish; `deniable audit` checks it"
LEFT_OUT = "values are left out that the requirement does not exempt"


def stated_checks(promise: Any, kind: Kind, part: Json, manifest: Json) -> list[Check]:
    """Whether a part's promise covers what its manifest states and what was required."""
    columns = ", ".join(part["columns"])
    gaps = list(_gaps(promise, kind, part, manifest))
    detail = "; ".join(gaps) if gaps else f"by {promise.kind}, which covers what is stated"
    return [Check("promise", not gaps, f"{columns}: {detail}"), *own_checks(promise, part)]


def own_checks(promise: Any, part: Json) -> list[Check]:
    """What was required of the part itself against what it promises."""
    required = part["requirement"]
    if required is None:
        return []
    rho1, rho2 = fraction(required["rho1"]), fraction(required["rho2"])
    before, after = getattr(promise, "rho1", None), getattr(promise, "rho2", None)
    holds = before is not None and after is not None and before >= rho1 and after <= rho2
    if required["s"] is not None and not getattr(promise, "like_column", False):
        holds = holds and getattr(promise, "s", 0) >= fraction(required["s"])
    return [Check(f"requirement of {', '.join(part['columns'])!r}", holds, f"rho1 = {rho1}, rho2 = {rho2}")]


def _gaps(promise: Any, kind: Kind, part: Json, manifest: Json) -> Iterator[str]:
    """Where a promise falls short, in words."""
    name = manifest["mechanism"]["name"]
    if promise.kind not in mechanisms().get(name, (promise.kind,)):
        yield f"{name} does not promise by {promise.kind}"
    stated, required = manifest["guarantee"], manifest["privacy"]
    if stated["adversary"] == "any-prior" and not kind.any_prior(promise):
        yield f"adversary any-prior is stated, and {promise.kind} is no promise against it"
    # Columns with requirements of their own are held to these by their rows alone, and the release says so.
    beside = part["marginal"] is not None and part["requirement"] is None and stated["rho2"] is not None
    if stated["adversary"] == "any-prior" and beside and not _pays_for_histogram(stated, part):
        yield "any-prior is stated, and rows and noisy histogram together tell more than is stated"
    if _covers_nobody(promise, kind, part):
        yield "the promise covers no value"
    every = required is None or not (required["exempt"] or required["per_value"] or required["rho1"] is not None)
    for what, beliefs in (("stated", stated), ("required", required), ("required", part["requirement"])):
        if beliefs is None or beliefs["rho2"] is None:
            continue
        short = list(_short_of(promise, kind, beliefs, what, every=every))
        yield from short
        if short:
            break
    yield from _left_out(promise, part, required)
    if required is not None:
        yield from _own_limits(promise, part, required)


def _pays_for_histogram(stated: Json, part: Json) -> bool:
    """Whether what rows tell and what the noisy histogram tells stay together within what is stated: one person who
    changes value moves two counts, so that it costs twice the epsilon of a count."""
    gamma = part_amplification(part)
    if gamma is None or stated["rho1"] is None or stated["gamma"] is None:
        return False
    rho1, rho2 = fraction(stated["rho1"]), fraction(stated["rho2"])
    allowed = fraction(stated["gamma"]) if rho2 == 1 else rho2 * (1 - rho1) / (rho1 * (1 - rho2))
    whole = min(allowed, fraction(stated["gamma"]))
    return is_within(2 * Fraction(part["marginal"]["epsilon"]), whole / gamma)


def _covers_nobody(promise: Any, kind: Kind, part: Json) -> bool:
    """Whether a promise with a bound leaves out every value that there is."""
    if all(after is None for _, after in kind.beliefs(promise)) or not part["domain"]:
        return False
    left = {*getattr(promise, "exempt", ()), *(getattr(promise, "above", ()) if kind.by_frequency(promise) else ())}
    own = [*getattr(promise, "limits", ()), *getattr(promise, "per_value", ())]
    covered = {place for place, _, _ in own} if own else set(range(len(part["domain"])))
    return not covered - left


def _short_of(promise: Any, kind: Kind, wanted: Json, what: str, *, every: bool) -> Iterator[str]:
    """Bounds above the one that is wanted, and beliefs that it speaks of and the promise does not."""
    rho1, rho2 = None if wanted["rho1"] is None else fraction(wanted["rho1"]), fraction(wanted["rho2"])
    beliefs = kind.beliefs(promise)
    bounds = [after for _, after in beliefs if after is not None]
    # Of decoys no bound follows from rho2 where perhaps no value is protected.
    if (not bounds or len(bounds) < len(beliefs)) and (every or promise.kind != "decoys"):
        yield f"rho2 = {rho2} is {what}, and no promise is made of it"
    elif bounds and max(bounds) > rho2:
        yield f"rho2 = {rho2} is {what}, and {max(bounds)} promised"
    least = min((before for before, _ in beliefs if before is not None), default=None)
    if least is not None and (kind.by_frequency(promise) if rho1 is None else least < rho1):
        yield f"rho1 = {rho1} is {what}, and {least} promised"
    bounded = promise.kind == "relative-prior" and not promise.like_column
    if bounded and not 0 < fraction(wanted.get("s") or "0") <= promise.s:
        yield f"more is {what} than of sets less than {promise.s} times likelier than their replacements"


def _left_out(promise: Any, part: Json, required: Json | None) -> Iterator[str]:
    """Values without a promise must be those that the requirement exempts."""
    exempt = set() if required is None else set(map(key, required["exempt"]))
    names = list(map(key, names_of(part)))
    if any(names[place] not in exempt for place in getattr(promise, "exempt", ())):
        yield LEFT_OUT
    above = [place for place in getattr(promise, "above", ()) if names[place] not in exempt]
    if above and (required is None or required["rho1"] is None):
        yield "values are left out as more frequent than rho1, and none is required"
    yield from _left_singles(promise, part, required)
    if promise.kind == "per-value" and required is not None and not required["per_value"]:
        covered = {place for place, _, _ in promise.limits}
        if any(place not in covered for place, name in enumerate(names) if name not in exempt):
            yield LEFT_OUT


def _left_singles(promise: Any, part: Json, required: Json | None) -> Iterator[str]:
    """Single values of one of several columns are left out where they are exempt, or too frequent to be covered."""
    order = [list(dict.fromkeys(entry[c] for entry in part["domain"])) for c in range(len(part["columns"]))]
    for column, place in getattr(promise, "loose", ()):
        if not (len(order) > 1 and 0 <= column < len(order) and 0 <= place < len(order[column])):
            yield "single values are left out that no column has"
            return
        if required is None or order[column][place] in required["exempt"]:  # else none need be covered
            continue
        if not _can_be_frequent(promise, part, column, order[column][place]):
            yield "single values are left out that are neither exempt nor too frequent"
            return


def _can_be_frequent(promise: Any, part: Json, column: int, value: Any) -> bool:
    """Whether a single value can be more frequent than rho1, or rho2, by the noisy histogram; without one it can."""
    line = promise.rho2 if promise.rho1 is None else promise.rho1
    if part["marginal"] is None or line is None:
        return True
    counts = part["marginal"]["counts"]
    mine = [count for count, entry in zip(counts, part["domain"], strict=True) if entry[column] == value]
    slack = 2 * noise_slack(part) * math.sqrt(len(counts))
    return sum(mine) + slack > line * (sum(counts) - slack)


def _own_limits(promise: Any, part: Json, required: Json) -> Iterator[str]:
    """Each value's own (rho1, rho2), by the promises that can say it; and sums."""
    own = {key(value): (fraction(rho1), fraction(rho2)) for value, rho1, rho2 in required["per_value"]}
    exempt, limits = set(map(key, required["exempt"])), dict[int, list[tuple[Fraction, Fraction]]]()
    for place, before, after in (*getattr(promise, "limits", ()), *getattr(promise, "per_value", ())):
        limits.setdefault(place, []).append((before, after))
    said = promise.kind in ("amplification", "frequency", "line-ups", "per-value")
    for place, name in enumerate(map(key, names_of(part))) if said else ():
        if name not in own or name in exempt:
            continue
        rho1, rho2 = own[name]
        if promise.kind == "amplification":
            kept = promise.gamma * rho1 * (1 - rho2) <= rho2 * (1 - rho1)
        else:
            kept = any(before >= rho1 and after <= rho2 for before, after in limits.get(place, ()))
        if not kept:
            yield "a value's own rho1 and rho2 are required, and less is promised of it"
            return
    for name in ("small_sums", "large_sums"):
        promised = getattr(promise, name, None)
        if required[name] is not None and (promised is None or promised.raw != required[name]):
            yield f"{name.replace('_', ' ')} are required, and others or none promised"


def names_of(part: Json) -> list[Any]:
    """The values of a domain as requirements name them: single ones, and of columns that go together their tuple."""
    if len(part["columns"]) == 1:
        return [entry[0] for entry in part["domain"]]
    return [str(value_of(entry, part["types"])) for entry in part["domain"]]


def key(value: Any) -> Hashable:
    """A value as it is looked up by: a requirement in a damaged manifest may name lists."""
    return repr(value) if isinstance(value, list | dict) else value


# -- What the noisy histogram tells of beliefs, and of values that are left out ----------------------------------------


def noise_slack(part: Json) -> int:
    """How far noise takes a count from the true one, once in a million."""
    return math.ceil(14 / part["marginal"]["epsilon"])


def surest_at_least(part: Json) -> dict[int, Fraction]:
    """Pr[x | y = x] of each value of the only channel, with as few rows of x and as many of others as noise allows."""
    slack, (cell,) = noise_slack(part), part["cells"]
    noisy = [part["marginal"]["counts"][place] for place in cell["values"]]
    replaced = sum((count + slack) * (FULL - k) for count, k in zip(noisy, cell["keep"], strict=True))
    beliefs = {}
    for place, count, k, w in zip(cell["values"], noisy, cell["keep"], cell["replace"], strict=True):
        mine = max(count - slack, 0) * (k * FULL + (FULL - k) * w)
        others = w * (replaced - (count + slack) * (FULL - k))
        beliefs[place] = Fraction(mine, mine + others) if mine + others > 0 else Fraction(0)
    return beliefs


def above_checks(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Values that are left out for being more frequent than rho1: by the noisy histogram they can be, each of them."""
    if not promise.above:
        return []
    if promise.rho1 is None:
        return [Check("left out", False, "values are left out as more frequent than rho1, which is not stated")]
    if part["marginal"] is None:
        return [Check("left out", None, f"that {len(promise.above)} values are more frequent than rho1")]
    line, slack = promise.rho1 * manifest["rows"], 2 * noise_slack(part)
    wrong = sum(part["marginal"]["counts"][place] + slack <= line for place in promise.above)
    values = f"{len(promise.above)} values, more frequent than rho1 = {float(promise.rho1):.4g}"
    return [Check("left out", not wrong, f"{wrong} of {values} are not, by the noisy histogram" if wrong else values)]


def single_checks(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Pr[a column's value | y] of columns that are perturbed together, as far as the noisy histogram tells it.

    A value is believed at least by its rows that noise cannot explain, against all other rows that it can. How many
    rows of a value a cell took is not published.
    """
    if len(part["columns"]) < 2 or promise.rho2 is None:
        return []
    if part["marginal"] is None or promise.kind == "cells":
        lacking = "a noisy histogram" if part["marginal"] is None else "how many rows of a value each cell took"
        detail = f"the bound for the values of each of {len(part['columns'])} columns alone; {lacking}"
        return [Check("single values", None, f"{detail} is not published, `deniable audit` checks that")]
    (cell,) = part["cells"]
    noisy = [part["marginal"]["counts"][place] for place in cell["values"]]
    entries = [part["domain"][place] for place in cell["values"]]
    order = [list(dict.fromkeys(repr(entry[column]) for entry in part["domain"])) for column in range(len(entries[0]))]
    wrong = checked = 0
    for column, known in enumerate(order):
        for place, value in enumerate(known):
            if (column, place) in promise.loose:
                continue
            checked += 1
            inside = [repr(entry[column]) == value for entry in entries]
            wrong += at_least(cell, noisy, inside, noise_slack(part)) > promise.rho2
    values = f"{checked} single values of {len(order)} columns"
    return [Check("single values", not wrong, f"{wrong} of {values} exceed rho2" if wrong else f"{values} within rho2")]


def at_least(cell: Json, noisy: list[int], inside: list[bool], spread: int) -> Fraction:
    """A lower bound on the largest Pr[inside | y]: noise in a sum of k counts is at most sqrt(k) times that of one."""
    slack = math.ceil(spread * math.sqrt(len(noisy)))
    replaced = [max(f, 0) * (FULL - k) for f, k in zip(noisy, cell["keep"], strict=True)]
    mine = max(sum(r for r, own in zip(replaced, inside, strict=True) if own) - slack * FULL, 0)
    others = sum(r for r, own in zip(replaced, inside, strict=True) if not own) + slack * FULL
    worst = Fraction(0)
    for f, k, w, own in zip(noisy, cell["keep"], cell["replace"], inside, strict=True):
        kept = max(f - spread, 0) * k * FULL if own else 0
        missed = 0 if own else (f + spread) * k * FULL
        seen = kept + missed + w * (mine + others)
        worst = max(worst, Fraction(kept + w * mine, seen) if seen else Fraction(0))
    return worst
