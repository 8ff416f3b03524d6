"""Published cells and strata: inside each the amplification, and posteriors as far as its numbers tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import FULL, Check, cell_amplification
from deniable.audit.verify.coverage import above_checks, key, names_of, single_checks
from deniable.core.errors import counted
from deniable.core.promise import Cells, Strata

Json = Mapping[str, Any]
Bound = tuple[Fraction | None, Fraction | None]


def by_cell(promise: Cells, part: Json, manifest: Json) -> list[Check]:
    """Inside a cell a belief in x grows by at most P[x][x] / P[x][k] (THESIS Thm 7); some frequencies at the least must
    keep the bound there."""
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
    detail = (
        f"inside its cell a belief of up to {float(min(covered, default=0)):.4g} stays below {float(rho2):.4g}; how "
        "frequent values are in a cell is not published, `deniable audit` checks that"
    )
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
    there are such frequencies where sum b_x (1-p_x) >= 1, and none elsewhere. With one coin for all values it says that
    equal frequencies keep the bound.
    """
    if rho2 == 1:  # of which everybody may become sure
        return True
    a, b = rho2.numerator, rho2.denominator
    total, whole = 0, 1 << 128  # rounded up by less than a value in 2^128, so that nothing honest fails
    for k, w in zip(cell["keep"], cell["replace"], strict=True):
        total += -(-a * w * (FULL - k) * whole // (k * (b - a) * FULL + b * w * (FULL - k)))
    return total >= whole


def _inside_cells(promise: Cells | Strata, part: Json) -> Check:
    """The amplification of every cell against the gamma that is promised of it."""
    gammas = [cell_amplification(cell["keep"], cell["replace"]) for cell in part["cells"]]
    if len(gammas) != len(promise.gammas) or not gammas:
        return Check("cell amplification", False, f"{len(gammas)} cells, promises of {len(promise.gammas)}")
    above = [
        number
        for number, (gamma, stated) in enumerate(zip(gammas, promise.gammas, strict=True))
        if stated is not None and (gamma is None or gamma > stated)
    ]
    detail = f"cells {above} exceed their gamma" if above else f"{counted(len(gammas), 'cell')} at or below their gamma"
    return Check("cell amplification", not above, detail)


def by_stratum(promise: Strata, part: Json, manifest: Json) -> list[Check]:
    """The amplification of every stratum, and posteriors as far as the rows that each has at the least allow."""
    sizes = [promise.rows] * len(part["cells"])
    return [_inside_cells(promise, part), _posteriors(promise, part, manifest["privacy"], sizes)]


def strata_checks(promise: Strata, part: Json, privacy: Json | None, sizes: Sequence[int]) -> list[Check]:
    """The same by the rows that each stratum is seen to have."""
    least = min(sizes, default=0)
    enough = Check("stratum sizes", least >= promise.rows, f"{least:,} rows or more, promised {promise.rows:,}")
    return [enough, _posteriors(promise, part, privacy, sizes)]


def _posteriors(promise: Strata, part: Json, privacy: Json | None, sizes: Sequence[int]) -> Check:
    """Pr[x | stratum, y = x], the replacing distribution standing for the stratum's own, up to its noise.

    The noise in a count changes a share by at most 28 rows, once in a million. A bound that is not for all values is
    for those that the requirement covers: the ones as frequent as it says, and not exempt.
    """
    bounds = _bounds(promise, part, privacy)
    worst, wrong, checked = Fraction(0), 0, 0
    for cell, rows in zip(part["cells"], sizes, strict=True):
        slack = Fraction(2 * 28, max(rows, 1))
        total = sum((FULL - k) * w for k, w in zip(cell["keep"], cell["replace"], strict=True))
        for place, k, w in zip(cell["values"], cell["keep"], cell["replace"], strict=True):
            rho1, limit = bounds[place]
            if limit is None or not w or limit + slack >= 1 or (rho1 is not None and Fraction(w, FULL) + slack > rho1):
                continue
            sure = Fraction(k * FULL + (FULL - k) * w, k * FULL + total)
            worst, wrong, checked = max(worst, sure), wrong + (sure > limit + slack), checked + 1
    shown = f"{checked} values, up to {float(worst):.4g} by the replacing distributions"
    detail = f"{shown}, allowed {float(promise.rho2):.4g}"
    if not checked:
        detail = f"NOT CHECKED: strata of {min(sizes, default=0):,} rows tell no more of covered values than noise"
    return Check("posterior in strata", bool(part["strata"]) and promise.rows > 0 and not wrong, detail)


def _bounds(promise: Strata, part: Json, privacy: Json | None) -> list[Bound]:
    """Of each value, up to what share of its stratum it is covered (None: whatever it is), and how sure anyone may
    become of it (None: it is not covered)."""
    if not promise.partly or privacy is None:
        return [(None, promise.rho2)] * len(part["domain"])
    own = {key(value): (Fraction(rho1), Fraction(rho2)) for value, rho1, rho2 in privacy["per_value"]}
    exempt = set(map(key, privacy["exempt"]))
    rho1 = None if privacy["rho1"] is None else Fraction(privacy["rho1"])
    others = None if own and privacy["rho2"] is None else promise.rho2
    return [own.get(name, (rho1, None if name in exempt else others)) for name in map(key, names_of(part))]
