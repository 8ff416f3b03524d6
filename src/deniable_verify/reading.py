"""Reading what strangers wrote: regular files of bounded size, JSON of bounded depth, and its schema."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

LARGEST_MANIFEST = 2**29  # bytes: a domain of 4 million values takes less
DEEPEST = 32
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


class DamagedError(Exception):
    """What was read is not what it has to be; the text says why."""


class NoReleaseError(Exception):
    """There is no release to check."""


def content_of(path: Path, most: int) -> bytes:
    """The bytes of a regular file: no link, no pipe, no device, and no more than so many."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as problem:
        raise DamagedError(f"{path.name} cannot be read, or is a link ({problem.strerror})") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_size > most:
        os.close(handle)
        raise DamagedError(f"{path.name} is no regular file, or larger than {most >> 20:,} MB")
    with os.fdopen(handle, "rb") as file:
        return file.read(most)


def json_of(content: bytes, name: str) -> Any:
    """One JSON document in which no field stands twice, every number is finite and every text can be written."""
    try:
        raw = json.loads(content.decode("utf-8"), object_pairs_hook=_no_field_twice, parse_constant=_no_constant)
        _require_plain(raw, 0)
    except (ValueError, RecursionError) as problem:
        line = f" (line {problem.lineno})" if isinstance(problem, json.JSONDecodeError) else ""
        raise DamagedError(f"{name} is not JSON{line} of numbers and texts that a release has") from None
    return raw


def _no_field_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a field stands there twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _require_plain(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("too deep")
    if isinstance(value, dict):
        for name, inner in value.items():
            name.encode()  # a lone half of a character raises
            _require_plain(inner, depth + 1)
    elif isinstance(value, list):
        if value and set(map(type, value)) == {int}:
            value = [min(value), max(value)]  # long lists are of whole numbers, and there may be millions
        for inner in value:
            _require_plain(inner, depth + 1)
    elif isinstance(value, str):
        value.encode()
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not finite")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("too large")


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of ``manifest.json``."""
    loaded: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("manifest.schema.json").read_text("utf-8")
    )
    return loaded


def misfits(raw: Any, wanted: Mapping[str, Any], where: str = "manifest.json") -> Iterator[str]:
    """Where a document is not what its schema says: the parts of JSON Schema that ours uses, and no others."""
    kinds = wanted.get("type", [])
    allowed = [kinds] if isinstance(kinds, str) else kinds
    if allowed and not any(type(raw) in TYPES[kind] for kind in allowed):
        yield f"{where} is not of type {' or '.join(allowed)}"
        return
    if "const" in wanted and raw != wanted["const"]:
        yield f"{where} is not {wanted['const']!r}"
    if "enum" in wanted and raw not in wanted["enum"]:
        yield f"{where} is none of {', '.join(map(repr, wanted['enum']))}"
    if "oneOf" in wanted and sum(not any(misfits(raw, one, where)) for one in wanted["oneOf"]) != 1:
        yield f"{where} is none of its forms, or several"
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        if not wanted.get("minimum", -math.inf) <= raw <= wanted.get("maximum", math.inf):
            yield f"{where} is out of bounds"
        if raw <= wanted.get("exclusiveMinimum", -math.inf):
            yield f"{where} is out of bounds"
    elif isinstance(raw, str):
        longest = wanted.get("maxLength", math.inf)
        if not wanted.get("minLength", 0) <= len(raw) <= longest or not re.search(wanted.get("pattern", ""), raw):
            yield f"{where} is not a text of its form"
    elif isinstance(raw, list):
        yield from _list_misfits(raw, wanted, where)
    elif isinstance(raw, dict):
        yield from _object_misfits(raw, wanted, where)


def _list_misfits(raw: list[Any], wanted: Mapping[str, Any], where: str) -> Iterator[str]:
    if not wanted.get("minItems", 0) <= len(raw) <= wanted.get("maxItems", math.inf):
        yield f"{where} has too few entries, or too many"
    if wanted.get("uniqueItems") and len({json.dumps(item) for item in raw}) < len(raw):
        yield f"{where} has an entry twice"
    for number, (item, inner) in enumerate(zip(raw, wanted.get("prefixItems", ()), strict=False)):
        yield from misfits(item, inner, f"{where}/{number}")
    items = wanted.get("items")
    if items is not None:
        if raw and set(map(type, raw)) == {int} and items.get("type") == "integer":
            raw = [min(raw), max(raw)]
        for number, item in enumerate(raw):
            yield from misfits(item, items, f"{where}/{number}")


def _object_misfits(raw: dict[str, Any], wanted: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = wanted.get("properties", {})
    for name in wanted.get("required", ()):
        if name not in raw:
            yield f"{where} lacks {name!r}"
    for name, inner in raw.items():
        known = properties.get(name, wanted.get("additionalProperties", True))
        if known is False:
            yield f"{where} has {name[:40]!r}, which is not known"
        elif known is not True:
            yield from misfits(inner, known, f"{where}/{name[:40]}")
