"""Engines by name: what an engine is imports nothing of it before it is asked for."""

from __future__ import annotations

from importlib import import_module

from deniable.core.errors import OptionError, did_you_mean
from deniable.engines.base import Engine

PLACES = {"local": "deniable.engines.local.engine:LocalEngine"}


def engine_named(engine: str | Engine) -> Engine:
    """An engine from its name, or as it is."""
    if not isinstance(engine, str):
        if isinstance(engine, Engine):
            return engine
        raise OptionError(f"engine = {engine!r} is not an engine: give one of {', '.join(PLACES)}, or an object.")
    if engine not in PLACES:
        raise OptionError(
            f"engine = {engine!r} is not known: choose one of {', '.join(PLACES)}.{did_you_mean(engine, PLACES)}"
        )
    module, _, kind = PLACES[engine].partition(":")
    made: Engine = getattr(import_module(module), kind)()
    return made


__all__ = ["PLACES", "Engine", "engine_named"]
