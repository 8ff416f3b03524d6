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
from deniable.audit.verify.counts import cells_shown, estimate
from deniable.audit.verify.coverage import surest_at_least
from deniable.audit.verify.rechecks import RECHECKS
from deniable.core.channels import Channel
from deniable.core.part import Part, part_dict
from deniable.core.promise import Amplification, Cells, Frequency
from deniable.core.values import Floats, Ints

LOOKED_AT = {Amplification: ("left out",), Frequency: ("posterior", "left out")}


def frequencies_check(part: Part, shown: Floats, stated: dict[str, Any]) -> Check | None:
    """What a part promises, by the rows that show each value; None where they do not tell. ``stated`` is what a recheck
    reads of the whole manifest."""
    if isinstance(part.promise, Cells):
        return _in_cells(part, part.promise, shown)
    names = LOOKED_AT.get(type(part.promise))
    one = len(part.channels) == 1 and not part.cells_published and part.swapped is None and part.lineups is None
    if names is None or not one or part.marginal is not None:
        return None
    counts, slack = counts_by_rows(part, shown)
    if not slack < shown.sum():
        return None
    seen = {"counts": counts.tolist(), "epsilon": 14 / slack}  # as noise that takes counts as far from the true ones
    checks = RECHECKS[part.promise.kind](part.promise, {**part_dict(part), "marginal": seen}, stated)
    wrong = [check.detail for check in checks if check.what in names and not check.holds]
    detail = f"counts of values are known to {slack:,.0f} rows, and none is believed at more than is promised"
    said = wrong[0].replace("noisy histogram", "published rows") if wrong else detail
    return Check("published frequencies", not wrong, said)


def _in_cells(part: Part, promise: Cells, shown: Floats) -> Check:
    """Pr[x | cell, y = x] of covered values, in cells of which rows tell how frequent values are."""
    whole, covered = part_dict(part), {*range(part.m)} - {*promise.exempt, *promise.above}
    cells, wrong, number, far = list(cells_shown(part, shown)), 0, 0, 0.0
    for (channel, o), places, raw in zip(cells, part.cell_positions, whole["cells"], strict=True):
        counts, slack = _counted(channel, o, len(shown))
        if len(o) < 2 or not slack < o.sum():
            continue
        seen = {"counts": dict(zip(places.tolist(), counts.tolist(), strict=True)), "epsilon": 14 / slack}
        beliefs = surest_at_least({"cells": [raw], "marginal": seen})
        wrong += sum(beliefs[place] > promise.rho2 for place in covered & {*beliefs})
        number, far = number + 1, max(far, slack)
    if not number:
        detail = (
            "NOT CHECKED: how frequent values are in a cell; that is not published, and rows are too few to tell it"
        )
        return Check("frequencies in cells", True, f"{detail}. `deniable audit` checks it")
    known = f"in {number} of {len(cells)} cells rows tell counts of values to {far:,.0f} rows"
    detail = f"{wrong} values are believed at more than rho2" if wrong else "none is surely believed at more than rho2"
    return Check("frequencies in cells", not wrong, f"{known}: {detail}")


def counts_by_rows(part: Part, shown: Floats) -> tuple[Ints, float]:
    """How many rows have each value, and how far any of these counts may be off."""
    counts = np.zeros(part.m, np.int64)
    counts[part.cell_positions[0]], slack = _counted(part.channels[0], shown[part.cell_positions[0]], part.m)
    return counts, slack


def _counted(channel: Channel, o: Floats, states: int) -> tuple[Ints, float]:
    """The same of one channel; infinitely far where it keeps nothing."""
    if not channel.keep.min() > 0:
        return np.zeros(len(o), np.int64), math.inf
    estimates, squares, width = estimate(channel, o)
    off = by_chance(squares, width, RARELY + math.log(4 * states), seen=True)
    return np.rint(estimates).astype(np.int64), float(off.max()) + 1
