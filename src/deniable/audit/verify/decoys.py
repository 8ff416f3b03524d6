"""What decoy groups promise, recomputed from a manifest: 1/c, and the binomial tails of sums (SPEC 7)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import Check
from deniable.core.sums import LargeSums, SmallSums

DIGITS = 1e-5  # a published mixture has six digits


def by_decoys(manifest: Mapping[str, Any]) -> list[Check]:
    """A published value speaks for no value with more than 1/c, and sums are what was required of them."""
    c, required = int(manifest["mechanism"]["options"]["c"]), manifest["privacy"] or {}
    own = [row[place] for part in manifest["sensitive"] for place, row in enumerate(part["mixture"] or ())]
    shown = [share for share in own if share < 1]  # a value without rows is listed as if it were kept
    checks = [
        Check(
            "decoy groups",
            c >= 2 and all(abs(share - 1 / c) < DIGITS for share in shown),
            f"groups of {c}: every value is published as itself once in {c}",
        )
    ]
    if required.get("rho2") is not None and required["rho1"] is None and not required["exempt"]:
        # Otherwise it may be that no value of the table is protected.
        rho2 = Fraction(required["rho2"])
        checks.append(Check("posterior", Fraction(1, c) <= rho2, f"1/{c}, allowed {float(rho2):.6g}"))
    if "small_sums" in required:
        small = SmallSums(**required["small_sums"])
        untold = all(part["marginal"] is None for part in manifest["sensitive"])
        detail = f"off with probability {float(small.reached(c)):.4g} at the least, required {small.at_least}"
        told = "" if untold else "; but a noisy histogram tells them"
        checks.append(Check("small sums", small.holds(c) and untold, detail + told))
    if "large_sums" in required:
        large = LargeSums(**required["large_sums"])
        detail = f"off with probability {float(large.reached(c)):.4g} at {large.above:,} rows, allowed {large.at_most}"
        checks.append(Check("large sums", large.holds(c), detail))
    return checks
