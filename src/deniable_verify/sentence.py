"""The promise in one sentence, computed again from the parts: what it says, whether sets of values are meant, by which
factor it lets odds grow whatever someone knows or believes, and who is not covered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from deniable_verify import lineups
from deniable_verify.checks import Check
from deniable_verify.numbers import (
    FULL,
    LARGEST_FACTOR,
    Json,
    belief_after,
    factor,
    fraction,
    percent,
    rounded_up,
    value_of,
)
from deniable_verify.promises import Kind, promise_of

KNOWS = (
    "Someone who knows how frequent each value is, and nothing else, not even the public columns of this file, becomes "
    "at most"
)
NOT_OF_SETS = " That is promised of single values, not of sets of values."
UNBOUNDED = (
    "Nothing bounds what someone who knows or believes more concludes (epsilon unbounded): beliefs of 1 %, "
    "10 % and 50 % alike can become certain."
)
SHOWN_BELIEFS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
NAMED = 6  # values that a sentence names
WORDS = (
    "what the publisher says beside the sentence (`also`, `not_protected`, the options of the mechanism, that rows "
    "were shuffled); promises are numbers"
)


def sentence_check(raw: Json) -> list[Check]:
    """The sentence that people read is the one that the numbers give."""
    words = Check("words", None, WORDS, required=False)
    try:
        computed = sentence_of(raw)
    except ValueError:  # a promise that cannot be read, which fails by itself
        return [words]
    if computed is None:
        return [Check("sentence", None, "how promises of this kind are worded is not known here"), words]
    same = computed == raw["guarantee"]["sentence"]
    return [
        Check("sentence", same, "says what the parts promise" if same else "is not the one that the parts give"),
        words,
    ]


def sentence_of(raw: Json) -> str | None:
    """The promise of a release; None where a kind of promise has words of its own that are not known."""
    parts, adversary = raw["parts"], raw["guarantee"]["adversary"]
    read = [promise_of(part["promise"], part) for part in parts]
    (first, kind), part = read[0], parts[0]
    if kind.sentence is None and first.kind not in ("relative-prior", "nothing"):
        return None
    if first.kind == "odds" or first.kind not in _OWN:
        return kind.sentence(first, part, adversary) if kind.sentence is not None else None
    if all(promise.kind == "decoys" for promise, _ in read):
        said = kind.sentence(first, part, adversary) if kind.sentence else ""
        several = said.replace("that person's value:", "that person's value in a sensitive column:")
        return f"{said if len(parts) == 1 else several}{NOT_OF_SETS} {_anyone(parts, read)}"
    if first.kind == "items" and kind.sentence is not None:
        return " ".join(filter(None, (kind.sentence(first, part, adversary), _anyone(parts, read))))
    own = len([*getattr(first, "limits", ()), *getattr(first, "per_value", ())])
    bound = part["requirement"] is None and (getattr(first, "rho2", True) is not None or own > 0)
    if len(parts) == 1 and bound and first.kind in _BOUNDS and kind.sentence is not None:
        sets = "" if _covers_sets(first) else NOT_OF_SETS
        said = kind.sentence(first, part, adversary)
        return f"{said}{sets} {_anyone(parts, read)}{_not_covered(first, part, adversary)}"
    return f"{_anyone(parts, read)} {_retained(parts)}"


_OWN = ("amplification", "frequency", "per-value", "cells", "relative-prior", "line-ups", "items", "decoys", "nothing")
_BOUNDS = ("amplification", "frequency", "per-value", "cells", "line-ups")


def _covers_sets(promise: Any) -> bool:
    """Whether rho2 holds for sets of values, too: where it follows from the amplification."""
    if promise.kind == "line-ups":
        return promise.adversary == "any-prior" and not promise.per_value
    return promise.kind == "amplification"


def whatever(rho1: Fraction | None, rho2: Fraction | None) -> str:
    """Of an attacker who may have believed anything."""
    return (
        f"No attacker who believed a value at up to {percent(rho1 or Fraction(1))} beforehand becomes surer of it than "
        f"{percent(rho2 or Fraction(1))}."
    )


def made_of_sets(design: Json) -> str:
    """How a line-up is made, for people."""
    size = lineups.size_of(design)
    of, truth = f"a line-up of {size} value{'s' * (size != 1)}", design["truth"]
    if truth == FULL:
        return f"Every row shows {of}, always with the person's own among them."
    coin = "A fair coin" if 2 * truth == FULL else f"A coin that says yes {percent(truth / FULL)} of the time"
    return (
        f"Every row shows {of}. {coin} decides whether the line-up is made around the person's value, or without "
        "looking."
    )


def _retained(parts: Sequence[Json]) -> str:
    """Columns that are perturbed one by one."""
    kept = ", ".join(map(_coin, parts))
    swapped = any(part["swapped"] is not None for part in parts)
    apart = "each column on its own" if swapped else "each column and row on its own"
    coins = f"Every value is kept with the probability of its column ({kept}) and otherwise replaced at random"
    return f"{coins}, {apart}."


def _coin(part: Json) -> str:
    """With which probability a column tells the truth, or makes its line-up around it."""
    name = f"{part['columns'][0]!r}"
    if part.get("lineups") is not None:
        return f"{name} {percent(part['lineups']['truth'] / FULL)}, in a line-up of {lineups.size_of(part['lineups'])}"
    coins = {part["range"]["keep"]} if part["range"] is not None else set()
    if len(part["cells"]) == 1:
        coins = set(part["cells"][0]["keep"])
    return f"{name} {percent(Fraction(coins.pop() if len(coins) == 1 else 0, FULL))}"


# -- What any other attacker can make of it ----------------------------------------------------------------------------


def odds_grow(what: str, gamma: Fraction, epsilon: float) -> str:
    """What multiplies the odds of a statement by at most gamma, and what usual beliefs become; no number too small."""
    said = f"{what} by at most {factor(gamma)} (epsilon {epsilon:.3g}): a belief of"
    for place, prior in enumerate(SHOWN_BELIEFS):
        said += f"{',' * (place > 0)} {percent(prior)}{'' if place else ' becomes at most'} "
        said += _at_most(belief_after(prior, gamma))
    return f"{said}."


def _at_most(belief: Fraction) -> str:
    """Rounded up, to more digits where it is almost certain."""
    for digits in (3, 6, 9):
        up = rounded_up(belief, digits)
        if up < 1:
            return percent(up, digits)
    return "almost 100 %"


def _anyone(parts: Sequence[Json], read: Sequence[tuple[Any, Kind]]) -> str:
    """What a row and the noisy histogram tell of its person at most, whatever someone knows or believes."""
    rows = _rows_gamma(parts, read)
    if rows is None or rows >= LARGEST_FACTOR:
        return UNBOUNDED
    row = "a row's published values together" if len(parts) > 1 else "a row"
    noise = sum((2 * part["marginal"]["epsilon"] for part in parts if part["marginal"] is not None), start=0.0)
    if not noise:
        what = f"Whatever anyone knows or believes, {row} {'multiply' if len(parts) > 1 else 'multiplies'}"
        return odds_grow(f"{what} the odds of any statement about its person", rows, math.log(rows))
    epsilon = math.log(rows) + noise
    both = f"{row} (epsilon {math.log(rows):.3g}) and the noisy counts (epsilon {noise:.3g}) multiply the odds of any"
    what = f"Whatever anyone knows or believes, {both} statement about its person"
    return odds_grow(what, Fraction(math.exp(epsilon)), epsilon)


def _rows_gamma(parts: Sequence[Json], read: Sequence[tuple[Any, Kind]]) -> Fraction | None:
    """What everything that a row shows multiplies odds by; None where it can rule values out."""
    from deniable_verify.manifest import part_amplification

    if read[0][0].kind == "items":  # of the whole list, and it stands with each of its items
        return fraction(parts[0]["promise"]["gamma"])
    total = Fraction(1)
    for part, (promise, _) in zip(parts, read, strict=True):
        gamma = promise.gamma if promise.kind == "line-ups" and part["swapped"] is None else part_amplification(part)
        if gamma is None:
            return None
        total *= gamma
    return total


# -- Who is not covered ------------------------------------------------------------------------------------------------


def _not_covered(promise: Any, part: Json, adversary: str) -> str:
    """The values that a promise does not cover, by name."""
    if adversary == "any-prior":
        return ""
    exempt, above = getattr(promise, "exempt", ()), getattr(promise, "above", ())
    covered = {place for place, _, _ in (*getattr(promise, "per_value", ()), *getattr(promise, "limits", ()))}
    if covered:
        exempt = tuple(place for place in range(len(part["domain"])) if place not in covered)
    alone = _loose(promise, part)
    if not (exempt or above or alone):
        return ""
    sure, said = _surest(part), []
    if above:
        said.append(
            f"{_listed(part, above, sure)}, more frequent than {percent(promise.rho1 or Fraction(1))} or nearly"
        )
    if exempt:
        said.append(f"{_listed(part, exempt, sure)}, {'without a requirement' if covered else 'exempt'}")
    return f" Not covered: {'; '.join([*said, *alone])}."


def _listed(part: Json, places: Sequence[int], sure: Sequence[Fraction] | None) -> str:
    """Some values, the most exposed first, and how many more there are."""
    ordered = list(places) if sure is None else sorted(places, key=lambda place: (-sure[place], place))
    shown = [
        _name(_value(part, place)) + ("" if sure is None else f" (up to {min(math.ceil(100 * sure[place]), 100)} %)")
        for place in ordered[:NAMED]
    ]
    return ", ".join([*shown, *([] if len(ordered) <= NAMED else [f"{len(ordered) - NAMED:,} more"])])


def _loose(promise: Any, part: Json) -> list[str]:
    """Of columns that are perturbed together, the single values that a promise leaves out."""
    several = len(part["columns"]) > 1
    if several and promise.kind == "amplification":
        return (
            [] if promise.rho1 is None else [f"of one column alone what is more frequent than {percent(promise.rho1)}"]
        )
    if several and not hasattr(promise, "loose"):
        return ["of one column alone any value"]
    said = []
    for column, name in enumerate(part["columns"]) if several else ():
        known = list(dict.fromkeys(_value(part, place)[column] for place in range(len(part["domain"]))))
        places = [place for number, place in promise.loose if number == column]
        if places:
            names = [_name(known[place]) for place in places[:NAMED]]
            more = [] if len(places) <= NAMED else [f"{len(places) - NAMED:,} more"]
            said.append(f"of {name!r} alone {', '.join([*names, *more])}")
    return said


def _value(part: Json, place: int) -> Any:
    """A value of the domain, as Python writes it."""
    entry = value_of(part["domain"][place], part["types"])
    return entry[0] if len(entry) == 1 else entry


def _name(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _surest(part: Json) -> list[Fraction] | None:
    """How sure an attacker becomes of each value at most, by the noisy histogram; None where nothing tells."""
    if part["marginal"] is None:
        return None
    counts = [max(count, 1) for count in part["marginal"]["counts"]]
    if part.get("lineups") is not None:
        return lineups.surest(part["lineups"], counts)
    if len(part["cells"]) != 1 or part["cells_published"]:
        return None
    return surest(part["cells"][0], counts)


def surest(cell: Json, counts: Sequence[int]) -> list[Fraction]:
    """The largest Pr[x | y] over all y, for each x, for who believes in x in proportion to its count:

    Pr[x | y] = f_x (S-K_x) W_y / (f_y K_y S + W_y T) for y != x, T = sum_k f_k (S-K_k), largest where f_y K_y / W_y is
    smallest, so the two smallest decide; and Pr[x | x] = f_x (K_x S + (S-K_x) W_x) / (f_x K_x S + W_x T).
    """
    beliefs = [Fraction(0)] * len(counts)
    rows = list(zip((counts[place] for place in cell["values"]), cell["keep"], cell["replace"], strict=True))
    total = sum(f * (FULL - k) for f, k, _ in rows)
    near = sorted((f * k / w, number) for number, (f, k, w) in enumerate(rows) if w)[:64]
    exact = sorted((Fraction(rows[number][0] * rows[number][1] * FULL, rows[number][2]), number) for _, number in near)
    for number, (place, (f, k, w)) in enumerate(zip(cell["values"], rows, strict=True)):
        seen = f * k * FULL + w * total
        same = Fraction(f * (k * FULL + (FULL - k) * w), seen) if seen else Fraction(0)
        ratio = next((ratio for ratio, other in exact if other != number), None)
        drawn = Fraction(0) if ratio is None or ratio + total == 0 else f * (FULL - k) / (ratio + total)
        beliefs[place] = max(same, drawn)
    return beliefs
