"""What a mechanism is: a choice of probabilities, made from a histogram and a requirement, never from rows."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

from deniable.core.errors import OptionError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy


@runtime_checkable
class Mechanism(Protocol):
    """A frozen dataclass whose fields are its options."""

    name: ClassVar[str]

    def plan(self, histogram: Histogram, privacy: Privacy | None) -> Plan:
        """How a table with this histogram becomes a release that meets the requirement."""
        ...


class PlansFromPublic(ABC):
    """A mechanism whose parameters would give counts away, and which therefore plans from counts that are public.

    ``public`` is the noisy histogram that the release publishes anyway; the requirement is still checked against the
    true one.
    """

    @abstractmethod
    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan: ...


class WithoutChannels(ABC):
    """A rival that publishes something else than perturbed rows: it has a guarantee, and no plan of channels."""

    name: ClassVar[str]

    def plan(self, histogram: Histogram, privacy: Privacy | None) -> Plan:
        """Refused: what it does depends on rows, not on the histogram alone."""
        raise OptionError(
            f"mechanism {self.name!r} has no plan of channels: it can be published and evaluated, but not planned from "
            f"a histogram. Fix: dn.publish(..., mechanism={self.name!r})."
        )

    @abstractmethod
    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What it promises; refused when a requirement asks for more."""

    @property
    def options(self) -> dict[str, Any]:
        return options_of(self)


def options_of(mechanism: Any) -> dict[str, Any]:
    """A mechanism's options, for the manifest."""
    return {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
