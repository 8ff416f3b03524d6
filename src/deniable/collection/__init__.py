"""Private collection: respondents perturb their own answers, and nobody is sent the originals. Extra: ``collect``, for
the server; clients need nothing more."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.collection.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'deniable.collection' has no attribute {name!r}")
    return getattr(import_module("deniable.collection.client"), name)
