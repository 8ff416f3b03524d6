"""Pr[x | S] <= rho2 for every set S that a row may publish, recomputed over all of them (mathematics 12)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable_verify import lineups
from deniable_verify.checks import Check
from deniable_verify.coverage import UNKNOWN, above_checks, noise_slack
from deniable_verify.numbers import FULL, Json, belief_after, fraction, optional, percent, text
from deniable_verify.promises import Kind
from deniable_verify.promises.amplification import gamma_check
from deniable_verify.promises.frequency import FIELDS, beliefs, posterior_check
from deniable_verify.sentence import KNOWS, made_of_sets, whatever


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """By the amplification of the sets, or as far as the noisy histogram tells them."""
    design, name = part.get("lineups"), ", ".join(part["columns"])
    if design is None:
        return [Check("line-ups", False, f"{name}: it is about line-ups, and the part has none")]
    if promise.adversary != manifest["guarantee"]["adversary"]:
        return [Check("line-ups", False, f"{name}: promised against {promise.adversary[:20]!r}, stated otherwise")]
    stays = _stays(promise, part)
    needs_gamma = promise.adversary != "frequency" and promise.gamma is None
    detail = f"{name}: no belief falls below {float(stays):.4g} of what it was, promised {float(promise.stays):.4g}"
    return [
        Check("downward", promise.stays <= stays, detail),
        *(_amplification(promise, part) if promise.gamma is not None else []),
        *(_posteriors(promise, part, manifest) if promise.adversary == "frequency" else []),
        *([Check("gamma", False, f"{name}: none is stated")] if needs_gamma else []),
    ]


def _stays(promise: Any, part: Json) -> Fraction:
    """What is left of a belief at the least, whoever held it; of frequencies, as far as the noisy histogram tells."""
    design, marginal = part["lineups"], part["marginal"]
    if promise.adversary != "frequency":
        gamma = lineups.amplification(design)
        return Fraction(0) if gamma is None else 1 / gamma
    if marginal is None:
        return 1 - Fraction(design["truth"], FULL)  # it is so on average over sets; the least is no more
    return lineups.stays_at_most(design, [max(count, 0) for count in marginal["counts"]], noise_slack(part))


def _amplification(promise: Any, part: Json) -> list[Check]:
    """Against any prior the amplification decides, for the belief of every pair (rho1, rho2) that is promised."""
    gamma, name = lineups.amplification(part["lineups"]), ", ".join(part["columns"])
    checks = [gamma_check(name, gamma, promise.gamma)]
    if promise.adversary == "frequency":
        return checks
    pairs = [(rho1, rho2) for rho1, rho2 in beliefs(promise) if rho1 is not None and rho2 is not None]
    kept = [gamma is not None and belief_after(rho1, gamma) <= rho2 for rho1, rho2 in pairs]
    return [*checks, Check("posterior", bool(kept) and all(kept), f"{sum(kept)} of {len(pairs)} pairs of beliefs kept")]


def _posteriors(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Pr[x | S] of every covered value over all sets, by the noisy histogram."""
    if part["marginal"] is None:
        return [Check("posterior", None, UNKNOWN)]
    slack, rows = noise_slack(part), max(manifest["rows"], 1)
    counts = [max(count, 0) for count in part["marginal"]["counts"]]
    least = lineups.surest_at_least(part["lineups"], counts, slack)
    sure = [(place, Fraction(counts[place] + slack, rows), belief) for place, belief in enumerate(least)]
    return [posterior_check(promise, sure, " in all line-ups"), *above_checks(promise, part, manifest)]


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words."""
    made = made_of_sets(part["lineups"])
    if promise.adversary == "any-prior":
        own = "No attacker who believed a named value at up to its rho1 beforehand becomes surer of it than its rho2."
        return f"{made} {own if promise.per_value else whatever(promise.rho1, promise.rho2)}"
    if promise.per_value:
        return f"{made} {KNOWS} as sure of each of {len(promise.per_value):,} values as its own rho2 says."
    return f"{made} {KNOWS} {percent(promise.rho2 or Fraction(1))} sure of that person's value."


KIND = Kind(
    {"adversary": text, "gamma": optional(fraction), "stays": fraction, **FIELDS},
    recheck,
    mechanisms=("lineup", "collected"),
    beliefs=beliefs,
    any_prior=lambda promise: promise.adversary == "any-prior",
    by_frequency=lambda promise: promise.adversary == "frequency",
    sentence=sentence,
)
