"""Mechanisms: histogram + requirement -> plan."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from deniable.core.errors import OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.mechanisms.base import Mechanism, PlansFromPublic
from deniable.mechanisms.designed import Designed, Identity
from deniable.mechanisms.fine_grain import FineGrain, tolerance
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.uniform import Uniform

__all__ = [
    "MECHANISMS",
    "Designed",
    "FineGrain",
    "Identity",
    "Mechanism",
    "PlansFromPublic",
    "SmallDomain",
    "Uniform",
    "mechanism_named",
    "plan",
    "tolerance",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Uniform, SmallDomain, FineGrain, Identity, Designed)
}


def mechanism_named(mechanism: str | Mechanism) -> Mechanism:
    """A mechanism object, from its name or as it is."""
    if isinstance(mechanism, str):
        if mechanism not in MECHANISMS:
            raise OptionError(
                f"mechanism = {mechanism!r} is not known.{did_you_mean(mechanism, MECHANISMS)} "
                f"Choose one of: {', '.join(MECHANISMS)}."
            )
        return MECHANISMS[mechanism]()
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise OptionError(
            f"mechanism = {mechanism!r} is not a mechanism: give a name ({', '.join(MECHANISMS)}) or an object such as Uniform()."
        )
    return mechanism


def plan(
    rows: Mapping[Hashable, int] | Histogram, privacy: Privacy | None = None, mechanism: str | Mechanism = "uniform"
) -> Plan:
    """Plan a release from a histogram alone: how many rows hold each value.

    >>> plan({"a": 5, "b": 7}, Privacy(rho1="1/2", rho2="3/4")).cells[0].channel.gamma
    3.0
    """
    return mechanism_named(mechanism).plan(Histogram.of(rows), privacy)
