"""Promises recomputed, by their kind: from the integers of a part's channels, and its noisy histogram."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from deniable.audit.verify import lineups
from deniable.audit.verify.cells import by_cell
from deniable.audit.verify.checks import FULL, Check, amplification_check, belief_checks, part_amplification
from deniable.audit.verify.coverage import NOT_CHECKED, above_checks, noise_slack, single_checks, surest_at_least
from deniable.audit.verify.items import by_items
from deniable.audit.verify.learned import by_ledger
from deniable.core.promise import (
    Amplification,
    Cells,
    DecoyGroups,
    Frequency,
    LineUps,
    Nothing,
    OneOfItems,
    PerValue,
    RelativePrior,
)

Json = Mapping[str, Any]
EXACT_ROWS = 4096  # powers for more rows would fill pages, and matter no more
DIGITS = 1e-5  # a published mixture has six digits


def by_amplification(promise: Amplification, part: Json, manifest: Json) -> list[Check]:
    """(rho1, rho2)-privacy through the amplification of one channel (THESIS Thm 1)."""
    gamma, named = part_amplification(part), ", ".join(map(repr, part["columns"]))
    return [
        amplification_check(named, gamma, promise.gamma),
        *belief_checks(promise, named, gamma),
        *_unnamed(promise, part, manifest),
        *above_checks(promise, part, manifest),
    ]


def _unnamed(promise: Amplification, part: Json, manifest: Json) -> list[Check]:
    """Where rho2 is stated for who knows the frequencies, values of which they become surer must be named."""
    stated = manifest["guarantee"]["adversary"] == "frequency" and part["requirement"] is None
    if not stated or promise.rho2 is None or len(part["cells"]) != 1:
        return []
    if part["marginal"] is None:
        return [Check("left out", True, NOT_CHECKED)]
    rho2 = promise.rho2
    wrong = sum(sure > rho2 for place, sure in surest_at_least(part).items() if place not in promise.above)
    detail = f"{wrong} values that are not named as left out exceed rho2, by the noisy histogram"
    return [Check("left out", False, detail)] if wrong else []


def by_frequency(promise: Frequency, part: Json, manifest: Json) -> list[Check]:
    """Posteriors under the table's distribution (mathematics 2), as far as the published noisy histogram tells it.

    A promise fails here only when it fails for all counts as near to the noisy ones as noise allows.
    """
    if len(part["cells"]) != 1:
        return [Check("posterior", False, "it is about one channel for all values")]
    if part["marginal"] is None:
        return [Check("posterior", True, NOT_CHECKED)]
    slack, counts, rows = noise_slack(part), part["marginal"]["counts"], max(manifest["rows"], 1)
    least = surest_at_least(part)
    sure = [(place, Fraction(counts[place] + slack, rows), belief) for place, belief in least.items()]
    return [
        _posterior_check(promise, sure),
        *above_checks(promise, part, manifest),
        *single_checks(promise, part, manifest),
    ]


def _posterior_check(
    promise: Frequency | LineUps, sure: list[tuple[int, Fraction, Fraction]], where: str = ""
) -> Check:
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


def by_value(promise: PerValue, part: Json, manifest: Json) -> list[Check]:
    """Each value's own amplification P[i][i] / P[i][k] against its own limit (THESIS Thm 7, upward)."""
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


def by_relative_prior(promise: RelativePrior, part: Json, manifest: Json) -> list[Check]:
    """No (s, rho1, rho2)-breach: s (1-rho2) p < (rho2-rho1) (1-p) (OLAP Thm 4; at s = 1 Lemma 1)."""
    name = part["columns"][0]
    if part["range"] is None and len(part["cells"]) != 1:
        return [Check(f"no breach in {name!r}", False, "it is about one channel, or a range of numbers")]
    keep = part["range"]["keep"] if part["range"] is not None else max(part["cells"][0]["keep"])
    coin = Fraction(keep, FULL) if part["swapped"] is None else swapped_coin(keep, part["swapped"])
    holds = promise.s * (1 - promise.rho2) * coin < (promise.rho2 - promise.rho1) * (1 - coin)
    numbers = f"s = {float(promise.s):.4g}, rho1 = {float(promise.rho1):g}, rho2 = {float(promise.rho2):g}"
    checks = [Check(f"no breach in {name!r}", holds, f"coin {float(coin):.6g}, for {numbers}")]
    if part["swapped"] is not None:
        whole = 0 < part["swapped"] <= manifest["rows"]
        checks.append(Check(f"swapped rows of {name!r}", whole, f"{part['swapped']:,} of {manifest['rows']:,}"))
    if promise.like_column and part["cells"] and part["marginal"] is not None:
        checks.append(_replacements(promise.s, part, manifest["rows"]))
    return checks


def swapped_coin(keep: int, rows: int) -> Fraction:
    """The coin that swapping among n rows comes to, p (n - p^(n-1)) / (n - 1) (mathematics 6)."""
    if rows < 2:
        return Fraction(1)
    last = Fraction(keep, FULL) ** (rows - 1) if rows <= EXACT_ROWS else 0  # left out, the coin is larger
    return min(Fraction(keep, FULL) * (rows - last) / (rows - 1), Fraction(1))


def _replacements(s: Fraction, part: Json, rows: int) -> Check:
    """Replacements like the column itself: no value is more than s times likelier than to be drawn."""
    (cell,) = part["cells"]
    slack = noise_slack(part)
    least = [max(part["marginal"]["counts"][place] - slack, 0) for place in cell["values"]]
    wrong = sum(count * FULL > s * rows * weight for count, weight in zip(least, cell["replace"], strict=True))
    detail = f"values are at most {float(s):.4g} times as likely as their replacements, by the noisy histogram"
    name = f"replacements of {part['columns'][0]!r}"
    return Check(name, not wrong, f"{wrong} values exceed it: {detail}" if wrong else detail)


def by_lineups(promise: LineUps, part: Json, manifest: Json) -> list[Check]:
    """Posteriors over all sets of the design: by its amplification, or as far as the noisy histogram tells them."""
    design, name = part.get("lineups"), ", ".join(part["columns"])
    if design is None or part["cells"]:
        return [Check("line-ups", False, f"{name}: it is about line-ups, and the part has none")]
    if promise.adversary != manifest["guarantee"]["adversary"]:
        return [Check("line-ups", False, f"{name}: promised against {promise.adversary!r}, stated otherwise")]
    stays = _lineup_stays(promise, part)
    needs_gamma = promise.adversary != "frequency" and promise.gamma is None
    detail = f"{name}: no belief falls below {float(stays):.4g} of what it was, promised {float(promise.stays):.4g}"
    return [
        Check("downward", promise.stays <= stays, detail),
        *(_lineup_amplification(promise, part) if promise.gamma is not None else []),
        *(_lineup_posteriors(promise, part, manifest) if promise.adversary == "frequency" else []),
        *([Check("gamma", False, f"{name}: none is stated")] if needs_gamma else []),
    ]


def _lineup_stays(promise: LineUps, part: Json) -> Fraction:
    """What is left of a belief at the least, whoever held it; of frequencies, as far as the noisy histogram tells."""
    design, marginal = part["lineups"], part["marginal"]
    if promise.adversary != "frequency":
        gamma = lineups.amplification(design)
        return Fraction(0) if gamma is None else 1 / gamma
    if marginal is None:
        return 1 - Fraction(design["truth"], FULL)  # it is so on average over sets; the least is no more
    return lineups.stays_at_most(design, [max(count, 0) for count in marginal["counts"]], noise_slack(part))


def _lineup_amplification(promise: LineUps, part: Json) -> list[Check]:
    """Against any prior the amplification decides, for the belief of every pair (rho1, rho2) that is promised."""
    gamma, name = lineups.amplification(part["lineups"]), ", ".join(part["columns"])
    assert promise.gamma is not None
    checks = [amplification_check(name, gamma, promise.gamma)]
    if promise.adversary == "frequency":
        return checks
    pairs = [(rho1, rho2) for _, rho1, rho2 in promise.per_value]
    pairs += [(promise.rho1, promise.rho2)] if promise.rho1 is not None and promise.rho2 is not None else []
    kept = [gamma is not None and rho1 * gamma <= rho2 * (1 - rho1 + rho1 * gamma) for rho1, rho2 in pairs]
    return [*checks, Check("posterior", bool(kept) and all(kept), f"{sum(kept)} of {len(pairs)} pairs of beliefs kept")]


def _lineup_posteriors(promise: LineUps, part: Json, manifest: Json) -> list[Check]:
    """Pr[x | S] of every covered value over all sets, by the noisy histogram; see ``by_frequency``."""
    if part["marginal"] is None:
        return [Check("posterior", True, NOT_CHECKED)]
    slack, rows = noise_slack(part), max(manifest["rows"], 1)
    counts = [max(count, 0) for count in part["marginal"]["counts"]]
    least = lineups.surest_at_least(part["lineups"], counts, slack)
    sure = [(place, Fraction(counts[place] + slack, rows), belief) for place, belief in enumerate(least)]
    return [_posterior_check(promise, sure, " in all line-ups"), *above_checks(promise, part, manifest)]


def by_decoys(promise: DecoyGroups, part: Json, manifest: Json) -> list[Check]:
    """A published value speaks for no value with more than 1/c, and sums are what was required of them."""
    c = promise.c
    own = [row[place] for place, row in enumerate(part["mixture"] or ())]
    shown = [share for share in own if share < 1]  # a value without rows is listed as if it were kept
    grouped = part["groups"] is not None and part["groups"]["c"] == c >= 2 and not part["cells"]
    checks = [
        Check(
            "decoy groups",
            grouped and all(abs(share - 1 / c) < DIGITS for share in shown),
            f"groups of {c}: every value is published as itself once in {c}",
        )
    ]
    if promise.rho2 is not None:
        checks.append(Check("posterior", Fraction(1, c) <= promise.rho2, f"1/{c}, allowed {float(promise.rho2):.6g}"))
    if promise.small_sums is not None:
        small, untold = promise.small_sums, part["marginal"] is None
        detail = f"off with probability {float(small.reached(c)):.4g} at the least, required {small.at_least}"
        objection = "" if untold else "; but a noisy histogram tells them"
        checks.append(Check("small sums", small.holds(c) and untold, detail + objection))
    if promise.large_sums is not None:
        large = promise.large_sums
        detail = f"off with probability {float(large.reached(c)):.4g} at {large.above:,} rows, allowed {large.at_most}"
        checks.append(Check("large sums", large.holds(c), detail))
    return checks


def by_nothing(promise: Nothing, part: Json, manifest: Json) -> list[Check]:
    """Nothing is promised of this part, and nothing may be stated."""
    return [Check("promise", True, f"{', '.join(part['columns'])}: none ({promise.why})")]


RECHECKS: dict[str, Callable[[Any, Json, Json], list[Check]]] = {
    Amplification.kind: by_amplification,
    Frequency.kind: by_frequency,
    PerValue.kind: by_value,
    Cells.kind: by_cell,
    RelativePrior.kind: by_relative_prior,
    LineUps.kind: by_lineups,
    OneOfItems.kind: by_items,
    DecoyGroups.kind: by_decoys,
    Nothing.kind: by_nothing,
    "odds": by_ledger,
}
