"""What a release promises, in one sentence: computed from its parts, so that whoever verifies them can compute it, too.

Values that the promise does not cover are named, with how sure an attacker can become of them where the noisy histogram
tells (mathematics 13.5, 13.7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.core.exact import SCALE, surest
from deniable.core.lineups import surest_in_lineups
from deniable.core.part import Marginal, Part
from deniable.core.privacy import worst_posterior
from deniable.core.promise import (
    Amplification,
    Cells,
    DecoyGroups,
    Frequency,
    LineUps,
    OneOfItems,
    PerValue,
    Promise,
    single_values,
)
from deniable.core.transforms import list_sentence
from deniable.core.values import LARGEST_FACTOR, factor, percent, rounded

if TYPE_CHECKING:
    from deniable.core.plan import PlannedPart

KNOWS = (
    "Someone who knows how frequent each value is, and nothing else, not even the public columns of this file, becomes "
    "at most"
)
NOT_OF_SETS = " That is promised of single values, not of sets of values."
NAMED = 6  # values that a sentence names
LEFT = (
    " Not covered: values without a requirement, and those more frequent than rho1 among these rows and in the table."
)


def sentence_of(parts: Sequence[Part], adversary: str) -> str:
    """The promise of a release of rows."""
    first = parts[0].promise
    if hasattr(first, "sentence"):  # of a chapter of its own, or of another package, which words it itself
        return first.sentence(parts[0], adversary)
    if isinstance(first, DecoyGroups) and all(isinstance(part.promise, DecoyGroups) for part in parts):
        said = _decoys(first, "value" if len(parts) == 1 else "value in a sensitive column")
        return f"{said}{NOT_OF_SETS} {_anyone(parts)}"
    if isinstance(first, OneOfItems):
        return " ".join(filter(None, (list_sentence(first, parts[0].item), _anyone(parts))))
    if len(parts) == 1 and type(first) in _SENTENCES and _is_bound(parts[0]):
        said = _SENTENCES[type(first)](first, parts[0], adversary)
        sets = "" if _covers_sets(first) else NOT_OF_SETS
        return f"{said}{sets} {_anyone(parts)}{not_covered(parts[0], adversary)}"
    return f"{_anyone(parts)} {_retained(parts)}"


def told_part(planned: PlannedPart, promise: Promise) -> Part:
    """What an owner can say of a planned part: as a release would, by the true histogram."""
    histogram, cells = planned.histogram, () if planned.hidden else planned.cells
    return Part(
        columns=planned.columns,
        types=(),
        missing="value",
        promise=promise,
        domain=() if histogram is None else histogram.domain,
        range=planned.grid,
        channels=tuple(cell.channel for cell in cells),
        cell_positions=tuple(planned.positions(cell) for cell in cells),
        cells_published=planned.cells_published,
        marginal=None if histogram is None else Marginal(tuple(histogram.counts.tolist()), math.inf, 0.0),
        swapped=0 if planned.swapped else None,
        groups=planned.groups,
        requirement=planned.requirement,
        lineups=planned.lineups,
        learned=planned.learned,
    )


def _is_bound(part: Part) -> bool:
    """Whether a part states how sure an attacker can become, and not only a coin."""
    return part.requirement is None and (getattr(part.promise, "rho2", True) is not None or _own(part) > 0)


def _own(part: Part) -> int:
    return len(getattr(part.promise, "limits", getattr(part.promise, "per_value", ())))


def _amplified(promise: Amplification, part: Part, adversary: str) -> str:
    if adversary == "any-prior":
        return _whatever(promise.rho1, promise.rho2)
    return f"{KNOWS} {percent(_known(promise.rho2))} sure of that person's value."


def _whatever(rho1: Fraction | None, rho2: Fraction | None) -> str:
    return (
        f"No attacker who believed a value at up to {percent(_known(rho1))} beforehand becomes surer of it than "
        f"{percent(_known(rho2))}."
    )


def _frequent(promise: Frequency, part: Part, adversary: str) -> str:
    if promise.per_value:
        return f"{KNOWS} as sure of each of {len(promise.per_value):,} values as its own rho2 says."
    return f"{KNOWS} {percent(_known(promise.rho2))} sure of that person's value."


def _per_value(promise: PerValue, part: Part, adversary: str) -> str:
    pairs = {(rho1, rho2) for _, rho1, rho2 in promise.limits}
    if len(pairs) == 1 and adversary == "any-prior":
        return _whatever(*pairs.pop())
    return (
        f"Each of the {len(promise.limits):,} values with a requirement of its own: whoever believed it at up to its "
        "rho1 beforehand becomes at most its rho2 sure of it."
    )


def _in_cells(promise: Cells, part: Part, adversary: str) -> str:
    return (  # narrower than the general sentence: rows of a small cell taken together can say more
        f"{KNOWS} {percent(promise.rho2)} sure of that person's value by the cell and the value published for that "
        "person."
    )


def _lined_up(promise: LineUps, part: Part, adversary: str) -> str:
    made = _made(part)
    if promise.adversary == "any-prior":
        own = "No attacker who believed a named value at up to its rho1 beforehand becomes surer of it than its rho2."
        return f"{made} {own if promise.per_value else _whatever(promise.rho1, promise.rho2)}"
    if promise.per_value:
        return f"{made} {KNOWS} as sure of each of {len(promise.per_value):,} values as its own rho2 says."
    return f"{made} {KNOWS} {percent(_known(promise.rho2))} sure of that person's value."


def _made(part: Part) -> str:
    """How a line-up is made, for people."""
    design = part.lineups
    assert design is not None
    of = f"a line-up of {design.size} value{'s' * (design.size != 1)}"
    if design.truth == SCALE:
        return f"Every row shows {of}, always with the person's own among them."
    coin = (
        "A fair coin" if 2 * design.truth == SCALE else f"A coin that says yes {percent(design.share_true)} of the time"
    )
    return (
        f"Every row shows {of}. {coin} decides whether the line-up is made around the person's value, or without "
        "looking."
    )


def _decoys(promise: DecoyGroups, what: str) -> str:
    return (
        f"{KNOWS} {percent(Fraction(1, promise.c))} sure of that person's {what}: {promise.c} values are equally "
        "likely in every decoy group."
    )


def _retained(parts: Sequence[Part]) -> str:
    """Columns that are perturbed one by one."""
    kept = ", ".join(_coin(part) for part in parts)
    apart = (
        "each column on its own"
        if any(part.swapped is not None for part in parts)
        else "each column and row on its own"
    )
    coins = f"Every value is kept with the probability of its column ({kept}) and otherwise replaced at random"
    return f"{coins}, {apart}."


def _coin(part: Part) -> str:
    """With which probability a column tells the truth, or makes its line-up around it."""
    name = f"{part.columns[0]!r} " if part.columns else ""
    if part.lineups is not None:
        return f"{name}{percent(part.lineups.share_true)}, in a line-up of {part.lineups.size}"
    return f"{name}{percent(Fraction(part.coin or 0, SCALE))}"


def _known(probability: Fraction | None) -> Fraction:
    return Fraction(1) if probability is None else probability


# -- what any other attacker can make of it ----------------------------------------------------------------------------


SHOWN_BELIEFS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
UNBOUNDED = (
    "Nothing bounds what someone who knows or believes more concludes (epsilon unbounded): beliefs of 1 %, "
    "10 % and 50 % alike can become certain."
)


def odds_grow(what: str, gamma: Fraction, epsilon: float | None = None) -> str:
    """What multiplies the odds of a statement by at most gamma, and what usual beliefs become; no number too small.

    >>> odds_grow("It multiplies the odds", Fraction(12, 5))
    'It multiplies the odds by at most 2.4 (epsilon 0.875): a belief of 1 % becomes at most 2.37 %, 10 % 21.1 %, 50 % \
70.6 %.'
    """
    epsilon = math.log(gamma) if epsilon is None else epsilon
    said = f"{what} by at most {factor(gamma)} (epsilon {epsilon:.3g}): a belief of"
    for place, prior in enumerate(SHOWN_BELIEFS):
        said += f"{',' * (place > 0)} {percent(prior)}{'' if place else ' becomes at most'} "
        said += _at_most(worst_posterior(prior, gamma))
    return f"{said}."


def _at_most(belief: Fraction) -> str:
    """Rounded up, to more digits where it is almost certain."""
    for digits in (3, 6, 9):
        up = rounded(belief, up=True, digits=digits)
        if up < 1:
            return percent(up, digits)
    return "almost 100 %"


def _anyone(parts: Sequence[Part]) -> str:
    """What a row and the noisy histogram tell of its person at most, whatever someone knows or believes."""
    rows = _rows_gamma(parts)
    if rows is None or rows >= LARGEST_FACTOR:
        return UNBOUNDED
    row = "a row's published values together" if len(parts) > 1 else "a row"
    noise = 0.0
    for part in parts:
        if part.marginal is not None and part.marginal.epsilon < math.inf:  # else they are an owner's exact counts
            noise += part.marginal.cost
    if not noise:
        what = f"{row} {'multiply' if len(parts) > 1 else 'multiplies'}"
        return odds_grow(f"Whatever anyone knows or believes, {what} the odds of any statement about its person", rows)
    epsilon = math.log(rows) + noise
    both = Fraction(math.exp(epsilon))
    what = f"{row} (epsilon {math.log(rows):.3g}) and the noisy counts (epsilon {noise:.3g}) multiply the odds of any"
    return odds_grow(f"Whatever anyone knows or believes, {what} statement about its person", both, epsilon)


def _rows_gamma(parts: Sequence[Part]) -> Fraction | None:
    """What everything that a row shows multiplies odds by; None where it can rule values out."""
    first = parts[0].promise
    if isinstance(first, OneOfItems):  # of the whole list, and it stands with each of its items
        return first.gamma
    total = Fraction(1)
    for part in parts:
        gamma = _gamma(part)
        if gamma is None:
            return None
        total *= gamma
    return total


def _gamma(part: Part) -> Fraction | None:
    if part.swapped is not None:
        return None
    if isinstance(part.promise, LineUps):
        return part.promise.gamma
    if part.range is not None:
        return part.range.exact_gamma
    return part.channels[0].exact_gamma if len(part.channels) == 1 else None


def _covers_sets(promise: Promise) -> bool:
    """Whether rho2 holds for sets of values, too: where it follows from the amplification."""
    by_gamma = isinstance(promise, LineUps) and promise.adversary == "any-prior" and not promise.per_value
    return by_gamma or isinstance(promise, Amplification)


# -- what is not covered -----------------------------------------------------------------------------------------------


def not_covered(part: Part, adversary: str) -> str:
    """The values that a promise does not cover, by name."""
    if adversary == "any-prior":
        return ""
    promise: Any = part.promise
    exempt, above = getattr(promise, "exempt", ()), getattr(promise, "above", ())
    covered = {place for place, _, _ in getattr(promise, "per_value", getattr(promise, "limits", ()))}
    if covered:
        exempt = tuple(place for place in range(part.m) if place not in covered)
    alone = _loose(part)
    if not (exempt or above or alone):
        return ""
    sure = _surest(part)
    said = []
    if above:
        said.append(f"{_listed(part, above, sure)}, more frequent than {percent(_known(promise.rho1))} or nearly")
    if exempt:
        said.append(f"{_listed(part, exempt, sure)}, {'without a requirement' if covered else 'exempt'}")
    return f" Not covered: {'; '.join([*said, *alone])}."


def _listed(part: Part, places: Sequence[int], sure: list[Fraction] | None) -> str:
    """Some values, the most exposed first, and how many more there are."""
    ordered = list(places) if sure is None else sorted(places, key=lambda place: (-sure[place], place))
    shown = [
        _name(part.domain[place]) + ("" if sure is None else f" (up to {_whole_percent(sure[place])})")
        for place in ordered[:NAMED]
    ]
    more = [] if len(ordered) <= NAMED else [f"{len(ordered) - NAMED:,} more"]
    return ", ".join([*shown, *more])


def _loose(part: Part) -> list[str]:
    """Of columns that are perturbed together, the single values that a promise leaves out."""
    columns = single_values(part.domain)
    if columns and isinstance(part.promise, Amplification):
        rho1 = part.promise.rho1
        return [] if rho1 is None else [f"of one column alone what is more frequent than {percent(rho1)}"]
    if columns and not hasattr(part.promise, "loose"):
        return ["of one column alone any value"]
    said = []
    for column in columns:
        places = [place for number, place in getattr(part.promise, "loose", ()) if number == column.column]
        if places:
            names = [_name(column.values[place]) for place in places[:NAMED]]
            more = [] if len(places) <= NAMED else [f"{len(places) - NAMED:,} more"]
            which = repr(part.columns[column.column]) if part.columns else f"column {column.column + 1}"
            said.append(f"of {which} alone {', '.join([*names, *more])}")
    return said


def _name(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _whole_percent(belief: Fraction) -> str:
    return f"{min(math.ceil(100 * belief), 100)} %"


def _surest(part: Part) -> list[Fraction] | None:
    """How sure an attacker becomes of each value at most, by the noisy histogram; None where nothing tells."""
    if part.marginal is None:
        return None
    counts = np.maximum(np.array(part.marginal.counts, dtype=np.int64), 1)
    if part.lineups is not None:
        return surest_in_lineups(part.lineups, counts)
    if len(part.channels) != 1 or part.cells_published:
        return None
    channel, places = part.channels[0], part.cell_positions[0]
    sure = [Fraction(0)] * part.m
    for place, belief in zip(places.tolist(), surest(channel.keep, channel.replace, counts[places]), strict=True):
        sure[place] = belief
    return sure


_SENTENCES: dict[type, Callable[[Any, Part, str], str]] = {
    Amplification: _amplified,
    Frequency: _frequent,
    PerValue: _per_value,
    Cells: _in_cells,
    LineUps: _lined_up,
}
