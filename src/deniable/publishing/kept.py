"""Whether a plan that was made before still keeps its promise, for a table that has changed since."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable.core import exact, lineup_exact
from deniable.core.errors import RequirementError
from deniable.core.part import Part
from deniable.core.plan import PlannedPart
from deniable.core.privacy import Privacy
from deniable.core.promise import Amplification, Nothing, PerValue, RelativePrior


def require_kept(part: Part, planned: PlannedPart, privacy: Privacy | None) -> None:
    """Refuse a table for which the promise of a part does not hold any more, by its exact counts."""
    promise: Any = part.promise
    if planned.grid is not None or isinstance(promise, PerValue | RelativePrior | Nothing):
        return
    if isinstance(promise, Amplification) and promise.rho1 is None:
        return  # it holds for beliefs, whatever the counts are
    own = {place: (rho1, rho2) for place, rho1, rho2 in getattr(promise, "per_value", ())}
    left_out = {*getattr(promise, "exempt", ()), *getattr(promise, "above", ())}
    for place, belief in enumerate(_surest(planned)):
        rho1, rho2 = own.get(place, (None, None if own else promise.rho2))
        share = Fraction(int(planned.values.counts[place]), max(planned.values.rows, 1))
        if rho2 is None or place in left_out or (rho1 is not None and share > rho1) or belief <= rho2:
            continue
        raise RequirementError(
            "The table has changed so much that the plan of the series does not keep its promise any more: values are "
            "more frequent than they were when it began. Fix: begin a new series; everyone is then looked at a second "
            "time, and the bounds of both add up."
        )


def _surest(planned: PlannedPart) -> list[Fraction]:
    """How sure an attacker who knows the frequencies becomes of each value at most."""
    if planned.lineups is not None:
        return lineup_exact.surest(planned.lineups, planned.values.counts)
    sure = [Fraction(0)] * planned.values.m
    for cell in planned.cells:
        keep, replace, counts = cell.channel.keep, cell.channel.replace, cell.rows.counts
        same, other = exact.posterior_same(keep, replace, counts), exact.posterior_other(keep, replace, counts)
        for place, *pair in zip(planned.positions(cell).tolist(), same, other, strict=True):
            sure[place] = max(sure[place], *pair)
    return sure
