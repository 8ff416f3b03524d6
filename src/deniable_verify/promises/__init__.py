"""Kinds of promises: their numbers, what is recomputed of them, and what they cover. One file a kind.

A package that promises by a kind of its own names a ``Kind`` under the entry point group ``deniable_verify.promises``;
a promise of a kind that nobody knows does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module, metadata
from types import SimpleNamespace
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.numbers import Json, listed, probability, text, whole

GROUP = "deniable_verify.promises"
Pair = tuple[Fraction | None, Fraction | None]
PLACES = {"places": listed(whole), "limits": listed(whole, probability, probability), "singles": listed(whole, whole)}


@dataclass(frozen=True)
class Kind:
    """One kind of promise.

    Attributes:
        fields: the name of each number, and what reads it; a promise has all of them and no others.
        recheck: the promise with its numbers read, its part and the manifest as JSON -> checks.
        mechanisms: of deniable, that promise by it.
        beliefs: the beliefs beforehand that a promise is about (None: as frequent as a value is), and its bounds after.
        any_prior: whether it holds whatever was believed beforehand.
        by_frequency: whether it is about who knows how frequent each value is.
        sentence: of a part, the words that a release states for it; None where these are not known here.
    """

    fields: Mapping[str, Callable[[Any], Any]]
    recheck: Callable[[Any, Json, Json], list[Check]]
    mechanisms: tuple[str, ...] = ()
    beliefs: Callable[[Any], list[Pair]] = lambda promise: [(promise.rho1, promise.rho2)]
    any_prior: Callable[[Any], bool] = lambda promise: False
    by_frequency: Callable[[Any], bool] = lambda promise: False
    sentence: Callable[[Any, Json, str], str] | None = None


def by_nothing(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """Nothing is promised of this part, and nothing may be stated."""
    return [Check("promise", True, f"{', '.join(part['columns'])}: none ({promise.why})")]


NOTHING = Kind({"why": text}, by_nothing, mechanisms=("retention",), beliefs=lambda promise: [])
OWN = {
    "amplification": "amplification",
    "frequency": "frequency",
    "per-value": "per_value",
    "cells": "cells",
    "relative-prior": "relative_prior",
    "line-ups": "line_ups",
    "items": "items",
    "decoys": "decoys",
    "odds": "odds",
}


def kind_of(name: str) -> Kind | None:
    """The kind of a name; of other packages by their entry points; None where nobody knows it."""
    if name == "nothing":
        return NOTHING
    if name in OWN:
        kind: Kind = import_module(f"{__name__}.{OWN[name]}").KIND
        return kind
    for point in metadata.entry_points(group=GROUP):
        if point.name == name:
            brought = point.load()
            return brought if isinstance(brought, Kind) else None
    return None


def mechanisms() -> dict[str, tuple[str, ...]]:
    """The kinds that releases of known mechanisms promise by; another kind is less than the name stands for."""
    known: dict[str, tuple[str, ...]] = {}
    for name in [*OWN, "nothing"]:
        kind = kind_of(name)
        for mechanism in kind.mechanisms if kind else ():
            known[mechanism] = (*known.get(mechanism, ()), name)
    return known


def promise_of(raw: Json, part: Json) -> tuple[Any, Kind]:
    """A promise with its numbers read, and its kind; a ``ValueError`` says what is wrong with it."""
    stated = dict(raw)
    name = str(stated.pop("kind", None))
    kind = kind_of(name)
    if kind is None:
        raise ValueError(f"a promise of an unknown kind: {name[:40]!r}, for which there is no recheck")
    if set(stated) != set(kind.fields):
        off = ", ".join(sorted(set(stated) ^ set(kind.fields)))
        raise ValueError(f"a promise of kind {name!r} has other numbers ({off[:80]})")
    try:
        promise = SimpleNamespace(kind=name, **{field: kind.fields[field](value) for field, value in stated.items()})
    except (ValueError, TypeError, ArithmeticError):
        raise ValueError(f"a promise of kind {name!r} cannot be read") from None
    m = len(part["domain"])
    named = [*getattr(promise, "exempt", ()), *getattr(promise, "above", ())]
    named += [entry[0] for entry in (*getattr(promise, "per_value", ()), *getattr(promise, "limits", ()))]
    sizes = [len({repr(entry[column]) for entry in part["domain"]}) for column in range(len(part.get("columns", ())))]
    alone = getattr(promise, "loose", ())
    if not all(0 <= column < len(sizes) and 0 <= place < sizes[column] for column, place in alone):
        raise ValueError("a promise names a single value that is not there")
    if not all(0 <= place < m for place in named):
        raise ValueError("a promise names a value that is not in the domain")
    return promise, kind
