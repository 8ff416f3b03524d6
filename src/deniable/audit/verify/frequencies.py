"""How frequent values are by the published rows themselves, where no noisy histogram tells it: what is promised to who
knows the frequencies is held to that.

    f = P^-1 o,   P = diag(p) + r (1-p)^T,   P^-1[x][y] = [x = y] / p_x - r_x (1-p_y) / (p_x p_y c),
    c = 1 + sum_y r_y (1-p_y) / p_y

Rows are drawn independently, so each f_x is a sum of independent weights: by Bernstein's inequality with the variance
that is seen (Maurer & Pontil 2009) it is off by more than sqrt(2 V L) + 7 b L / 3 once in e^L, b the range of weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.audit.verify.checks import FULL, Check
from deniable.audit.verify.rechecks import RECHECKS
from deniable.core.arrays import Floats, Ints
from deniable.core.part import Part, part_dict
from deniable.core.promise import Amplification, Frequency

RARELY = math.log(1e9)  # once in so many releases some value is off by more
LOOKED_AT = {Amplification: ("left out",), Frequency: ("posterior", "left out")}


def frequencies_check(part: Part, shown: Floats, stated: dict[str, Any]) -> Check | None:
    """What a part promises, by the rows that show each value; None where they do not tell. ``stated`` is what a recheck
    reads of the whole manifest."""
    names = LOOKED_AT.get(type(part.promise))
    one = len(part.channels) == 1 and not part.cells_published and part.swapped is None and part.lineups is None
    if names is None or not one or part.marginal is not None:
        return None
    counts, slack = counts_by_rows(part, shown)
    if not slack < shown.sum():
        return None
    seen = {"counts": counts.tolist(), "epsilon": 14 / slack}  # as noise that takes counts as far from the true ones
    checks = RECHECKS[type(part.promise)](part.promise, {**part_dict(part), "marginal": seen}, stated)
    wrong = [check.detail for check in checks if check.what in names and not check.holds]
    detail = f"counts of values are known to {slack:,.0f} rows, and none is believed at more than is promised"
    said = wrong[0].replace("noisy histogram", "published rows") if wrong else detail
    return Check("published frequencies", not wrong, said)


def counts_by_rows(part: Part, shown: Floats) -> tuple[Ints, float]:
    """How many rows have each value, and how far any of these counts may be off."""
    places, channel = part.cell_positions[0], part.channels[0]
    o, p, r = shown[places], channel.keep / FULL, channel.replace / FULL
    if not p.min() > 0:
        return np.zeros(part.m, np.int64), math.inf
    odds = (1 - p) / p
    common = r / p / (1 + float(r @ odds))
    variance = common**2 * float(o @ odds**2) + o * ((1 / p - common * odds) ** 2 - (common * odds) ** 2)
    often = RARELY + math.log(4 * part.m)
    off = np.sqrt(2 * variance * often) + 7 / 3 * often * (1 / p + common * odds.max())
    counts = np.zeros(part.m, np.int64)
    counts[places] = np.rint(o / p - common * float(o @ odds))
    return counts, float(off.max()) + 1
