"""What makes a release another one: the content of the table and every choice that was made (mathematics 13.1).

Draws are derived from the key and this context. If two releases shared draws, rows that they publish differently would
show that both were kept; so the same table and choices give the same release, and anything else is drawn afresh.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable.engines.base import Dataset


def context_of(dataset: Dataset, columns: list[str], row_id: str | None, choices: Mapping[str, Any]) -> str:
    """A digest of some columns of a table, in the order of its rows or of their ids, and of all choices."""
    content = dataset.digest([*columns, *([] if row_id is None else [row_id])], by=row_id)
    return hashlib.sha256(f"{content} {canonical(choices)}".encode()).hexdigest()


def canonical(value: Any) -> str:
    """A value as text that depends on nothing but the value: not on the order of a set, nor on a run of the program.

    >>> canonical({"b": {2, 1}, "a": (1.5, None)})
    '{"a": (1.5, None), "b": {1, 2}}'
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{type(value).__name__}{canonical(fields)}"
    if isinstance(value, Mapping):
        items = sorted((canonical(key), canonical(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(canonical, value)) + ")"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    return f'"{value}"' if isinstance(value, str) else repr(value)
