"""Published rows against the manifest: counts that the channel can have made; and the table of line-ups beside rows
that show codes, against the design, which is walked through once more.

    o = published counts,   e = P f~,   chi2 = sum (o - e)^2 / (e + v),   v the noise of the histogram f~

fails below a probability of 1e-9. It has no power where P f = f, as for replacements drawn like the column itself: that
rows were really perturbed can be shown only with the key.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import chdtrc

from deniable.audit.verify.checks import Check
from deniable.audit.verify.lineups import code_rows
from deniable.core.arrays import Floats
from deniable.core.errors import counted
from deniable.core.part import Part

LEAST = 10.0  # expected rows of a value that is looked at by itself; rarer ones together
IMPOSSIBLE = 1e-9
ALIKE = "NOT CHECKED: rows of a person are published alike, and how many rows each person has is not"


def counts_check(part: Part, shown: Floats, *, by_person: bool) -> Check | None:
    """Whether published counts, by value or by cell and value or by set, can come from the noisy histogram; None where
    none is known. Where one channel serves all rows it says how many of each value to expect.

    Rows that are drawn ``by_person`` are published alike, so counts are off by whole people.
    """
    if part.marginal is None or part.m < 2:
        return None
    together, rows = float(np.sum(part.marginal.counts)), float(shown.sum())
    # Noise of m counts: 7 standard deviations, or the tail of one; less likely than one in 10^9.
    room = math.sqrt(part.marginal.variance) * (7 * math.sqrt(part.m) + 15)
    room += 0 if part.groups is None else part.groups.c  # rows that could not be grouped were left out
    if abs(together - rows) > room:
        detail = f"the noisy histogram counts {together:,.0f} rows in all, and noise explains {room:,.0f} rows at most"
        return Check("published counts", False, detail)
    expected = _expected(part, rows)
    if expected is None:
        return Check("published counts", True, "as many rows in all as the noisy histogram counts, up to its noise")
    if by_person:
        return Check("published counts", True, ALIKE)
    spread = expected + part.marginal.variance
    rare = expected < LEAST
    off = np.append((shown - expected)[~rare], (shown - expected)[rare].sum())
    size = np.append(spread[~rare], max(spread[rare].sum(), 1.0))
    statistic = float((off**2 / size).sum())
    likely = float(chdtrc(max(len(off) - 1, 1), statistic))
    statistics = f"chi-square {statistic:.4g} with {counted(max(len(off) - 1, 1), 'degree of freedom')}"
    detail = (
        f"{statistics}: the channel does not make such counts of the noisy histogram"
        if likely < IMPOSSIBLE
        else statistics
    )
    return Check("published counts", likely >= IMPOSSIBLE, detail)


def _expected(part: Part, rows: float) -> Floats | None:
    """How many of the rows show each value, by the noisy histogram; None without one channel for all of them."""
    assert part.marginal is not None
    noisy = np.maximum(np.array(part.marginal.counts, dtype=np.float64), 0.0)
    noisy *= rows / max(noisy.sum(), 1.0)
    if part.groups is not None:  # c rows of a group show each of its c values once, on average
        return noisy
    if part.mixture is not None:
        return np.array(part.mixture) @ noisy
    return part.channels[0].apply(noisy[part.cell_positions[0]]) if len(part.channels) == 1 else None


def table_columns(part: Part) -> tuple[str, ...]:
    """The columns of the table: ranges of codes by arcs, the blocks themselves by blocks."""
    assert part.lineups is not None
    return ("block", "place") if "size" in part.lineups.integers() else ("value", "first", "last")


def table_check(part: Part, rows: Iterable[tuple[Any, ...]]) -> Check:
    """Whether the table of line-ups beside the rows says what the design says."""
    assert part.lineups is not None
    if "value" in table_columns(part):
        known = {value: place for place, value in enumerate(part.domain)}
        rows = ((known.get(value, -1), *codes) for value, *codes in rows)
    listed = sorted(rows)
    same = listed == code_rows(part.lineups.integers())
    detail = f"{len(listed):,} rows, those of the design" if same else "says something else than the design"
    return Check("table of line-ups", same, detail)
