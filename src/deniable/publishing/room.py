"""Room for a table that grows: a series is planned for a little more than is required of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy
from deniable.core.promise import Promise
from deniable.mechanisms.fine_grain import matched_requirements
from deniable.mechanisms.requirement import own_limits

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
