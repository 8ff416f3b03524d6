"""No (s, rho1, rho2)-breach: s (1-rho2) p < (rho2-rho1) (1-p) (OLAP Thm 4; at s = 1 Lemma 1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.coverage import noise_slack
from deniable_verify.numbers import FULL, Json, fraction, probability, truth
from deniable_verify.promises import Kind

EXACT_ROWS = 4096  # powers for more rows would fill pages, and matter no more


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """The largest coin of a channel, of a range, or of swapping."""
    name = part["columns"][0]
    if part["range"] is None and len(part["cells"]) != 1:
        return [Check(f"no breach in {name!r}", False, "it is about one channel, or a range of numbers")]
    keep = part["range"]["keep"] if part["range"] is not None else max(part["cells"][0]["keep"])
    coin = Fraction(keep, FULL) if part["swapped"] is None else swapped_coin(keep, part["swapped"])
    holds = promise.s * (1 - promise.rho2) * coin < (promise.rho2 - promise.rho1) * (1 - coin)
    numbers = f"s = {float(promise.s):.4g}, rho1 = {float(promise.rho1):g}, rho2 = {float(promise.rho2):g}"
    checks = [Check(f"no breach in {name!r}", holds, f"coin {float(coin):.6g}, for {numbers}")]
    if part["swapped"] is not None:
        among = 0 < part["swapped"] <= manifest["rows"]
        checks.append(Check(f"swapped rows of {name!r}", among, f"{part['swapped']:,} of {manifest['rows']:,}"))
    if promise.like_column and part["cells"] and part["marginal"] is not None:
        checks.append(_replacements(promise.s, part, manifest["rows"]))
    elif promise.like_column and part["swapped"] is None:
        checks.append(Check(f"replacements of {name!r}", None, "no noisy histogram tells what the column is like"))
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


KIND = Kind(
    {"s": fraction, "rho1": probability, "rho2": probability, "like_column": truth},
    recheck,
    mechanisms=("retention",),
    any_prior=lambda promise: not promise.like_column,
)
