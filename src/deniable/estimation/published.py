"""What estimation needs of a release: its manifest, and someone who counts its rows.

A protocol, so that estimation depends on no engine: any store that can tally rows by dictionary codes will do.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from deniable.core.channels import Channel, uniform_weights
from deniable.core.exact import SCALE
from deniable.core.learned import Learned
from deniable.core.lineups import LineUpDesign
from deniable.core.manifest import Column, Manifest
from deniable.core.part import Marginal
from deniable.core.tally import Counter, Derived
from deniable.core.values import Bools, Floats, Ints

__all__ = ["Bools", "Completed", "Counter", "Floats", "Ints", "Layout", "OnePart", "Published", "with_columns"]


class Layout(Protocol):
    """What conditions are read against: the columns, and the values of the sensitive part."""

    @property
    def domain(self) -> tuple[Hashable, ...]: ...
    @property
    def sensitive_columns(self) -> tuple[str, ...]: ...
    @property
    def public_columns(self) -> tuple[str, ...]: ...


class Published(Protocol):
    """A release, as estimation sees it."""

    @property
    def manifest(self) -> Any: ...

    def counter(self) -> Counter: ...


@dataclass(frozen=True, eq=False)
class Completed:
    """The rows of a release, with a manifest that says more than the published one, and columns that are computed."""

    manifest: Manifest
    counted: Counter
    derived: Mapping[str, Derived] = field(default_factory=dict)

    def counter(self) -> Counter:
        return self.counted


def with_columns(published: Published, derived: Sequence[Derived]) -> Published:
    """A release that has some more public columns, each computed from those that it publishes."""
    if not derived:
        return published
    counter = published.counter().with_columns(derived)
    more = [Column(column.name, str(counter.distinct(column.name).type), "public") for column in derived]
    known = published.derived if isinstance(published, Completed) else {}
    manifest = replace(published.manifest, columns=(*published.manifest.columns, *more))
    return Completed(manifest, counter, {**known, **{column.name: column for column in derived}})


def source_of(published: Published, column: str) -> Derived | None:
    """How a public column is computed from one other; None where it is not."""
    derived = published.derived.get(column) if isinstance(published, Completed) else None
    return derived if derived is not None and len(derived.sources) == 1 else None


@dataclass(frozen=True, eq=False, kw_only=True)
class OnePart:
    """A release of one part; exempt missing values are one more value, in a cell that is published as it is."""

    domain: tuple[Hashable, ...]
    channels: tuple[Channel, ...]
    cell_positions: tuple[Ints, ...]
    cells_published: bool
    sensitive_columns: tuple[str, ...]
    public_columns: tuple[str, ...]
    rows: int
    marginal: Marginal | None
    mixture: Any = None
    lineups: LineUpDesign | None = None
    learned: Learned | None = None

    @classmethod
    def of(cls, manifest: Manifest) -> OnePart:
        """The only part of a release."""
        (part,) = manifest.parts
        missing: Hashable = (None,) * len(part.columns) if len(part.columns) > 1 else None
        domain, channels, positions = part.domain, part.channels, part.cell_positions
        mixture = None if part.mixture is None else np.asarray(part.mixture, np.float64)
        published = part.cells_published
        if part.learned is not None:  # rows count as they are
            channels = (Channel(domain, np.full(part.m, SCALE), uniform_weights(part.m)),)
            positions = (np.arange(part.m),)
        if part.beside_domain:
            domain = (*domain, missing)
            if channels:
                channels = (*channels, Channel((missing,), np.array([SCALE]), np.array([SCALE])))
                positions, published = (*positions, np.array([part.m])), True
            elif mixture is not None:  # one more value that is always published as itself
                mixture = np.pad(mixture, (0, 1))
                mixture[-1, -1] = 1.0
        return cls(
            domain=domain,
            channels=channels,
            cell_positions=positions,
            cells_published=published,
            sensitive_columns=part.columns,
            public_columns=manifest.public_columns,
            rows=manifest.rows,
            marginal=part.marginal,
            mixture=mixture,
            lineups=part.lineups,
            learned=part.learned,
        )
