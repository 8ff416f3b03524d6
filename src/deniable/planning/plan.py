"""``dn.plan``: one mechanism's plan, or the planner's choice; ``dn.beliefs``: what attackers can make of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from deniable.core.errors import RequirementError, option
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, as_privacy
from deniable.core.probability import Probability
from deniable.mechanisms import Mechanism, mechanism_named
from deniable.mechanisms.registry import AUTO
from deniable.planning.beliefs import beliefs
from deniable.planning.comparison import Comparison
from deniable.planning.planner import compare

__all__ = ["AUTO", "beliefs", "plan", "planners_choice"]


def planners_choice(
    histogram: Histogram,
    privacy: Privacy | None,
    without: Sequence[str] = (),
    noisy: bool = False,
) -> Comparison:
    """What ``"auto"`` compares: the first candidate is its choice."""
    return compare(histogram, require_something(privacy), without=without, noisy=noisy)


def require_something(privacy: Privacy | None) -> Privacy:
    """Refuse to choose a mechanism where nothing is required of the release."""
    if privacy is None:
        raise RequirementError(
            f"mechanism 'auto' needs a requirement to choose for. Fix: {option('privacy', '1/6')}, how sure an "
            f"attacker may become; or {option('mechanism', '')} with one that needs no requirement, for example 'pram'."
        )
    return privacy


def plan(
    rows: Mapping[Hashable, int] | Histogram | Any,
    privacy: Privacy | Probability | None = None,
    mechanism: str | Mechanism = AUTO,
) -> Plan:
    """Plan a release from a histogram alone.

    Args:
        rows: how many rows hold each value: a mapping, a ``Histogram``, or a pandas Series (``value_counts()``).
        privacy: the requirement, or rho2 alone; None for mechanisms that need none.
        mechanism: a mechanism's name or object; left out, or ``"auto"``: the planner's choice.

    >>> import deniable as dn
    >>> plan = dn.plan({"flu": 5, "cold": 7}, dn.Privacy(rho1="1/2", rho2="3/4"), "uniform")
    >>> plan
    <Plan by uniform: 1 cell, rho2 75 %>
    >>> plan.cells[0].channel.gamma
    3.0
    """
    histogram, required = Histogram.of(rows), as_privacy(privacy)
    if mechanism == AUTO:
        return planners_choice(histogram, required).recommended.mechanism.plan(histogram, required)
    return mechanism_named(mechanism).plan(histogram, required)
