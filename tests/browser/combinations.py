"""Which combinations of widths, schemes and languages are tried each time, and which only among the long tests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def in_part(first: Sequence[Any], *others: Sequence[Any], quick: set[Any] | None = None) -> list[Any]:
    """All combinations; quick are those that are named, or each of the first ones once, with the others in turn."""
    quick = quick or {(one, *(other[i % len(other)] for other in others)) for i, one in enumerate(first)}
    every = itertools.product(first, *others)
    return [pytest.param(*each, marks=() if each in quick else pytest.mark.long) for each in every]
