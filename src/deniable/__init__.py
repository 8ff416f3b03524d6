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
    from deniable.collection.collected import collect as collect
    from deniable.collection.respond import respond as respond
    from deniable.core.about import About as About
    from deniable.core.about import dictionary as dictionary
    from deniable.core.channels import Channel as Channel
    from deniable.core.channels import Replace as Replace
    from deniable.core.errors import DeniableError as DeniableError
    from deniable.core.errors import VerificationError as VerificationError
    from deniable.core.exact import largest_coin as largest_coin
    from deniable.core.histogram import Histogram as Histogram
    from deniable.core.plan import Cell as Cell
    from deniable.core.plan import Plan as Plan
    from deniable.core.privacy import LargeSums as LargeSums
    from deniable.core.privacy import Privacy as Privacy
    from deniable.core.privacy import SmallSums as SmallSums
    from deniable.core.promise import Guarantee as Guarantee
    from deniable.core.transforms import Bins as Bins
    from deniable.core.transforms import Quantiles as Quantiles
    from deniable.core.transforms import bands as bands
    from deniable.core.transforms import bottom as bottom
    from deniable.core.transforms import month as month
    from deniable.core.transforms import prefix as prefix
    from deniable.core.transforms import quarter as quarter
    from deniable.core.transforms import snap as snap
    from deniable.core.transforms import top as top
    from deniable.core.transforms import year as year
    from deniable.estimation.estimate import Estimate as Estimate
    from deniable.estimation.precision import rows_needed as rows_needed
    from deniable.estimation.predicates import between as between
    from deniable.estimation.predicates import contains as contains
    from deniable.estimation.predicates import not_ as not_
    from deniable.estimation.weighted_sample import Survey as Survey
    from deniable.estimation.weighted_sample import SurveyEstimate as SurveyEstimate
    from deniable.owner.audit import audit as audit
    from deniable.owner.joining import breach as breach
    from deniable.owner.project import Project as Project
    from deniable.owner.risk import question_profile as question_profile
    from deniable.owner.risk import risk as risk
    from deniable.owner.roles import roles as roles
    from deniable.planning.budgets import epsilon_needed as epsilon_needed
    from deniable.planning.candidates import beliefs as beliefs
    from deniable.planning.planner import plan as plan
    from deniable.publishing.publish import publish as publish
    from deniable.publishing.recoding import hierarchy as hierarchy
    from deniable.release.combine import join as join
    from deniable.release.combine import pool as pool
    from deniable.release.release import Release as Release
    from deniable.release.release import open_release as open_release
    from deniable.release.verify import verify as verify

# The public names, and where each is made: a module is imported when a name of it is first used.
_PLACES = {
    "About": "core.about",
    "Bins": "core.transforms",
    "Cell": "core.plan",
    "Channel": "core.channels",
    "DeniableError": "core.errors",
    "Estimate": "estimation.estimate",
    "Guarantee": "core.promise",
    "Histogram": "core.histogram",
    "LargeSums": "core.privacy",
    "Plan": "core.plan",
    "Privacy": "core.privacy",
    "Project": "owner.project",
    "Quantiles": "core.transforms",
    "Release": "release.release",
    "Replace": "core.channels",
    "SmallSums": "core.privacy",
    "Survey": "estimation.weighted_sample",
    "SurveyEstimate": "estimation.weighted_sample",
    "VerificationError": "core.errors",
    "audit": "owner.audit",
    "bands": "core.transforms",
    "beliefs": "planning.candidates",
    "between": "estimation.predicates",
    "bottom": "core.transforms",
    "breach": "owner.joining",
    "collect": "collection.collected",
    "contains": "estimation.predicates",
    "dictionary": "core.about",
    "epsilon_needed": "planning.budgets",
    "hierarchy": "publishing.recoding",
    "join": "release.combine",
    "largest_coin": "core.exact",
    "month": "core.transforms",
    "not_": "estimation.predicates",
    "open_release": "release.release",
    "plan": "planning.planner",
    "pool": "release.combine",
    "prefix": "core.transforms",
    "publish": "publishing.publish",
    "quarter": "core.transforms",
    "question_profile": "owner.risk",
    "respond": "collection.respond",
    "risk": "owner.risk",
    "roles": "owner.roles",
    "rows_needed": "estimation.precision",
    "snap": "core.transforms",
    "top": "core.transforms",
    "verify": "release.verify",
    "year": "core.transforms",
}
_MODULES = ("collection", "learn", "mechanisms")
__all__ = [*_PLACES, *_MODULES]  # noqa: PLE0604


class _Face(_ModuleType):
    """The module itself: public names only, lazily."""

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

    def __dir__(self) -> list[str]:
        return sorted(__all__)


_sys.modules[__name__].__class__ = _Face
