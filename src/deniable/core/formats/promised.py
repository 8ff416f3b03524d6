"""Which values a manifest's promises name: places in a domain that must be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def promise_problems(part: Mapping[str, Any]) -> Iterator[str]:
    """Every place that a promise names is one of the domain, or of a column's values."""
    promise, m = part["promise"], len(part["domain"])
    named = [*_entries(promise, "exempt"), *_entries(promise, "above")]
    own = [*_entries(promise, "per_value"), *_entries(promise, "limits")]
    alone = _entries(promise, "loose")
    if not all(isinstance(entry, list) and len(entry) == 3 for entry in own):
        yield "a promise has no limits for a value of its own"
        return
    if not all(isinstance(entry, list) and len(entry) == 2 and _is_place(entry[1], m) for entry in alone):
        yield "a promise names a single value that is not there"
        return
    if not all(_is_place(place, m) for place in [*named, *(entry[0] for entry in own)]):
        yield "a promise names a value that is not in the domain"
    if not all(_is_place(entry[0], len(part["columns"])) for entry in alone):
        yield "a promise names a column that is not there"


def _entries(promise: Mapping[str, Any], name: str) -> list[Any]:
    entries = promise.get(name, [])
    return entries if isinstance(entries, list) else []


def _is_place(place: Any, m: int) -> bool:
    return isinstance(place, int) and not isinstance(place, bool) and 0 <= place < m
