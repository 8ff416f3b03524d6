"""How frequent values are by the published rows themselves, where no noisy histogram tells it: what is promised to who
knows the frequencies is held to that.

    f = P^-1 o,   off by no more than ``chance`` says of sums with the variance that is seen
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.audit.verify.chance import RARELY, by_chance
from deniable.audit.verify.checks import Check
from deniable.audit.verify.counts import estimate
from deniable.audit.verify.rechecks import RECHECKS
from deniable.core.arrays import Floats, Ints
from deniable.core.part import Part, part_dict
from deniable.core.promise import Amplification, Frequency

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
    if not channel.keep.min() > 0:
        return np.zeros(part.m, np.int64), math.inf
    estimates, squares, width = estimate(channel, shown[places])
    counts = np.zeros(part.m, np.int64)
    counts[places] = np.rint(estimates)
    off = by_chance(squares, width, RARELY + math.log(4 * part.m), seen=True)
    return counts, float(off.max()) + 1
