"""``dn.plan``: one mechanism's plan, or the planner's choice; ``dn.beliefs``: what attackers can make of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from deniable.audit.attacks.informed import InformedAttacker
from deniable.core.errors import RequirementError
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, as_privacy
from deniable.core.probability import Probability
from deniable.mechanisms import Mechanism, mechanism_named
from deniable.mechanisms.registry import AUTO
from deniable.planning.beliefs import beliefs
from deniable.planning.planner import compare

__all__ = ["AUTO", "beliefs", "chosen_mechanism", "plan"]


def chosen_mechanism(
    mechanism: str | Mechanism,
    histogram: Histogram,
    privacy: Privacy | None,
    attacker: InformedAttacker | None = None,
    informed_limit: float | None = None,
) -> Mechanism:
    """The mechanism that was asked for, or the planner's choice for ``"auto"``, within what an attacker may gain."""
    if mechanism != AUTO:
        return mechanism_named(mechanism)
    if privacy is None:
        raise RequirementError("mechanism 'auto' needs a requirement to choose for: privacy=Privacy(rho2='1/6').")
    comparison = compare(histogram, privacy, attacker=attacker, informed_limit=informed_limit)
    return comparison.recommended.mechanism


def plan(
    rows: Mapping[Hashable, int] | Histogram | Any,
    privacy: Privacy | Probability | None = None,
    mechanism: str | Mechanism = "uniform",
) -> Plan:
    """Plan a release from a histogram alone.

    Args:
        rows: how many rows hold each value: a mapping, a ``Histogram``, or a pandas Series (``value_counts()``).
        privacy: the requirement, or rho2 alone; None for mechanisms that need none.
        mechanism: a mechanism's name or object; ``"auto"``: the planner's choice.

    >>> import deniable as dn
    >>> plan = dn.plan({"flu": 5, "cold": 7}, dn.Privacy(rho1="1/2", rho2="3/4"))
    >>> plan
    <Plan by uniform: 1 cell, rho2 75 %>
    >>> plan.cells[0].channel.gamma
    3.0
    """
    histogram, required = Histogram.of(rows), as_privacy(privacy)
    return chosen_mechanism(mechanism, histogram, required).plan(histogram, required)
