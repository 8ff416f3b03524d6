"""A plan that must keep its promise for a table that grows: it is made for a little more than is required, and whether
it still keeps what is required is looked at each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from deniable.core import lineup_exact
from deniable.core.errors import RequirementError
from deniable.core.part import Part
from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy
from deniable.core.promise import Amplification, Nothing, PerValue, Promise, RelativePrior
from deniable.mechanisms.requirement import matched_requirements, own_limits
from deniable.mechanisms.singles import covered_by_promise, keeps_singles
from deniable.mechanisms.small_domain.guarantee import surest_in_cells

ROOM = Fraction(9, 10)  # of the way to rho2 is planned for at first; the rest is for a table that grows


def with_room(privacy: Privacy | None) -> Privacy | None:
    """A little more than is required, so that the plan still keeps the promise when the table has grown."""
    if privacy is None or privacy.adversary != "frequency":
        return privacy
    own = {value: (rho1, _nearer(rho1, rho2)) for value, (rho1, rho2) in privacy.per_value.items()}
    rho2 = None if privacy.rho2 is None else _nearer(privacy.rho1, privacy.rho2)
    return replace(privacy, rho2=rho2, per_value=own)


def _nearer(rho1: Fraction | None, rho2: Fraction) -> Fraction:
    before = rho1 or Fraction(0)
    return before + ROOM * (rho2 - before)


def as_required(plan: Plan, privacy: Privacy | None) -> Plan:
    """The plan, promising what is required and not more: the rest is room."""
    if privacy is None:
        return plan
    promises = tuple(
        _required(promise, part, privacy) for promise, part in zip(plan.guarantee.promises, plan.parts, strict=True)
    )
    promised = replace(plan.guarantee, promises=promises, rho2=privacy.rho2, sentence="")
    return replace(plan, guarantee=promised, privacy=privacy)


def _required(promise: Promise, part: PlannedPart, privacy: Privacy) -> Promise:
    stated: Any = promise
    if getattr(stated, "rho2", None) is not None:
        stated = replace(stated, rho2=privacy.rho2)
    own = next((name for name in ("per_value", "limits") if getattr(stated, name, ())), None)
    if own is not None and part.histogram is not None and privacy.per_value:
        stated = replace(stated, **{own: own_limits(part.histogram, matched_requirements(part.histogram, privacy))})
    return cast(Promise, stated)


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
