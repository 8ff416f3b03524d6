"""Every published value speaks for no value with more than 1/c; sums are what was required of them (mathematics 7)."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.numbers import Json, optional, percent, probability, whole
from deniable_verify.promises import Kind
from deniable_verify.sentence import KNOWS

DIGITS = 1e-5  # a published mixture has six digits
MOST_ROWS, MOST_SMALL, EXACT = 10**6, 1_000, 1_000  # rows of a sum whose tail is computed
NEAR = Fraction(1, 10**8)  # what floating-point numbers may be off by


def sums(edge: str, chance: str) -> Any:
    """What reads a requirement of sums: an error, counts up to or from so many rows, and a probability."""

    def read(raw: Any) -> Any:
        if set(raw) != {"error", edge, chance}:
            raise ValueError("sums")
        number = whole(raw[edge])
        if not 1 <= number <= MOST_ROWS:
            raise ValueError("rows")
        return SimpleNamespace(error=probability(raw["error"]), rows=number, chance=probability(raw[chance]), raw=raw)

    return optional(read)


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Groups of c, the bound that follows, and exact tails of binomial distributions."""
    c = promise.c
    own = [row[place] for place, row in enumerate(part["mixture"] or ())]
    shown = [share for share in own if share < 1]  # a value without rows is listed as if it were kept
    grouped = part["groups"] is not None and part["groups"]["c"] == c >= 2
    even = grouped and all(abs(share - 1 / c) < DIGITS for share in shown)
    checks = [Check("decoy groups", even, f"groups of {c}: every value is published as itself once in {c}")]
    if not grouped:
        return checks
    if promise.rho2 is not None:
        checks.append(Check("posterior", Fraction(1, c) <= promise.rho2, f"1/{c}, allowed {float(promise.rho2):.6g}"))
    if promise.small_sums is not None:
        small, untold = promise.small_sums, part["marginal"] is None
        reached = min(miss(f, c, small.error, strictly=True) for f in range(1, min(small.rows, MOST_SMALL) + 1))
        holds = untold and small.rows <= MOST_SMALL and reached >= small.chance * (1 - NEAR)
        detail = f"off with probability {float(reached):.4g} at the least, required {small.chance}"
        checks.append(Check("small sums", holds, detail + ("" if untold else "; but a noisy histogram tells them")))
    if promise.large_sums is not None:
        large = promise.large_sums
        reached = miss(large.rows, c, large.error, strictly=False)
        detail = f"off with probability {float(reached):.4g} at {large.rows:,} rows, allowed {large.chance}"
        checks.append(Check("large sums", reached <= large.chance * (1 + NEAR), detail))
    return checks


def miss(rows: int, c: int, error: Fraction, *, strictly: bool) -> Fraction:
    """Pr[|f' - f| > e f], or >= where not ``strictly``; f' is Binomial(c f, 1/c). Exact up to 1,000 rows of groups."""
    low, high = (1 - error) * rows, (1 + error) * rows
    first, last = (math.ceil(low), math.floor(high)) if strictly else (math.floor(low) + 1, math.ceil(high) - 1)
    n, inside = c * rows, range(max(first, 0), min(last, c * rows) + 1)
    if n <= EXACT:
        return 1 - Fraction(sum(math.comb(n, k) * (c - 1) ** (n - k) for k in inside), c**n)
    terms = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        - k * math.log(c)
        + (n - k) * math.log1p(-1 / c)
        for k in inside
    )
    return Fraction(max(1.0 - math.fsum(map(math.exp, terms)), 0.0))


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words; of several columns each has a value."""
    return (
        f"{KNOWS} {percent(Fraction(1, promise.c))} sure of that person's value: {promise.c} values are equally "
        "likely in every decoy group."
    )


KIND = Kind(
    {
        "c": whole,
        "rho2": optional(probability),
        "small_sums": sums("below", "at_least"),
        "large_sums": sums("above", "at_most"),
    },
    recheck,
    mechanisms=("decoys",),
    beliefs=lambda promise: [(None, promise.rho2)],
    sentence=sentence,
)
