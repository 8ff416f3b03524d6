"""Whether a plan that was made before still keeps its promise, for a table that has changed since."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from deniable.core import lineup_exact
from deniable.core.errors import RequirementError
from deniable.core.part import Part
from deniable.core.plan import PlannedPart
from deniable.core.promise import Amplification, Nothing, PerValue, RelativePrior
from deniable.mechanisms.singles import covered_by_promise, keeps_singles
from deniable.mechanisms.small_domain.guarantee import surest_in_cells


def require_kept(part: Part, planned: PlannedPart) -> None:
    """Refuse a table for which the promise of a part does not hold any more, by its exact counts."""
    if planned.grid is None and any(_broken(part, planned)):
        raise RequirementError(
            "The table has changed so much that the plan of the series does not keep its promise any more: values are "
            "more frequent than they were when it began. Fix: begin a new series; everyone is then looked at a second "
            "time, and the bounds of both add up."
        )


def _broken(part: Part, planned: PlannedPart) -> Iterator[bool]:
    """Whether a bound is exceeded, for each that the promise states."""
    promise: Any = part.promise
    by_belief = isinstance(promise, Amplification) and promise.rho1 is None
    if by_belief or isinstance(promise, PerValue | RelativePrior | Nothing):
        return  # it holds for beliefs, whatever the counts are
    own = {place: (rho1, rho2) for place, rho1, rho2 in getattr(promise, "per_value", ())}
    left_out = {*getattr(promise, "exempt", ()), *getattr(promise, "above", ())}
    for place, belief in enumerate(_surest(planned)):
        rho1, rho2 = own.get(place, (None, None if own else promise.rho2))
        share = Fraction(int(planned.values.counts[place]), max(planned.values.rows, 1))
        if rho2 is not None and place not in left_out and (rho1 is None or share <= rho1):
            yield belief > rho2
    if promise.rho2 is not None and hasattr(promise, "loose"):
        covered = covered_by_promise(part.domain, promise.loose)
        for cell in planned.cells:
            yield not keeps_singles(cell.channel, cell.rows.counts, planned.positions(cell), covered, promise.rho2)


def _surest(planned: PlannedPart) -> list[Fraction]:
    """How sure an attacker who knows the frequencies becomes of each value at most."""
    if planned.lineups is not None:
        return lineup_exact.surest(planned.lineups, planned.values.counts)
    return surest_in_cells(planned.values, planned.cells)
