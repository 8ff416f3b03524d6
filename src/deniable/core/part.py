"""Parts of a release: sensitive columns that are perturbed together. A part says everything that is public of them.

Whoever estimates, verifies or audits reads parts, and nothing else of how a release came about.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from deniable.core import promise, values
from deniable.core.arrays import Counts
from deniable.core.bins import Bins
from deniable.core.channel import Channel
from deniable.core.errors import ManifestError
from deniable.core.exact import SCALE
from deniable.core.items import ListItem
from deniable.core.lineup import LineUpDesign
from deniable.core.lineup_codes import design_of
from deniable.core.promise import Promise
from deniable.core.replace import NumberRange, Requirement

Mixture = tuple[tuple[float, ...], ...]
GroupingKind = Literal["mixed", "balanced", "anatomy"]


COUNT_EPSILON = 0.5  # of the noise in each count of a histogram: epsilon 1 for the whole of it


@dataclass(frozen=True)
class Marginal:
    """The histogram of the sensitive column with discrete Laplace noise, published for calibration (mathematics 8).

    Attributes:
        epsilon: of the noise in each count.
        variance: of the noise in each count.
    """

    counts: tuple[int, ...]
    epsilon: float
    variance: float

    @property
    def cost(self) -> float:
        """The epsilon of the whole histogram: one person who changes value moves two counts (mathematics 13.2)."""
        return 2 * self.epsilon


@dataclass(frozen=True)
class Grouping:
    """Decoy groups: their size, and how values were brought together."""

    c: int
    kind: GroupingKind = "mixed"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sensitive columns that are perturbed together, independently of all other parts.

    Attributes:
        columns: one column, or several that are compounded into one.
        types: the Arrow types of the columns, by name.
        missing: the policy for missing values.
        domain: its values; tuples where columns are compounded. Empty for a range of numbers.
        range: for a numeric column that is replaced by numbers of a range: its grid and coin.
        channels, cell_positions: each cell's channel, and where its values stand in the domain; empty where cells are
            hidden, or there are none.
        cells_published: whether the column ``cell`` says which cell a row fell into.
        marginal: the noisy histogram, where it is published.
        mixture: where the cells of rows are hidden: the channel of the whole table, by the noisy histogram,
            mixture[y][x] = Pr[x is published as y].
        swapped: among how many rows replaced values were permuted; None where they were drawn.
        groups: of decoys, how rows are grouped.
        bins: column -> its bins, where its values are intervals of a number.
        requirement: the part's own, where columns have their own.
        lineups: where rows publish sets of values, the design of the sets.
        item: where it is an item of a column of lists, which one, and how lists were read.
        promise: what is promised of it.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    missing: str
    promise: Promise
    domain: tuple[Hashable, ...] = ()
    range: NumberRange | None = None
    channels: tuple[Channel, ...] = ()
    cell_positions: tuple[Counts, ...] = ()
    cells_published: bool = False
    marginal: Marginal | None = None
    mixture: Mixture | None = None
    swapped: int | None = None
    groups: Grouping | None = None
    bins: Mapping[str, Bins] = field(default_factory=dict)
    requirement: Requirement | None = None
    lineups: LineUpDesign | None = None
    item: ListItem | None = None

    @property
    def m(self) -> int:
        return len(self.domain)

    @property
    def exempt(self) -> bool:
        """Whether missing values are published as they are."""
        return self.missing == "exempt"

    @property
    def beside_domain(self) -> bool:
        """Whether missing values are published as they are, and none of the domain."""
        return self.exempt and ((None,) * len(self.columns) if len(self.columns) > 1 else None) not in self.domain

    @property
    def coin(self) -> int | None:
        """The coin out of 2^32, where one coin serves all values; None where there are several or none."""
        if self.range is not None:
            return self.range.keep
        if len(self.channels) != 1 or (self.channels[0].keep != self.channels[0].keep[0]).any():
            return None
        return int(self.channels[0].keep[0])

    def column_values(self, column: str) -> tuple[Hashable, ...]:
        """The value of one of its columns at each position of the domain."""
        if len(self.columns) == 1:
            return self.domain
        place = self.columns.index(column)
        return tuple(entry[place] for entry in self.domain if isinstance(entry, tuple))


def perturbed_names(parts: Sequence[Part]) -> str:
    """What was perturbed, for people: the columns, or the list whose items they are."""
    item = parts[0].item
    if item is not None:
        return f"{item.list} ({len(parts)} item{'s' * (len(parts) != 1)})"
    return ", ".join(str(name) for part in parts for name in part.columns)


def part_dict(part: Part) -> dict[str, Any]:
    """A part as JSON."""
    several = len(part.columns) > 1
    return {
        "columns": list(part.columns),
        "types": list(part.types),
        "missing": part.missing,
        "domain": [
            [values.to_json(item) for item in (entry if several and isinstance(entry, tuple) else (entry,))]
            for entry in part.domain
        ],
        "range": None if part.range is None else part.range.to_dict(),
        "cells": [
            {"values": places.tolist(), "keep": channel.keep.tolist(), "replace": channel.replace.tolist()}
            for channel, places in zip(part.channels, part.cell_positions, strict=True)
        ],
        "cells_published": part.cells_published,
        "marginal": None if part.marginal is None else {**asdict(part.marginal), "counts": list(part.marginal.counts)},
        "mixture": None if part.mixture is None else [list(row) for row in part.mixture],
        "swapped": part.swapped,
        "groups": None if part.groups is None else asdict(part.groups),
        "bins": {name: {"edges": list(b.edges), "open_ends": b.open_ends} for name, b in part.bins.items()},
        "requirement": None if part.requirement is None else _requirement_dict(part.requirement),
        "promise": promise.to_dict(part.promise),
        **({} if part.lineups is None else {"lineups": part.lineups.integers()}),
        **({} if part.item is None else {"item": asdict(part.item)}),
    }


def _requirement_dict(stated: Requirement) -> dict[str, Any]:
    s = None if stated.s is None else str(stated.s)
    return {"rho1": str(stated.rho1), "rho2": str(stated.rho2), "adversary": stated.adversary, "s": s}


def part_of(raw: Mapping[str, Any]) -> Part:
    """A part from JSON."""
    kinds = raw["types"]
    if len(kinds) != len(raw["columns"]) or any(len(entry) != len(kinds) for entry in raw["domain"]):
        raise ManifestError("manifest.json is damaged: a value of the domain does not have one entry per column.")
    decoded = [
        tuple(values.from_json(item, kind) for item, kind in zip(entry, kinds, strict=True)) for entry in raw["domain"]
    ]
    domain: tuple[Hashable, ...] = tuple(decoded) if len(kinds) > 1 else tuple(entry[0] for entry in decoded)
    marginal, stated = raw["marginal"], raw["requirement"]
    if marginal is not None and len(marginal["counts"]) != len(domain):
        raise ManifestError("manifest.json is damaged: the noisy histogram does not have one count per value.")
    return Part(
        columns=tuple(raw["columns"]),
        types=tuple(kinds),
        missing=raw["missing"],
        promise=promise.from_dict(raw["promise"]),
        domain=domain,
        range=None if raw["range"] is None else NumberRange.from_dict(raw["range"]),
        channels=tuple(_channel(cell, domain) for cell in raw["cells"]),
        cell_positions=tuple(np.array(cell["values"], dtype=np.int64) for cell in raw["cells"]),
        cells_published=raw["cells_published"],
        marginal=None if marginal is None else Marginal(**{**marginal, "counts": tuple(marginal["counts"])}),
        mixture=None if raw["mixture"] is None else _mixture(raw["mixture"], len(domain)),
        swapped=raw["swapped"],
        groups=None if raw["groups"] is None else Grouping(**raw["groups"]),
        bins={name: Bins(tuple(b["edges"]), b["open_ends"]) for name, b in raw["bins"].items()},
        requirement=None if stated is None else _requirement(stated),
        lineups=None if raw.get("lineups") is None else design_of(raw["lineups"], len(domain)),
        item=None if raw.get("item") is None else ListItem(**raw["item"]),
    )


def _requirement(raw: Mapping[str, Any]) -> Requirement:
    s = None if raw["s"] is None else Fraction(raw["s"])
    return Requirement(Fraction(raw["rho1"]), Fraction(raw["rho2"]), raw["adversary"], s)


def _channel(cell: Mapping[str, Any], domain: tuple[Hashable, ...]) -> Channel:
    places = cell["values"]
    if not places or max(places) >= len(domain):
        raise ManifestError("manifest.json is damaged: a cell is empty, or names a value that is not in the domain.")
    if not len(places) == len(cell["keep"]) == len(cell["replace"]) or sum(cell["replace"]) != SCALE:
        raise ManifestError("manifest.json is damaged: a cell's channel is not a probability distribution.")
    return Channel(tuple(domain[i] for i in places), np.array(cell["keep"]), np.array(cell["replace"]))


def _mixture(raw: list[list[float]], m: int) -> Mixture:
    matrix = np.array([row if len(row) == m else [] for row in raw], dtype=object)
    if matrix.shape != (m, m) or not np.allclose(matrix.astype(np.float64).sum(0), 1, atol=1e-4):
        raise ManifestError(
            "manifest.json is damaged: the channel of the whole table is not a probability distribution."
        )
    return tuple(tuple(row) for row in raw)
