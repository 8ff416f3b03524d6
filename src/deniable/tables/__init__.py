"""Engines by name: what an engine is imports nothing of it before it is asked for."""

from __future__ import annotations

from typing import Any

from deniable.core.errors import OptionError, did_you_mean
from deniable.core.registry import Registry
from deniable.tables.base import Engine

ENGINES = Registry(
    "deniable.engines",
    {"local": "deniable.tables.dataset:LocalEngine", "spark": "deniable.spark.engine:SparkEngine"},
)


def engine_for(engine: str | Engine | None, table: Any) -> Engine:
    """The engine that was asked for; by default Spark for its own data frames, and else this machine."""
    if engine is not None:
        return engine_named(engine)
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(table).__mro__]
    return engine_named("spark" if ("pyspark", "DataFrame") in kinds else "local")


def engine_on(name: str, master: str | None) -> Engine:
    """An engine by its name, for commands: ``master`` says where Spark runs, and goes with nothing else."""
    if name != "spark":
        if master is not None:
            raise OptionError(f"--master {master} goes with --engine spark: it says where Spark runs. Fix: add it.")
        return engine_named(name)
    made: Engine = ENGINES[name](master)
    return made


def engine_named(engine: str | Engine) -> Engine:
    """An engine from its name, or as it is."""
    if not isinstance(engine, str):
        if isinstance(engine, Engine):
            return engine
        raise OptionError(f"engine = {engine!r} is not an engine: give one of {', '.join(ENGINES)}, or an object.")
    if engine not in ENGINES:
        raise OptionError(
            f"engine = {engine!r} is not known: choose one of {', '.join(ENGINES)}.{did_you_mean(engine, ENGINES)}"
        )
    made: Engine = ENGINES[engine]()
    return made


__all__ = ["ENGINES", "Engine", "engine_for", "engine_named", "engine_on"]
