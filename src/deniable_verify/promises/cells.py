"""Inside each published cell the amplification, and posteriors as far as its numbers tell them (SDR Cor. 1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.coverage import above_checks, single_checks
from deniable_verify.numbers import FULL, Json, cell_amplification, fraction, listed, optional, percent, probability
from deniable_verify.promises import Kind
from deniable_verify.promises.frequency import KIND as FREQUENCY
from deniable_verify.sentence import KNOWS


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Inside a cell a belief in x grows by at most P[x][x] / P[x][k] (THESIS Thm 7); some frequencies at the least must
    keep the bound there. How frequent values are in a cell is not published: rows may tell it."""
    inside = _inside_cells(promise, part)
    if not inside.holds:
        return [inside]
    left_out, rho2 = {*promise.exempt, *promise.above}, promise.rho2
    covered, wrong = [], []
    for number, cell in enumerate(part["cells"]):
        beliefs = _beliefs(cell, rho2)
        own = [belief for place, belief in zip(cell["values"], beliefs, strict=True) if place not in left_out]
        covered += own
        if not all(own) or (len(own) == len(beliefs) and not _kept_by_some(cell, rho2)):
            wrong.append(number)
    detail = f"inside its cell a belief of up to {float(min(covered, default=0)):.4g} stays below {float(rho2):.4g}"
    return [
        inside,
        Check("posterior in cells", not wrong, f"cells {wrong} keep too much" if wrong else detail),
        *above_checks(promise, part, manifest),
        *single_checks(promise, part, manifest),
    ]


def _beliefs(cell: Json, rho2: Fraction) -> list[Fraction]:
    """The strongest belief in each value of a cell that stays at rho2; 0 where a row can rule all others out, and of a
    value that is never drawn, for which every row speaks."""
    if len(cell["keep"]) == 1:
        return [rho2]  # its rows say what the cell says
    ordered, known = sorted(cell["keep"]), dict[tuple[int, int], Fraction]()
    pairs = list(zip(cell["keep"], cell["replace"], strict=True))
    for k, w in set(pairs):
        rest = FULL - (ordered[-1] if k != ordered[-1] else ordered[-2])
        gamma = Fraction(k * FULL + (FULL - k) * w, w * rest) if w * rest else None
        known[k, w] = Fraction(0) if gamma is None else rho2 / (rho2 + gamma * (1 - rho2))
    return [known[pair] for pair in pairs]


def _kept_by_some(cell: Json, rho2: Fraction) -> bool:
    """Whether there are any frequencies for which Pr[x | cell, y = x] is at most rho2 for every value of the cell, each
    of which can be drawn.

    By mathematics 2 that is pi_x <= S b_x, b_x = rho2 r_x / (p_x (1-rho2) + r_x (1-p_x)), with S = sum pi_x (1-p_x). So
    there are such frequencies where sum b_x (1-p_x) >= 1, and none elsewhere.
    """
    if rho2 == 1:  # of which everybody may become sure
        return True
    a, b = rho2.numerator, rho2.denominator
    total, one = 0, 1 << 128  # rounded up by less than a value in 2^128, so that nothing honest fails
    for k, w in zip(cell["keep"], cell["replace"], strict=True):
        total += -(-a * w * (FULL - k) * one // (k * (b - a) * FULL + b * w * (FULL - k)))
    return total >= one


def _inside_cells(promise: Any, part: Json) -> Check:
    """The amplification of every cell against the gamma that is promised of it."""
    gammas = [cell_amplification(cell["keep"], cell["replace"]) for cell in part["cells"]]
    if len(gammas) != len(promise.gammas) or not gammas:
        return Check("cell amplification", False, f"{len(gammas)} cells, promises of {len(promise.gammas)}")
    above = [
        number
        for number, (gamma, stated) in enumerate(zip(gammas, promise.gammas, strict=True))
        if stated is not None and (gamma is None or gamma > stated)
    ]
    number = f"{len(gammas):,} cell{'s' * (len(gammas) != 1)}"
    detail = f"cells {above} exceed their gamma" if above else f"{number} at or below their gamma"
    return Check("cell amplification", not above, detail)


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words."""
    return (
        f"{KNOWS} {percent(promise.rho2)} sure of that person's value by the cell and the value published for that "
        "person."
    )


KIND = Kind(
    {
        "rho2": probability,
        "gammas": listed(optional(fraction)),
        **{name: FREQUENCY.fields[name] for name in ("rho1", "exempt", "above", "loose")},
    },
    recheck,
    mechanisms=("small-domain",),
    by_frequency=lambda promise: True,
    sentence=sentence,
)
