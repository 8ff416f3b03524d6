"""Publish tables about people so that every sensitive value stays deniable; answer questions from them honestly.

>>> import deniable as dn
>>> dn.Privacy(rho1="1/13", rho2="1/6").gamma
Fraction(12, 5)
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from deniable.collection.collect import collect as collect
    from deniable.collection.respond import respond as respond
    from deniable.core.about import About as About
    from deniable.core.about import dictionary as dictionary
    from deniable.core.bins import Bins as Bins
    from deniable.core.bins import Quantiles as Quantiles
    from deniable.core.breach import largest_coin as largest_coin
    from deniable.core.channel import Channel as Channel
    from deniable.core.errors import DeniableError as DeniableError
    from deniable.core.errors import VerificationError as VerificationError
    from deniable.core.guarantee import Guarantee as Guarantee
    from deniable.core.histogram import Histogram as Histogram
    from deniable.core.plan import Cell as Cell
    from deniable.core.plan import Plan as Plan
    from deniable.core.privacy import Privacy as Privacy
    from deniable.core.recode import bands as bands
    from deniable.core.recode import bottom as bottom
    from deniable.core.recode import month as month
    from deniable.core.recode import prefix as prefix
    from deniable.core.recode import quarter as quarter
    from deniable.core.recode import snap as snap
    from deniable.core.recode import top as top
    from deniable.core.recode import year as year
    from deniable.core.replace import Replace as Replace
    from deniable.core.sums import LargeSums as LargeSums
    from deniable.core.sums import SmallSums as SmallSums
    from deniable.estimation.estimate import Estimate as Estimate
    from deniable.estimation.precision import rows_needed as rows_needed
    from deniable.estimation.predicates import between as between
    from deniable.estimation.predicates import contains as contains
    from deniable.estimation.predicates import not_ as not_
    from deniable.estimation.weighted_sample import Survey as Survey
    from deniable.estimation.weighted_sample import SurveyEstimate as SurveyEstimate
    from deniable.owner.audit import audit as audit
    from deniable.owner.breach import breach as breach
    from deniable.owner.profile import question_profile as question_profile
    from deniable.owner.risk import risk as risk
    from deniable.planning.beliefs import beliefs as beliefs
    from deniable.planning.plan import plan as plan
    from deniable.publishing.publish import publish as publish
    from deniable.publishing.recode_spelling import hierarchy as hierarchy
    from deniable.release.combine import join as join
    from deniable.release.combine import pool as pool
    from deniable.release.release import Release as Release
    from deniable.release.release import open_release as open_release
    from deniable.release.verify import verify as verify

# The public names, and where each is made: a module is imported when a name of it is first used.
_PLACES = {
    "About": "core.about",
    "Bins": "core.bins",
    "Cell": "core.plan",
    "Channel": "core.channel",
    "DeniableError": "core.errors",
    "Estimate": "estimation.estimate",
    "Guarantee": "core.guarantee",
    "Histogram": "core.histogram",
    "LargeSums": "core.sums",
    "Plan": "core.plan",
    "Privacy": "core.privacy",
    "Quantiles": "core.bins",
    "Release": "release.release",
    "Replace": "core.replace",
    "SmallSums": "core.sums",
    "Survey": "estimation.weighted_sample",
    "SurveyEstimate": "estimation.weighted_sample",
    "VerificationError": "core.errors",
    "audit": "owner.audit",
    "bands": "core.recode",
    "beliefs": "planning.beliefs",
    "between": "estimation.predicates",
    "bottom": "core.recode",
    "breach": "owner.breach",
    "collect": "collection.collect",
    "contains": "estimation.predicates",
    "dictionary": "core.about",
    "hierarchy": "publishing.recode_spelling",
    "join": "release.combine",
    "largest_coin": "core.breach",
    "month": "core.recode",
    "not_": "estimation.predicates",
    "open_release": "release.release",
    "plan": "planning.plan",
    "pool": "release.combine",
    "prefix": "core.recode",
    "publish": "publishing.publish",
    "quarter": "core.recode",
    "question_profile": "owner.profile",
    "respond": "collection.respond",
    "risk": "owner.risk",
    "rows_needed": "estimation.precision",
    "snap": "core.recode",
    "top": "core.recode",
    "verify": "release.verify",
    "year": "core.recode",
}
_MODULES = ("collection", "learn", "mechanisms")
__all__ = [*_PLACES, *_MODULES]  # noqa: PLE0604


class _Face(_ModuleType):
    """The module itself: public names only, lazily, and ``audit`` is the function although a room has its name."""

    def __getattr__(self, name: str) -> _Any:
        if name == "__version__":
            return _import_module("importlib.metadata").version("deniable")
        if name in _MODULES:
            return _import_module(f"deniable.{name}")
        if name not in _PLACES:
            raise AttributeError(f"module 'deniable' has no attribute {name!r}")
        made = getattr(_import_module(f"deniable.{_PLACES[name]}"), name)
        self.__dict__[name] = made
        return made

    def __setattr__(self, name: str, value: _Any) -> None:
        if not (isinstance(value, _ModuleType) and name in _PLACES):  # importing a room must not hide a function
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(__all__)


_sys.modules[__name__].__class__ = _Face
