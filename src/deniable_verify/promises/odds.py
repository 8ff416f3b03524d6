"""Everything that depends on values multiplies the odds of a statement about one person by at most gamma: the ledger of
what was looked at, added up (mathematics 14.1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.learned import spent_of
from deniable_verify.numbers import Json, fraction, is_within, optional, percent, probability, rounded_up, text, whole
from deniable_verify.promises import Kind
from deniable_verify.promises.amplification import belief_checks
from deniable_verify.sentence import odds_grow

LISTED = {
    "declared": "",
    "threshold": " A value that one person alone has is in the list of values with probability {delta:.2g} at most.",
    "table": " Excepted is the list of values: that a value is in it tells that somebody has it.",
}


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Everything that was looked at is paid for, every table among it, and no more than is promised was spent."""
    named, learned = ", ".join(map(repr, part["columns"])), part.get("learned")
    if learned is None or promise.together < 1 or not 1 <= promise.number <= promise.publications:
        return [Check("ledger", False, f"{named}: it is about learned values, of a person, in a series, and is not")]
    epsilon, delta = spent_of(learned)
    looks = promise.together * promise.publications
    whole_epsilon, all_delta = epsilon * looks, delta * looks
    lines = learned["spent"]
    measured = sorted(fraction(table["epsilon"]) for table in learned["tables"] if table["epsilon"] is not None)
    paid = sorted(fraction(line["epsilon"]) for line in lines if line["what"] == "table")
    lists = sum(line["what"] == "list" for line in lines)
    drawn = {line["name"] for line in lines if line["what"] == "edges"}
    binned = {name for name, bins in part["bins"].items() if bins["open_ends"]}
    spent = (
        f"{named}: epsilon {float(whole_epsilon):.6g} in {len(lines)} lines, promised {float(promise.gamma):.6g} times"
    )
    as_said = (epsilon, all_delta) == (promise.epsilon, promise.delta)
    known = promise.listed in LISTED and (lists > 0) == (promise.listed == "threshold")
    return [
        Check("ledger", is_within(whole_epsilon, promise.gamma), f"{spent} the odds"),
        Check("tables", measured == paid, f"{named}: {len(measured)} tables, each paid for in the ledger"),
        Check("spent", as_said, f"{named}: the promise says what it was"),
        *([Check("edges", drawn <= binned, f"{named}: of columns that have such bins")] if drawn else []),
        Check("list of values", known and learned["other"] <= (lists > 0), f"{named}: {promise.listed[:20]}"),
        *belief_checks(promise, named, promise.gamma),
    ]


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words, with what usual beliefs become."""
    whose = "one person's value"
    if promise.together > 1:
        whose = f"the values of one person or group, {promise.together:,} rows at the most,"
    required = ""
    if promise.rho1 is not None and promise.rho2 is not None:
        required = f" No belief of up to {percent(promise.rho1)} becomes surer than {percent(promise.rho2)}."
    what, so_far = "this release multiplies", ""
    if promise.publications > 1:
        what = f"the {promise.publications:,} releases that its series may have multiply, all together,"
        spent = percent(Fraction(promise.number, promise.publications))
        so_far = f" This is number {promise.number:,}: {spent} is spent."
    odds = odds_grow(
        f"Whatever anyone knows or believes, all other rows included, {what} the odds of any statement about {whose}",
        promise.gamma,
        float(promise.epsilon * promise.together * promise.publications),
    )
    delta = float(rounded_up(promise.delta, 2))
    return f"{odds}{required}{so_far}{LISTED[promise.listed].format(delta=delta)}"


KIND = Kind(
    {
        "gamma": fraction,
        "epsilon": fraction,
        "delta": fraction,
        "together": whole,
        "rho1": optional(probability),
        "rho2": optional(probability),
        "listed": text,
        "publications": whole,
        "number": whole,
    },
    recheck,
    mechanisms=("synthetic",),
    any_prior=lambda promise: True,
    sentence=sentence,
)
