"""Publish tables about people so that every sensitive value stays deniable; answer questions from them honestly.

>>> import deniable as dn
>>> dn.Privacy(rho1="1/13", rho2="1/6").gamma
Fraction(12, 5)
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import Any as _Any

from deniable.collection.collect import collect
from deniable.collection.respond import respond
from deniable.core.bins import Bins, Quantiles
from deniable.core.breach import largest_coin
from deniable.core.channel import Channel
from deniable.core.errors import DeniableError, VerificationError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.core.replace import Replace
from deniable.core.sums import LargeSums, SmallSums
from deniable.estimation import Estimate, between, not_
from deniable.owner.audit import audit
from deniable.owner.breach import breach
from deniable.owner.profile import question_profile
from deniable.planning.plan import beliefs, plan
from deniable.publishing.publish import publish
from deniable.release.combine import join, pool
from deniable.release.open import open_release
from deniable.release.release import Release, verify

__version__ = _version("deniable")
__all__ = [
    "Bins",
    "Cell",
    "Channel",
    "DeniableError",
    "Estimate",
    "Guarantee",
    "Histogram",
    "LargeSums",
    "Plan",
    "Privacy",
    "Quantiles",
    "Release",
    "Replace",
    "SmallSums",
    "VerificationError",
    "audit",
    "beliefs",
    "between",
    "breach",
    "collect",
    "join",
    "largest_coin",
    "not_",
    "open_release",
    "plan",
    "pool",
    "publish",
    "question_profile",
    "respond",
    "verify",
]


def __getattr__(name: str) -> _Any:
    """``deniable.learn`` is imported when it is first used: it needs scikit-learn, the extra ``learn``."""
    if name == "learn":
        return _import_module("deniable.learn")
    raise AttributeError(f"module 'deniable' has no attribute {name!r}")
