"""What other packages bring: entry points of a group, each imported when its name is first asked for.

    [project.entry-points."deniable.mechanisms"]        name of the mechanism = "module:class"
    [project.entry-points."deniable.promises"]          kind of the promise = "module:class"
    [project.entry-points."deniable.engines"]           name of the engine = "module:class"
    [project.entry-points."deniable.commands"]          name of the command = "module:function"

A name of this package is never taken by another one: what is asked for by it stays what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module, metadata
from typing import Any

from deniable.core.errors import InternalError


@cache
def entry_points(group: str) -> Mapping[str, metadata.EntryPoint]:
    """The entry points of a group, by name."""
    return {point.name: point for point in metadata.entry_points(group=group)}


class Registry(Mapping[str, Any]):
    """Name -> object: those of this package by their places, then those of other packages.

    >>> from deniable.core.registry import Registry
    >>> engines = Registry("deniable.engines", {"local": "deniable.tables.dataset:LocalEngine"})
    >>> engines["local"].name, "remote" in engines
    ('local', False)
    """

    def __init__(self, group: str, places: Mapping[str, str]) -> None:
        self.group, self.places = group, places

    def __getitem__(self, name: str) -> Any:
        if name in self.places:
            module, _, attribute = self.places[name].partition(":")
            return getattr(import_module(module), attribute)
        point = entry_points(self.group)[name]
        try:
            return point.load()
        except (ImportError, AttributeError) as problem:
            raise InternalError(
                f"the entry point {name!r} of group {self.group!r} ({point.value}) cannot be imported: {problem}"
            ) from problem

    def __contains__(self, name: object) -> bool:
        return name in self.places or name in entry_points(self.group)

    def __iter__(self) -> Iterator[str]:
        yield from self.places
        yield from (name for name in entry_points(self.group) if name not in self.places)

    def __len__(self) -> int:
        return sum(1 for _ in self)
