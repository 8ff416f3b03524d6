"""Plan a release from a histogram alone, before any row is touched."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.mechanisms import Mechanism, mechanism_named


def plan(
    rows: Mapping[Hashable, int] | Histogram, privacy: Privacy | None = None, mechanism: str | Mechanism = "uniform"
) -> Plan:
    """Plan a release from a histogram alone: how many rows hold each value.

    >>> plan({"a": 5, "b": 7}, Privacy(rho1="1/2", rho2="3/4")).cells[0].channel.gamma
    3.0
    """
    return mechanism_named(mechanism).plan(Histogram.of(rows), privacy)
