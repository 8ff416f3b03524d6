"""A release with more public columns, each computed from those that it publishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deniable.core.manifest import Column, Manifest
from deniable.core.tally import Counter, Derived
from deniable.estimation.published import Published


@dataclass(frozen=True, eq=False)
class Extended:
    """The same rows, with more columns."""

    manifest: Manifest
    counted: Counter

    def counter(self) -> Counter:
        return self.counted


def with_columns(published: Published, derived: Sequence[Derived]) -> Published:
    """A release that has some more public columns."""
    if not derived:
        return published
    counter = published.counter().with_columns(derived)
    more = [Column(column.name, str(counter.distinct(column.name).type), "public") for column in derived]
    return Extended(replace(published.manifest, columns=(*published.manifest.columns, *more)), counter)
