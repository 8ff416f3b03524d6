"""Mechanisms: histogram + requirement -> plan. Their classes are imported when they are first named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.designed import tolerance
from deniable.mechanisms.registry import MECHANISMS, PLACES, mechanism_named

if TYPE_CHECKING:
    from deniable.mechanisms.decoys import Decoys as Decoys
    from deniable.mechanisms.designed import Designed as Designed
    from deniable.mechanisms.designed import Identity as Identity
    from deniable.mechanisms.fine_grain import FineGrain as FineGrain
    from deniable.mechanisms.items import Items as Items
    from deniable.mechanisms.lineup import Lineup as Lineup
    from deniable.mechanisms.pram import Pram as Pram
    from deniable.mechanisms.redraw import Redraw as Redraw
    from deniable.mechanisms.requirement import read_requirements as read_requirements
    from deniable.mechanisms.requirement import strictest as strictest
    from deniable.mechanisms.retention import Retention as Retention
    from deniable.mechanisms.small_domain import SmallDomain as SmallDomain
    from deniable.mechanisms.synthetic import Synthetic as Synthetic
    from deniable.mechanisms.uniform import Uniform as Uniform

_LAZY = {
    **{place.partition(":")[2]: place for place in PLACES.values()},
    "read_requirements": "deniable.mechanisms.requirement:read_requirements",
    "strictest": "deniable.mechanisms.requirement:strictest",
}
__all__ = ["MECHANISMS", "Mechanism", "mechanism_named", "tolerance", *sorted(_LAZY)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'deniable.mechanisms' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
