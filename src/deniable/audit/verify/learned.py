"""What a learned release has spent, recomputed from the lines of its ledger (mathematics 14.1)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import Check, belief_checks
from deniable.learned.measuring import is_within

Json = Mapping[str, Any]


def by_ledger(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Everything that was looked at is paid for, every table among it, and no more than is promised was spent."""
    named, learned = ", ".join(map(repr, part["columns"])), part.get("learned")
    if learned is None or part["cells"]:
        return [Check("ledger", False, f"{named}: it is about learned values, and the part has none")]
    lines = learned["spent"]
    epsilon = sum((Fraction(line["epsilon"]) for line in lines), start=Fraction(0))
    delta = sum((Fraction(line["delta"]) for line in lines), start=Fraction(0)) * promise.together
    delta *= promise.publications
    measured = sorted(Fraction(table["epsilon"]) for table in learned["tables"] if table["epsilon"] is not None)
    paid = sorted(Fraction(line["epsilon"]) for line in lines if line["what"] == "table")
    listed = sum(line["what"] == "list" for line in lines)
    drawn = {line["name"] for line in lines if line["what"] == "edges"}
    binned = {name for name, bins in part["bins"].items() if bins["open_ends"]}
    whole = epsilon * promise.together * promise.publications
    if not 1 <= promise.number <= promise.publications:
        return [Check("ledger", False, f"{named}: number {promise.number} of {promise.publications} publications")]
    spent = (
        f"{named}: epsilon {float(whole):.6g} in {len(lines)} lines, promised {float(promise.gamma):.6g} times the odds"
    )
    return [
        Check("ledger", is_within(whole, promise.gamma), spent),
        Check("tables", measured == paid, f"{named}: {len(measured)} tables, each paid for in the ledger"),
        Check("spent", (epsilon, delta) == (promise.epsilon, promise.delta), f"{named}: the promise says what it was"),
        *([Check("edges", drawn <= binned, f"{named}: of columns that have such bins")] if drawn else []),
        Check("list of values", (listed > 0) == (promise.listed == "threshold"), f"{named}: {promise.listed}"),
        *belief_checks(promise, named, promise.gamma),
    ]
